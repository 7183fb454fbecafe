"""Runs set against each other: paired by sample on what both have, with errors over groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from evenkeel import analysis as stats
from evenkeel.analysis import combined
from evenkeel.analysis.comparability import (
    Numbers,
    check_methods,
    comparable,
    covered,
    differing,
    figure_of,
    layout_of,
    mean_of,
    read_numbers,
    split_name,
    usual_metrics,
)
from evenkeel.errors import UsageError
from evenkeel.page.layout import Layout
from evenkeel.page.metrics import declaration
from evenkeel.page.tables import summaries
from evenkeel.run.folder import Run
from evenkeel.types import Unit

SIGNIFICANT = 0.05
MIN_GROUPS = 6
"""With five groups not even a change in each of them is significant by a sign test: 2 / 2⁵ > 0.05."""
FEW_IN_A_PART = f"none: a part has fewer than {MIN_GROUPS} groups"


class Side(Struct, frozen=True, kw_only=True):
    """One of the runs compared."""

    name: str
    path: str
    coverage: float
    """Of its headline figure."""


class Difference(Struct, frozen=True, kw_only=True):
    """One metric of two runs: b − a, over the samples that have a value in both."""

    metric: str
    unit: Unit
    a: str
    b: str
    value_a: float | None
    value_b: float | None
    difference: float | None
    low: float | None
    high: float | None
    """The 95 % interval of this difference alone, not widened for the number of comparisons."""
    p: float | None
    p_holm: float | None
    """Corrected for all differences of the comparison."""
    different: bool
    """Whether the two are told apart: p_holm < 0.05."""
    detectable: float | None
    """The minimum detectable difference: the smallest true one that p_holm < 0.05 would have shown in four of
    five such samples, were it the only one of the comparison.
    """
    method: str
    n: int
    clusters: int
    coverage_a: float
    coverage_b: float
    """Answered requests over requests asked, of each run in the metric's scope."""
    coverage: float
    """Of the difference: paired, answered requests of the samples with a value in both runs, over the
    requests asked in both for the samples that both have; unpaired, over both runs.
    """


class Place(Struct, frozen=True, kw_only=True):
    """A run in the ranking by a metric. Runs that share a letter are not told apart."""

    metric: str
    name: str
    value: float | None
    low: float | None
    high: float | None
    letters: str


class Comparison(Struct, frozen=True, kw_only=True):
    """What `compare` finds: every pair of runs by every metric, and the runs in order of each metric."""

    benchmark: str
    paired: bool
    runs: tuple[Side, ...]
    metrics: tuple[str, ...]
    differs: tuple[str, ...]
    """What was asked otherwise of one run than of another, beside the model under test."""
    differences: tuple[Difference, ...]
    ranking: tuple[Place, ...]
    """Metric by metric, the best run first; the highest where neither direction is better."""

    def __repr__(self) -> str:
        from evenkeel.report.notebook import comparison_text

        return comparison_text(self)

    def _repr_html_(self) -> str:
        from evenkeel.report.notebook import comparison_html

        return comparison_html(self)


def compare(
    *runs: Run | str | Path, metrics: str | Sequence[str] | None = None, unpaired: bool = False
) -> Comparison:
    """Each run against each other, by the metrics named (`mean_similarity`, `mean_similarity/lang=en`).

    Without `metrics`, two runs are compared by all that their benchmark shows of samples (of methods, by the
    headline of each that both have), and more than two by its headline. Runs that were asked different
    things are refused, unless `unpaired` takes them for samples that have nothing to do with each other.

    `ek.compare("runs/old", "runs/new", metrics="mean_similarity").differences[0].difference`
    """
    metrics = [metrics] if isinstance(metrics, str) else metrics
    loaded = [run if isinstance(run, Run) else Run(run) for run in runs]
    layout = layout_of(loaded)
    wanted = list(dict.fromkeys(metrics or usual_metrics(layout, loaded)))
    check_methods(wanted, layout, loaded)
    numbers = [read_numbers(run, wanted, layout.metrics) for run in loaded]
    wanted = comparable(wanted, loaded, numbers, named=bool(metrics))
    if not metrics and len(loaded) > 2 and not loaded[0].methods:
        wanted = wanted[:1]
    differs = differing(loaded, numbers, paired=not unpaired)
    sides = dict(zip(summaries(loaded), numbers, strict=True))
    units = {metric: _unit(metric, layout, loaded, numbers) for metric in wanted}
    lower = {m for m in wanted if (found := declaration(layout.metrics, m)) and found.better == "lower"}
    differences = _corrected(
        [
            _difference(metric, units[metric], (a, sides[a]), (b, sides[b]), paired=not unpaired)
            for metric in wanted
            for a, b in combinations(sides, 2)
        ]
    )
    return Comparison(
        benchmark=loaded[0].spec.benchmark,
        paired=not unpaired,
        runs=tuple(
            Side(name=name, path=str(run.path), coverage=_coverage(run, layout, sides[name]))
            for name, run in zip(sides, loaded, strict=True)
        ),
        metrics=tuple(wanted),
        differs=tuple(differs),
        differences=differences,
        ranking=tuple(
            place
            for metric in wanted
            for place in _ranking(
                sides, metric, units[metric], differences, paired=not unpaired, lowest=metric in lower
            )
        ),
    )


