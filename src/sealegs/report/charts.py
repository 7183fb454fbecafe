"""What a picture shows, computed from summaries and records: lines, bars or points. `svg` draws it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from sealegs.analysis.intervals import RANGES
from sealegs.harness.stored.samples import Samples
from sealegs.page.examples import shortened
from sealegs.page.format import chance, escape_controls, is_uninformative, no_interval, tag_value
from sealegs.page.layout import Bars, Curve, Points
from sealegs.page.metrics import Metric, unit_of
from sealegs.page.tables import figure, is_number, values_of
from sealegs.types import Summary, Unit

MOST_POINTS = 1200
"""Points of one chart: more would hide each other, and make the page heavy."""
MOST_CATEGORIES = 12
"""Colours of one chart: of more categories, the rarer ones are drawn as one."""
MOST_BARS = 24
"""Bars of one chart: of more, the page has a table."""
OTHER = "other"


class Position(NamedTuple):
    """A value along an axis, with its interval or why there is none."""

    x: float | str
    y: float
    low: float | None
    high: float | None
    no_interval: str = ""
    joined: bool = True
    """Whether a line may lead to it from the one before: not where one between them has no value."""


class Series(NamedTuple):
    """A line, or the bars of one colour."""

    name: str
    positions: tuple[Position, ...]


class CurveChart(Struct, frozen=True):
    """Lines along a tag, with their intervals as bands."""

    x_title: str
    x_unit: Unit
    y_title: str
    unit: Unit
    series: tuple[Series, ...]
    domain: tuple[float, float]
    """What the axis of the values covers."""


class BarChart(CurveChart, frozen=True):
    """Bars in rows, with their intervals as whiskers; a dashed line is where guessing would be."""

    chance: float | None = None
    chance_words: str = ""


class PointChart(Struct, frozen=True, kw_only=True):
    """Samples as points, by the category that colours them."""

    x_title: str
    y_title: str
    x_unit: Unit
    y_unit: Unit
    categories: Mapping[str, Sequence[tuple[float, float]]]


Chart: TypeAlias = CurveChart | BarChart | PointChart


def curve(summaries: Mapping[str, Summary], spec: Curve) -> CurveChart | None:
    """A line with a band for each run and each value of the curve's line tag; None where there is no line."""
    series, unit = _series(summaries, spec)
    if len({position.x for each in series for position in each.positions}) < 2:
        return None
    axes = (spec.x_title or spec.along, spec.x_unit, spec.y_title, unit)
    return CurveChart(*axes, series, _domain(series, unit))


def bars(
    summaries: Mapping[str, Summary], spec: Bars, metric: Metric | None = None, least: int = 2
) -> BarChart | None:
    """A bar with a whisker for each value of a tag, run and group; None where they are fewer than `least`."""
    series, unit = _series(summaries, spec)
    count = sum(len(each.positions) for each in series)
    if not least <= count <= MOST_BARS:
        return None
    low, high = _domain(series, unit)
    axes = (spec.x_title, spec.x_unit, spec.y_title, unit)
    guessing = metric.chance if metric else None
    return BarChart(*axes, series, (min(0.0, low), high), guessing, chance(metric))


def points(samples: Samples, spec: Points, metrics: Sequence[Metric]) -> tuple[PointChart | None, str]:
    """Samples as points, and what is to be said of them; no chart where too few have both numbers.

    Where there are very many they are thinned evenly.
    """
    columns = (samples.column(name) for name in (spec.x, spec.y, spec.colour))
    known = [
        (float(x), float(y), str(colour))
        for x, y, colour in zip(*columns, strict=True)
        if x is not None and y is not None and colour is not None
    ]
    if len(known) < 3:
        return None, ""
    drawn = known[:: -(-len(known) // MOST_POINTS)]
    note = "Each point is a sample."
    if len(drawn) < len(known):
        note += f" Showing {len(drawn):,} of {len(known):,} samples."
    names = _category_names([colour for _, _, colour in drawn])
    categories: dict[str, list[tuple[float, float]]] = {
        name: [] for name in sorted({*names}, key=lambda name: (name == OTHER, name))
    }
    for (x, y, _), name in zip(drawn, names, strict=True):
        categories[name].append((x, y))
    chart = PointChart(
        x_title=spec.x_title or spec.x,
        y_title=spec.y_title or spec.y,
        x_unit=unit_of(metrics, spec.x, "count"),
        y_unit=unit_of(metrics, spec.y, "count"),
        categories=categories,
    )
    return chart, note


def _category_names(values: Sequence[str]) -> list[str]:
    """A short name for each value: the rarer ones of many share one."""
    names = [escape_controls(shortened(value)) for value in values]
    frequent = [name for name, _ in Counter(names).most_common()]
    if len(frequent) <= MOST_CATEGORIES:
        return names
    frequent = frequent[: MOST_CATEGORIES - 1]
    return [name if name in frequent else OTHER for name in names]


def _domain(series: Sequence[Series], unit: Unit) -> tuple[float, float]:
    """All of a share; otherwise from the lowest interval to the highest with a margin.

    That is at least a tenth of the unit's range.
    """
    ends = [
        end
        for each in series
        for position in each.positions
        for end in (position.low, position.y, position.high)
        if end is not None
    ]
    low, high = min(ends), max(ends)
    least, most = RANGES.get(unit, (low, high))
    inside = least <= low and high <= most  # a difference may be outside of the range of its unit
    if unit == "share" and inside:
        return 0.0, 1.0
    margin = max(0.05 * (high - low), (0.1 * (most - least) - (high - low)) / 2)
    if not inside:
        return low - margin, high + margin
    return max(low - margin, least), min(high + margin, most)


def _series(summaries: Mapping[str, Summary], spec: Curve) -> tuple[tuple[Series, ...], Unit]:
    tag = spec.lines
    lines = {run: values_of(summary, spec.metric, tag) if tag else [] for run, summary in summaries.items()}
    # The name of a line says in what it differs from the others: the run, the tag, or both.
    names_run, names_line = len(summaries) > 1, len({line for each in lines.values() for line in each}) > 1
    series: list[Series] = []
    unit: Unit = "share"
    for run, summary in summaries.items():
        for line in lines[run] or [""]:
            parts = ((run, names_run), (tag_value(line, tag), names_line))
            name = escape_controls(" ".join(part for part, differs in parts if differs))
            positions: list[Position] = []
            joined = True
            for x in values_of(summary, spec.metric, spec.along):
                each = figure(summary, spec.metric, {spec.along: x, **({tag: line} if line else {})})
                if each is not None and each.value is not None:
                    low, high, unit = each.low, each.high, each.unit
                    reason = no_interval(each)
                    if low is not None and high is not None and is_uninformative(low, high, unit):
                        reason = "too wide"  # as in the tables: it would make the bars too short to be read
                    low, high = (None, None) if reason else (low, high)
                    place = float(x) if is_number(x) else escape_controls(tag_value(x, spec.along))
                    positions.append(Position(place, each.value, low, high, escape_controls(reason), joined))
                    joined = True
                else:
                    joined = False
            if positions:
                series.append(Series(name, tuple(positions)))
    return tuple(series), unit
