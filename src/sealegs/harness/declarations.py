"""Whether what a benchmark declares fits together; else figures, columns and pictures would be missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sealegs.errors import UsageError, suggestion
from sealegs.harness.benchmark import Benchmark
from sealegs.page.layout import Curve, Layout
from sealegs.page.metrics import declaration
from sealegs.types import Sample


def check_tags(samples: Sequence[Sample]) -> None:
    """Refuse a tag that could not be grouped by, or not be read again."""
    for sample in samples:
        for tag, value in sample.tags.items():
            if not isinstance(value, str | int) or isinstance(value, bool):
                raise UsageError(
                    f"sample {sample.id}: the tag '{tag}' is a {type(value).__name__}; a tag is a text or a "
                    "whole number."
                )


def check_layout(benchmark: Benchmark) -> None:
    """Refuse a picture or table of a metric that is not declared, or not broken down as it needs."""
    cls = type(benchmark)
    names = [metric.name for metric in cls.metrics]
    for title, name, tags in _needs(cls.layout):
        metric = declaration(cls.metrics, name)
        if metric is None:
            raise UsageError(
                f"{cls.__name__}'s layout names the metric '{name}' in '{title}'.{suggestion(name, names)} "
                f"Declared: {', '.join(names)}."
            )
        if _has_default_summary(benchmark) and set(tags) not in map(set, metric.by):
            needed = repr(tags[0] if len(tags) == 1 else tags)
            raise UsageError(
                f"{cls.__name__}'s layout shows '{name}' by {' and '.join(tags)} in '{title}': the metric's "
                f"`by` lacks {needed}."
            )


def absent_tags(benchmark: Benchmark, samples: Sequence[Sample]) -> Iterator[str]:
    """A sentence for each tag of a metric's `by` that no sample has: a typo, or it is not in this data."""
    if not _has_default_summary(benchmark):
        return
    tags = dict.fromkeys(tag for sample in samples for tag in sample.tags)
    for tag in dict.fromkeys(tag for metric in benchmark.metrics for names in metric.by for tag in names):
        if tag not in tags:
            yield (
                f"No sample has the tag '{tag}', which is in a metric's `by`.{suggestion(tag, tags)} "
                f"Tags of the samples: {', '.join(tags) or 'none'}."
            )


def _has_default_summary(benchmark: Benchmark) -> bool:
    """Whether `by` decides which figures there are."""
    return type(benchmark).summarise is Benchmark.summarise


def _needs(layout: Layout) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The title of each picture and table, with a metric that it shows and the tags by which it does."""
    for picture in layout.pictures:
        if isinstance(picture, Curve):
            yield picture.title, picture.metric, tuple(filter(None, (picture.along, picture.lines)))
    for table in layout.tables:
        tags = tuple(filter(None, (table.rows, table.columns, *table.within)))
        for name in [column.metric for column in table.metrics] or [table.metric]:
            yield table.title, name, tags
