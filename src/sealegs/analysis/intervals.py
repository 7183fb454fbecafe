"""Errors over clusters and the intervals of means, as pure functions of arrays (docs/statistics.md)."""

from __future__ import annotations

from math import exp, log
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from sealegs.analysis.links import Links, spread
from sealegs.analysis.student import NORMAL, t_cdf, t_quantile
from sealegs.types import Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

CONFIDENCE = 0.95
ALPHA = 1 - CONFIDENCE

TOO_FEW = "fewer than two independent samples"
UNEVEN = "too few independent samples of like size"
NOTHING = "nothing to count"
AGREE = "all independent samples agree"
WILSON = "Wilson score"

Bounds: TypeAlias = tuple[float, float]
RANGES: dict[Unit, Bounds] = {
    "cosine": (-1.0, 1.0),
    "share": (0.0, 1.0),
    "score": (0.0, 100.0),
    "points": (-100.0, 100.0),
    "correlation": (-1.0, 1.0),
}
"""Where a unit has bounds, an interval does not lie beyond them."""
AMOUNTS: frozenset[Unit] = frozenset({"tokens", "count", "nats", "bits"})
"""Units of what is never negative and has no upper bound; differences of amounts have no bound at all."""

ROUNDING = 2.5e-5
"""Of a unit's range: half of the last digit that is shown of a cosine. What differs by less is the same."""
FARTHEST = log(100)
"""Half the width of an interval on the logarithmic scale, beyond which it says nothing: from a hundredth of
the value to a hundred times as much."""
WIDEST = 100.0
"""Standard errors on either side of a value, beyond which an interval says nothing."""
CARRIED = 0.75
"""The share of the variance that decides an interval."""
FEWEST = 6
"""Groups below which one of them nearly always carries most of the variance."""


class Estimate(NamedTuple):
    """A mean or a ratio, its standard error over clusters, and how well that error itself is known."""

    value: float
    error: float
    df: float
    clusters: int
    kurtosis: float = 0.0
    """Excess kurtosis of the clusters, where it is positive, over their number."""
    effective: float = 0.0
    """How many clusters of equal size these amount to (Kish 1965)."""
    linked: bool = False
    """Whether clusters share units: `clusters` is then the number of independent ones that they amount to."""
    deciding: int = 0
    """How many clusters carry three quarters of the variance, where they are one, or at most a tenth."""
    unseen: bool = False
    """Whether some of the variance is not in the error: that of one of two means, whose clusters agree."""

    @property
    def over(self) -> str:
        """What the error is taken over, in words."""
        return "over linked groups" if self.linked else "over groups"

    @property
    def satterthwaite_df(self) -> float:
        """Fewer degrees of freedom where few clusters make up the spread: 1/df′ = 1/df + κ/(2G).

        The variance of a variance grows with the kurtosis κ of what it is taken over (Satterthwaite 1946).
        """
        return 1 / (1 / self.df + self.kurtosis / 2)


class Interval(NamedTuple):
    """A value, the interval around it and, in words, the method."""

    value: float | None
    low: float | None
    high: float | None
    method: str
    n: int
    clusters: int
    deciding: int = 0
    """How many groups decide it, where they are few: see `Estimate`."""
    reason: str = ""
    """Why there is no interval."""
    linked: bool = False

    @classmethod
    def unknown(
        cls, reason: str, n: int, clusters: int, *, value: float | None = None, linked: bool = False
    ) -> Interval:
        return cls(value, None, None, "", n, clusters, reason=reason, linked=linked)


