"""Intervals: right on average, the same every time, and absent where nothing can be said."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import records
from present import limits
from sealegs.analysis.figures import changes, difference, rank_correlation, ratio, slope, spearman, summarise
from sealegs.analysis.intervals import RANGES, interval_of, over_clusters, wilson
from sealegs.analysis.significance import holm, paired_test
from sealegs.page.metrics import scope_name, scope_of
from sealegs.types import Score, Unit

COSINE: dict[str, Unit] = {"m": "cosine"}
COUNT: dict[str, Unit] = {"m": "count"}


def score(group: str, value: float | None, *, answered: int = 5, asked: int = 5, **tags: str | int) -> Score:
    statuses = {"ok": answered, "error": asked - answered}
    return records.score(
        f"{group}-{tags}", {"m": value}, group=group, tags=tags, statuses=statuses, answered=answered
    )


def test_what_has_no_value_is_missing_not_zero() -> None:
    scores = [score("a", 1.0), score("b", None, answered=0), score("c", 1.0)]
    figure = summarise(scores, {"m": [()]}, units=COSINE)["m"]
    assert figure.value == 1.0
    assert (figure.n, figure.clusters) == (2, 2)
    assert figure.coverage == pytest.approx(10 / 15)
    assert figure.statuses == {"ok": 10, "error": 5}


def test_a_paired_difference_is_that_of_a_t_test() -> None:
    from scipy.stats import ttest_rel

    rng = np.random.default_rng(2)
    first, last = rng.normal(0.9, 0.05, 30), rng.normal(0.87, 0.05, 30)
    scores = [score(str(n), float(v), level=1) for n, v in enumerate(first)]
    scores += [score(str(n), float(v), level=7) for n, v in enumerate(last)]
    figure, known = difference(scores, "m", "level", 1, 7, unit="tokens"), ttest_rel(last, first)
    low, high = known.confidence_interval(0.95)
    assert figure.value == pytest.approx((last - first).mean())
    assert (figure.low, figure.high, figure.p) == pytest.approx((low, high, known.pvalue))


def test_changes_from_the_lowest_value_are_of_group_means_and_corrected() -> None:
    values = np.random.default_rng(3).uniform(0.2, 0.8, (12, 3, 2))
    scores = [
        score(str(n), float(values[n, level, copy]), level=level, copy=copy)
        for n, level, copy in np.ndindex(values.shape)
    ]
    found = changes(scores, "m", "level", unit="share")
    shifts = [(values[:, level] - values[:, 0]).mean(axis=1) for level in (1, 2)]
    p_values = [paired_test(over_clusters(shift, np.ones(12)), unit="share").p for shift in shifts]
    assert [figure.value for figure in found.values()] == pytest.approx([shift.mean() for shift in shifts])
    assert [figure.p for figure in found.values()] == pytest.approx(holm(p_values))
    assert [(figure.n, figure.tests) for figure in found.values()] == [(12, 2)] * 2


def level_of(scored: Score) -> float:
    return float(scored.tags["level"])


def test_a_slope_is_fitted_within_each_group() -> None:
    scores = [
        score(g, base + 2.0 * level, level=level)
        for g, base in (("a", 0.0), ("b", 50.0))
        for level in (1, 2, 3)
    ]
    figure = slope(scores, "m", "level", level_of, unit="count")
    assert figure.value == pytest.approx(2.0)
    assert figure.clusters == 2


def test_a_language_that_failed_at_one_level_does_not_shift_the_difference() -> None:
    scores = [score(g, 0.9, level=level, lang="en") for g in "ab" for level in (1, 7)]
    scores += [score(g, 0.5, level=1, lang="ko") for g in "ab"]
    scores += [score(g, None, answered=0, level=7, lang="ko") for g in "ab"]
    assert difference(scores, "m", "level", 1, 7, unit="cosine").value == pytest.approx(0)
    assert slope(scores, "m", "level", level_of, unit="cosine").value == pytest.approx(0)


def two_sides(known: list[tuple[bool, bool]]) -> list[Score]:
    """A sample of each of two methods for each question, with five requests each."""
    return [
        score(str(n), 0.5 + n / 100 if there else None, answered=5 if there else 0, level=level)
        for n, sides in enumerate(known)
        for level, there in zip((1, 7), sides, strict=True)
    ]


def test_a_difference_covers_the_samples_of_which_both_sides_are_known() -> None:
    """Of 100 questions one side lacks 18 and the other 26, four of them the same: 60 have both."""
    lacking = [(False, True)] * 14 + [(False, False)] * 4 + [(True, False)] * 22
    scores = two_sides([(True, True)] * 60 + lacking)
    assert sum(s.answered for s in scores) / 1000 == pytest.approx(0.78)
    figure = difference(scores, "m", "level", 1, 7, unit="cosine")
    assert figure.coverage == pytest.approx(0.6)
    assert (figure.n, sum(figure.statuses.values())) == (60, 1000)
    others = [score(str(n), None, answered=0, level=4) for n in range(10)]  # another level, which failed
    others += [score("alone", 1.0, level=1)]  # asked on one side only
    assert difference([*scores, *others], "m", "level", 1, 7, unit="cosine").coverage == figure.coverage
    answered = [score("x", None, level=1), score("x", 0.5, level=7)]  # and yet one has no value
    whole = two_sides([(True, True)] * 3)
    assert difference([*whole, *answered], "m", "level", 1, 7, unit="cosine").coverage == 0.75


def test_a_rank_correlation_within_strata_is_the_mean_of_theirs() -> None:
    """Two strata that fall, one of which is above and to the right of the other, rise together."""
    from scipy.stats import spearmanr

    rng = np.random.default_rng(5)
    scores, rhos = [], []
    for stratum, size, shift in (("low", 30, 0.0), ("high", 50, 10.0)):
        x = rng.normal(size=size) + shift
        y = rng.normal(size=size) - (x - shift) + shift
        rhos.append((size, spearmanr(x, y).statistic))
        scores += [
            records.score(f"{stratum}{n}", {"a": float(a), "b": float(b)}, tags={"kind": stratum})
            for n, (a, b) in enumerate(zip(x, y, strict=True))
        ]
    alone = [msgspec.structs.replace(scores[0], sample_id="z", group="z", tags={"kind": "alone"})]
    pooled = rank_correlation(scores, "a", "b")
    figure = rank_correlation([*scores, *alone], "a", "b", within=["kind"])
    assert (pooled.value or 0) > 0.3
    assert figure.value == pytest.approx(sum(n * rho for n, rho in rhos) / 80)
    half = 1.959964 * np.sqrt((1 + (figure.value or 0) ** 2 / 2) / (27 + 47))
    z = np.arctanh(figure.value or 0)
    assert limits(figure) == pytest.approx((np.tanh(z - half), np.tanh(z + half)))
    assert (figure.n, figure.clusters) == (80, 80)  # one sample alone has no order
    assert figure.method == "Spearman's ρ, mean within kind, Fisher's z over groups"
    (single,) = {rank_correlation(scores[:30], "a", "b", within=w).value for w in ([], ["kind"])}
    assert single == pytest.approx(rhos[0][1])
    tied = rng.integers(0, 5, (2, 30)).astype(float)
    assert spearman(tied) == pytest.approx(spearmanr(*tied).statistic)


def test_ratios_correlations_and_slopes_cover_what_entered_them() -> None:
    scores = [pair("a", 1.0, 2.0), pair("b", 6.0, 8.0), pair("c", None, 5.0), pair("d", 2.0, 3.0)]
    assert ratio(scores, "top", "bottom", unit="count").coverage == 0.75
    assert rank_correlation(scores, "top", "bottom").coverage == 0.75
    lines = two_sides([(True, True)] * 3 + [(True, False)])
    assert slope(lines, "m", "level", level_of, unit="cosine").coverage == 0.75


def test_a_perfect_order_has_no_interval_of_no_width() -> None:
    figure = rank_correlation([pair(str(n), n, n) for n in range(8)], "top", "bottom")
    assert figure.value == pytest.approx(1)
    assert (figure.low, figure.high, figure.reason) == (None, None, "the order is perfect")


# Which method, and whether it is the textbook's


def test_what_has_no_bounds_has_the_interval_of_a_t_test_over_questions() -> None:
    from scipy.stats import ttest_1samp

    means = np.random.default_rng(4).normal(-0.5, 0.1, 12)
    scores = [score(str(n), float(m + d), level=d > 0) for n, m in enumerate(means) for d in (-0.1, 0.1)]
    figure = summarise(scores, {"m": [()]}, units=COUNT)["m"]
    low, high = ttest_1samp(means, 0.5).confidence_interval(0.95)
    assert (figure.low, figure.high) == pytest.approx((low, high))
    assert figure.method == "t over groups"


def test_the_interval_of_an_amount_is_that_of_its_logarithm() -> None:
    from scipy.stats import t

    values = np.array([90.0, 110.0, 95.0, 105.0, 100.0])
    scores = [score(str(n), v) for n, v in enumerate(values)]
    figure = summarise(scores, {"m": [()]}, units={"m": "tokens"})["m"]
    x = t.ppf(0.975, 4) * values.std(ddof=1) / 5**0.5 / 100
    assert (figure.low, figure.high) == pytest.approx((100 * np.exp(-x), 100 * np.exp(x)))
    assert figure.method == "log t over groups"


@pytest.mark.parametrize(("unit", "least"), [("tokens", 1.0), ("tokens", -1.0), ("signed_bits", -1.0)])
def test_two_uneven_groups_have_no_interval_beyond_all_bounds(unit: Unit, least: float) -> None:
    scores = [score("a", least), *(score("b", 100.0 + n, level=n) for n in range(200))]
    figure = summarise(scores, {"m": [()]}, units={"m": unit})["m"]
    assert (figure.low, figure.high) == (None, None)
    assert figure.reason == "too few independent samples of like size"
    assert paired_test(over_clusters(np.array([1.0, 900.0]), np.array([1.0, 200.0])), unit=unit).p is None


def test_an_error_is_that_of_leaving_out_one_question_after_the_other() -> None:
    sums, sizes = np.array([1.0, 5.0, 2.0, 9.0]), np.array([2.0, 4.0, 1.0, 3.0])
    without = [(sums.sum() - s) / (sizes.sum() - n) for s, n in zip(sums, sizes, strict=True)]
    deviations = np.array(without) - sums.sum() / sizes.sum()
    estimate = over_clusters(sums, sizes)
    assert estimate.value == pytest.approx(17 / 10)
    assert estimate.error == pytest.approx((3 / 4 * deviations @ deviations) ** 0.5)
    assert estimate.df == pytest.approx(100 / 30 - 1)


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (10, 10), (3, 7), (81, 263)])
def test_the_interval_of_a_share_is_that_of_wilson(successes: int, n: int) -> None:
    from scipy.stats import binomtest

    known = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert wilson(successes / n, n) == pytest.approx((known.low, known.high))


@pytest.mark.parametrize("unit", RANGES)
@pytest.mark.parametrize("groups", [2, 40])
def test_groups_that_all_agree_are_no_proof_that_all_others_would(unit: Unit, groups: int) -> None:
    """What was not seen is at most 1 − 0.025^(1/G) of all, and as far off as the unit allows."""
    least, most = RANGES[unit]
    for value in (least, most, (least + 3 * most) / 4, most - 1e-9):
        noise = (1e-9 * (n % 2) for n in range(groups))  # rounding is no spread
        scores = [score(str(n), value - own, level=copy) for n, own in enumerate(noise) for copy in (1, 2)]
        figure = summarise(scores, {"m": [()]}, units={"m": unit})["m"]
        unseen = 1 - 0.025 ** (1 / groups)
        known = (value - unseen * (value - least), value + unseen * (most - value))
        assert (figure.low, figure.high) == pytest.approx(known, abs=1e-6)
        assert figure.method == "Clopper-Pearson over groups, which all agree"


@pytest.mark.parametrize(
    ("groups", "value", "reason"),
    [
        (4, 0.0, "all independent samples agree"),
        (4, 3.0, "all independent samples agree"),
        (1, 3.0, "fewer than two independent samples"),
        (2, None, "nothing to count"),
    ],
)
def test_where_nothing_can_be_said_there_is_no_interval(
    groups: int, value: float | None, reason: str
) -> None:
    scores = [score(str(n), value) for n in range(groups)]
    figure = summarise(scores, {"m": [()]}, units={"m": "tokens"})["m"]
    assert (figure.value, figure.low, figure.high, figure.reason) == (value, None, None, reason)


@settings(deadline=None)
@given(
    st.sampled_from([*RANGES, "tokens"]),
    st.lists(
        st.tuples(st.integers(0, 7), st.integers(0, 10**6).map(lambda n: n / 10**6)), min_size=2, max_size=30
    ),
)
@example("share", [(0, 6e-152), (1, 0.0)])
def test_an_interval_has_width_holds_its_value_and_stays_within_its_unit(
    unit: Unit, drawn: list[tuple[int, float]]
) -> None:
    least, most = RANGES.get(unit, (0.0, 1000.0))
    groups = np.array([group for group, _ in drawn])
    values = least + (most - least) * np.array([value for _, value in drawn])
    found = interval_of(values, groups, unit)
    if found.low is not None and found.high is not None and found.value is not None:
        assert found.low <= found.value <= found.high
        assert found.high - found.low > 1e-9 * (most - least)
        assert unit not in RANGES or (least <= found.low + 1e-9 and found.high - 1e-9 <= most)


def test_a_ratio_of_yes_or_no_is_the_share_of_those_that_count() -> None:
    found = [(1.0, 1.0)] * 3 + [(0.0, 1.0)] * 4 + [(0.0, 0.0)] * 20
    scores = [pair(str(n), top, bottom) for n, (top, bottom) in enumerate(found)]
    figure = ratio(scores, "top", "bottom", unit="share")
    assert figure.value == 3 / 7
    assert (figure.low, figure.high) == wilson(3 / 7, 7)
    assert (figure.n, figure.clusters, figure.method) == (7, 7, "Wilson score")


def test_a_ratio_of_sums_weighs_by_the_denominator() -> None:
    scores = [pair("a", 1.0, 2.0), pair("b", 6.0, 8.0), pair("c", 3.0, None)]
    figure = ratio(scores, "top", "bottom", unit="count")
    assert figure.value == pytest.approx(0.7)
    assert figure.coverage == pytest.approx(2 / 3)
    assert figure.reason == "too few independent samples of like size"  # one has four fifths of the weight
    more = ratio([*scores, pair("d", 3.5, 5.0), pair("e", 3.5, 5.0)], "top", "bottom", unit="count")
    assert more.value == pytest.approx(0.7)
    assert more.method == "log t over groups"


def pair(group: str, top: float | None, bottom: float | None) -> Score:
    return records.score(group, {"top": top, "bottom": bottom})


@settings(max_examples=30)
@given(st.dictionaries(st.from_regex(r"[a-z]+", fullmatch=True), st.text(), max_size=3))
def test_the_name_of_a_figure_tells_its_scope_again(scope: dict[str, str]) -> None:
    assert scope_of(scope_name("m", scope)) == ("m", scope)
