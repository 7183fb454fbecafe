"""Differences: their intervals and p-values, what could be detected, and Holm's correction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenkeel import analysis as stats
from evenkeel.analysis import (
    RANGES,
    Side,
    detectable,
    difference_range,
    holm,
    over_clusters,
    pair_coverage,
    paired_test,
    t_interval,
    t_test,
    unpaired_test,
    welch,
    wilson,
)
from evenkeel.types import Unit


@settings(deadline=None)
@given(
    st.sampled_from([*RANGES]),
    st.lists(st.tuples(st.integers(0, 7), st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30),
)
def test_a_difference_stays_within_its_unit_and_its_interval_agrees_with_p(
    unit: Unit, drawn: list[tuple[int, float, float]]
) -> None:
    (least, most), bounds = RANGES[unit], difference_range(unit)
    assert bounds == (least - most, most - least)
    groups = np.unique([group for group, _, _ in drawn], return_inverse=True)[1]
    a, b = (least + (most - least) * np.array([row[side] for row in drawn]) for side in (1, 2))
    if groups.max() < 1:
        return
    for tested in (
        paired_test(Side(b - a, groups).estimate, unit=unit),
        unpaired_test(Side(a, groups), Side(b, groups), unit=unit),
    ):
        assert tested.low is not None
        assert tested.high is not None
        assert bounds[0] - 1e-9 <= tested.low <= tested.high <= bounds[1] + 1e-9
        assert tested.high - tested.low > 1e-9 * bounds[1]
        if tested.p is not None and abs(tested.p - 0.05) > 1e-6:
            assert (tested.p < 0.05) == (not tested.low <= 0 <= tested.high)


def test_differences_without_spread_are_judged_by_what_was_not_seen() -> None:
    few, many = (paired_test(over_clusters(np.full(n, -1.0), np.ones(n)), unit="share") for n in (3, 8))
    assert (few.low, few.p) == (-1.0, 0.25)  # as a permutation test has it
    assert (few.high or 0) > 0  # three alike do not rule out that there is no difference
    assert (many.low, many.p) == (-1.0, 2 / 2**8)
    assert many.high == pytest.approx(-1 + 2 * (1 - 0.025 ** (1 / 8)))
    assert few.method == "Clopper-Pearson over groups, which all differ"
    tokens = paired_test(over_clusters(np.full(8, -1.0), np.ones(8)), unit="tokens")
    assert (tokens.low, tokens.high, tokens.p) == (None, None, 2 / 2**8)  # nothing bounds what was not seen
    assert tokens.method == "none: all groups agree"


def test_rounding_is_not_spread() -> None:
    estimate = over_clusters(np.array([0.3 - 0.2, 0.9 - 0.8, 0.2 - 0.1, 1.1 - 1.0]), np.ones(4))
    assert estimate.error == 0


def test_equal_runs_have_no_p_value() -> None:
    found = paired_test(over_clusters(np.zeros(9), np.ones(9)), unit="share")
    unseen = 1 - 0.025 ** (1 / 9)
    assert (found.low, found.high) == pytest.approx((-unseen, unseen))
    assert found.p is None
    tokens = paired_test(over_clusters(np.zeros(9), np.ones(9)), unit="tokens")
    assert tokens[:4] == (None, None, None, "none: nothing differs")


@pytest.mark.parametrize(("a", "b"), [((9, 10), (3, 10)), ((56, 70), (48, 80)), ((10, 10), (0, 20))])
def test_unpaired_shares_have_the_interval_of_newcombe(a: tuple[int, int], b: tuple[int, int]) -> None:
    """Method 10 of Newcombe (1998): 56/70 − 48/80 is 0.2 with 0.0524 to 0.3339."""
    sides = [Side((np.arange(n) < k).astype(float), np.arange(n)) for k, n in (b, a)]
    found = unpaired_test(*sides, unit="share")
    (low_a, high_a), (low_b, high_b) = (wilson(k / n, n) for k, n in (a, b))
    first, second = a[0] / a[1], b[0] / b[1]
    low = first - second - np.hypot(first - low_a, high_b - second)
    high = first - second + np.hypot(high_a - first, second - low_b)
    assert (found.low, found.high) == pytest.approx((low, high))
    if a == (56, 70):
        assert (found.low, found.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_unpaired_samples_are_compared_as_welch_does() -> None:
    from scipy.stats import ttest_ind

    rng = np.random.default_rng(6)
    a, b = rng.normal(0, 1, 9), rng.normal(1, 3, 25)
    found = welch(over_clusters(a, np.ones(9)), over_clusters(b, np.ones(25)))
    known = ttest_ind(b, a, equal_var=False)
    low, high = known.confidence_interval(0.95)
    assert t_interval(found) == pytest.approx((low, high))
    assert t_test(found, "", alike=1.0).p == pytest.approx(known.pvalue)
    sides = [Side(side, np.arange(len(side))) for side in (a, b)]
    assert unpaired_test(*sides, unit="count").p == pytest.approx(known.pvalue)
    assert found.df == pytest.approx(known.df)


@pytest.mark.parametrize("unit", ["tokens", "cosine"])
def test_the_detectable_difference_is_that_of_the_noncentral_t(unit: Unit) -> None:
    """Power by scipy's noncentral t, for one test and for the first step of Holm's correction of twelve."""
    from scipy.stats import nct, t

    draw = np.random.default_rng(7).normal(0, 0.1, 30)
    tested = paired_test(over_clusters(draw, np.ones(30)), unit=unit)
    assert tested.df is not None
    for tests in (1, 12):
        size = detectable(tested, unit=unit, tests=tests)
        assert size is not None
        error = (tested.high - tested.low) / 2 / t.ppf(0.975, tested.df)  # type: ignore[operator]
        beyond = t.ppf(1 - 0.025 / tests, tested.df)
        assert 1 - nct.cdf(beyond, tested.df, size / error) == pytest.approx(0.8, abs=1e-4)


def test_where_no_possible_difference_is_large_enough_none_is_detectable() -> None:
    tested = paired_test(over_clusters(np.array([-1.0, 0.0, 1.0]), np.ones(3)), unit="share")
    assert detectable(tested, unit="share", tests=1) is None
    alike = paired_test(over_clusters(np.zeros(9), np.ones(9)), unit="share")
    assert detectable(alike, unit="share", tests=1) is None


def test_holm_is_the_known_correction() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, None, 0.5]) == [1.0, None, 1.0]
    assert holm([None]) == [None]


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_the_order_and_never_makes_a_p_value_smaller(p_values: list[float]) -> None:
    corrected = holm(p_values)
    assert all(c is not None and p <= c <= 1 for p, c in zip(p_values, corrected, strict=True))
    ranked = sorted(zip(p_values, corrected, strict=True), key=lambda both: both[0])
    assert [c for _, c in ranked] == sorted(c for c in corrected if c is not None)


def test_a_pair_is_covered_as_far_as_its_weaker_side() -> None:
    assert pair_coverage([((5, 5), (5, 5)), ((5, 5), (3, 5))]) == pytest.approx(0.8)
    assert pair_coverage([((2, 2), (0, 1))]) == 0
    assert pair_coverage([]) == 0


def test_the_detectable_difference_of_binary_pairs_allows_for_their_spread() -> None:
    """A McNemar design: 5 of 40 pairs differ by chance, and the claimed difference more in one direction."""
    rng = np.random.default_rng(3)
    groups = np.arange(40)

    def tested(shift: float) -> stats.Tested:
        change = rng.choice([-1.0, 0.0, 1.0], size=40, p=[0.06, 0.88 - shift, 0.06 + shift])
        return paired_test(Side(change, groups).estimate, unit="share")

    claims = [detectable(tested(0.0), unit="share", tests=1, binary=40) for _ in range(40)]
    claim = float(np.mean([size for size in claims if size is not None]))
    shown = np.mean([(p := tested(claim).p) is not None and p < 0.05 for _ in range(400)])
    assert 0.75 < shown < 0.97
