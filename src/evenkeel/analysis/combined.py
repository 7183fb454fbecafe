"""Weighted sums of means: macro-averages, and differences of ratios.

The means may share groups (one question is asked for noise and for rejection), so that errors are added up
within a group before they are squared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evenkeel.analysis.intervals import Estimate, Interval, interval_of, over_clusters, per_cluster
from evenkeel.analysis.links import Group, Links, numbered, spread
from evenkeel.types import Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Term(NamedTuple):
    """A mean and the coefficient with which it enters the sum."""

    coefficient: float
    values: Sequence[float]
    groups: Sequence[Group]


def macro_terms(values: Sequence[float], groups: Sequence[Group], parts: Sequence[Hashable]) -> list[Term]:
    """The terms of the mean of the parts' means, (1/K) Σ mean(part); each sample has a value, group, part."""
    by_part: defaultdict[Hashable, tuple[list[float], list[Group]]] = defaultdict(lambda: ([], []))
    for value, group, part in zip(values, groups, parts, strict=True):
        by_part[part][0].append(value)
        by_part[part][1].append(group)
    return [Term(1 / len(by_part), *of_part) for of_part in by_part.values()]


def value_of(terms: Sequence[Term]) -> float:
    return float(sum(coefficient * np.mean(values) for coefficient, values, _ in terms))


def estimate(terms: Sequence[Term]) -> Estimate | None:
    """T = Σ cₚ meanₚ with its error over groups; None where a mean has fewer than two groups.

    Without group g the mean of term p moves by mₚ(g), as in `over_clusters`, and
    error² = Σ_g (Σₚ cₚ √((Gₚ − 1)/Gₚ) mₚ(g))². The degrees of freedom are Satterthwaite's over the terms,
    Σ(vₚ)² / Σ(vₚ²/dfₚ) with vₚ = (cₚ errorₚ)², and at most one less than there are groups. Of groups with
    links, error and degrees of freedom are those of `links.spread`, where a group's size is its share of T.
    """
    numbers, links = _numbered(terms)
    if any(len(set(groups)) < 2 for groups in numbers):
        return None
    value, shifts = value_of(terms), _moves(terms, numbers).sum(axis=0)
    # A mean of as many groups that moves as T does has the same shape as T.
    pseudo = over_clusters(value + len(shifts) * shifts, np.ones(len(shifts)), links)
    if links is None:
        error, df = float(np.sqrt(shifts @ shifts)), _satterthwaite(terms, numbers, len(shifts) - 1)
    else:
        square, df, clusters, _ = spread(shifts, _weights(terms, numbers), links)
        error, pseudo = float(np.sqrt(square)), pseudo._replace(clusters=clusters)
        if clusters < 2:
            return None
    constant = error <= 1e-12 * max(max(map(abs, term.values)) for term in terms)
    return pseudo._replace(value=value, error=0.0 if constant else error, df=df)


def _satterthwaite(terms: Sequence[Term], numbers: Sequence[NDArray[np.intp]], most: float) -> float:
    """The degrees of freedom of a weighted sum of means, whose groups have no links."""
    estimates = [over_clusters(*_sums(*each)) for each in zip(terms, numbers, strict=True)]
    variances = [(term.coefficient * each.error) ** 2 for term, each in zip(terms, estimates, strict=True)]
    total = sum(v**2 / each.df for v, each in zip(variances, estimates, strict=True))
    return min(sum(variances) ** 2 / total if total else min(each.df for each in estimates), most)


def interval(terms: Sequence[Term], unit: Unit) -> Interval:
    """T with limits from those of its terms: T − √(Σᵢⱼ rᵢⱼ dᵢ dⱼ), where dₚ is how far the limit that makes T
    small lies from meanₚ, times cₚ, and rᵢⱼ the correlation of two terms over the groups or units they share;
    the upper limit likewise (Zou & Donner 2008). So it is as asymmetric as the intervals of its terms.
    """
    numbers, links = _numbered(terms)
    weights = _weights(terms, numbers)
    n, clusters = sum(len(term.values) for term in terms), len(weights)
    if links is not None:
        clusters = spread(np.zeros(clusters), weights, links).independent
    intervals = [
        interval_of(np.array(term.values, dtype=float), groups, unit, links=links)
        for term, groups in zip(terms, numbers, strict=True)
    ]
    value = value_of(terms)
    if unknown := [each for each in intervals if each.low is None]:
        return Interval(value, None, None, unknown[0].method, n, clusters)
    # The margin on the side that makes T small comes first; a negative coefficient swaps them.
    margins = [
        [term.coefficient * margin for margin in each.margins[:: 1 if term.coefficient > 0 else -1]]
        for term, each in zip(terms, intervals, strict=True)
    ]
    moves = _moves(terms, numbers)
    correlation = _correlation(moves if links is None else np.stack([links.sums(row) for row in moves]))
    sides = np.ascontiguousarray(np.transpose(margins))
    low, high = (float(np.sqrt(max(0.0, side @ correlation @ side))) for side in sides)
    methods = ", ".join(dict.fromkeys(each.method for each in intervals))
    return Interval(value, value - low, value + high, methods, n, clusters)


def _numbered(terms: Sequence[Term]) -> tuple[list[NDArray[np.intp]], Links | None]:
    """The groups of each term's values by numbers that all terms share, and their links."""
    numbers, links = numbered(chain.from_iterable(term.groups for term in terms))
    ends = np.cumsum([len(term.groups) for term in terms])
    return np.split(numbers, ends[:-1]), links


def _weights(terms: Sequence[Term], numbers: Sequence[NDArray[np.intp]]) -> NDArray[np.float64]:
    """How much each group counts in T: the sum of its shares of the means, times their coefficients."""
    weights = np.zeros(1 + max(int(groups.max()) for groups in numbers))
    for term, groups in zip(terms, numbers, strict=True):
        np.add.at(weights, groups, abs(term.coefficient) / len(groups))
    return weights


def _sums(term: Term, groups: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The sum and the number of a term's values in each of its groups."""
    consecutive = np.unique(groups, return_inverse=True)[1]
    values = np.array(term.values, dtype=float)
    return per_cluster(consecutive, values), per_cluster(consecutive, np.ones(len(values)))


def _moves(terms: Sequence[Term], numbers: Sequence[NDArray[np.intp]]) -> NDArray[np.float64]:
    """By how much each term (a row) moves without each group (a column), scaled as its error needs it."""
    moves = np.zeros((len(terms), 1 + max(int(groups.max()) for groups in numbers)))
    for row, term, groups in zip(moves, terms, numbers, strict=True):
        sums, sizes = _sums(term, groups)
        total, clusters = sizes.sum(), len(sums)
        if clusters > 1:
            each = (sums - sums.sum() / total * sizes) / (total - sizes)
            row[np.unique(groups)] = term.coefficient * np.sqrt((clusters - 1) / clusters) * each
    return moves


def _correlation(moves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each two terms over their groups; 0 with a term that has no spread."""
    lengths = np.sqrt((moves**2).sum(axis=1))
    units = moves / np.where(lengths > 0, lengths, 1)[:, None]
    correlation = units @ units.T
    np.fill_diagonal(correlation, 1)
    return np.asarray(correlation)
