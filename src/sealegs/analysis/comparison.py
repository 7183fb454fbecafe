"""Runs compared with each other: paired by sample on what both have, with errors over groups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from sealegs.analysis import combined
from sealegs.analysis.comparability import (
    RunPair,
    broken_down,
    comparable,
    excluded,
    first_known,
    layout_of,
    paired,
    run_names,
    sizes_note,
    unknown_settings,
    usual_metrics,
)
from sealegs.analysis.figures import pair_coverage
from sealegs.analysis.intervals import NOTHING, TOO_FEW, Estimate, mean_over
from sealegs.analysis.links import independent_groups, numbered
from sealegs.analysis.others import load_results
from sealegs.analysis.outcome import MIN_GROUPS, Outcome, needed_groups, outcome_of
from sealegs.analysis.references import reference_marks, reference_runs
from sealegs.analysis.sample_values import RunValues, Values
from sealegs.analysis.significance import Tested, detectable, holm, paired_test
from sealegs.harness.folder import Run
from sealegs.page.format import nouns, tag_name
from sealegs.page.grid import Displayed
from sealegs.page.metrics import Metric, part_words, scope_of, title_of
from sealegs.page.scale import ReferenceMark
from sealegs.types import Unit

SIGNIFICANT = 0.05
FEW_IN_A_PART = f"a part has fewer than {MIN_GROUPS} groups"


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
    """Corrected for all differences of the comparison; of `Comparison.alone`, for the pairs of runs."""
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
    reason: str = ""
    """Why there is no interval; where a side has no value, why nothing was compared."""
    part: str = ""
    """The parts of a macro-average that are compared, where they are not all: `noise only`."""


class Comparison(Displayed, Struct, frozen=True, kw_only=True):
    """What `compare` returns: every pair of runs by every metric."""

    benchmark: str
    headline: str
    """The headline of all runs, or the benchmark's usual one where theirs differ."""
    counted: tuple[str, str]
    """The words for samples and for their groups: prompts and questions."""
    runs: tuple[Side, ...]
    metrics: tuple[str, ...]
    differs: tuple[str, ...]
    """What the runs were asked differently, apart from the model under test."""
    notes: tuple[str, ...] = ()
    """Which samples are compared, and what is not known of how they were asked."""
    differences: tuple[Difference, ...]
    alone: str = ""
    """The metric that is tested by itself, as a leaderboard and a gate test it: the headline, where neither
    metrics are named nor subjects set side by side. All others are corrected for the number of rows."""
    references: tuple[ReferenceMark, ...] = ()
    """The headline of models elsewhere, for orientation."""

    @property
    def leading(self) -> tuple[Difference, ...]:
        """Those of the first metric, of which the first sentence speaks."""
        return tuple(each for each in self.differences if each.metric == self.metrics[0])


def compare(
    *runs: Run | str | Path,
    metrics: str | Sequence[str] | None = None,
    by: str | Sequence[str] = (),
    reference: Sequence[str | Path] = (),
) -> Comparison:
    """Each run against each other, by the metrics named (`mean_similarity`, `mean_similarity/lang=en`).

    Without `metrics`, two runs are compared by all that their benchmark shows of samples (where subjects are
    set side by side, by the headline of each that both have), and more than two by its headline. Where that
    has no value, the first main figure that has one leads. `by` breaks
    each metric (the headline, if none is named) down by tags: `by="level"`. Runs that were asked different
    things are refused; `notes` of the result name what runs of recorded answers do not state. `reference` has
    folders of runs that are listed beside the published results. A run may also be a file of another harness:
    a log of Inspect, samples of lm-evaluation-harness, or a table (docs/compare-others.md).

    `sl.compare("runs/old", "runs/new", metrics="mean_similarity").differences[0].difference`
    """
    names = [metrics] if isinstance(metrics, str) else metrics
    tags = [by] if isinstance(by, str) else by
    opened = load_results(*runs)
    comparison, _, _ = compare_values(opened, names, by=tags)
    if not reference:
        return comparison
    own = reference_runs(reference)
    marks = reference_marks(comparison.benchmark, comparison.headline, own, opened)
    return msgspec.structs.replace(comparison, references=marks)


