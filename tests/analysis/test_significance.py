"""Differences: their intervals and p-values, what could be detected, and Holm's correction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from present import limits
from sealegs.analysis.intervals import RANGES, mean_over, over_clusters
from sealegs.analysis.significance import detectable, difference_range, holm, paired_test
from sealegs.types import Unit


@settings(deadline=None)
@given(
    st.sampled_from([*RANGES]),
    st.lists(st.tuples(st.integers(0, 7), st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30),
)
def test_a_difference_stays_within_its_unit_and_agrees_with_p(
    unit: Unit, drawn: list[tuple[int, float, float]]
) -> None:
    (least, most), bounds = RANGES[unit], difference_range(unit)
    assert bounds == (least - most, most - least)
    groups = np.unique([group for group, _, _ in drawn], return_inverse=True)[1]
    a, b = (least + (most - least) * np.array([row[side] for row in drawn]) for side in (1, 2))
    if groups.max() < 1:
        return
    tested = paired_test(mean_over(b - a, groups), unit=unit)
    low, high = limits(tested)
    assert bounds[0] - 1e-9 <= low <= high <= bounds[1] + 1e-9
    assert high - low > 1e-9 * bounds[1]
    if tested.p is not None and abs(tested.p - 0.05) > 1e-6:
        assert (tested.p < 0.05) == (not low <= 0 <= high)


@pytest.mark.parametrize("unit", ["share", "tokens"])
def test_a_limit_of_the_interval_has_a_p_value_of_5_percent(unit: Unit) -> None:
    estimate = over_clusters(np.random.default_rng(1).normal(0.2, 0.1, 30), np.ones(30))
    tested = paired_test(estimate, unit=unit)
    for limit in limits(tested):
        assert paired_test(estimate, unit=unit, null=limit).p == pytest.approx(0.05)


def test_differences_without_spread_are_judged_by_what_was_not_seen() -> None:
    few, many = (paired_test(over_clusters(np.full(n, -1.0), np.ones(n)), unit="share") for n in (3, 8))
    assert (few.low, few.p) == (-1.0, 0.25)  # as a permutation test has it
    assert (few.high or 0) > 0  # three alike do not rule out that there is no difference
    assert (many.low, many.p) == (-1.0, 2 / 2**8)
    assert many.high == pytest.approx(-1 + 2 * (1 - 0.025 ** (1 / 8)))
    tokens = paired_test(over_clusters(np.full(8, -1.0), np.ones(8)), unit="tokens")
    assert (tokens.low, tokens.high, tokens.p) == (None, None, 2 / 2**8)  # nothing bounds what was not seen
    assert (tokens.method, tokens.reason) == ("sign test over groups", "all independent samples agree")


@pytest.mark.parametrize("groups", [8, 40, 120])
def test_a_difference_near_the_end_of_its_range_is_not_less_significant(groups: int) -> None:
    """All groups differ by all that they can but for a few that do not differ: p falls with their number."""
    tests = [
        paired_test(over_clusters(np.repeat([0.0, 1.0], [few, groups - few]), np.ones(groups)), unit="share")
        for few in range(groups // 4, -1, -1)
    ]
    p_values = [test.p or 1.0 for test in tests]
    assert p_values == sorted(p_values, reverse=True)
    assert max(p_values) < 0.05
    assert all(limits(test)[0] > 0 for test in tests)


@pytest.mark.parametrize("sizes", [np.ones(40), np.repeat([1.0, 9.0], 20)])
def test_a_difference_is_no_less_certain_than_of_groups_at_the_bounds(sizes: NDArray[np.float64]) -> None:
    """Clopper & Pearson's limits and p of as many groups of equal size, 39 in 40 of them at the upper."""
    from scipy.stats import beta

    mean = over_clusters(np.append(np.ones(39), 0.0) * sizes, sizes)
    tested, groups = paired_test(mean, unit="share"), sizes.sum() ** 2 / (sizes**2).sum()
    right = groups * (1 + mean.value) / 2
    shape = right, groups - right + 1
    low, _ = limits(tested)
    assert low == pytest.approx(2 * beta.ppf(0.025, *shape) - 1)
    assert tested.p == pytest.approx(2 * beta.cdf(0.5, *shape))
    assert tested.method == "Clopper-Pearson over groups"
    assert paired_test(mean, unit="share", null=low).p == pytest.approx(0.05)
    mirrored = paired_test(mean._replace(value=-mean.value), unit="share")
    assert limits(mirrored) == pytest.approx((-limits(tested)[1], -low))
    assert mirrored.p == pytest.approx(tested.p)


def test_equal_models_differ_significantly_in_no_more_than_5_percent() -> None:
    """Also where outcomes lie at the ends of the range: models seldom agree, or never, on few questions."""
    rng, alarms = np.random.default_rng(1), {}
    for groups in (6, 10, 20):
        for discordant in (0.5, 0.9, 1.0):
            half = discordant / 2
            draws = rng.choice([-1.0, 0.0, 1.0], (600, groups), p=[half, 1 - discordant, half])
            p_values = [paired_test(over_clusters(row, np.ones(groups)), unit="share").p for row in draws]
            alarms[groups, discordant] = np.mean([p is not None and p < 0.05 for p in p_values])
    assert max(alarms.values()) < 0.06


def test_rounding_is_not_spread_and_equal_runs_have_no_p_value() -> None:
    rounded = over_clusters(np.array([0.3 - 0.2, 0.9 - 0.8, 0.2 - 0.1, 1.1 - 1.0]), np.ones(4))
    assert rounded.error == 0
    equal = over_clusters(np.zeros(9), np.ones(9))
    found, unseen = paired_test(equal, unit="share"), 1 - 0.025 ** (1 / 9)
    assert (found.low, found.high) == pytest.approx((-unseen, unseen))
    assert found.p is None
    assert paired_test(equal, unit="tokens") == (None, None, None, "", "nothing differs")


@pytest.mark.parametrize("tests", [1, 12])
def test_the_detectable_difference_is_two_quantiles_of_the_error(tests: int) -> None:
    from scipy.stats import t

    estimate = over_clusters(np.random.default_rng(7).uniform(-0.1, 0.1, 30), np.ones(30))
    expected = (t.ppf(1 - 0.025 / tests, 29) + t.ppf(0.8, 29)) * estimate.error
    assert detectable(estimate, unit="cosine", tests=tests) == pytest.approx(expected)


def test_where_no_possible_difference_is_large_enough_none_is_detectable() -> None:
    wide = over_clusters(np.array([-1.0, 0.0, 1.0]), np.ones(3))
    assert detectable(wide, unit="share", tests=1) is None
    assert detectable(over_clusters(np.zeros(9), np.ones(9)), unit="share", tests=1) is None


def test_holm_is_the_known_correction() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, None, 0.5]) == [1.0, None, 1.0]
