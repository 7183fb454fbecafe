"""Intervals: right on average, the same every time, and absent where nothing can be said."""

from __future__ import annotations

import numpy as np
import pytest

from evenkeel.stats import bootstrap_means, difference, rank_correlation, slope, summarise
from evenkeel.types import Score


def score(group: str, value: float | None, *, answered: int = 5, asked: int = 5, **tags: str | int) -> Score:
    return Score(
        sample_id=f"{group}-{tags}",
        group=group,
        tags=tags,
        values={"m": value},
        statuses={"ok": answered, "error": asked - answered},
        answered=answered,
    )


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    hits = 0
    for trial in range(60):
        clusters = rng.normal(0.0, 1.0, 40)
        values = clusters[:, None] + rng.normal(0.0, 0.3, (40, 5))
        low, high = bootstrap_means(values.sum(1, keepdims=True), np.full((40, 1), 5.0), seed=trial)
        hits += bool(low[0] <= 0 <= high[0])
    assert 52 <= hits <= 60


def test_it_resamples_questions_not_answers() -> None:
    """Forty copies of each value are no more evidence than one."""
    once = [score(str(n), float(n)) for n in range(10)]
    often = [score(str(n), float(n), level=copy) for n in range(10) for copy in range(40)]
    few, many = (summarise(scores, {"m": [()]}, seed=0)["m"] for scores in (once, often))
    assert few.value == many.value
    assert few.low == pytest.approx(many.low)
    assert (few.clusters, many.clusters) == (10, 10)


def test_the_same_scores_give_the_same_digits() -> None:
    scores = [score(str(n), n % 3, level=n % 2) for n in range(20)]
    assert summarise(scores, {"m": [(), ("level",)]}, seed=3) == summarise(
        scores, {"m": [(), ("level",)]}, seed=3
    )


def test_one_cluster_has_a_value_and_no_interval() -> None:
    figure = summarise([score("only", 0.5)], {"m": [()]}, seed=0)["m"]
    assert figure.value == 0.5
    assert (figure.low, figure.high) == (None, None)


def test_what_has_no_value_is_missing_not_zero() -> None:
    scores = [score("a", 1.0), score("b", None, answered=0), score("c", 1.0)]
    figure = summarise(scores, {"m": [()]}, seed=0)["m"]
    assert figure.value == 1.0
    assert (figure.n, figure.clusters) == (2, 2)
    assert figure.coverage == pytest.approx(10 / 15)
    assert figure.statuses == {"ok": 10, "error": 5}


def test_a_scope_without_any_value_says_so() -> None:
    figure = summarise([score("a", None, answered=0), score("b", None, answered=0)], {"m": [()]}, seed=0)["m"]
    assert figure.value is None
    assert figure.coverage == 0


def test_figures_are_named_by_their_scope() -> None:
    scores = [score(str(n), 1.0, level=n % 2, lang="en") for n in range(4)]
    names = summarise(scores, {"m": [(), ("level",), ("lang", "level")]}, seed=0)
    assert list(names) == ["m", "m/level=0", "m/level=1", "m/lang=en,level=0", "m/lang=en,level=1"]


def test_a_paired_difference_is_that_of_a_t_test() -> None:
    from scipy.stats import ttest_rel

    rng = np.random.default_rng(2)
    first, last = rng.normal(0.9, 0.05, 30), rng.normal(0.87, 0.05, 30)
    scores = [score(str(n), float(v), level=1) for n, v in enumerate(first)]
    scores += [score(str(n), float(v), level=7) for n, v in enumerate(last)]
    figure, known = difference(scores, "m", "level", 1, 7), ttest_rel(last, first)
    low, high = known.confidence_interval(0.95)
    assert figure.value == pytest.approx((last - first).mean())
    assert (figure.low, figure.high, figure.p) == pytest.approx((low, high, known.pvalue))


def test_a_group_without_both_sides_is_left_out_of_a_difference() -> None:
    scores = [score("a", 1.0, level=1), score("a", 2.0, level=7), score("b", 9.0, level=1)]
    figure = difference(scores, "m", "level", 1, 7)
    assert (figure.value, figure.n, figure.low) == (1.0, 1, None)


def test_a_slope_is_fitted_within_each_group() -> None:
    x = {level: float(level) for level in (1, 2, 3)}
    scores = [
        score(g, base + 2.0 * level, level=level) for g, base in (("a", 0.0), ("b", 50.0)) for level in x
    ]
    figure = slope(scores, "m", "level", x)  # type: ignore[arg-type]
    assert figure.value == pytest.approx(2.0)
    assert figure.clusters == 2


def test_a_rank_correlation_is_spearmans() -> None:
    from scipy.stats import spearmanr

    rng = np.random.default_rng(3)
    a, b = rng.normal(size=60), rng.normal(size=60)
    b += a
    scores = [
        Score(
            sample_id=str(n), group=str(n // 3), tags={}, values={"a": float(x), "b": float(y)},
            statuses={"ok": 1}, answered=1,
        )
        for n, (x, y) in enumerate(zip(a, b, strict=True))
    ]  # fmt: skip
    figure = rank_correlation(scores, "a", "b", seed=0)
    assert figure.value == pytest.approx(spearmanr(a, b).statistic)
    assert figure.low is not None
    assert figure.high is not None
    assert figure.low < figure.value < figure.high  # type: ignore[operator]


def test_a_language_that_failed_at_one_level_does_not_shift_the_difference() -> None:
    scores = [score(g, 0.9, level=level, lang="en") for g in "ab" for level in (1, 7)]
    scores += [score(g, 0.5, level=1, lang="ko") for g in "ab"]
    scores += [score(g, None, answered=0, level=7, lang="ko") for g in "ab"]
    assert difference(scores, "m", "level", 1, 7).value == pytest.approx(0)
    assert slope(scores, "m", "level", {1: 0.0, 7: 6.0}).value == pytest.approx(0)


def test_a_sample_without_a_value_covers_nothing_of_that_metric() -> None:
    both = {"m": 1.0, "other": None}
    scores = [
        Score(sample_id=g, group=g, tags={}, values=dict(both), statuses={"ok": 5}, answered=5) for g in "ab"
    ]
    summary = summarise(scores, {"m": [()], "other": [()]}, seed=0)
    assert (summary["m"].coverage, summary["other"].coverage) == (1.0, 0.0)
