"""Runs compared with each other: paired by sample on what both have, with errors over groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from evenkeel import analysis as stats
from evenkeel.analysis import combined
from evenkeel.analysis.comparability import (
    MetricValues,
    RunValues,
    broken_down,
    check_subjects,
    comparable,
    covered,
    figure_of,
    layout_of,
    read_values,
    run_names,
    split_name,
    usual_metrics,
)
from evenkeel.analysis.links import independent_groups, numbered
from evenkeel.analysis.pairing import check_pairing
from evenkeel.errors import UsageError
from evenkeel.harness.folder import Run
from evenkeel.page.layout import Layout
from evenkeel.page.metrics import declaration
from evenkeel.page.notebook import Displayed
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
    """Whether the two differ significantly: p_holm < 0.05."""
    detectable: float | None
    """The minimum detectable difference (80 % power): the smallest true one that would be significant in four
    of five such samples, were it the only one of the comparison.
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


class RankedRun(Struct, frozen=True, kw_only=True):
    """A run in the ranking by a metric. Runs that share a letter do not differ significantly."""

    metric: str
    name: str
    value: float | None
    low: float | None
    high: float | None
    letters: str


class Comparison(Displayed, Struct, frozen=True, kw_only=True):
    """What `compare` returns: every pair of runs by every metric, and the runs in order of each metric."""

    benchmark: str
    paired: bool
    runs: tuple[Side, ...]
    metrics: tuple[str, ...]
    differs: tuple[str, ...]
    """What the runs were asked differently, apart from the model under test."""
    notes: tuple[str, ...] = ()
    """Which samples are compared, and what is not known of how they were asked."""
    differences: tuple[Difference, ...]
    ranking: tuple[RankedRun, ...]
    """Metric by metric, the best run first; the highest where neither direction is better."""


def compare(
    *runs: Run | str | Path,
    metrics: str | Sequence[str] | None = None,
    by: str | Sequence[str] = (),
    unpaired: bool = False,
) -> Comparison:
    """Each run against each other, by the metrics named (`mean_similarity`, `mean_similarity/lang=en`).

    Without `metrics`, two runs are compared by all that their benchmark shows of samples (where subjects are
    set side by side, by the headline of each that both have), and more than two by its headline. `by` breaks
    each metric (the headline, if none is named) down by tags: `by="level"`. Runs that were asked different
    things are refused, unless `unpaired` takes them for unrelated samples; `notes` of the result name what
    runs of recorded answers do not state.

    `ek.compare("runs/old", "runs/new", metrics="mean_similarity").differences[0].difference`
    """
    names = [metrics] if isinstance(metrics, str) else metrics
    tags = [by] if isinstance(by, str) else by
    opened = [run if isinstance(run, Run) else Run(run) for run in runs]
    return compare_values(opened, names, by=tags, unpaired=unpaired)[0]


def compare_values(
    runs: Sequence[Run],
    metrics: Sequence[str] | None,
    *,
    by: Sequence[str] = (),
    unpaired: bool = False,
    strict: bool = False,
) -> tuple[Comparison, list[RunValues]]:
    """The comparison, and the values that it was computed from; `strict` leaves nothing out that differs."""
    layout = layout_of(runs)
    usual = [layout.headline] if by and not runs[0].subjects else usual_metrics(layout, runs)
    names = list(dict.fromkeys(broken_down(metrics or usual, by, runs)))
    check_subjects(names, layout, runs)
    asked: dict[bytes, Any] = {}
    values = [read_values(run, names, layout.metrics, asked) for run in runs]
    rows, names = names, comparable(names, runs, values, explicit=metrics or ())
    empty = [name for name in rows if by and not any(each.by_metric[name].requests for each in values)]
    partial = [name for name in rows if by and name not in names and name not in empty]
    if not metrics and not by and len(runs) > 2 and not runs[0].subjects:
        names = names[:1]
    pairing = check_pairing(runs, values, layout, paired=not unpaired, strict=strict)
    units = {name: _unit(name, layout, runs, values) for name in names}
    sides = {
        name: {run: each.by_metric[name] for run, each in zip(run_names(runs), values, strict=True)}
        for name in names
    }
    differences = _corrected(
        [
            _difference(name, units[name], a, (b[0], b[1].without(left.get(name, ()))), paired=not unpaired)
            for name in names
            for (i, a), (j, b) in combinations(enumerate(sides[name].items()), 2)
            for left in [pairing.left_out.get((i, j), {})]
        ]
    )
    for (_, later), metrics_left in pairing.left_out.items():  # the order is over samples that all can have
        for name, samples in metrics_left.items():
            for sample in samples:
                values[later].by_metric[name].leave_out(sample)
    comparison = Comparison(
        benchmark=runs[0].spec.benchmark,
        paired=not unpaired,
        runs=tuple(
            Side(name=name, path=str(run.path), coverage=_coverage(run, layout, each))
            for name, run, each in zip(run_names(runs), runs, values, strict=True)
        ),
        metrics=tuple(names),
        differs=tuple(pairing.differs),
        notes=(
            *pairing.notes,
            *([f"no sample has a value: {', '.join(empty)}"] if empty else ()),
            *([f"no figure of its own: {', '.join(partial)}"] if partial else ()),
        ),
        differences=differences,
        ranking=tuple(
            ranked
            for name in names
            for ranked in _ranking(name, units[name], sides[name], differences, layout, paired=not unpaired)
        ),
    )
    return comparison, values


