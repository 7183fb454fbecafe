"""A run held against a baseline: does it do worse, beyond noise and beyond what is allowed?"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from evenkeel import analysis as stats
from evenkeel.analysis.comparability import check_methods, layout_of, read_numbers, usual_metrics
from evenkeel.analysis.comparison import MIN_GROUPS, SIGNIFICANT, Difference, compare
from evenkeel.errors import UsageError
from evenkeel.page.format import counted, number, probability, share, signed
from evenkeel.page.layout import Layout
from evenkeel.page.metrics import Better, Metric, declaration
from evenkeel.run.folder import Run

MIN_OVERLAP = 0.8
"""The share of the larger run's samples that the other must have too."""

Direction: TypeAlias = Literal["drop", "rise"]


class Overlap(Struct, frozen=True, kw_only=True):
    """The samples that a metric is about: in both runs, and in the one that has more."""

    common: int
    larger: int
    groups: int
    """Groups of the common ones."""

    @property
    def share(self) -> float:
        return self.common / self.larger if self.larger else 0.0


class Check(Struct, frozen=True, kw_only=True):
    """One thing that a gate looks at: a metric, or the coverage."""

    name: str
    passed: bool
    reason: str
    """Why, in one line."""
    difference: Difference | None = None
    worse: Direction | None = None
    """Which change of the metric is the bad one."""
    p_holm: float | None = None
    """Of no bad change beyond --max-drop, corrected for all metrics of the gate."""
    overlap: Overlap | None = None


class Gate(Struct, frozen=True, kw_only=True):
    """What a gate was told to hold to, and what it found."""

    run: str
    baseline: str
    max_drop: float
    higher_is_worse: bool
    lower_is_worse: bool
    min_coverage: float
    min_overlap: float
    min_groups: int
    passed: bool
    checks: tuple[Check, ...]
    correction: str
    """How the decisions over several metrics are corrected; empty for one."""

    def __repr__(self) -> str:
        from evenkeel.report.notebook import gate_text

        return gate_text(self)

    def _repr_html_(self) -> str:
        from evenkeel.report.notebook import gate_html

        return gate_html(self)


def gate(
    run: Run | str | Path,
    baseline: Run | str | Path,
    *,
    metrics: str | Sequence[str] | None = None,
    max_drop: float = 0.0,
    higher_is_worse: bool = False,
    lower_is_worse: bool = False,
    min_coverage: float = 0.95,
    min_overlap: float = MIN_OVERLAP,
    min_groups: int = MIN_GROUPS,
) -> Gate:
    """Fails where a metric is worse than the baseline by more than `max_drop`, and on low coverage.

    Which way is worse, the metric's declaration says; `higher_is_worse` and `lower_is_worse` say it of those
    for which neither is. Worse is what a paired test of a change beyond `max_drop` finds significant after
    Holm's correction for all metrics named: for one metric, a 95 % interval that lies wholly beyond. Runs
    that share too few samples or groups are refused. `metrics` is the benchmark's headline by default.

    `assert ek.gate("runs/new", baseline="runs/old", max_drop=0.02).passed`
    """
    metrics = [metrics] if isinstance(metrics, str) else metrics
    _check_limits(max_drop, min_coverage=min_coverage, min_overlap=min_overlap)
    new, old = (given if isinstance(given, Run) else Run(given) for given in (run, baseline))
    layout = layout_of([old, new])
    names = list(dict.fromkeys(metrics or _headline(layout, [old, new])))
    check_methods(names, layout, [old, new])
    worse = _directions(names, layout.metrics, higher=higher_is_worse, lower=lower_is_worse)
    differences = compare(old, new, metrics=names).differences
    overlaps = _overlaps(names, layout, old, new)
    for name, overlap in overlaps.items():
        _check_overlap(name, overlap, layout.counted, min_overlap, min_groups)
    corrected = stats.holm([_p_beyond(found, max_drop, worse[found.metric]) for found in differences])
    tests = sum(p is not None for p in corrected)
    checks = [_check_coverage(differences, min_coverage)]
    for found, p in zip(differences, corrected, strict=True):
        check = _check(found, max_drop, worse[found.metric], p, layout)
        overlap = overlaps[found.metric]
        if found.n and (few := _too_few(found, overlap, layout, min_overlap, min_groups)):
            check = replace(check, passed=False, reason=few)
        checks.append(replace(check, overlap=overlap))
    return Gate(
        run=str(new.path),
        baseline=str(old.path),
        max_drop=max_drop,
        higher_is_worse=higher_is_worse,
        lower_is_worse=lower_is_worse,
        min_coverage=min_coverage,
        min_overlap=min_overlap,
        min_groups=min_groups,
        passed=all(check.passed for check in checks),
        checks=tuple(checks),
        correction=f"Holm, over {tests} metrics" if tests > 1 else "",
    )


