"""Tokenizers compared on MIRON's examples, without running a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from evenkeel.benchmarks.miron.benchmark import Miron
from evenkeel.benchmarks.miron.files import Example, read_files
from evenkeel.files import datasets
from evenkeel.models.boundary import find_boundary
from evenkeel.models.registry import tokenizer
from evenkeel.page.metrics import Metric, units
from evenkeel.page.tables import Grid, figure, values_of
from evenkeel.run.benchmark import Data
from evenkeel.types import Score, Summary

METRICS = (
    Metric("tokens_per_word", "Tokens per word", "count", None),
    Metric("target_tokens", "Tokens of the target", "count", None),
    Metric("boundary_merges", "Boundary merges", "share", "lower"),
)


def read(data: str | Sequence[str], langs: list[str] | None) -> list[Example]:
    """The examples of `--data`, in the chosen languages."""
    return read_files(Data(datasets.find("miron", data, langs, starter=Miron.starter), langs=langs))


def compare(examples: Sequence[Example], specs: Sequence[str]) -> dict[str, Summary]:
    """The figures of each tokenizer, by category and language."""
    return {spec: measure(examples, tokenizer(spec)) for spec in dict.fromkeys(specs)}


def measure(examples: Sequence[Example], tokenise: Callable[[str], list[int]]) -> Summary:
    from evenkeel import analysis as stats

    scores = [score(example, tokenise) for example in examples]
    dimensions: list[tuple[str, ...]] = [(), ("category",), ("lang",), ("category", "lang")]
    return stats.summarise(scores, {metric.name: dimensions for metric in METRICS}, units=units(METRICS))


def score(example: Example, tokenise: Callable[[str], list[int]]) -> Score:
    """One example: tokens per word, tokens after those of the prefix, and whether tokens merge there."""
    start = len(tokenise(""))
    whole, prefix = tokenise(example.prefix + example.target), tokenise(example.prefix)
    target, merged = find_boundary(prefix, whole)
    words = len((example.prefix + example.target).split())
    return Score(
        sample_id=example.id,
        group=example.clean_id or example.id,
        tags={"category": example.category, "lang": example.lang},
        values={
            "tokens_per_word": (len(whole) - start) / words,
            "target_tokens": float(len(whole) - target),
            "boundary_merges": float(merged),
        },
        statuses={"ok": 1},
        answered=1,
    )


def grids(summaries: Mapping[str, Summary]) -> list[Grid]:
    """A table for each metric: a row for each language and category, a column for each tokenizer."""
    first = next(iter(summaries.values()))
    langs, categories = (values_of(first, "target_tokens", tag) for tag in ("lang", "category"))
    scopes = [
        (f"{lang} {category}", {"lang": lang, "category": category})
        for lang in langs
        for category in categories
    ]
    scopes += [(f"{lang} together", {"lang": lang}) for lang in langs if len(langs) > 1]
    return [
        Grid(
            metric.title,
            "",
            list(summaries),
            [
                (name, [figure(summary, metric.name, scope) for summary in summaries.values()])
                for name, scope in [*scopes, ("all", {})]
            ],
        )
        for metric in METRICS
    ]