def _coverage(run: Run, layout: Layout, values: RunValues) -> float:
    """Of the headline; of what is compared where the summary lacks it, as one of an older version may."""
    headline = run.summary.get(layout.headline)
    coverages = [each.coverage for each in values.by_metric.values() if each.coverage is not None]
    return headline.coverage if headline else min(coverages, default=0.0)


def _unit(name: str, layout: Layout, runs: Sequence[Run], values: Sequence[RunValues]) -> Unit:
    """The unit that the benchmark declares; of a metric that it does not declare, that of the figure."""
    if (declared := declaration(layout.metrics, name)) is not None:
        return declared.unit
    metric = split_name(name, values[0].metrics)[0]
    candidates = (name, metric, metric.partition("@")[0])
    for run in runs:
        for candidate in candidates:
            if figure := figure_of(run, candidate):
                return figure.unit
        # There may be figures of its parts only: `accuracy/task=colours` where the task was asked for.
        scoped = (figure.unit for figure in run.summary.values() if figure.metric in candidates)
        if unit := next(scoped, None):
            return unit
    raise UsageError(f"the unit of '{name}' is unknown: no run has a figure of it in its summary.json.")


class _Row(NamedTuple):
    """A difference before it is corrected for the others, and the test behind it."""

    difference: Difference
    tested: stats.Tested
    binary: int
    """Of pairs that are each 0 or 1 on both sides, the number of groups; else 0."""


def _difference(
    name: str, unit: Unit, a: tuple[str, MetricValues], b: tuple[str, MetricValues], *, paired: bool
) -> _Row:
    first, second = _entering([a[1], b[1]], paired=paired)
    tested = _tested(first, second, unit, paired=paired)
    value_a, value_b = first.mean, second.mean
    clusters = min(first.clusters, second.clusters)
    difference = Difference(
        metric=name, unit=unit, a=a[0], b=b[0], value_a=value_a, value_b=value_b,
        difference=None if value_a is None or value_b is None else value_b - value_a,
        low=tested.low, high=tested.high, p=tested.p, p_holm=None, different=False, detectable=None,
        method=tested.method, n=min(len(first.values), len(second.values)), clusters=clusters,
        coverage_a=first.coverage or 0.0, coverage_b=second.coverage or 0.0,
        coverage=_pair_coverage(first, second, paired=paired),
    )  # fmt: skip
    binary = paired and {*first.values.values(), *second.values.values()} <= {0, 1}
    return _Row(difference, tested, clusters if binary else 0)


def _entering(sides: Sequence[MetricValues], *, paired: bool) -> list[MetricValues]:
    """The sides with the values that enter: where samples are paired, of those that all have.

    Of a ratio each side has its own denominator: the samples that all were asked and that count in it. A
    macro-average that lacks a part that any side was asked is unknown.
    """
    if paired and any(side.ratio for side in sides):
        common = set.intersection(*(side.samples for side in sides))
        sides = [_subset(side, [sample for sample in side.values if sample in common]) for side in sides]
    elif paired:
        samples = [sample for sample in sides[0].values if all(sample in side.values for side in sides)]
        sides = [_subset(side, samples) for side in sides]
    parts = {side.parts[sample] for side in sides if side.parts is not None for sample in side.samples}
    complete = all(side.parts is None or set(side.by_part()) == parts for side in sides)
    return [side if complete else _subset(side, ()) for side in sides]


def _subset(side: MetricValues, samples: Iterable[str]) -> MetricValues:
    return msgspec.structs.replace(side, values={sample: side.values[sample] for sample in samples})


def _tested(first: MetricValues, second: MetricValues, unit: Unit, *, paired: bool) -> stats.Tested:
    """b − a with its interval and p-value, or why there is none."""
    none = stats.Tested(None, None, None, stats.TOO_FEW)
    if not first.values or not second.values:
        return none._replace(method=stats.NOTHING)
    # The other parts cannot make up for one with few groups.
    fewest = min(
        independent_groups(first.groups[sample] for sample in part) for part in first.by_part().values()
    )
    if first.parts is not None and fewest < MIN_GROUPS:
        return none._replace(method=FEW_IN_A_PART)
    if first.parts is not None or first.ratio:
        estimate = _combined(first, second, paired=paired)
        return stats.paired_test(estimate, unit=unit) if estimate else none
    if min(first.clusters, second.clusters) < 2:
        return none
    if paired:
        return stats.paired_test(_arrays(_change(first, second)).estimate, unit=unit)
    return stats.unpaired_test(_arrays(first), _arrays(second), unit=unit)