def per_cluster(clusters: NDArray[np.intp], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of the values in each cluster, by its number."""
    return np.bincount(clusters, values).astype(float)


def over_clusters(
    sums: NDArray[np.float64], sizes: NDArray[np.float64], links: Links | None = None
) -> Estimate:
    """m = Σ sumᵢ / Σ sizeᵢ over two clusters or more, with the error of a jackknife that leaves out clusters.

    Without cluster i, m moves by dᵢ = (sumᵢ − m nᵢ) / (N − nᵢ), where nᵢ is its size and N = Σ nᵢ; and
    error² = (G − 1)/G · Σ dᵢ² for G clusters (Miller 1974). If all sizes are equal this is s/√G of the
    clusters' means. The degrees of freedom are one less than the effective number of clusters, N²/Σ nᵢ²
    (Kish 1965; Carter, Schnepel & Steigerwald 2017): a few large clusters among many small ones are worth
    little more than the few. Clusters that share units have the error of `links.spread`.
    """
    clusters, total = len(sums), float(sizes.sum())
    value = float(sums.sum()) / total
    moves = (sums - value * sizes) / (total - sizes)
    square, df = float((moves**2).sum()), total**2 / float(sizes @ sizes) - 1
    scale = (clusters - 1) / clusters
    if links is not None:
        square, df, clusters, moves = spread(moves, sizes, links)
    error = (scale * square) ** 0.5
    # What is left of subtracting equal numbers is rounding, not spread.
    if error <= 1e-12 * float(np.abs(sums).max() / total):
        return Estimate(value, 0.0, df, clusters, effective=df + 1, linked=links is not None)
    moves = np.ldexp(moves, -int(np.frexp(np.abs(moves).max())[1]))  # powers of tiny numbers would be 0
    shares = moves**2 / float((moves**2).sum())
    kurtosis = max(0.0, float(shares @ shares) - 3 / len(moves))
    return Estimate(value, error, df, clusters, kurtosis, df + 1, links is not None, _deciding(shares))


def mean_over(
    values: NDArray[np.float64],
    groups: NDArray[np.intp],
    links: Links | None = None,
    weights: NDArray[np.float64] | None = None,
) -> Estimate:
    """The mean of values in groups, two or more, by their numbers from 0 on; with weights Σ w v / Σ w."""
    weights = np.ones(len(values)) if weights is None else weights
    return over_clusters(per_cluster(groups, weights * values), per_cluster(groups, weights), links)


def _deciding(shares: NDArray[np.float64]) -> int:
    """How many clusters carry three quarters of the variance, of which each has a share; 0 where many do."""
    carried = np.cumsum(np.sort(shares)[::-1])
    count = int(np.searchsorted(carried, CARRIED)) + 1
    return count if len(shares) >= FEWEST and count <= max(1, len(shares) // 10) else 0


def t_interval(estimate: Estimate) -> Bounds | None:
    """value ± t(df) · error. None where t is beyond `WIDEST`: the groups are too few, or too uneven."""
    quantile = t_quantile(1 - ALPHA / 2, estimate.df)
    half = quantile * estimate.error
    return (estimate.value - half, estimate.value + half) if quantile <= WIDEST else None


def wilson(share: float, n: float) -> Bounds:
    """Wilson's score interval: the p for which |share − p| ≤ z √(p(1 − p)/n) (Wilson 1927)."""
    z = NORMAL.inv_cdf(1 - ALPHA / 2)
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * (share * (1 - share) / n + z**2 / (4 * n**2)) ** 0.5
    return (centre - half if share > 0 else 0.0), (centre + half if share < 1 else 1.0)


def zero_variance_interval(value: float, clusters: int, bounds: Bounds) -> Bounds:
    """Where all clusters agree: what the clusters of which none was seen could make of the value.

    They are at most u = 1 − (α/2)^(1/G) of all, Clopper & Pearson's (1934) limit for none of G, and as far
    off as the bounds allow.
    """
    share = 1 - (ALPHA / 2) ** (1 / clusters)
    return value - share * max(0.0, value - bounds[0]), value + share * max(0.0, bounds[1] - value)


class Logit(NamedTuple):
    """A bounded estimate on the logit scale of its range: Student's t interval of logit p, taken back.

    With p the value's place in the range [0, 1] and e its error there, logit p has the error e / (p(1 − p))
    by the delta method (Agresti 2013, 3.1). Of values between −1 and 1 it is twice Fisher's z.
    """

    centre: float
    error: float
    df: float
    least: float
    span: float

    @classmethod
    def of(cls, estimate: Estimate, bounds: Bounds, df: float) -> Logit:
        least, span = bounds[0], bounds[1] - bounds[0]
        p = (estimate.value - least) / span
        return cls(log(p / (1 - p)), estimate.error / span / (p * (1 - p)), df, least, span)

    def interval(self) -> Bounds:
        half = t_quantile(1 - ALPHA / 2, self.df) * self.error
        low, high = _expit(self.centre - half), _expit(self.centre + half)
        return self.least + self.span * low, self.least + self.span * high

    def p_value(self, null: float) -> float:
        """The two-sided p of a true value `null`: below α where the interval leaves it out."""
        p = (null - self.least) / self.span
        return 2 * t_cdf(-abs(self.centre - log(p / (1 - p))) / self.error, self.df) if 0 < p < 1 else 0.0


def _expit(logit: float) -> float:
    """1 / (1 + e⁻ˣ), where e to a large power would be beyond the largest float."""
    share = exp(-abs(logit))
    return (share if logit < 0 else 1.0) / (1 + share)


def log_interval(estimate: Estimate) -> Bounds | None:
    """Of a positive amount: value · exp(±x), x = t(df′) · error / value, Student's t on the log scale.

    The error there is by the delta method, df′ Satterthwaite's. None where the clusters are too few to say
    anything.
    """
    x = t_quantile(1 - ALPHA / 2, estimate.satterthwaite_df) * estimate.error / estimate.value
    return (estimate.value * exp(-x), estimate.value * exp(x)) if x < FARTHEST else None


def interval_of(
    values: NDArray[np.float64],
    groups: NDArray[np.intp],
    unit: Unit,
    weights: NDArray[np.float64] | None = None,
    *,
    links: Links | None = None,
) -> Interval:
    """The mean of values in groups; with weights, Σ values / Σ weights. Its interval by what it is a mean of.

    - samples that are each 0 or 1 and a group of their own: Wilson's;
    - any other bounded value: t on the logit scale of its range;
    - an amount: t on the logarithmic scale; anything else: t;
    - where all groups agree: Clopper & Pearson's for what was not seen, or none where there is no bound.

    Groups with links are not independent: see `links.spread`.
    """
    weights = np.ones(len(values)) if weights is None else weights
    sums, sizes = per_cluster(groups, values), per_cluster(groups, weights)
    counting = (sizes != 0) | (sums != 0)
    sums, sizes = sums[counting], sizes[counting]
    links = links.restricted(np.asarray(counting)) if links is not None else None
    n, clusters, total = int(np.count_nonzero(weights)), int(np.count_nonzero(sizes)), float(sizes.sum())
    if clusters < 2:
        value = float(sums.sum()) / total if total else None
        return Interval.unknown(TOO_FEW if n else NOTHING, n, clusters, value=value)
    estimate = over_clusters(sums, sizes, links)
    clusters = estimate.clusters if links is not None else clusters
    if clusters < 2:
        return Interval.unknown(TOO_FEW, n, clusters, value=estimate.value, linked=True)
    limits: Bounds | None
    if unit == "share" and links is None and n == clusters and _binary(values, weights):
        limits, method = wilson(estimate.value, n), WILSON
    else:
        positive = unit in AMOUNTS and estimate.value > 0 and bool((values >= 0).all())
        limits, method = _over_groups(estimate, RANGES.get(unit), positive=positive)
    if limits is None:
        return Interval.unknown(method, n, clusters, value=estimate.value, linked=estimate.linked)
    low, high = min(limits[0], estimate.value), max(limits[1], estimate.value)
    deciding = 0 if method == WILSON else estimate.deciding
    return Interval(estimate.value, low, high, method, n, clusters, deciding, linked=estimate.linked)


def _over_groups(estimate: Estimate, bounds: Bounds | None, *, positive: bool) -> tuple[Bounds | None, str]:
    """The interval of a mean over groups, and the method in words, or why there is none."""
    if bounds and agree(estimate, bounds):
        limits = zero_variance_interval(estimate.value, estimate.clusters, bounds)
        return limits, f"Clopper-Pearson {estimate.over}, which all agree"
    if bounds and bounds[0] < estimate.value < bounds[1]:
        return Logit.of(estimate, bounds, estimate.df).interval(), f"logit t {estimate.over}"
    if not estimate.error:
        return None, AGREE
    if positive:
        amount = log_interval(estimate)
        return amount, f"log t {estimate.over}" if amount else UNEVEN
    plain = t_interval(estimate)
    return plain, f"t {estimate.over}" if plain else UNEVEN


def agree(estimate: Estimate, bounds: Bounds) -> bool:
    """Whether the groups differ by no more than rounding."""
    return estimate.error <= ROUNDING * (bounds[1] - bounds[0])


def _binary(values: NDArray[np.float64], weights: NDArray[np.float64]) -> bool:
    """Whether each sample that counts is a 0 or a 1, and counts once."""
    return bool(
        np.isin(values, (0, 1)).all() and np.isin(weights, (0, 1)).all() and (values <= weights).all()
    )
