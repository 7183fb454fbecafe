"""Errors over clusters, intervals and tests, as pure functions of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evenkeel.types import Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

CONFIDENCE = 0.95
POWER = 0.8
UPPER = (1 + CONFIDENCE) / 2
Z = NormalDist().inv_cdf(UPPER)

TOO_FEW = "none: fewer than two groups"
NOTHING = "none: nothing to count"
UNCHANGED = "none: nothing differs"

RANGES: dict[Unit, tuple[float, float]] = {
    "cosine": (-1.0, 1.0),
    "share": (0.0, 1.0),
    "score": (0.0, 100.0),
    "points": (-100.0, 100.0),
}
"""Where a unit has bounds, an interval does not lie beyond them."""


class Estimate(NamedTuple):
    """A mean or a ratio, its standard error over clusters, and how well that error itself is known."""

    value: float
    error: float
    df: float
    clusters: int


class Interval(NamedTuple):
    """A value, the interval around it and, in words, how that was made."""

    value: float | None
    low: float | None
    high: float | None
    method: str
    n: int
    clusters: int


def per_cluster(clusters: NDArray[np.intp], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of the values in each cluster, by its number."""
    return np.bincount(clusters, values).astype(float)


def over_clusters(sums: NDArray[np.float64], sizes: NDArray[np.float64]) -> Estimate:
    """m = Σ sumᵢ / Σ sizeᵢ over two clusters or more, with the error of a jackknife that leaves out clusters.

    Without cluster i, m moves by eᵢ / (N − nᵢ), where eᵢ = sumᵢ − m nᵢ, nᵢ is its size and N = Σ nᵢ; and
    error² = (G − 1)/G · Σ (eᵢ / (N − nᵢ))² for G clusters. If all sizes are equal this is s/√G of the
    clusters' means. The degrees of freedom are N²/Σ nᵢ² − 1: a few large clusters among many small ones
    are worth little more than the few (Kish).
    """
    clusters, total = len(sums), float(sizes.sum())
    value = float(sums.sum()) / total
    moves = (sums - value * sizes) / (total - sizes)
    error = float(np.sqrt((clusters - 1) / clusters * (moves @ moves)))
    # What is left of subtracting equal numbers is rounding, not spread.
    steady = error <= 1e-12 * float(np.abs(sums).max() / total)
    return Estimate(value, 0.0 if steady else error, total**2 / float(sizes @ sizes) - 1, clusters)


def t_interval(estimate: Estimate) -> tuple[float, float]:
    """value ± t(df) · error."""
    half = _t(UPPER, estimate.df) * estimate.error
    return estimate.value - half, estimate.value + half


class Tested(NamedTuple):
    """Whether a difference is told from zero: its interval, its p-value and, in words, by what method."""

    low: float | None
    high: float | None
    p: float | None
    method: str


def t_test(estimate: Estimate, method: str, *, unit: Unit, alike: float | None = None) -> Tested:
    """The t interval of a difference of this unit, and the two-sided p of t = value / error.

    Without any spread there is no t, and p is that of a permutation test, `alike`. For G paired differences
    it is 2 / 2ᴳ: were each one's sign a coin's throw, so often would all fall the same way. Where the unit
    has bounds, the interval is then what 1 − 0.025^(1/G) of further groups, of which none was seen, could
    make of it (Clopper & Pearson 1934); where it has none, nothing bounds what was not seen, and the value
    alone is given if p says that it is no chance.
    """
    from scipy.special import stdtr  # scipy.stats has the same and takes a second to import

    value, error, df, clusters = estimate
    if error:
        return Tested(*t_interval(estimate), float(2 * stdtr(df, -abs(value) / error)), method)
    if not value:
        return Tested(None, None, None, UNCHANGED)
    p = 2.0 ** (1 - clusters) if alike is None else alike
    low = high = value if p < 1 - CONFIDENCE else None
    if unit in RANGES:
        span = RANGES[unit][1] - RANGES[unit][0]
        unseen = 1 - (1 - UPPER) ** (1 / clusters)
        low, high = value - unseen * (value + span), value + unseen * (span - value)
    return Tested(low, high, p, "permutation over groups, which all differ alike")