def _change(first: MetricValues, second: MetricValues) -> MetricValues:
    """The difference of each pair."""
    change = {sample: second.values[sample] - value for sample, value in first.values.items()}
    return msgspec.structs.replace(first, values=change)


def _arrays(side: MetricValues) -> stats.Side:
    """The values, the numbers of their groups from 0 on, and their links."""
    groups = numbered(side.groups[sample] for sample in side.values)
    return stats.Side(np.array(list(side.values.values()), dtype=float), *groups)


def _combined(first: MetricValues, second: MetricValues, *, paired: bool) -> stats.Estimate | None:
    """b − a of macro-averages or of ratios, with the error over groups, which both sides share if paired."""
    if paired and first.parts is not None:
        return combined.estimate(_terms(_change(first, second)))
    labels = ("", "") if paired else ("first ", "second ")
    sides = ((-1, _terms(first, labels[0])), (1, _terms(second, labels[1])))
    return combined.estimate(
        [term._replace(coefficient=sign * term.coefficient) for sign, terms in sides for term in terms]
    )


def _terms(side: MetricValues, label: str = "") -> list[combined.Term]:
    """The terms of a mean, or macro-average; a label keeps groups of unrelated sides apart."""
    groups = side.groups
    if label:
        units = {sample: g if isinstance(g, tuple) else (g,) for sample, g in side.groups.items()}
        groups = {sample: tuple(f"{label}{unit}" for unit in each) for sample, each in units.items()}
    return combined.macro_terms(side.values, groups, side.parts or dict.fromkeys(side.values, ""))


def _pair_coverage(first: MetricValues, second: MetricValues, *, paired: bool) -> float:
    """What of the requests behind a difference was answered: of a pair, as much as of its weaker side."""
    a, b = first.requests, second.requests
    if not paired:
        return covered([*a.values(), *b.values()])
    return stats.pair_coverage((a[sample], b[sample]) for sample in a if sample in b)


def _corrected(rows: Sequence[_Row]) -> tuple[Difference, ...]:
    """Holm's correction over all differences of the comparison, and what each could have detected."""
    corrected = stats.holm([row.tested.p for row in rows])
    tests = sum(p is not None for p in corrected)
    return tuple(
        msgspec.structs.replace(
            row.difference,
            p_holm=p,
            different=p is not None and p < SIGNIFICANT,
            detectable=stats.detectable(
                row.tested, unit=row.difference.unit, tests=max(1, tests), binary=row.binary
            ),
        )
        for row, p in zip(rows, corrected, strict=True)
    )


def _ranking(
    name: str, unit: Unit, sides: Mapping[str, MetricValues], differences: Iterable[Difference],
    layout: Layout, *, paired: bool,
) -> tuple[RankedRun, ...]:  # fmt: skip
    """The runs by their means, over the samples that all have; unpaired or of a ratio, each over its own."""
    if paired and not any(side.ratio for side in sides.values()):
        samples = set.intersection(*(set(side.values) for side in sides.values()))
        first = next(iter(sides.values()))
        common = [sample for sample in first.values if sample in samples]
        sides = {run: _subset(side, common) for run, side in sides.items()}
    intervals = {run: _interval(side, unit) for run, side in sides.items()}
    declared = declaration(layout.metrics, name)
    sign = 1 if declared and declared.better == "lower" else -1
    ranked = sorted(sides, key=lambda run: np.inf if (v := intervals[run].value) is None else sign * v)
    letters = group_letters(ranked, [(d.a, d.b) for d in differences if d.metric == name and d.different])
    return tuple(
        RankedRun(
            metric=name, name=run, value=interval.value, low=interval.low, high=interval.high,
            letters=letters[run],
        )
        for run in ranked
        if (interval := intervals[run])
    )  # fmt: skip


def _interval(side: MetricValues, unit: Unit) -> stats.Interval:
    """The mean, or macro-average, of a run's values; unknown where a part has none."""
    if side.values and not side.complete:
        return stats.Interval(None, None, None, stats.NOTHING, 0, 0)
    if side.values and side.parts is not None:
        return combined.interval(_terms(side), unit)
    return _arrays(side).interval(unit)


def group_letters(ranked: Sequence[str], different: Iterable[tuple[str, str]]) -> dict[str, str]:
    """A letter for each largest set of runs of which no two differ significantly (Piepho 2004).

    All begin in one set. A pair that differs splits every set that has both; a set within another is dropped.
    """
    sets = [frozenset(ranked)]
    for pair in different:
        split = [
            part
            for members in sets
            for part in ([members - {name} for name in pair] if members.issuperset(pair) else [members])
        ]
        sets = [part for part in dict.fromkeys(split) if not any(part < other for other in split)]
    sets.sort(key=lambda members: [name not in members for name in ranked])
    return {name: "".join(_letter(i) for i, each in enumerate(sets) if name in each) for name in ranked}


def _letter(index: int) -> str:
    return chr(ord("a") + index % 26) + "'" * (index // 26)
