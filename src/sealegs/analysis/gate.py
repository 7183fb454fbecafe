"""A run against a baseline: is it significantly worse, and by more than is allowed?"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from sealegs.analysis.comparability import RunPair, first_known, layout_of
from sealegs.analysis.comparison import FEW_IN_A_PART, SIGNIFICANT, Difference, Test, compare_values
from sealegs.analysis.links import independent_groups
from sealegs.analysis.others import load_results
from sealegs.analysis.outcome import MIN_GROUPS, SMALL_DROP, groups_to_show, range_of
from sealegs.analysis.sample_values import Values
from sealegs.analysis.significance import holm, paired_test
from sealegs.errors import UsageError
from sealegs.harness.folder import Run
from sealegs.page.format import chance, change, counts, difference_text, p_value_text, share, tag_name
from sealegs.page.grid import Displayed
from sealegs.page.layout import Layout
from sealegs.page.metrics import Better, title_of

MIN_OVERLAP = 0.8
"""The share of the larger run's samples that the other must have too."""

Direction: TypeAlias = Literal["drop", "rise"]


class Overlap(Struct, frozen=True, kw_only=True):
    """The samples that a metric is about: in both runs, and in the one that has more."""

    common: int
    larger: int
    groups: int
    """Groups of the common ones."""


class GateCheck(Struct, frozen=True, kw_only=True):
    """One thing that a gate checks: a metric, or the coverage."""

    name: str
    """The metric as in summary.json, or `coverage`."""
    title: str
    """The same as a page calls it."""
    passed: bool
    reason: str
    """Why, in one line."""
    difference: Difference | None = None
    worse: Direction | None = None
    """Which change of the metric is for the worse."""
    p_holm: float | None = None
    """Of no change for the worse beyond --max-drop, corrected for all metrics of the gate."""
    overlap: Overlap | None = None


class Gate(Displayed, Struct, frozen=True, kw_only=True):
    """The limits of a gate, and the outcome of its checks."""

    run: str
    baseline: str
    max_drop: float
    higher_is_worse: bool
    min_coverage: float
    passed: bool
    checks: tuple[GateCheck, ...]
    correction: str
    """How the decisions over several metrics are corrected; empty for one."""
    notes: tuple[str, ...] = ()
    """In what the runs differ nevertheless, which samples are compared, and what is not known."""


def gate(
    run: Run | str | Path,
    baseline: Run | str | Path,
    *,
    metrics: str | Sequence[str] | None = None,
    max_drop: float = 0.0,
    higher_is_worse: bool = False,
    min_coverage: float = 0.95,
) -> Gate:
    """Fails where a metric is worse than the baseline by more than `max_drop`, and on low coverage.

    The metric's declaration says which direction is worse; `higher_is_worse` says it of metrics that have
    none. A change is worse where a paired test of a change beyond `max_drop` is significant after Holm's
    correction for all metrics named: for one metric, where the 95 % interval lies wholly beyond. Runs that
    share less than 80 % of their samples, or less than six groups, are refused. `metrics` is the benchmark's
    headline by default.

    `assert sl.gate("runs/new", baseline="runs/old", max_drop=0.02).passed`
    """
    metrics = [metrics] if isinstance(metrics, str) else metrics
    if not 0 <= max_drop < inf:
        raise UsageError(f"--max-drop is {max_drop}: it must be a number of at least 0.")
    if not 0 <= min_coverage <= 1:
        raise UsageError(f"--min-coverage is {min_coverage}: it must be between 0 and 1.")
    undeclared: Better = "lower" if higher_is_worse else "higher"
    new, old = load_results(run, baseline, better=undeclared, single=True)
    layout = layout_of([old, new])
    names = list(dict.fromkeys(metrics or [layout.headline]))
    comparison, [pair], tests = compare_values([old, new], names)
    if not metrics:
        _check_headline(pair, layout)
    worse = [_direction(test, higher_is_worse=higher_is_worse) for test in tests]
    overlaps = [_overlap(name, pair, layout) for name in names]
    corrected = holm(
        [_p_beyond(test, max_drop, direction) for test, direction in zip(tests, worse, strict=True)]
    )
    parts = zip(comparison.differences, tests, worse, corrected, overlaps, strict=True)
    checks = [
        _check_coverage(comparison.differences, min_coverage, layout),
        *(_check(*each, max_drop, layout) for each in parts),
    ]
    count = sum(p is not None for p in corrected)
    letters = ("A is the baseline, B the run.",) if comparison.differs else ()
    return Gate(
        run=str(new.path),
        baseline=str(old.path),
        max_drop=max_drop,
        higher_is_worse=higher_is_worse,
        min_coverage=min_coverage,
        passed=all(check.passed for check in checks),
        checks=tuple(checks),
        correction=f"Holm, over {count} metrics" if count > 1 else "",
        notes=(*letters, *comparison.differs, *comparison.notes),
    )


