"""A run held against a baseline: does it do worse, beyond noise and beyond what is allowed?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from evenkeel.comparison import SIGNIFICANT, Difference, compare
from evenkeel.pairing import layout_of
from evenkeel.report.text import number, share, signed
from evenkeel.stats import AGREE, UNCHANGED
from evenkeel.store import Run


class Check(Struct, frozen=True, kw_only=True):
    """One thing that a gate looks at: a metric, or the coverage."""

    name: str
    passed: bool
    reason: str
    """Why, in one line."""
    difference: Difference | None = None


class Gate(Struct, frozen=True, kw_only=True):
    """What a gate was told to hold to, and what it found."""

    run: str
    baseline: str
    max_drop: float
    higher_is_worse: bool
    min_coverage: float
    passed: bool
    checks: tuple[Check, ...]

    def __repr__(self) -> str:
        from evenkeel.report.inline import gate_text

        return gate_text(self)

    def _repr_html_(self) -> str:
        from evenkeel.report.inline import gate_html

        return gate_html(self)


def gate(
    run: Run | str | Path,
    baseline: Run | str | Path,
    *,
    metrics: str | Sequence[str] | None = None,
    max_drop: float = 0.0,
    higher_is_worse: bool = False,
    min_coverage: float = 0.95,
) -> Gate:
    """Fails where the interval of a paired difference lies wholly below −`max_drop`, and on low coverage.

    `metrics` is the benchmark's headline where none is named.

    `assert ek.gate("runs/new", baseline="runs/old", max_drop=0.02).passed`
    """
    metrics = [metrics] if isinstance(metrics, str) else metrics
    new, old = (given if isinstance(given, Run) else Run(given) for given in (run, baseline))
    differences = compare(old, new, metrics=metrics or [layout_of([old, new]).headline]).differences
    checks = [
        _check_coverage(differences, min_coverage),
        *(_check(difference, max_drop, higher_is_worse=higher_is_worse) for difference in differences),
    ]
    return Gate(
        run=str(new.path),
        baseline=str(old.path),
        max_drop=max_drop,
        higher_is_worse=higher_is_worse,
        min_coverage=min_coverage,
        passed=all(check.passed for check in checks),
        checks=tuple(checks),
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


def _check(found: Difference, allowed: float, *, higher_is_worse: bool) -> Check:
    """Whether the interval of one difference lies wholly beyond what is allowed."""
    passed, reason = _judged(found, allowed, higher_is_worse=higher_is_worse)
    return Check(name=found.metric, passed=passed, reason=f"{found.metric} {reason}", difference=found)


def _judged(found: Difference, allowed: float, *, higher_is_worse: bool) -> tuple[bool, str]:
    unit = found.unit
    if found.value_a is None or found.value_b is None or found.difference is None:
        return False, "has no sample with a value in both runs"
    said = (
        f"went from {number(found.value_a, unit)} to {number(found.value_b, unit)} "
        f"({signed(found.difference, unit)}"
    )
    change = "rise" if higher_is_worse else "drop"
    beyond = f"{change} of more than {number(allowed, unit)}" if allowed else change
    if found.low is None or found.high is None:
        # A unit without bounds has no interval where all groups differ alike; that they do is no chance.
        alike = found.method == AGREE and found.p is not None and found.p < SIGNIFICANT
        if alike and (found.difference if higher_is_worse else -found.difference) > allowed:
            return False, f"{said}, the same in every group): a {beyond}, beyond noise"
        same = found.method == UNCHANGED
        return (
            True,
            f"{said}): {'it is the same in every sample' if same else 'too few groups to tell from noise'}",
        )
    worse = found.low > allowed if higher_is_worse else found.high < -allowed
    said = f"{said}, 95% interval {signed(found.low, unit)} to {signed(found.high, unit)})"
    if worse:
        return False, f"{said}: a {beyond}, beyond noise"
    seen = f"; one of {number(allowed + found.detectable, unit)} would have shown" if found.detectable else ""
    return True, f"{said}: no {beyond}, beyond noise{seen}"
