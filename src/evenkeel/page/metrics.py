"""What a benchmark measures: each metric declared once, with its unit and the direction that is better."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from msgspec import Struct

from evenkeel.types import Unit

Better: TypeAlias = Literal["higher", "lower"]


class Metric(Struct, frozen=True):
    """A value of samples or a figure of a summary. In its name `*` stands for any text: `across_*`."""

    name: str
    title: str
    unit: Unit
    better: Better | None = "higher"
    """None where neither direction is better: the length of an answer, say."""
    chance: float | None = None
    """What guessing gives."""
    ratio_to: str = ""
    """The metric that says which samples count, as `corrected` is a share of the `detected`; others have no
    value, which is not the same as 0."""
    mean_over: str = ""
    """A tag: the figure is the mean of the means of its values, each counted once (a macro-average)."""
    by: Sequence[str] = ()
    """The tags that it is broken down by, where the benchmark does not summarise by itself."""


def declaration(metrics: Iterable[Metric], name: str) -> Metric | None:
    """The declaration behind a name: `accuracy` for `accuracy@embed:a/b`, `drift` for `drift/lang=en`."""
    metric = name.partition("@")[0].partition("/")[0]
    matching = [each for each in metrics if fnmatchcase(metric, each.name)]
    return min(matching, key=lambda each: each.name != metric, default=None)


def unit_of(metrics: Iterable[Metric], name: str) -> Unit:
    found = declaration(metrics, name)
    if found is None:
        raise LookupError(f"the benchmark does not declare the metric '{name}'")
    return found.unit


def units(metrics: Iterable[Metric]) -> dict[str, Unit]:
    """The unit of each metric by its name."""
    return {metric.name: metric.unit for metric in metrics}
