"""Runs compared with each other: paired by sample on what both have, with errors over groups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from evenkeel import analysis as stats
from evenkeel.analysis import combined
from evenkeel.analysis.comparability import (
    Pair,
    differing_settings,
    excluded,
    paired,
    sizes_note,
    unknown_settings,
)
from evenkeel.analysis.comparable_metrics import (
    broken_down,
    check_subjects,
    comparable,
    layout_of,
    run_names,
    usual_metrics,
)
from evenkeel.analysis.links import independent_groups, numbered
from evenkeel.analysis.outcome import MIN_GROUPS, Outcome, needed_groups, outcome_of
from evenkeel.analysis.references import reference_marks, reference_runs
from evenkeel.analysis.sample_values import RunValues, Values, read_values
from evenkeel.errors import UsageError
from evenkeel.harness.folder import Run
from evenkeel.page.format import counted
from evenkeel.page.grid import Displayed, Overview
from evenkeel.page.layout import Layout
from evenkeel.page.metrics import declaration, part_words, scope_of, title_of
from evenkeel.page.scale import Mark
from evenkeel.types import Unit

SIGNIFICANT = 0.05
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
    """Of the difference: answered requests of the samples with a value in both runs, over the requests asked
    in both for the samples that both have."""
    outcome: Outcome = "too few to tell"
    """Whether b is better or worse; `higher` or `lower` where neither direction of the metric is better."""
    needed: int | None = None
    """About how many groups would do, where there are too few to tell."""
    part: str = ""
    """The parts of a macro-average that are compared, where they are not all: `noise only`."""


class Comparison(Displayed, Struct, frozen=True, kw_only=True):
    """What `compare` returns: every pair of runs by every metric."""

    benchmark: str
    runs: tuple[Side, ...]
    metrics: tuple[str, ...]
    differs: tuple[str, ...]
    """What the runs were asked differently, apart from the model under test."""
    notes: tuple[str, ...] = ()
    """Which samples are compared, and what is not known of how they were asked."""
    differences: tuple[Difference, ...]
    references: tuple[Mark, ...] = ()
    """The headline of models elsewhere, for orientation."""

    def overview(self) -> Overview:
        from evenkeel.analysis.comparison_tables import overview

        return overview(self)


def compare(
    *runs: Run | str | Path,
    metrics: str | Sequence[str] | None = None,
    by: str | Sequence[str] = (),
    reference: Sequence[str | Path] = (),
) -> Comparison:
    """Each run against each other, by the metrics named (`mean_similarity`, `mean_similarity/lang=en`).

    Without `metrics`, two runs are compared by all that their benchmark shows of samples (where subjects are
    set side by side, by the headline of each that both have), and more than two by its headline. `by` breaks
    each metric (the headline, if none is named) down by tags: `by="level"`. Runs that were asked different
    things are refused; `notes` of the result name what runs of recorded answers do not state. `reference` has
    folders of runs that are listed beside the published results.

    `ek.compare("runs/old", "runs/new", metrics="mean_similarity").differences[0].difference`
    """
    names = [metrics] if isinstance(metrics, str) else metrics
    tags = [by] if isinstance(by, str) else by
    opened = [run if isinstance(run, Run) else Run(run) for run in runs]
    comparison = compare_values(opened, names, by=tags).comparison
    marks = reference_marks(comparison.benchmark, reference_runs(reference))
    return msgspec.structs.replace(comparison, references=marks)


class Compared(NamedTuple):
    """A comparison, and what it was computed from."""

    comparison: Comparison
    pairs: list[Pair]
    estimates: list[stats.Estimate | None]
    """Behind each difference; None where there is none."""


def compare_values(
    runs: Sequence[Run], metrics: Sequence[str] | None, *, by: Sequence[str] = (), strict: bool = False
) -> Compared:
    """The comparison with its values; `strict` leaves nothing out that differs."""
    layout = layout_of(runs)
    usual = [layout.headline] if by and not runs[0].subjects else usual_metrics(layout, runs)
    rows = list(dict.fromkeys(broken_down(metrics or usual, by, runs)))
    check_subjects(rows, layout, runs)
    values = [read_values(run, rows, layout.metrics) for run in runs]
    names = comparable(rows, runs, values, explicit=metrics or ())
    without = [title_of(layout.metrics, name) for name in rows if by and name not in names]
    if not metrics and not by and len(runs) > 2 and not runs[0].subjects:
        names = names[:1]
    entries = list(zip(run_names(runs), runs, values, strict=True))
    pairs = [
        paired((first[0], second[0]), (first[1], second[1]), (first[2], second[2]), strict=strict)
        for first, second in combinations(entries, 2)
    ]
    tests = [compared(pair, name, layout) for name in names for pair in pairs]
    notes = [
        *unknown_settings({name: run for name, run, _ in entries}),
        *(note for pair in pairs for note in sizes_note(pair, layout)),
        *(test.note for test in tests if test.note),
        *([f"Not compared, since no sample has a value: {'; '.join(without)}"] if without else ()),
    ]
    comparison = Comparison(
        benchmark=runs[0].spec.benchmark,
        runs=tuple(
            Side(name=name, path=str(run.path), coverage=_coverage(run, layout, of_run))
            for name, run, of_run in entries
        ),
        metrics=tuple(names),
        differs=tuple(differing_settings(runs)),
        notes=tuple(dict.fromkeys(notes)),
        differences=_corrected(tests, layout),
    )
    return Compared(comparison, pairs, [test.estimate for test in tests])


def _coverage(run: Run, layout: Layout, values: RunValues) -> float:
    """Of the headline; of what is compared where the summary lacks it, as one of an older version may."""
    headline = run.summary.get(layout.headline)
    coverages = [each.coverage for each in values.by_metric.values() if each.coverage is not None]
    return headline.coverage if headline else min(coverages, default=0.0)


def _unit(name: str, layout: Layout) -> Unit:
    declared = declaration(layout.metrics, name)
    if declared is None:
        raise UsageError(f"'{name}' cannot be compared: the benchmark does not declare it, nor its unit.")
    return declared.unit


# One metric of two runs


class Test(NamedTuple):
    """A difference before it is corrected for the others, and what is behind it."""

    difference: Difference
    estimate: stats.Estimate | None
    note: str


def compared(pair: Pair, name: str, layout: Layout, other_name: str = "") -> Test:
    """b − a of one metric over the samples that both runs have, without those it cannot be compared by. In
    the second run it may have another name: that of another subject."""
    whole = pair.runs[0].by_metric[name], pair.runs[1].by_metric[other_name or name]
    unusable, reason = excluded(pair, name, layout, other_name)
    sides = whole[0].taken(pair.first[~unusable]), whole[1].taken(pair.second[~unusable])
    first, second = entering(sides)
    estimate, method = _estimate(first, second)
    unit = _unit(name, layout)
    tested = stats.paired_test(estimate, unit=unit) if estimate else stats.Tested(None, None, None, method)
    value_a, value_b = first.mean, second.mean
    declared = declaration(layout.metrics, name)
    partial = declared and declared.parts and declared.mean_over not in scope_of(name)[1]
    difference = Difference(
        metric=name, unit=unit, a=pair.names[0], b=pair.names[1], value_a=value_a, value_b=value_b,
        difference=None if value_a is None or value_b is None else value_b - value_a,
        low=tested.low, high=tested.high, p=tested.p, p_holm=None, different=False, detectable=None,
        method=tested.method, n=int(min(first.known.sum(), second.known.sum())),
        clusters=min(first.clusters, second.clusters), coverage_a=sides[0].coverage or 0.0,
        coverage_b=sides[1].coverage or 0.0, coverage=_pair_coverage(*sides),
        part=part_words(declared, first.parts_known & second.parts_known) if declared and partial else "",
    )  # fmt: skip
    left_out = f"{counted(int(unusable.sum()), layout.counted[0])} left out, because {reason}"
    note = f"{title_of(layout.metrics, name)}: {left_out}" if unusable.any() else ""
    return Test(difference, estimate, note)


def entering(sides: Sequence[Values]) -> list[Values]:
    """The sides with the values that enter: those of samples that all have.

    Of a ratio each side has its own denominator: the samples that all were asked and that count in it. A
    macro-average that lacks a part that any side was asked is unknown.
    """
    ratio = any(side.ratio for side in sides)
    known = np.logical_and.reduce([side.about if ratio else side.known for side in sides])
    asked = set().union(*(side.parts_asked for side in sides))
    kept = [side.taken(known) for side in sides]
    complete = all(side.parts is None or side.parts_known == asked for side in kept)
    return kept if complete else [side.taken(np.zeros(len(side.values), dtype=bool)) for side in kept]


def _estimate(first: Values, second: Values) -> tuple[stats.Estimate | None, str]:
    """The mean difference with its error over groups, or why there is none."""
    if not first.known.any() or not second.known.any():
        return None, stats.NOTHING
    # The other parts cannot make up for one with few groups.
    of_known = first.taken(first.known)
    fewest = min(independent_groups(of_known.groups[part].tolist()) for part in of_known.by_part())
    if first.parts is not None and fewest < MIN_GROUPS:
        return None, FEW_IN_A_PART
    if first.ratio:
        terms = [(-1, term) for term in _terms(first)] + [(1, term) for term in _terms(second)]
        weighted = [term._replace(coefficient=sign * term.coefficient) for sign, term in terms]
        return combined.estimate(weighted), stats.TOO_FEW
    change = msgspec.structs.replace(first, values=second.values - first.values)
    if first.parts is not None:
        return combined.estimate(_terms(change)), stats.TOO_FEW
    if change.clusters < 2:
        return None, stats.TOO_FEW
    return stats.mean_over(change.values, *numbered(change.groups.tolist())), ""


def _terms(side: Values) -> list[combined.Term]:
    """The terms of a mean, or macro-average, over the samples with a value."""
    known = side.taken(side.known)
    parts = known.parts if known.parts is not None else [""] * len(known.values)
    return combined.macro_terms(known.values.tolist(), known.groups.tolist(), list(parts))


def _pair_coverage(first: Values, second: Values) -> float:
    """What of the requests behind a difference was answered: of a pair, as much as of its weaker side."""
    both = first.in_scope & second.in_scope
    sides = [
        list(zip(s.answered[both].tolist(), s.asked[both].tolist(), strict=True)) for s in (first, second)
    ]
    return stats.pair_coverage(zip(*sides, strict=True))


def _corrected(tests: Sequence[Test], layout: Layout) -> tuple[Difference, ...]:
    """Holm's correction over all differences of the comparison, and what each of them says."""
    corrected = stats.holm([test.difference.p for test in tests])
    count = max(1, sum(p is not None for p in corrected))
    differences = []
    for test, p in zip(tests, corrected, strict=True):
        difference, estimate = test.difference, test.estimate
        unit, amount = difference.unit, difference.difference
        significant = p is not None and p < SIGNIFICANT
        declared = declaration(layout.metrics, difference.metric)
        outcome = outcome_of(
            amount, (difference.low, difference.high), tested=p is not None, groups=difference.clusters,
            significant=significant, unit=unit, better=declared.better if declared else None,
        )  # fmt: skip
        too_few = outcome == "too few to tell" and amount is not None
        needed = needed_groups(amount, estimate, unit) if too_few else None
        differences.append(
            msgspec.structs.replace(
                difference,
                p_holm=p,
                different=significant,
                detectable=stats.detectable(estimate, unit=unit, tests=count) if estimate else None,
                outcome=outcome,
                needed=needed if needed and needed > difference.clusters else None,
            )
        )
    return tuple(differences)