def welch(first: Estimate, second: Estimate) -> Estimate:
    """second − first of two independent samples, with Welch's error and degrees of freedom.

    error² = e₁² + e₂² and df = error⁴ / (e₁⁴/df₁ + e₂⁴/df₂).
    """
    squares = first.error**2, second.error**2
    spread = squares[0] ** 2 / first.df + squares[1] ** 2 / second.df
    df = sum(squares) ** 2 / spread if spread else min(first.df, second.df)
    clusters = min(first.clusters, second.clusters)
    return Estimate(second.value - first.value, sum(squares) ** 0.5, df, clusters)


def detectable(estimate: Estimate) -> float | None:
    """The smallest true value that would be told from zero in four of five samples like this one.

    (t₀.₉₇₅ + t₀.₈) · error: two-sided at 5 %, with a power of 80 %. None where there is no spread.
    """
    return (_t(UPPER, estimate.df) + _t(POWER, estimate.df)) * estimate.error or None


def _t(quantile: float, df: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(df, quantile))


def wilson(share: float, n: float) -> tuple[float, float]:
    """Wilson's score interval: the p for which |share − p| ≤ z √(p(1 − p)/n)."""
    centre = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * (share * (1 - share) / n + Z**2 / (4 * n**2)) ** 0.5
    return (centre - half if share > 0 else 0.0), (centre + half if share < 1 else 1.0)


def effective_size(estimate: Estimate, n: float) -> float:
    """As many independent samples as tell as much about a share as `n` samples in clusters do.

    n′ = p(1 − p)/error² · (z/t)², and at most n: the size that has this error, less what is unknown of the
    error (Korn & Graubard 1998). Where all clusters are alike, each counts for one.
    """
    if not estimate.error:
        return estimate.df + 1
    independent = estimate.value * (1 - estimate.value) / estimate.error**2
    return float(min(n, independent * (Z / _t(UPPER, estimate.df)) ** 2))


def interval_of(
    values: NDArray[np.float64],
    groups: NDArray[np.intp],
    unit: Unit,
    weights: NDArray[np.float64] | None = None,
) -> Interval:
    """The mean of values in groups; with weights, Σ values / Σ weights.

    A share of samples of which each is 0 or 1 has Wilson's interval, anything else t over groups.
    """
    weights = np.ones(len(values)) if weights is None else weights
    sums, sizes = per_cluster(groups, values), per_cluster(groups, weights)
    bearing = (sizes != 0) | (sums != 0)
    sums, sizes = sums[bearing], sizes[bearing]
    n, clusters, total = int(np.count_nonzero(weights)), int(np.count_nonzero(sizes)), float(sizes.sum())
    if clusters < 2:
        value = float(sums.sum()) / total if total else None
        return Interval(value, None, None, TOO_FEW if n else NOTHING, n, clusters)
    estimate = over_clusters(sums, sizes)
    if unit == "share" and _yes_or_no(values, weights):
        alone = n == clusters
        low, high = wilson(estimate.value, n if alone else effective_size(estimate, n))
        method = "Wilson score" if alone else "Wilson score, clustered by group"
    else:
        low, high = _within(RANGES.get(unit), estimate.value, t_interval(estimate))
        method = "t over groups"
    return Interval(estimate.value, low, high, method, n, clusters)


def _yes_or_no(values: NDArray[np.float64], weights: NDArray[np.float64]) -> bool:
    """Whether each sample that counts is a 0 or a 1, and counts once."""
    return bool(
        np.isin(values, (0, 1)).all() and np.isin(weights, (0, 1)).all() and (values <= weights).all()
    )


def _within(
    bounds: tuple[float, float] | None, value: float, interval: tuple[float, float]
) -> tuple[float, float]:
    if bounds is None or not bounds[0] <= value <= bounds[1]:
        return interval
    return max(bounds[0], interval[0]), min(bounds[1], interval[1])


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction: the k-th smallest of m p-values times m − k + 1, none below the one before it.

    What was not tested (None) does not count.
    """
    tested = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    floor = 0.0
    for passed, (p, index) in enumerate(tested):
        floor = min(1.0, max(floor, p * (len(tested) - passed)))
        corrected[index] = floor
    return corrected
