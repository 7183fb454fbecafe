"""Tokenizers compared on MIRON's examples, without running a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from evenkeel.benchmarks.miron.benchmark import Miron
from evenkeel.benchmarks.miron.files import Example, check_langs, read_examples
from evenkeel.files import datasets
from evenkeel.models.boundary import find_boundary
from evenkeel.page.tables import Grid, figure, values_of
from evenkeel.run.registry import tokenizer
from evenkeel.types import Score, Summary, Unit

METRICS = {
    "pieces_per_word": "Pieces a word",
    "target_pieces": "Pieces of the target",
    "boundary_merges": "Boundary merges",
}
UNITS: Mapping[str, Unit] = {"pieces_per_word": "count", "target_pieces": "count", "boundary_merges": "share"}


def read(data: str, langs: Sequence[str] | None) -> list[Example]:
    """The examples that `--data` means."""
    fallback = langs[0] if langs and len(langs) == 1 else None
    files = datasets.find("miron", data, langs, starter=Miron.starter)
    found = [example for file in files for example in read_examples(file.path, file.lang or fallback)]
    return check_langs(found, langs)


def compare(examples: Sequence[Example], specs: Sequence[str]) -> dict[str, Summary]:
    """What each tokenizer makes of the examples, by category and language."""
    return {spec: measure(examples, tokenizer(spec)) for spec in dict.fromkeys(specs)}


def measure(examples: Sequence[Example], tokenise: Callable[[str], list[int]]) -> Summary:
    from evenkeel import analysis as stats

    scores = [score(example, tokenise) for example in examples]
    dimensions: list[tuple[str, ...]] = [(), ("category",), ("lang",), ("category", "lang")]
    return stats.summarise(scores, dict.fromkeys(METRICS, dimensions), units=UNITS)


def score(example: Example, tokenise: Callable[[str], list[int]]) -> Score:
    """One example: its tokens over its words, those past the prefix's, and whether they merge there."""
    start = len(tokenise(""))
    whole, before = tokenise(example.prefix + example.target), tokenise(example.prefix)
    target, merged = find_boundary(before, whole)
    words = len((example.prefix + example.target).split())
    return Score(
        sample_id=example.id,
        group=example.twin or example.id,
        tags={"category": example.category, "lang": example.lang},
        values={
            "pieces_per_word": (len(whole) - start) / words,
            "target_pieces": float(len(whole) - target),
            "boundary_merges": float(merged),
        },
        statuses={"ok": 1},
        answered=1,
    )


def grids(compared: Mapping[str, Summary]) -> list[Grid]:
    """A table for each metric: a row for each language and category, a column for each tokenizer."""
    first = next(iter(compared.values()))
    langs, categories = (values_of(first, "target_pieces", tag) for tag in ("lang", "category"))
    scopes = [
        (f"{lang} {category}", {"lang": lang, "category": category})
        for lang in langs
        for category in categories
    ]
    scopes += [(f"{lang} together", {"lang": lang}) for lang in langs if len(langs) > 1]
    return [
        Grid(
            title,
            "",
            list(compared),
            [
                (name, [figure(summary, metric, scope) for summary in compared.values()])
                for name, scope in [*scopes, ("all", {})]
            ],
        )
        for metric, title in METRICS.items()
    ]