def _coverage(run: Run, layout: Layout, numbers: Numbers) -> float:
    """Of the headline; of what is compared where the summary lacks it, as one of an older version may."""
    headline = run.summary.get(layout.headline)
    return headline.coverage if headline else min(numbers.coverage.values(), default=0.0)


def _unit(metric: str, layout: Layout, runs: Sequence[Run], numbers: Sequence[Numbers]) -> Unit:
    """The unit that the benchmark declares; of what it does not declare, that of the figure."""
    if (declared := declaration(layout.metrics, metric)) is not None:
        return declared.unit
    whole = split_name(metric, numbers[0].metrics)[0]
    names = (metric, whole, whole.partition("@")[0])
    for run in runs:
        for name in names:
            if figure := figure_of(run, name):
                return figure.unit
        # A figure may be there in parts only: `accuracy/task=colours` where the task was asked for.
        scoped = (figure.unit for name, figure in run.summary.items() if stats.scope_of(name)[0] in names)
        if unit := next(scoped, None):
            return unit
    raise UsageError(f"the unit of '{metric}' is unknown: no run has a figure of it in its summary.json.")


class _Row(NamedTuple):
    """A difference before it is corrected for the others, and the test behind it."""

    difference: Difference
    tested: stats.Tested
    yes_or_no: int
    """Of pairs that are each 0 or 1 on both sides, the number of groups; else 0."""


def _difference(
    metric: str, unit: Unit, a: tuple[str, Numbers], b: tuple[str, Numbers], *, paired: bool
) -> _Row:
    (name_a, run_a), (name_b, run_b) = a, b
    first, second = _compared(metric, run_a, run_b, paired=paired)
    parts = run_a.parts.get(metric)
    clusters = min(len({run_a.groups[s] for s in first}), len({run_b.groups[s] for s in second}))
    tested = stats.Tested(None, None, None, stats.TOO_FEW if first and second else stats.NOTHING)
    if parts is not None and first and _fewest(first, run_a.groups, parts) < MIN_GROUPS:
        tested = stats.Tested(None, None, None, FEW_IN_A_PART)
    elif parts is not None or metric in run_a.ratios:
        if estimate := _combined(metric, (first, run_a), (second, run_b), paired=paired):
            tested = stats.paired_test(estimate, unit=unit)
    elif clusters < 2:
        pass
    elif paired:
        change = {sample: second[sample] - first[sample] for sample in first}
        tested = stats.paired_test(_side(change, run_a.groups).estimate, unit=unit)
    else:
        tested = stats.unpaired_test(_side(first, run_a.groups), _side(second, run_b.groups), unit=unit)
    value_a, value_b = mean_of(first, parts), mean_of(second, run_b.parts.get(metric))
    difference = Difference(
        metric=metric, unit=unit, a=name_a, b=name_b, value_a=value_a, value_b=value_b,
        difference=None if value_a is None or value_b is None else value_b - value_a,
        low=tested.low, high=tested.high, p=tested.p, p_holm=None, different=False, detectable=None,
        method=tested.method, n=min(len(first), len(second)), clusters=clusters,
        coverage_a=run_a.coverage.get(metric, 0.0), coverage_b=run_b.coverage.get(metric, 0.0),
        coverage=_covered(metric, run_a, run_b, paired=paired),
    )  # fmt: skip
    binary = paired and {*first.values(), *second.values()} <= {0, 1}
    return _Row(difference, tested, clusters if binary else 0)


def _fewest(values: Mapping[str, float], groups: Mapping[str, str], parts: Mapping[str, str]) -> int:
    """The number of groups in the part that has fewest: what it does not show, the others cannot."""
    by_part: dict[str, set[str]] = {}
    for sample in values:
        by_part.setdefault(parts[sample], set()).add(groups[sample])
    return min(map(len, by_part.values()))


def _covered(metric: str, first: Numbers, second: Numbers, *, paired: bool) -> float:
    """What of the requests behind a difference was answered: of a pair, as much as of its weaker side."""
    a, b = first.requests.get(metric, {}), second.requests.get(metric, {})
    if not paired:
        return covered([*a.values(), *b.values()])
    return stats.pair_coverage((a[sample], b[sample]) for sample in a if sample in b)


