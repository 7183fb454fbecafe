"""Groups that share units: what their errors are, and when there are none to take."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from present import holds, present
from records import score
from sealegs.analysis import combined
from sealegs.analysis import intervals as stats
from sealegs.analysis.combined import Term
from sealegs.analysis.links import group_of, independent_groups, numbered

TRIPLETS = [
    ("a", "b", "c"),
    ("a", "d", "e"),
    ("f", "g", "h"),
    ("i", "j", "k"),
    ("b", "l", "m"),
    ("n", "o", "p"),
]
VALUES = np.array([1.0, 1.0, 0.0, 1.0, 1.0, 0.0])


def estimate_of(values: NDArray[Any], groups: Sequence[tuple[str, ...]]) -> stats.Estimate:
    return stats.mean_over(np.asarray(values, dtype=float), *numbered(groups))


def interval_of(values: NDArray[Any], groups: Sequence[tuple[str, ...]]) -> stats.Interval:
    numbers, links = numbered(groups)
    return stats.interval_of(np.asarray(values, dtype=float), numbers, "share", links=links)


def test_the_square_sums_over_all_pairs_of_groups_that_share_a_unit() -> None:
    estimate = estimate_of(VALUES, TRIPLETS)
    errors = (VALUES - VALUES.mean()) / (len(VALUES) - 1)  # by how much the mean moves without each
    counts = np.array(
        [sum(unit in t for t in TRIPLETS) for unit in sorted({*sum(TRIPLETS, ())})], dtype=float
    )
    kish = counts.sum() ** 2 / (counts**2).sum()
    by_pairs = sum(
        errors[i] * errors[j] * len({*TRIPLETS[i]} & {*TRIPLETS[j]}) for i, j in product(range(6), repeat=2)
    )
    square = kish / (kish - 1) * (by_pairs - 2 * (errors**2).sum())
    assert estimate.error == pytest.approx((5 / 6 * square) ** 0.5)
    assert estimate.error > estimate_of(VALUES, [(str(n),) for n in range(6)]).error
    assert estimate.df == pytest.approx(kish / 3 - 1)
    assert (estimate.clusters, estimate.linked) == (int(kish / 3), True)


def test_groups_without_a_common_unit_are_independent() -> None:
    separate = [(f"{n}a", f"{n}b", f"{n}c") for n in range(6)]
    assert estimate_of(VALUES, separate) == stats.mean_over(VALUES, np.arange(6))
    plain = stats.interval_of(VALUES, np.arange(6), "share")  # Wilson's
    assert interval_of(VALUES, separate) == plain
    # Of linked groups, those that have no value do not count.
    numbers, links = numbered(TRIPLETS)
    members = [0, 2, 3, 5]
    interval = stats.interval_of(VALUES[members], numbers[members], "share", links=links)
    assert interval == stats.interval_of(VALUES[members], np.arange(4), "share")


def test_copies_of_a_group_are_one_group() -> None:
    once = estimate_of(VALUES[:4], [("a", "b"), ("c", "d"), ("e", "f"), ("g", "h")])
    copies = [tuple(pair) for pair in ("ab", "cd", "ef", "gh") for _ in range(20)]
    often = estimate_of(np.repeat(VALUES[:4], 20), copies)
    assert often.error == pytest.approx(once.error)
    assert (often.df, often.clusters) == (once.df, 4)


def test_units_that_are_in_every_group_leave_nothing_to_compare() -> None:
    triplets = [tuple(t) for t in combinations("abcd", 3)] * 5
    assert independent_groups(triplets) == 1
    interval = interval_of(np.arange(20) % 2, triplets)
    assert (interval.value, interval.low, interval.high, interval.reason) == (0.5, None, None, stats.TOO_FEW)


def test_few_anchors_of_many_triplets_count_as_the_few() -> None:
    values = (np.arange(200) % 3 > 0).astype(float)
    estimate = estimate_of(values, [(f"a{n % 5}", f"p{n}", f"n{n}") for n in range(200)])
    counts = np.array([40.0] * 5 + [1.0] * 400)
    assert estimate.df == pytest.approx((counts**2).sum() ** 2 / (counts**4).sum() - 1)
    assert estimate.clusters == 5


def test_a_sum_of_means_over_the_same_units_is_that_of_their_difference() -> None:
    """Of paired values, the difference of two means is the mean of the differences, and so is its error."""
    rng = np.random.default_rng(1)
    groups = [tuple(sorted(rng.choice(list("abcdefghijklmnop"), 3, replace=False))) for _ in range(40)]
    first, second = rng.random((2, 40))
    apart = present(combined.estimate([Term(1, second, groups), Term(-1, first, groups)]))
    paired = estimate_of(second - first, groups)
    assert apart.value == pytest.approx(paired.value)
    assert apart.error == pytest.approx(paired.error, rel=0.02)
    assert apart.df == pytest.approx(paired.df)
    assert apart.clusters == paired.clusters
    others = [tuple(f"x{unit}" for unit in group) for group in groups]
    unrelated = present(combined.estimate([Term(1, second, groups), Term(-1, first, others)]))
    assert unrelated.clusters > paired.clusters


def test_links_take_the_place_of_the_group() -> None:
    assert group_of(score(1, {})) == "1"
    assert group_of(score(1, {}, links=("b", "a", "b"))) == ("a", "b")


@pytest.mark.full
@pytest.mark.parametrize(("documents", "triplets"), [(60, 100), (30, 150)])
def test_intervals_of_linked_triplets_hold_where_independent_ones_do_not(
    documents: int, triplets: int
) -> None:
    """Documents that are easy in any role; 300 draws with a fixed seed."""
    rng = np.random.default_rng(documents)
    held = np.zeros(2)
    for _ in range(300):
        chosen = np.array([rng.choice(documents, 3, replace=False) for _ in range(triplets)])
        effects = rng.normal(0, 0.8, documents)
        values = (0.7 + effects[chosen].sum(axis=1) + rng.normal(0, 1, triplets) > 0).astype(float)
        intervals = (
            stats.interval_of(values, np.arange(triplets), "share"),
            interval_of(values, [tuple(map(str, sorted(row))) for row in chosen]),
        )
        held += [holds(interval, 0.6593) for interval in intervals]  # Φ(0.7 / √(1 + 3 · 0.8²))
    independent, linked = held / 300
    assert independent < 0.85
    assert linked >= 0.92
