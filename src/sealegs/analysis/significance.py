"""Whether a difference is more than chance: its interval, its p-value, Holm's correction, the power."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

from sealegs.analysis.intervals import (
    AGREE,
    ALPHA,
    RANGES,
    ROUNDING,
    UNEVEN,
    Bounds,
    Estimate,
    Logit,
    agree,
    t_interval,
    zero_variance_interval,
)
from sealegs.analysis.student import beta_cdf, beta_quantile, t_cdf, t_quantile
from sealegs.types import Unit

POWER = 0.8
UNCHANGED = "nothing differs"


class Tested(NamedTuple):
    """A difference tested against zero: its interval, its p-value and, in words, the method.

    Where there is an interval, it excludes zero exactly where p < 0.05.
    """

    low: float | None
    high: float | None
    p: float | None
    method: str
    reason: str = ""
    """Why there is no interval, or no test."""

    @classmethod
    def unknown(cls, reason: str) -> Tested:
        return cls(None, None, None, "", reason)


def difference_range(unit: Unit) -> tuple[float, float] | None:
    """Where differences of a unit lie: of shares between −1 and 1, of cosines between −2 and 2."""
    if unit not in RANGES:
        return None
    span = RANGES[unit][1] - RANGES[unit][0]
    return -span, span


def paired_test(estimate: Estimate, *, unit: Unit, null: float = 0.0) -> Tested:
    """A mean of paired differences of this unit: its interval, and the two-sided p of `null`.

    Where the unit has bounds: Student's t on the scale of Fisher's z of d/S, for differences d in [−S, S],
    with Satterthwaite's degrees of freedom, or what `_Binary` says where that is narrower, or where the
    error lacks a part. Where it has none: the plain t. Without any spread there is no t.
    Where there are bounds, the interval is then that of `zero_variance_interval`, and p the α at which it
    reaches zero: 2 (S/(S + |d|))ᴳ, or with a null between zero and d, 2 ((S + |null|)/(S + |d|))ᴳ.
    """
    value, bounds = estimate.value, difference_range(unit)
    if bounds is None or not bounds[0] <= value <= bounds[1]:
        return t_test(estimate, f"paired t {estimate.over}", null=null)
    same, binary = abs(value - null) <= ROUNDING * bounds[1], _Binary.of(estimate, bounds)
    if estimate.unseen:
        p = None if same else binary.p_value(null)
        return Tested(*binary.narrowed(bounds), p, f"Clopper-Pearson {estimate.over}")
    if agree(estimate, bounds):
        share = (bounds[1] + abs(null)) / (bounds[1] + abs(value))
        p = None if same else min(1.0, 2 * share**estimate.clusters)
        differ = "do not" if abs(value) <= ROUNDING * bounds[1] else "all"
        limits = zero_variance_interval(value, estimate.clusters, bounds)
        return Tested(*limits, p, f"Clopper-Pearson {estimate.over}, which {differ} differ")
    logit = Logit.of(estimate, bounds, estimate.satterthwaite_df)
    limits, p = logit.interval(), logit.p_value(null)
    narrowed, exact = binary.narrowed(limits), binary.p_value(null)
    if narrowed == limits and p <= exact:
        return Tested(*limits, p, f"paired logit t {estimate.over}")
    return Tested(*narrowed, min(p, exact), f"Clopper-Pearson {estimate.over}")


class _Binary(NamedTuple):
    """Groups that are each at one of the bounds, a share `right` of them at the upper one: of all values with
    this mean these vary most. A mean is no less certain than theirs, which has the limits of
    Clopper & Pearson (1934), by the beta distribution also for numbers that are not whole (Korn & Graubard
    1998).

    Near a bound they are what holds: one group in forty that differs from the rest is all the spread there
    is, with two degrees of freedom, and a test on the logit scale finds a difference less significant the
    nearer it is to the bound (Hauck & Donner 1977).
    """

    right: float
    groups: float
    least: float
    span: float

    @classmethod
    def of(cls, estimate: Estimate, bounds: Bounds) -> _Binary:
        least, span = bounds[0], bounds[1] - bounds[0]
        return cls((estimate.value - least) / span, estimate.effective, least, span)

    def narrowed(self, limits: Bounds) -> Bounds:
        """The limits of an interval, or those of such groups where they are nearer to the value."""
        low, high = ((limit - self.least) / self.span for limit in limits)
        if self._below(low) < ALPHA / 2:
            low = beta_quantile(ALPHA / 2, *self._shape())
        if self._mirrored()._below(1 - high) < ALPHA / 2:
            high = 1 - beta_quantile(ALPHA / 2, *self._mirrored()._shape())
        return self.least + self.span * low, self.least + self.span * high

    def p_value(self, null: float) -> float:
        """Two-sided."""
        share = (null - self.least) / self.span
        tail = self._below(share) if share < self.right else self._mirrored()._below(1 - share)
        return min(1.0, 2 * tail)

    def _below(self, share: float) -> float:
        """How often there are as many at the upper bound, or more, if the true share is this one."""
        return beta_cdf(share, *self._shape())

    def _shape(self) -> tuple[float, float]:
        return self.groups * self.right, self.groups * (1 - self.right) + 1

    def _mirrored(self) -> _Binary:
        return self._replace(right=1 - self.right)


def t_test(estimate: Estimate, method: str, *, null: float = 0.0) -> Tested:
    """Student's t interval of a difference, and the two-sided p of t = (value − null) / error.

    Without any spread there is no t, and nothing bounds what was not seen: there is no interval, and p is
    that of a sign test. For G paired differences it is 2 / 2ᴳ: were each one's sign a coin's throw, so often
    would all fall the same way.
    """
    if not estimate.error:
        if estimate.value == null:
            return Tested.unknown(UNCHANGED)
        return Tested(None, None, 2.0 ** (1 - estimate.clusters), f"sign test {estimate.over}", AGREE)
    limits = t_interval(estimate)
    if limits is None:
        return Tested.unknown(UNEVEN)
    p = 2 * t_cdf(-abs(estimate.value - null) / estimate.error, estimate.df)
    return Tested(*limits, p, method)


def detectable(estimate: Estimate, *, unit: Unit, tests: int) -> float | None:
    """The minimum detectable difference with 80 % power: (t₁₋α/₂ + t₀.₈) · error (Bloom 1995).

    α is that of the first step of Holm's correction for so many tests, the degrees of freedom are the test's.
    None where there is no spread, and where no difference of this unit is as large.
    """
    df = estimate.satterthwaite_df
    size = (t_quantile(1 - ALPHA / 2 / tests, df) + t_quantile(POWER, df)) * estimate.error
    bounds = difference_range(unit)
    return size if size and isfinite(size) and (bounds is None or size <= bounds[1]) else None


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
