"""How fast are candidates found? 1,000 anchors among 100,000 documents, by BM25 and by tags.

Beside it the plain way: for each anchor a loop in Python over all documents, on a few of the anchors, its
time multiplied up. Both must find the same candidates.

    python benchmarks/candidates.py [--documents N] [--anchors N] [--part N]
"""

from __future__ import annotations

import argparse
import math
import random
import resource
import time
from collections import Counter
from collections.abc import Callable

from sealegs.benchmarks.multiview.make.triplets import jaccard
from sealegs.text.bm25 import DIGITS, Floats, best, bm25_index
from sealegs.text.word_splitting import split
from table import Row, show

K = 20
VOCABULARY = 20_000
TAGS = 40
K1, B = 1.5, 0.75


def made_up(number: int) -> tuple[list[str], list[list[str]]]:
    """Documents of 20 to 60 words, a few of them frequent and most rare, and up to six tags each."""
    draw = random.Random(0)
    words = [f"w{rank}" for rank in range(VOCABULARY)]
    weights = [1 / (rank + 3) for rank in range(VOCABULARY)]
    texts = [" ".join(draw.choices(words, weights, k=draw.randint(20, 60))) for _ in range(number)]
    tags = [[f"t{tag}" for tag in draw.sample(range(TAGS), draw.randint(0, 6))] for _ in range(number)]
    return texts, tags


class Loop:
    """Counts made once, then every score in Python."""

    def __init__(self, texts: list[str], tags: list[list[str]]) -> None:
        self.counts = [Counter(words) for words in split(texts)]
        self.tags = [set(own) for own in tags]
        lengths = [count.total() for count in self.counts]
        mean = sum(lengths) / len(lengths)
        self.norms = [K1 * (1 - B + B * length / mean) for length in lengths]
        seen = Counter(word for count in self.counts for word in count)
        self.idf = {w: math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for w, n in seen.items()}

    def bm25(self, anchor: int, document: int) -> float:
        count, norm = self.counts[document], self.norms[document]
        score = 0.0
        for word, times in self.counts[anchor].items():
            if frequency := count.get(word):
                score += times * self.idf[word] * frequency / (frequency + norm)
        return round(score, DIGITS)

    def jaccard(self, anchor: int, document: int) -> float:
        one, other = self.tags[anchor], self.tags[document]
        return round(len(one & other) / len(one | other), DIGITS) if one or other else 0.0

    def candidates(self, anchor: int) -> tuple[list[int], list[int]]:
        others = [document for document in range(len(self.counts)) if document != anchor]
        found = []
        for likeness in (self.bm25, self.jaccard):
            scores = ((likeness(anchor, document), document) for document in others)
            best = sorted((pair for pair in scores if pair[0] > 0), key=lambda pair: (-pair[0], pair[1]))[:K]
            found.append([document for _, document in best])
        return found[0], found[1]


def candidates(scores: Callable[[int], Floats], anchors: list[int]) -> list[list[int]]:
    listed = []
    for anchor in anchors:
        row = scores(anchor)
        row[anchor] = 0
        listed.append(best(row, K))
    return listed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--documents", type=int, default=100_000, metavar="N")
    parser.add_argument("--anchors", type=int, default=1_000, metavar="N")
    parser.add_argument("--part", type=int, default=5, metavar="N", help="anchors for the plain loop")
    wanted = parser.parse_args()
    texts, tags = made_up(wanted.documents)
    anchors = random.Random(1).sample(range(wanted.documents), wanted.anchors)
    part = anchors[: wanted.part]

    start = time.perf_counter()
    lexical = candidates(bm25_index(texts), anchors)
    middle = time.perf_counter()
    tagged = candidates(jaccard(tags), anchors)
    end = time.perf_counter()
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    loop = Loop(texts, tags)
    begun = time.perf_counter()
    plain = [loop.candidates(anchor) for anchor in part]
    seconds_plain = (time.perf_counter() - begun) * len(anchors) / len(part)

    rows: list[Row] = [
        (
            f"a loop in Python ({len(part)} anchors, multiplied up)",
            seconds_plain,
            len(anchors) / seconds_plain,
        ),
        ("bm25s: BM25, with its index", middle - start, len(anchors) / (middle - start)),
        ("numpy: tags", end - middle, len(anchors) / (end - middle)),
        (f"both (peak {megabytes:,.0f} MB)", end - start, len(anchors) / (end - start)),
    ]
    show(f"Candidates for {len(anchors):,} anchors among {len(texts):,} documents", rows)
    same = sum(one == other for one, other in zip(zip(lexical, tagged, strict=True), plain, strict=False))
    print(f"the loop takes {seconds_plain / (end - start):,.0f} times as long as both", end="; ")
    print(f"the same candidates for {same} of {len(part)} anchors")


if __name__ == "__main__":
    main()