def _check_limits(max_drop: float, **shares: float) -> None:
    """Refuse what nothing could fail: a limit that is no number."""
    if not 0 <= max_drop < inf:
        raise UsageError(f"--max-drop is {max_drop}: it must be a number from 0 on.")
    for name, limit in shares.items():
        if not 0 <= limit <= 1:
            raise UsageError(f"--{name.replace('_', '-')} is {limit}: it must be between 0 and 1.")


def _headline(layout: Layout, runs: Sequence[Run]) -> list[str]:
    """The headline, where it is one figure. A run of an older version may lack it."""
    for run in runs:
        run.figure(layout.headline)
    if any(len(run.methods) > 1 for run in runs):
        return [layout.headline]  # which is refused, with the methods to choose from
    return usual_metrics(layout, runs)[:1]


def _directions(
    names: Sequence[str], declared: Sequence[Metric], *, higher: bool, lower: bool
) -> dict[str, Direction]:
    """Which change of each metric is the bad one: as declared, or as the person says where it is not."""
    if higher and lower:
        raise UsageError("--higher-is-worse and --lower-is-worse exclude each other: give one of them.")
    better: dict[str, Better | None] = {}
    for name in names:
        found = declaration(declared, name)
        better[name] = found.better if found else None
    given: Better | None = "lower" if higher else "higher" if lower else None
    undirected = [name for name in names if better[name] is None]
    if undirected and given is None:
        raise UsageError(
            f"neither more nor less of '{undirected[0]}' is better in itself: "
            "say which is worse with --higher-is-worse or --lower-is-worse."
        )
    if given and not undirected and (contrary := [name for name in names if better[name] != given]):
        raise UsageError(
            f"--{'higher' if higher else 'lower'}-is-worse: of '{contrary[0]}' {better[contrary[0]]} is "
            "better, as its benchmark declares. The option is for metrics that have no direction."
        )
    return {name: "rise" if (better[name] or given) == "lower" else "drop" for name in names}


def _overlaps(names: Sequence[str], layout: Layout, old: Run, new: Run) -> dict[str, Overlap]:
    there, here = (read_numbers(run, names, layout.metrics) for run in (old, new))
    overlaps = {}
    for name in names:
        both = there.asked_for[name] & here.asked_for[name]
        overlaps[name] = Overlap(
            common=len(both),
            larger=max(len(there.asked_for[name]), len(here.asked_for[name])),
            groups=len({there.groups[sample] for sample in both}),
        )
    return overlaps


def _check_overlap(
    name: str, overlap: Overlap, counted: tuple[str, str], min_overlap: float, min_groups: int
) -> None:
    """Refuse runs that have too little in common: a verdict over it would say nothing of either."""
    samples, groups = counted
    if overlap.share < min_overlap:
        raise UsageError(
            f"'{name}': the runs have too few {samples} in common: {overlap.common:,} of {overlap.larger:,} "
            f"({share(overlap.share)}), and the gate needs {share(min_overlap)} (--min-overlap). "
            "Ask both runs the same, with the same --limit."
        )
    if overlap.groups < min_groups:
        raise UsageError(
            f"'{name}': the runs have too few {groups} in common to tell a change from noise: "
            f"{overlap.groups:,}, and the gate needs {min_groups} (--min-groups). Ask more {groups}."
        )


def _check_coverage(found: Sequence[Difference], floor: float) -> Check:
    """Whether every gated figure of the new run reaches the floor; that a baseline's does not is told."""
    lowest = min(found, key=lambda difference: difference.coverage_b)
    passed = lowest.coverage_b >= floor
    reason = f"coverage {share(lowest.coverage_b)}{_of(lowest, found)} "
    reason += f"{'reaches' if passed else 'is under'} the floor of {share(floor)}"
    weakest = min(found, key=lambda difference: difference.coverage_a)
    if weakest.coverage_a < floor:
        reason += f"; the baseline's, {share(weakest.coverage_a)}{_of(weakest, found)}, is under it"
    return Check(name="coverage", passed=passed, reason=reason)