def _direction(test: Test, *, higher_is_worse: bool) -> Direction:
    """Which change of a metric is for the worse: as declared, or as the option says where it is not."""
    if test.metric.better is None and not higher_is_worse:
        raise UsageError(
            f"neither more nor less of '{test.difference.metric}' is better in itself: gate another metric, "
            "or say with --higher-is-worse that a rise is for the worse."
        )
    return "drop" if test.metric.better == "higher" else "rise"


def _check_headline(pair: RunPair, layout: Layout) -> None:
    """Refuse a headline that is unknown in both runs, as where it is withheld, if another figure is known."""
    other = first_known(layout, pair.runs)
    if other != layout.headline and not any(run[layout.headline].known.any() for run in pair.runs):
        figure = pair.runs[1].figure(layout.headline)
        reason = f" ({figure.reason})" if figure and figure.reason else ""
        raise UsageError(
            f"'{layout.headline}' has no value in either run{reason}. Name the figure to gate: "
            f"--metric {other}."
        )


def _overlap(name: str, pair: RunPair, layout: Layout) -> Overlap:
    """What two runs have in common; those that have too little to say anything about either are refused."""
    old, new = pair.sides(name)
    common = old.about & new.about
    overlap = Overlap(
        common=int(common.sum()),
        larger=max(int(run[name].about.sum()) for run in pair.runs),
        groups=independent_groups(old.groups[common]),
    )
    samples, groups = layout.counted[0], layout.groups
    if overlap.common < MIN_OVERLAP * overlap.larger or overlap.groups < MIN_GROUPS:
        alike = overlap.common >= MIN_OVERLAP * overlap.larger
        remedy = f"ask more {groups}" if alike else "ask both runs the same, with the same --limit"
        raise UsageError(
            f"'{name}': the runs have too few {samples} in common: {overlap.common:,} of {overlap.larger:,} "
            f"from {overlap.groups:,} {groups}. The gate needs {share(MIN_OVERLAP)} and {MIN_GROUPS} "
            f"{groups}: {remedy}."
        )
    if old.metric.mean_over:
        _check_parts(name, old.taken(common), groups)
    return overlap


def _check_parts(name: str, common: Values, groups: str) -> None:
    """Refuse a mean over parts of which one is too small: it would decide by the sign of its change."""
    names = common.parts.in_order().names
    parts = zip(names, common.by_part(), strict=True)
    sizes = {name: independent_groups(common.groups[samples]) for name, samples in parts}
    few = [f"{part} has {size:,}" for part, size in sizes.items() if size < MIN_GROUPS]
    if few:
        tag = tag_name(common.metric.mean_over)
        raise UsageError(
            f"'{name}' is a mean over each {tag}, and the runs have too few {groups} in common: "
            f"{', '.join(few)}. The gate needs {MIN_GROUPS} {groups} of each {tag}: ask both runs more."
        )


def _check_coverage(differences: Sequence[Difference], floor: float, layout: Layout) -> GateCheck:
    """Whether every gated figure of the new run reaches the floor; a baseline's that does not is named."""

    def described(coverage: float, difference: Difference) -> str:
        title = title_of(layout.metrics, difference.metric)
        return f"{share(coverage)}{f' (of {title})' if len(differences) > 1 else ''}"

    lowest = min(differences, key=lambda difference: difference.coverage_b)
    passed = lowest.coverage_b >= floor
    reason = f"coverage {described(lowest.coverage_b, lowest)} "
    reason += f"{'reaches' if passed else 'is under'} the floor of {share(floor)}"
    weakest = min(differences, key=lambda difference: difference.coverage_a)
    if weakest.coverage_a < floor:
        reason += f"; the baseline's, {described(weakest.coverage_a, weakest)}, is under it"
    return GateCheck(name="coverage", title="coverage", passed=passed, reason=reason)


