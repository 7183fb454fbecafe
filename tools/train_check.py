"""Learn the weights of RGB's lenient check from the labelled replies, and measure it anew.

Run it after a change of the word classes, of the n-grams or of the labelled replies; it needs scikit-learn,
which comes with the extra `sbert`:

    python tools/train_check.py

It prints the table of docs/rgb.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.svm import LinearSVC

from evenkeel.benchmarks.rgb.check.classifier import BITS, DECISIONS, FLAGS, Flags, features, weights
from evenkeel.benchmarks.rgb.check.lenient import read_reply
from evenkeel.benchmarks.rgb.files import Lang
from evenkeel.benchmarks.rgb.make.generator import compose
from evenkeel.files.package_data import data_path
from evenkeel.text.answer_search.mention import Answer, parts

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from rgb_labelled import DECISIONS as TITLES
from rgb_labelled import LANGUAGES, Labelled, labelled, precision_recall

FREEDOM = {"rejected": 3.0, "detected": 3.0, "right": 1.0}
"""How little the weights of each decision are held down (scikit-learn's C). As `SCALE` and `SHIFT`, measured
on writers that were left out."""
SCALE = 6.0
"""The margins of a support vector machine in about the size of log-odds."""
COPY = 0.15
"""What a copy of a reply counts."""
SHIFT = {"rejected": 1.65, "detected": 0.2, "right": 0.0}
"""Added to the constant, for the fewest errors on writers that were left out: the copies, none of which
declines or reports an error, make both look rarer than they are."""


class Example(NamedTuple):
    labels: Labelled
    indices: NDArray[np.intp]
    values: NDArray[np.float32]
    named: bool
    """All parts of the right answer are in it."""
    weight: float


def main() -> None:
    examples = []
    for lang in LANGUAGES:
        for row in [*labelled(lang, "learned"), *documents(lang)]:
            example = read_example(row, parts(row.answer), parts(row.fake), 1.0)
            examples.append(example)
            if example.named and row.right:
                # As if another answer were the right one: a wrong answer declines no more than a right one.
                examples.append(read_example(row, (), (), COPY))
    starts = np.cumsum([0, *(len(example.indices) for example in examples)])
    matrix = csr_matrix(
        (
            np.concatenate([example.values for example in examples]),
            np.concatenate([example.indices for example in examples]),
            starts,
        ),
        shape=(len(examples), 2**BITS + FLAGS),
    )
    learned = {}
    for decision in DECISIONS:
        # Whether an answer is right is asked only of replies that have it.
        entering = np.array([example.named or decision != "right" for example in examples])
        labels = np.array([getattr(example.labels, decision) for example in examples])
        weight = np.array([example.weight for example in examples])
        model = LinearSVC(C=FREEDOM[decision], max_iter=50_000, fit_intercept=False, random_state=0)
        model.fit(matrix[entering], labels[entering], sample_weight=weight[entering])
        coefficients = SCALE * model.coef_[0]
        coefficients[-1] += SHIFT[decision]
        learned[decision] = coefficients.astype(np.float16)
    np.savez_compressed(data_path("evenkeel.benchmarks.rgb.check", "weights.npz"), **learned)
    weights.cache_clear()
    print_table()


def documents(lang: Lang) -> Iterator[Labelled]:
    """Documents of the starter sets as replies, the question known or not: a true one gives the answer, an
    irrelevant one gives none and declines nothing."""
    for kind, seed in product(("plain", "fact"), (0, 1)):
        for number, instance in enumerate(msgspec.to_builtins(compose(lang, kind, seed=seed))):
            listed = [(text, True) for text in instance["positive"][:1]]
            listed += [(text, False) for text in instance["negative"][:3]]
            for document, is_true in listed:
                yield Labelled(
                    id=f"{kind}-{number}",
                    style="document",
                    query=instance["query"] if number % 2 else "",
                    answer=instance["answer"],
                    fake=instance.get("fakeanswer") or [],
                    reply=document,
                    right=is_true,
                    rejected=False,
                    detected=False,
                )


def read_example(row: Labelled, answer: Answer, fake: Answer, weight: float) -> Example:
    reading, ways, false = read_reply(row.reply, answer, fake, row.query)
    named = bool(answer) and all(ways)
    indices, values = features(reading, Flags(bool(false) and all(false), any(ways), named))
    return Example(row, indices, values, named, weight)


def print_table() -> None:
    """Precision and recall on the replies that were held out, as docs/rgb.md has them."""
    figures = [precision_recall(labelled(lang, "heldout")) for lang in LANGUAGES]
    heads = [f"{language} {what}" for language in LANGUAGES.values() for what in ("precision", "recall")]
    print(f"| | {' | '.join(heads)} |\n|{' --- |' * (1 + len(heads))}")
    for decision, title in TITLES.items():
        cells = [str(accuracy) for each in figures for accuracy in each[decision]]
        print(f"| {title} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