def compare_values(
    runs: Sequence[Run], metrics: Sequence[str] | None, *, by: Sequence[str] = ()
) -> tuple[Comparison, list[RunPair], list[Test]]:
    """The comparison, the pairs of runs, and the test behind each difference."""
    layout = layout_of(runs)
    usual = [layout.headline] if by and not runs[0].subjects else usual_metrics(layout, runs)
    values = [RunValues(run) for run in runs]
    rows = list(dict.fromkeys(broken_down(metrics or usual, by, values)))
    names = comparable(rows, values, explicit=metrics or ())
    without = [title_of(layout.metrics, name) for name in rows if by and name not in names]
    if not metrics and not by and not runs[0].subjects:
        leading = first_known(layout, values)
        names = sorted(names, key=lambda name: name != leading)[: None if len(runs) == 2 else 1]
    named = list(zip(run_names(runs), values, strict=True))
    pairs = [paired((a, b), (first, second)) for (a, first), (b, second) in combinations(named, 2)]
    tests = [compared(pair, name) for name in names for pair in pairs]
    notes = [
        *(note for name, of_run in named for note in unknown_settings(name, of_run.run)),
        *(doubt for name, of_run in named for doubt in of_run.doubts(name)),
        *(f"{name}: {problem}" for name, of_run in named for problem in of_run.run.problems),
        *(note for pair in pairs for note in sizes_note(pair)),
        *(test.note for test in tests if test.note),
        *([f"Not compared, since no sample has a value: {'; '.join(without)}"] if without else ()),
    ]
    alone = "" if metrics or runs[0].subjects else names[0]
    comparison = Comparison(
        benchmark=runs[0].spec.benchmark,
        headline=layout.headline,
        counted=layout.counted,
        runs=tuple(
            Side(name=name, path=str(of_run.run.path), coverage=_coverage(of_run, names))
            for name, of_run in named
        ),
        metrics=tuple(names),
        differs=tuple(dict.fromkeys(words for pair in pairs for words in pair.differs)),
        notes=tuple(dict.fromkeys(notes)),
        differences=(*_corrected(tests[: len(pairs)]), *_corrected(tests)[len(pairs) :])
        if alone
        else _corrected(tests),
        alone=alone,
    )
    return comparison, pairs, tests


def _coverage(values: RunValues, names: Sequence[str]) -> float:
    """Of the headline; of what is compared where the summary lacks it, as one of an older version may."""
    headline = values.run.summary.get(values.layout.headline)
    return headline.coverage if headline else min(values[name].coverage for name in names)


# One metric of two runs


class Test(NamedTuple):
    """A difference before it is corrected for the others, and what is behind it."""

    difference: Difference
    metric: Metric
    estimate: Estimate | None
    note: str


def compared(pair: RunPair, name: str, other_name: str = "") -> Test:
    """b − a of one metric over the samples that both runs have, without those it cannot be compared by. In
    the second run it may have another name: that of another subject."""
    common = pair.sides(name, other_name)
    unusable, reason = excluded(pair, common)
    sides = common[0].taken(~unusable), common[1].taken(~unusable)
    first, second = _entering(sides)
    estimate, why_not = _estimate(first, second)
    metric = first.metric
    tested = Tested.unknown(why_not)
    if estimate is not None:
        tested = paired_test(estimate, unit=metric.unit)
    value_a, value_b = first.mean, second.mean
    known = value_a is not None and value_b is not None
    whole = metric.parts and metric.mean_over not in scope_of(name)[1]
    parts = first.known_parts & second.known_parts
    difference = Difference(
        metric=name, unit=metric.unit, a=pair.names[0], b=pair.names[1], value_a=value_a, value_b=value_b,
        difference=None if value_a is None or value_b is None else value_b - value_a,
        low=tested.low, high=tested.high, p=tested.p, p_holm=None, different=False, detectable=None,
        method=tested.method, n=int(min(first.known.sum(), second.known.sum())),
        clusters=min(first.clusters, second.clusters), coverage_a=sides[0].coverage,
        coverage_b=sides[1].coverage, coverage=_pair_coverage(*sides),
        part=part_words(metric, parts) if whole else "",
        reason=tested.reason if known else _why_not(pair, (name, other_name or name), sides),
    )  # fmt: skip
    layout = pair.runs[0].layout
    left_out = f"{nouns(int(unusable.sum()), layout.counted[0])} left out, because {reason}"
    note = f"{title_of(layout.metrics, name)}: {left_out}" if unusable.any() else ""
    return Test(difference, metric, estimate, note)