def _p_beyond(test: Test, allowed: float, worse: Direction) -> float | None:
    """The p-value of a change for the worse of just `allowed`; 1 for a smaller one or an improvement."""
    difference, estimate = test.difference, test.estimate
    if difference.difference is None or estimate is None or difference.p is None:
        return None
    sign = 1 if worse == "rise" else -1
    if sign * difference.difference <= allowed:
        return 1.0
    return paired_test(estimate, unit=difference.unit, null=sign * allowed).p


def _check(
    difference: Difference,
    test: Test,
    worse: Direction,
    p: float | None,
    overlap: Overlap,
    allowed: float,
    layout: Layout,
) -> GateCheck:
    """One metric. Too few values in both runs do not pass, though both were asked enough samples."""
    based_on, guessing = counts(difference, layout), chance(test.metric)
    # The denominator of a ratio depends on the run.
    few = not test.metric.ratio_to and difference.n < MIN_OVERLAP * overlap.larger
    if difference.reason == FEW_IN_A_PART:
        tag = tag_name(test.metric.mean_over)
        needed = f"{MIN_GROUPS} {layout.groups} of each {tag}"
        passed, reason = False, f"has too few values in both runs for one {tag}: the gate needs {needed}"
    elif difference.n and (few or difference.clusters < MIN_GROUPS):
        needed = f"{share(MIN_OVERLAP)} and {MIN_GROUPS} {layout.groups}"
        reason = f"has a value in both runs for only {based_on}, of {overlap.larger:,}"
        passed, reason = False, f"{reason}: the gate needs {needed}"
    else:
        passed, reason = _judged(test, difference, allowed, worse, p, layout)
        if difference.n:
            reason = f"{reason}; {based_on}{f' ({guessing})' if guessing else ''}"
    title = title_of(layout.metrics, difference.metric)
    return GateCheck(
        name=difference.metric,
        title=title,
        passed=passed,
        reason=f"{title} {reason}",
        difference=difference,
        worse=worse,
        p_holm=p,
        overlap=overlap,
    )


def _judged(
    test: Test, difference: Difference, allowed: float, worse: Direction, p: float | None, layout: Layout
) -> tuple[bool, str]:
    """Whether a change passes, and why. One that cannot be tested is refused: its sign decides nothing."""
    unit, low, high, amount = difference.unit, difference.low, difference.high, difference.difference
    if difference.value_a is None or difference.value_b is None or amount is None:
        return False, "has no sample with a value in both runs"
    words = difference_text(difference.value_a, difference.value_b, unit, (low, high))
    change_words = f"went from {words.a} to {words.b} ({words.change}{words.unit}"
    beyond = f"{worse} of more than {change(allowed, unit)}" if allowed else worse
    significant = p is not None and p < SIGNIFICANT
    if difference.p is None and abs(amount) < 1e-12:
        return True, f"{change_words}): it is the same in every sample"
    if words.limits:
        change_words += f", 95% interval {' to '.join(words.limits)}"
    change_words += "" if p is None or p == 1 else f", {p_value_text(p)}"
    if significant:
        return False, f"{change_words}): a significant {beyond}"
    if low is None or high is None:
        if p is None:
            raise UsageError(f"the change of '{difference.metric}' cannot be tested: {difference.reason}.")
        return True, f"{change_words}): no significant {beyond} ({difference.reason})"
    detectable = ""
    if difference.detectable:
        detectable = f"; minimum detectable {change(allowed + difference.detectable, unit)} (80% power)"
    return (
        True,
        f"{change_words}): no significant {beyond}{detectable}{_needed(test, allowed, worse, layout)}",
    )


def _needed(test: Test, allowed: float, worse: Direction, layout: Layout) -> str:
    """How many groups would tell a change of the allowed size from none, where there are fewer. Where none is
    allowed, one of a twentieth of the unit's range."""
    unit = test.difference.unit
    size = allowed or SMALL_DROP * (range_of(unit) or 0.0)
    count = groups_to_show(size, test.estimate, unit)
    if count is None or count <= test.difference.clusters:
        return ""
    return f"; about {count:,} {layout.counted[1]} would tell a {worse} of {change(size, unit)} from none"