def _of(one: Difference, found: Sequence[Difference]) -> str:
    return f" (of {one.metric})" if len(found) > 1 else ""


def _p_beyond(found: Difference, allowed: float, worse: Direction) -> float | None:
    """The p-value of a change in the bad direction of just `allowed`; 1 for a smaller one or a good one.

    With nothing allowed it is the comparison's own. Otherwise the interval tells it: with r = (distance of
    the value from `allowed`) / (distance of the value from the limit on that side), p = 2 · P(T > r · t₀.₉₇₅)
    with one degree of freedom less than groups. So p < 0.05 exactly where the interval lies wholly beyond.
    """
    from scipy.special import stdtr, stdtrit

    if found.difference is None or found.p is None:
        return None
    sign = 1 if worse == "rise" else -1
    excess = sign * found.difference - allowed
    if excess <= 0:
        return 1.0
    if not allowed or found.low is None or found.high is None:
        return found.p  # all groups moved alike where there is no interval, and so all of them beyond
    length = abs(found.difference - (found.low if worse == "rise" else found.high))
    if not length:
        return found.p
    df = max(1, found.clusters - 1)
    upper = (1 + stats.CONFIDENCE) / 2
    return float(2 * stdtr(df, -excess / length * stdtrit(df, upper)))


def _check(found: Difference, allowed: float, worse: Direction, p: float | None, layout: Layout) -> Check:
    passed, reason = _judged(found, allowed, worse, p)
    over = f"; {counted(found, layout)}" if found.n else ""
    declared = declaration(layout.metrics, found.metric)
    chance = (
        f" (chance {number(declared.chance, found.unit)})" if declared and declared.chance is not None else ""
    )
    return Check(
        name=found.metric,
        passed=passed,
        reason=f"{found.metric} {reason}{over}{chance}",
        difference=found,
        worse=worse,
        p_holm=p,
    )


def _too_few(found: Difference, overlap: Overlap, layout: Layout, min_overlap: float, min_groups: int) -> str:
    """Why what both runs have a value of is too little, though both were asked it; empty if it is enough."""
    declared = declaration(layout.metrics, found.metric)
    ratio = bool(declared and declared.ratio_to)  # whose denominator is what a run makes it
    if not ratio and found.n < min_overlap * overlap.larger:
        needed = f"{share(min_overlap)} (--min-overlap)"
    elif found.clusters < min_groups:
        needed = f"{min_groups} {layout.counted[1]} (--min-groups)"
    else:
        return ""
    return (
        f"{found.metric} has a value in both runs for only {counted(found, layout)}, of {overlap.larger:,}: "
        f"the gate needs {needed}"
    )


def _judged(found: Difference, allowed: float, worse: Direction, p: float | None) -> tuple[bool, str]:
    """Whether a change is significantly worse than allowed.

    A change for the worse that nothing can be said of does not pass: a gate that cannot see is no gate.
    """
    unit = found.unit
    if found.value_a is None or found.value_b is None or found.difference is None:
        return False, "has no sample with a value in both runs"
    moved = (
        f"went from {number(found.value_a, unit)} to {number(found.value_b, unit)} "
        f"({signed(found.difference, unit)}"
    )
    beyond = f"{worse} of more than {number(allowed, unit)}" if allowed else worse
    if found.p is None and abs(found.difference) < 1e-12:
        return True, f"{moved}): it is the same in every sample"
    if found.low is None or found.high is None:
        if p is not None and p < SIGNIFICANT:
            return False, f"{moved}, the same in every group): a {beyond}, beyond noise"
        passed = (found.difference if worse == "rise" else -found.difference) <= allowed
        verdict = f"no {beyond}" if passed else f"a {beyond}, and no way to tell it from noise"
        return passed, f"{moved}): {verdict} ({found.method.removeprefix('none: ')})"
    moved = f"{moved}, 95% interval {signed(found.low, unit)} to {signed(found.high, unit)}"
    tested = "" if p is None or p == 1 else f", p {'' if p < 0.001 else '= '}{probability(p)}"
    if p is not None and p < SIGNIFICANT:
        return False, f"{moved}{tested}): a {beyond}, beyond noise"
    seen = f"; one of {number(allowed + found.detectable, unit)} would have shown" if found.detectable else ""
    return True, f"{moved}{tested}): no {beyond}, beyond noise{seen}"