def _compared(
    metric: str, run_a: Numbers, run_b: Numbers, *, paired: bool
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """The values of both sides that enter: where samples are paired, of those that both have.

    Of a ratio each side has its own denominator: the samples that both were asked and that count in it. A
    macro-average that lacks one of its parts is unknown.
    """
    sides = [run_a.values[metric], run_b.values[metric]]
    if metric in run_a.ratios and paired:
        both = run_a.asked_for[metric] & run_b.asked_for[metric]
        sides = [{sample: value for sample, value in side.items() if sample in both} for side in sides]
    elif paired:
        sides = _common(sides)
    if metric in run_a.parts:
        wanted = {run.parts[metric][s] for run in (run_a, run_b) for s in run.asked_for[metric]}
        for run, side in zip((run_a, run_b), sides, strict=True):
            if {run.parts[metric][sample] for sample in side} != wanted:
                return {}, {}
    return sides[0], sides[1]


def _combined(
    metric: str,
    a: tuple[Mapping[str, float], Numbers],
    b: tuple[Mapping[str, float], Numbers],
    *,
    paired: bool,
) -> stats.Estimate | None:
    """b − a of macro-averages or of ratios, with the error over groups, which both sides share if paired."""
    (first, run_a), (second, run_b) = a, b
    if not first or not second:
        return None
    if paired and metric in run_a.parts:
        change = {sample: second[sample] - first[sample] for sample in first}
        return combined.estimate(combined.macro_terms(change, run_a.groups, run_a.parts[metric]))
    terms = []
    for sign, values, run in ((-1, first, run_a), (1, second, run_b)):
        groups = run.groups if paired else {sample: f"{sign} {run.groups[sample]}" for sample in values}
        parts = run.parts.get(metric) or dict.fromkeys(values, "")
        terms += [
            term._replace(coefficient=sign * term.coefficient)
            for term in combined.macro_terms(values, groups, parts)
        ]
    return combined.estimate(terms)


def _common(sides: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """Each side's values of the samples that all sides have, in one order."""
    samples = [sample for sample in sides[0] if all(sample in side for side in sides)]
    return [{sample: side[sample] for sample in samples} for side in sides]


def _side(values: Mapping[str, float], groups: Mapping[str, str]) -> stats.Side:
    """Values, and the numbers of their groups from 0 on."""
    numbers: dict[str, int] = {}
    places = [numbers.setdefault(groups[sample], len(numbers)) for sample in values]
    return stats.Side(np.array(list(values.values()), dtype=float), np.array(places, dtype=np.intp))


def _corrected(rows: Sequence[_Row]) -> tuple[Difference, ...]:
    """Holm's correction over all differences of the comparison, and what it could have shown."""
    corrected = stats.holm([row.tested.p for row in rows])
    tests = sum(p is not None for p in corrected)
    return tuple(
        msgspec.structs.replace(
            row.difference,
            p_holm=p,
            different=p is not None and p < SIGNIFICANT,
            detectable=stats.detectable(
                row.tested, unit=row.difference.unit, tests=max(1, tests), yes_or_no=row.yes_or_no
            ),
        )
        for row, p in zip(rows, corrected, strict=True)
    )


def _ranking(
    sides: Mapping[str, Numbers], metric: str, unit: Unit, differences: Iterable[Difference], *, paired: bool,
    lowest: bool,
) -> tuple[Place, ...]:  # fmt: skip
    """The runs by their means, over the samples that all have; unpaired or of a ratio, each over its own."""
    values: Sequence[Mapping[str, float]] = [run.values[metric] for run in sides.values()]
    paired = paired and not any(metric in run.ratios for run in sides.values())
    figures = {
        name: _interval(metric, held, run, unit)
        for (name, run), held in zip(sides.items(), _common(values) if paired else values, strict=True)
    }
    sign = 1 if lowest else -1
    ranked = sorted(sides, key=lambda name: np.inf if (v := figures[name].value) is None else sign * v)
    told_apart = [(d.a, d.b) for d in differences if d.metric == metric and d.different]
    letters = group_letters(ranked, told_apart)
    return tuple(
        Place(
            metric=metric, name=name, value=found.value, low=found.low, high=found.high, letters=letters[name]
        )
        for name in ranked
        if (found := figures[name])
    )


def _interval(metric: str, values: Mapping[str, float], run: Numbers, unit: Unit) -> stats.Interval:
    """The mean, or macro-average, of a run's values; unknown where a part has none."""
    if values and metric in run.parts:
        parts = run.parts[metric]
        if {parts[sample] for sample in values} != {parts[sample] for sample in run.asked_for[metric]}:
            return stats.Interval(None, None, None, stats.NOTHING, 0, 0)
        return combined.interval(combined.macro_terms(values, run.groups, run.parts[metric]), unit)
    return stats.interval_of(*_side(values, run.groups), unit)


def group_letters(ranked: Sequence[str], told_apart: Iterable[tuple[str, str]]) -> dict[str, str]:
    """A letter for each largest set of runs of which no two are told apart (Piepho 2004).

    All begin in one set. A pair that is told apart splits every set that holds both; what then lies within
    another set is dropped.
    """
    sets = [frozenset(ranked)]
    for pair in told_apart:
        split = [
            part
            for held in sets
            for part in ([held - {x} for x in pair] if held.issuperset(pair) else [held])
        ]
        sets = [part for part in dict.fromkeys(split) if not any(part < other for other in split)]
    sets.sort(key=lambda held: [name not in held for name in ranked])
    return {name: "".join(_letter(i) for i, held in enumerate(sets) if name in held) for name in ranked}


def _letter(index: int) -> str:
    return chr(ord("a") + index % 26) + "'" * (index // 26)
