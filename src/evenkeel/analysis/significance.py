"""Whether a difference is more than chance: its interval, its p-value, Holm's correction, the power."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb, exp, hypot, isfinite
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evenkeel.analysis.intervals import (
    AGREE,
    ALPHA,
    RANGES,
    ROUNDING,
    UNEVEN,
    Estimate,
    Interval,
    Logit,
    agree,
    interval_of,
    over_clusters,
    per_cluster,
    t_interval,
    unseen,
)
from evenkeel.analysis.links import Links
from evenkeel.analysis.student import noncentrality, t_cdf, t_quantile
from evenkeel.types import Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

POWER = 0.8
UNCHANGED = "none: nothing differs"


class Tested(NamedTuple):
    """A difference tested against zero: its interval, its p-value and, in words, the method.

    Where there is an interval, it excludes zero exactly where p < 0.05.
    """

    low: float | None
    high: float | None
    p: float | None
    method: str
    df: float | None = None
    """Degrees of freedom behind the interval; None where there is no spread."""


def difference_range(unit: Unit) -> tuple[float, float] | None:
    """Where differences of a unit lie: of shares between −1 and 1, of cosines between −2 and 2."""
    if unit not in RANGES:
        return None
    span = RANGES[unit][1] - RANGES[unit][0]
    return -span, span


def paired_test(estimate: Estimate, *, unit: Unit) -> Tested:
    """A mean of paired differences of this unit: its interval, and the two-sided p of no difference.

    Where the unit has bounds: t over groups on the logit scale of what differences there can be. Where it
    has none: the plain t. Without any spread there is no t. Where there are bounds, the interval is then
    that of `unseen`, and p the α at which it reaches zero: 2 (S/(S + |value|))ᴳ for differences in [−S, S].
    """
    value, bounds = estimate.value, difference_range(unit)
    if bounds is None or not bounds[0] <= value <= bounds[1]:
        return t_test(estimate, f"paired t {estimate.over}", alike=2.0 ** (1 - estimate.clusters))
    if agree(estimate, bounds):
        same = abs(value) <= ROUNDING * bounds[1]
        p = None if same else min(1.0, 2 * (bounds[1] / (bounds[1] + abs(value))) ** estimate.clusters)
        low, high = unseen(value, estimate.clusters, bounds, alpha=ALPHA)
        return Tested(
            low, high, p, f"Clopper-Pearson {estimate.over}, which {'do not' if same else 'all'} differ"
        )
    logit = Logit.of(estimate, bounds)
    return Tested(*logit.interval(bounds), logit.p_value(), f"paired logit t {estimate.over}", logit.df)


def t_test(estimate: Estimate, method: str, *, alike: float) -> Tested:
    """The plain t interval of a difference, and the two-sided p of t = value / error.

    Without any spread there is no t, and nothing bounds what was not seen: there is no interval, and p is
    that of a permutation test, `alike`. For G paired differences it is 2 / 2ᴳ: were each one's sign a coin's
    throw, so often would all fall the same way.
    """
    if not estimate.error:
        return Tested(None, None, alike, AGREE) if estimate.value else Tested(None, None, None, UNCHANGED)
    low, high = t_interval(estimate)
    if not (isfinite(low) and isfinite(high)):
        return Tested(None, None, None, UNEVEN)
    p = 2 * t_cdf(-abs(estimate.value) / estimate.error, estimate.df)
    return Tested(low, high, p, method, estimate.df)


class Side(NamedTuple):
    """The values of one of two unrelated samples, and the numbers of their groups, two or more."""

    values: NDArray[np.float64]
    groups: NDArray[np.intp]
    links: Links | None = None

    @property
    def estimate(self) -> Estimate:
        sizes = per_cluster(self.groups, np.ones(len(self.values)))
        return over_clusters(per_cluster(self.groups, self.values), sizes, self.links)

    def interval(self, unit: Unit, *, alpha: float = ALPHA) -> Interval:
        return interval_of(self.values, self.groups, unit, links=self.links, alpha=alpha)


def unpaired_test(first: Side, second: Side, *, unit: Unit) -> Tested:
    """The mean of `second` minus that of `first`, which have nothing to do with each other.

    Where the unit has bounds: `square_and_add`, and p is the α at which such an interval reaches zero. Where
    it has none: Welch's t.
    """
    a, b = first.estimate, second.estimate
    both = welch(a, b)
    if unit not in RANGES:
        # How often a clean cut between the sides comes by chance: two of all the ways to deal the groups.
        return t_test(both, "Welch's t over groups", alike=2 / comb(a.clusters + b.clusters, a.clusters))
    low, high = square_and_add(first, second, unit=unit)
    if not (isfinite(low) and isfinite(high)):
        return Tested(None, None, None, UNEVEN)
    p = None
    if both.error or both.value:
        p = _reaches_zero(lambda alpha: square_and_add(first, second, unit=unit, alpha=alpha))
    return Tested(low, high, p, "Newcombe's square-and-add over groups", both.df if both.error else None)


def square_and_add(first: Side, second: Side, *, unit: Unit, alpha: float = ALPHA) -> tuple[float, float]:
    """The interval of d = b − a, from the intervals of the means a and b.

    low = d − √((b − low_b)² + (high_a − a)²) and high = d + √((high_b − b)² + (a − low_a)²). With Wilson's
    intervals that is Newcombe's (1998); Zou & Donner (2008) have it for any. Infinite where a or b has none.
    """
    a, b = (side.interval(unit, alpha=alpha) for side in (first, second))
    d = (b.value or 0.0) - (a.value or 0.0)
    return d - hypot(b.arms[0], a.arms[1]), d + hypot(b.arms[1], a.arms[0])


def _reaches_zero(interval: Callable[[float], tuple[float, float]]) -> float:
    """The α at which an interval at 1 − α reaches zero, by halving on the logarithmic scale."""
    outside, inside = -35.0, 0.0

    def contains_zero(alpha: float) -> bool:
        low, high = interval(alpha)
        return low <= 0 <= high

    if contains_zero(1.0):
        return 1.0
    while inside - outside > 1e-9:
        middle = (outside + inside) / 2
        if contains_zero(exp(middle)):
            outside = middle
        else:
            inside = middle
    return exp(inside)


def welch(first: Estimate, second: Estimate) -> Estimate:
    """second − first of two independent samples, with Welch's error and degrees of freedom.

    error² = e₁² + e₂² and df = error⁴ / (e₁⁴/df₁ + e₂⁴/df₂) (Welch 1947).
    """
    squares = first.error**2, second.error**2
    spread = squares[0] ** 2 / first.df + squares[1] ** 2 / second.df
    df = sum(squares) ** 2 / spread if spread else min(first.df, second.df)
    clusters = min(first.clusters, second.clusters)
    return Estimate(second.value - first.value, sum(squares) ** 0.5, df, clusters, 0.0, 0.0)


def detectable(tested: Tested, *, unit: Unit, tests: int, binary: int = 0) -> float | None:
    """The minimum detectable difference: the smallest true one that is significant with 80 % power.

    Significant by the first step of Holm's correction for `tests` tests, p < α/tests: with the error that the
    interval has, half its width over t₀.₉₇₅, it is error · δ, where a t with noncentrality δ is beyond
    t(1 − α/2 tests) with a probability of 80 %. None where there is no spread, and where no difference
    of this unit is as large.

    Pairs of 0 and 1 spread more, the more they differ: in as many groups as `binary` says, a difference d
    adds up to d(1 − d)/groups to the square of the error, and d = δ √(error² + d(1 − d)/groups).
    """
    if tested.df is None or tested.low is None or tested.high is None:
        return None
    error = (tested.high - tested.low) / 2 / t_quantile(1 - ALPHA / 2, tested.df)
    beyond = t_quantile(1 - ALPHA / 2 / tests, tested.df)
    delta = noncentrality(1 - POWER, beyond, tested.df)
    size = error * delta
    if binary:
        added = delta**2 / binary
        size = (added + (added**2 + 4 * (1 + added) * size**2) ** 0.5) / (2 * (1 + added))
    bounds = difference_range(unit)
    return size if isfinite(size) and (bounds is None or size <= bounds[1]) else None


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction: the k-th smallest of m p-values times m − k + 1, none below the one before it.

    What was not tested (None) does not count (Holm 1979).
    """
    tested = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    floor = 0.0
    for passed, (p, index) in enumerate(tested):
        floor = min(1.0, max(floor, p * (len(tested) - passed)))
        corrected[index] = floor
    return corrected