def _why_not(pair: RunPair, names: tuple[str, str], sides: tuple[Values, Values]) -> str:
    """Why a metric of two runs is not compared: a figure that one of them gives as unknown, or no value."""
    for side, run, name in zip("AB", pair.runs, names, strict=True):
        if (figure := run.figure(name)) is not None and figure.value is None:
            return f"{side} has no value ({figure.reason})"
    metric = sides[0].metric
    missing = sorted(_asked_parts(sides) - (sides[0].known_parts & sides[1].known_parts))
    if metric.mean_over and missing:
        return f"no value for {tag_name(metric.mean_over)} {missing[0]} in both"
    return "no sample has a value in both"


def _entering(sides: tuple[Values, Values]) -> list[Values]:
    """The sides with the values that enter: those of samples that both have.

    Of a ratio each side has its own denominator: the samples that both were asked and that count in it. A
    macro-average that lacks a part that either side was asked is unknown.
    """
    metric = sides[0].metric
    known = np.logical_and.reduce([side.about if metric.ratio_to else side.known for side in sides])
    asked = _asked_parts(sides)
    entering = [side.taken(known) for side in sides]
    if metric.mean_over and any(side.known_parts != asked for side in entering):
        return [side.taken(np.zeros(len(side.values), dtype=bool)) for side in entering]
    return entering


def _asked_parts(sides: tuple[Values, Values]) -> set[str]:
    """The parts of which either side has samples that the metric is about."""
    return {name for side in sides for name in side.parts[side.about].in_order().names}


def _estimate(first: Values, second: Values) -> tuple[Estimate | None, str]:
    """The mean difference with its error over groups, or why there is none."""
    if not first.known.any() or not second.known.any():
        return None, NOTHING
    if first.metric.mean_over:
        # The other parts cannot make up for one with few groups.
        of_known = first.taken(first.known)
        if any(independent_groups(of_known.groups[part]) < MIN_GROUPS for part in of_known.by_part()):
            return None, FEW_IN_A_PART
    if first.metric.ratio_to:
        terms = [term._replace(coefficient=-term.coefficient) for term in _terms(first)] + _terms(second)
        estimate = combined.estimate(terms)
        # Each run has a denominator of its own: the spread of the other says nothing of one that agrees.
        unseen = any(np.ptp(term.values) == 0 for term in terms)
        return estimate and estimate._replace(unseen=unseen), TOO_FEW
    change = msgspec.structs.replace(first, values=second.values - first.values)
    if first.metric.mean_over:
        return combined.estimate(_terms(change)), TOO_FEW
    if change.clusters < 2:
        return None, TOO_FEW
    return mean_over(change.values, *numbered(change.groups), weights=change.weights), ""


def _terms(side: Values) -> list[combined.Term]:
    """The terms of a mean, or macro-average, over the samples with a value."""
    known = side.taken(side.known)
    return combined.macro_terms(known.values.tolist(), known.groups.tolist(), known.parts.tolist())


def _pair_coverage(first: Values, second: Values) -> float:
    """What of the requests behind a difference was answered: of a pair, as much as of its weaker side."""
    both = first.in_scope & second.in_scope
    return pair_coverage(*(np.stack([side.answered, side.asked], axis=1)[both] for side in (first, second)))


def _corrected(tests: Sequence[Test]) -> tuple[Difference, ...]:
    """Holm's correction over these differences, and what each of them says."""
    corrected = holm([test.difference.p for test in tests])
    count = max(1, sum(p is not None for p in corrected))
    differences = []
    for (difference, metric, estimate, _), p in zip(tests, corrected, strict=True):
        amount = difference.difference
        significant = p is not None and p < SIGNIFICANT
        outcome = outcome_of(
            amount, (difference.low, difference.high), tested=p is not None,
            groups=0 if difference.reason == FEW_IN_A_PART else difference.clusters,
            significant=significant, unit=metric.unit, better=metric.better,
        )  # fmt: skip
        too_few = outcome == "too few to tell" and amount is not None
        needed = needed_groups(amount, estimate, metric.unit) if too_few else None
        differences.append(
            msgspec.structs.replace(
                difference,
                p_holm=p,
                different=significant,
                detectable=detectable(estimate, unit=metric.unit, tests=count) if estimate else None,
                outcome=outcome,
                needed=needed if needed and needed > difference.clusters else None,
            )
        )
    return tuple(differences)
