"""Weighted sums of means: macro-averages, and differences of ratios.

The means may share groups (one question is asked for noise and for rejection), so that errors are added up
within a group before they are squared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sealegs.analysis.intervals import (
    ALPHA,
    RANGES,
    TOO_FEW,
    WILSON,
    Estimate,
    Interval,
    interval_of,
    over_clusters,
    per_cluster,
)
from sealegs.analysis.links import Group, Links, numbered, spread
from sealegs.analysis.student import NORMAL, t_quantile
from sealegs.types import Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW_SHARED = 6
"""Groups that two terms must share so that a negative correlation of theirs makes an interval narrower."""


class Term(NamedTuple):
    """A mean and the coefficient with which it enters the sum."""

    coefficient: float
    values: NDArray[np.float64]
    groups: Any
    """Of each value: the group, or in a sum its number, from 0 on, that all terms share."""

    def by_group(self) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
        """The groups that it has, by their numbers; the sum and the number of its values in each."""
        groups, own = np.unique(self.groups, return_inverse=True)
        return groups, per_cluster(own, self.values), per_cluster(own, np.ones(len(own)))


def macro_terms(values: Sequence[float], groups: Sequence[Group], parts: Sequence[Hashable]) -> list[Term]:
    """The terms of the mean of the parts' means, (1/K) Σ mean(part); each sample has a value, group, part."""
    by_part: defaultdict[Hashable, list[int]] = defaultdict(list)
    for index, part in enumerate(parts):
        by_part[part].append(index)
    amounts = np.array(values, dtype=float)
    return [Term(1 / len(by_part), amounts[rows], [groups[row] for row in rows]) for rows in by_part.values()]


class _Sum(NamedTuple):
    """T = Σ cₚ meanₚ."""

    means: list[Term]
    links: Links | None
    value: float
    weights: NDArray[np.float64]
    """How much each group counts in T: the sum of its shares of the means, times their coefficients."""
    moves: NDArray[np.float64]
    """By how much each mean (a row) moves without each group (a column), scaled as its error needs it."""


def _sum(terms: Sequence[Term]) -> _Sum:
    numbers, links = numbered(chain.from_iterable(term.groups for term in terms))
    groups_of = np.split(numbers, np.cumsum([len(term.groups) for term in terms])[:-1])
    means = [term._replace(groups=groups) for term, groups in zip(terms, groups_of, strict=True)]
    weights, moves = np.zeros(1 + numbers.max()), np.zeros((len(terms), 1 + numbers.max()))
    for row, mean in zip(moves, means, strict=True):
        np.add.at(weights, mean.groups, abs(mean.coefficient) / len(mean.groups))
        groups, sums, sizes = mean.by_group()
        if (clusters := len(groups)) > 1:
            each = (sums - sums.sum() / sizes.sum() * sizes) / (sizes.sum() - sizes)
            row[groups] = mean.coefficient * np.sqrt((clusters - 1) / clusters) * each
    value = float(sum(mean.coefficient * np.mean(mean.values) for mean in means))
    return _Sum(means, links, value, weights, moves)


def estimate(terms: Sequence[Term]) -> Estimate | None:
    """T = Σ cₚ meanₚ with its error over groups; None where a mean has fewer than two groups.

    Without group g the mean of term p moves by mₚ(g), as in `over_clusters`, and
    error² = Σ_g (Σₚ cₚ √((Gₚ − 1)/Gₚ) mₚ(g))². The degrees of freedom are Satterthwaite's over the terms,
    Σ(vₚ)² / Σ(vₚ²/dfₚ) with vₚ = (cₚ errorₚ)², and at most one less than there are groups. Of groups with
    links, error and degrees of freedom are those of `links.spread`, where a group's size is its share of T.
    """
    means, links, value, weights, moves = _sum(terms)
    if any(len(set(mean.groups)) < 2 for mean in means):
        return None
    shifts = moves.sum(axis=0)
    # A mean of as many groups that moves as T does has the same shape as T.
    pseudo = over_clusters(value + len(shifts) * shifts, np.ones(len(shifts)), links)
    if links is None:
        error, df = float(np.sqrt(shifts @ shifts)), _satterthwaite(means, len(shifts) - 1)
        pseudo = pseudo._replace(effective=float(weights.sum() ** 2 / (weights @ weights)))
    else:
        square, df, clusters, _ = spread(shifts, weights, links)
        error, pseudo = float(np.sqrt(square)), pseudo._replace(clusters=clusters, effective=df + 1)
        if clusters < 2:
            return None
    constant = error <= 1e-12 * max(float(np.abs(mean.values).max()) for mean in means)
    return pseudo._replace(value=value, error=0.0 if constant else error, df=df)


