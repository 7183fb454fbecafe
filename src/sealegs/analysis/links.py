"""Groups that are not independent, because they share units: triplets that have documents in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct

from sealegs.types import Score

if TYPE_CHECKING:
    from numpy.typing import NDArray

Group: TypeAlias = Hashable
"""What belongs together; a tuple is the units of a group, which any other group may share."""


class Labels(Struct, frozen=True):
    """A label of each sample, such as its group, as a number: of many samples, far faster than the labels."""

    numbers: NDArray[np.intp]
    names: list[Any]
    """The label of each number; of some samples there may be names that none of them has."""

    @classmethod
    def of(cls, labels: Iterable[Hashable]) -> Labels:
        """Numbered from 0 on in the order of their first occurrence."""
        listed = list(labels)
        numbers = {label: number for number, label in enumerate(dict.fromkeys(listed))}
        return cls(np.array([*map(numbers.__getitem__, listed)], dtype=np.intp), [*numbers])

    def __getitem__(self, samples: NDArray[np.intp] | NDArray[np.bool_]) -> Labels:
        """Those of some samples."""
        return Labels(self.numbers[samples], self.names)

    def in_order(self) -> Labels:
        """The same, numbered as `of` does, without names that no sample has."""
        count = len(self.numbers)
        if count and len(self.names) == 1:
            return self
        first = np.full(len(self.names), count)
        first[self.numbers[::-1]] = np.arange(count)[::-1]
        order = np.argsort(first)[: np.count_nonzero(first < count)]
        numbers = np.empty_like(first)
        numbers[order] = np.arange(len(order))
        return Labels(numbers[self.numbers], [self.names[number] for number in order.tolist()])

    def tolist(self) -> list[Any]:
        """The labels themselves."""
        return [self.names[number] for number in self.numbers.tolist()]


class Links(NamedTuple):
    """Which units each group has, by number: an entry for each pair of a group and one of its units."""

    groups: NDArray[np.intp]
    units: NDArray[np.intp]

    def restricted(self, counting: NDArray[np.bool_]) -> Links | None:
        """Those of the groups that count, numbered anew; None where these share no unit."""
        entries = np.isin(self.groups, np.flatnonzero(counting))
        groups = (np.cumsum(counting) - 1)[self.groups[entries]]
        units = np.unique(self.units[entries], return_inverse=True)[1]
        return Links(groups, units) if len(units) and units.max() + 1 < len(units) else None

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum over the groups that have a unit, for each unit."""
        return np.bincount(self.units, values[self.groups]).astype(float)


class Spread(NamedTuple):
    """How far a mean of linked groups may be off, and how many independent groups that rests on."""

    square: float
    df: float
    independent: int
    units: NDArray[np.float64]
    """By how much the mean moves without each unit."""


def group_of(score: Score) -> Group:
    """A score's links, where it has any, else its group: scores with the same links are one group."""
    return units_or_group(score.group, score.links)


def units_or_group(group: str, links: Iterable[str]) -> Group:
    return tuple(sorted(set(links))) or group


def numbered(groups: Iterable[Group] | Labels) -> tuple[NDArray[np.intp], Links | None]:
    """The number of each group from 0 on, and the links; None where no two groups share a unit."""
    labels = groups.in_order() if isinstance(groups, Labels) else Labels.of(groups)
    if tuple not in set(map(type, labels.names)):
        return labels.numbers, None
    units: dict[Hashable, int] = {}
    entries = [
        (number, units.setdefault(unit, len(units)))
        for number, group in enumerate(labels.names)
        for unit in (group if isinstance(group, tuple) else (group,))
    ]
    links = Links(*np.array(entries, dtype=np.intp).T)
    return labels.numbers, links.restricted(np.ones(len(labels.names), dtype=bool))


def spread(moves: NDArray[np.float64], sizes: NDArray[np.float64], links: Links) -> Spread:
    """The square of the error of a mean that moves by `moves` without each group, of these sizes.

    Two groups are dependent where they share a unit, so that products of moves are summed over all pairs of
    groups that share one: the cluster-robust variance of multiway and dyadic data (Cameron, Gelbach & Miller
    2011; Fafchamps & Gubert 2007), with its factor for few clusters. With U(u) the sum of the moves of the
    groups that have unit u, kᵢ the number of units of group i, k their mean, and n(u) the sum of the sizes at
    unit u:

        square = K/(K − 1) · (Σ U(u)² − Σ (kᵢ − 1) moveᵢ²),  at least Σ moveᵢ²
        K = (Σ n(u))² / Σ n(u)²
        G* = (Σ n(u)²)² / Σ n(u)⁴
        df = min(K/k, G*) − 1

    A pair that shares two units counts twice. K is the effective number of units (Kish 1965), so that the
    groups amount to K/k without a common unit. G* is the effective number of clusters of Carter, Schnepel &
    Steigerwald (2017) where samples of one unit are alike: a unit counts by the square of its size, since
    that is its part of the variance. A few units that are in many groups are worth no more than the few.
    docs/statistics.md has how often such intervals hold.
    """
    units, sizes_of_units = links.sums(moves), links.sums(sizes)
    units_of_groups = np.bincount(links.groups, minlength=len(moves))
    effective = _effective_number(sizes_of_units)
    independent = min(effective / float(units_of_groups.mean()), _effective_number(sizes_of_units**2))
    square = least = float(moves @ moves)
    if effective > 1:
        crossed = float(units @ units) - float((units_of_groups - 1) @ moves**2)
        square = max(least, effective / (effective - 1) * crossed)
    # K/k of groups that share almost nothing is a hair below their number.
    return Spread(square, independent - 1, max(1, int(independent + 1e-9)), units)


def _effective_number(weights: NDArray[np.float64]) -> float:
    """(Σ w)² / Σ w²: how many equal weights are worth as much."""
    return float(weights.sum()) ** 2 / float(weights @ weights)


def independent_groups(groups: Iterable[Group] | Labels) -> int:
    """To how many groups without a common unit these amount: their number, where none is shared."""
    numbers, links = numbered(groups)
    sizes = np.bincount(numbers).astype(float)
    return len(sizes) if links is None else spread(np.zeros(len(sizes)), sizes, links).independent