def _satterthwaite(means: Sequence[Term], most: float) -> float:
    """The degrees of freedom of a weighted sum of means, whose groups have no links."""
    estimates = [over_clusters(*mean.by_group()[1:]) for mean in means]
    variances = [(mean.coefficient * each.error) ** 2 for mean, each in zip(means, estimates, strict=True)]
    total = sum(v**2 / each.df for v, each in zip(variances, estimates, strict=True))
    return min(sum(variances) ** 2 / total if total else min(each.df for each in estimates), most)


def interval(terms: Sequence[Term], unit: Unit) -> Interval:
    """T with limits from those of its terms: T − √(Σᵢⱼ rᵢⱼ dᵢ dⱼ), where dₚ is how far the limit that makes T
    small lies from meanₚ, times cₚ, and rᵢⱼ the correlation of two terms over the groups or units they share;
    the upper limit likewise (Zou & Donner 2008). So it is as asymmetric as the intervals of its terms.
    A negative correlation counts where enough groups are shared.

    Where groups have links, Wilson's limits count as t(df)/z times as far: all terms together rest on no more
    units than `links.spread` says.
    """
    means, links, value, weights, moves = _sum(terms)
    n, clusters, wider = sum(len(mean.values) for mean in means), len(weights), 1.0
    if links is not None:
        of_links = spread(np.zeros(clusters), weights, links)
        clusters = of_links.independent
        if clusters < 2:
            return Interval.unknown(TOO_FEW, n, clusters, value=value, linked=True)
        wider = t_quantile(1 - ALPHA / 2, of_links.df) / NORMAL.inv_cdf(1 - ALPHA / 2)
    intervals = [interval_of(mean.values, mean.groups, unit, links=links) for mean in means]
    if unknown := [each for each in intervals if each.low is None]:
        return Interval.unknown(unknown[0].reason, n, clusters, value=value, linked=links is not None)
    # How far the lower limit of each term is from its mean, and the upper one, times its coefficient.
    margins = [
        (scale * (each.value - each.low), scale * (each.high - each.value))
        for mean, each in zip(means, intervals, strict=True)
        if each.value is not None and each.low is not None and each.high is not None
        for scale in [mean.coefficient * (wider if each.method == WILSON else 1)]
    ]
    correlation = _correlation(moves, links)
    # Of few groups it is -1 by chance: two of them would leave no width at all.
    asked = np.zeros_like(moves)
    for row, mean in zip(asked, means, strict=True):
        row[mean.groups] = 1
    correlation[(asked @ asked.T < FEW_SHARED) & (correlation < 0)] = 0
    sides = np.ascontiguousarray(np.transpose(margins))
    low, high = (float(np.sqrt(max(0.0, side @ correlation @ side))) for side in sides)
    methods = ", ".join(dict.fromkeys(each.method for each in intervals))
    least, most = RANGES.get(unit, (-inf, inf))
    low, high = max(least, value - low), min(most, value + high)
    return Interval(value, low, high, methods, n, clusters, linked=links is not None)


def _correlation(moves: NDArray[np.float64], links: Links | None) -> NDArray[np.float64]:
    """Of each two terms over their groups, or over all pairs of groups that share a unit, as `links.spread`
    counts them; 0 with a term that has no spread."""
    products = moves @ moves.T
    squares = np.diag(products)
    if links is not None:
        units = np.stack([links.sums(row) for row in moves])
        counted_again = np.bincount(links.groups, minlength=moves.shape[1]) - 1
        products = units @ units.T - (moves * counted_again) @ moves.T
        squares = np.maximum(squares, np.diag(products))
    lengths = np.sqrt(np.outer(squares, squares))
    correlation = np.clip(products / np.where(lengths > 0, lengths, 1), -1, 1)
    np.fill_diagonal(correlation, 1)
    return np.asarray(correlation)
