"""Macro-averages and differences of ratios: what they are, and how often their intervals hold the truth."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from present import holds, limits, present
from sealegs.analysis import combined
from sealegs.analysis import intervals as stats
from sealegs.analysis.combined import Term
from sealegs.analysis.student import NORMAL, t_quantile


def test_a_macro_average_counts_each_part_once() -> None:
    terms = combined.macro_terms([1.0, 0.0, 1.0, 1.0, 0.0, 0.0], range(6), "aaaabb")
    found = combined.interval(terms, "share")
    assert (found.n, found.clusters) == (6, 6)
    # Square and add: each part's limits lie as far from its mean as Wilson's.
    (low, high), (_, above) = stats.wilson(0.75, 4), stats.wilson(0.0, 2)
    half = 0.5 * (0.75 - low), 0.5 * np.hypot(high - 0.75, above)
    assert limits(found) == pytest.approx((0.375 - half[0], 0.375 + half[1]))


def test_a_single_term_is_the_mean_itself() -> None:
    values = np.random.default_rng(1).normal(size=30)
    groups = np.arange(30) // 3
    found = present(combined.estimate([Term(1, values, list(groups))]))
    known = stats.over_clusters(stats.per_cluster(groups, values), stats.per_cluster(groups, np.ones(30)))
    assert (found.value, found.error, found.df, found.clusters) == pytest.approx(
        (known.value, known.error, known.df, known.clusters)
    )


def test_two_means_over_the_same_groups_are_their_paired_difference() -> None:
    from scipy.stats import ttest_rel

    first, second = np.random.default_rng(2).normal(size=(2, 12))
    names = [f"q{number}" for number in range(12)]
    found = present(combined.estimate([Term(1, second, names), Term(-1, first, names)]))
    assert found.value / found.error == pytest.approx(ttest_rel(second, first).statistic)
    assert found.df == 11
    apart = present(combined.estimate([Term(1, second, names), Term(-1, first, [f"x{n}" for n in names])]))
    assert apart.error == pytest.approx(np.hypot(first.std(ddof=1), second.std(ddof=1)) / np.sqrt(12))


def test_a_mean_of_one_group_has_no_error() -> None:
    assert combined.estimate([Term(1, np.array([1.0, 0.0]), ["a", "a"])]) is None
    found = combined.interval(combined.macro_terms([1.0, 0.0, 1.0], "aab", "aab"), "share")
    assert (found.value, found.low, found.high) == (0.75, None, None)


def test_a_term_over_joined_questions_is_as_correlated_as_it_is() -> None:
    """Each joined question has the mean of the two that it joins, so that both terms are the same mean. The
    limits of the term without links are those of the 40 questions that both rest on."""
    plain = np.array([0, 0, 0, 1, 1, 0, 1, 1] * 5, dtype=float)
    names = [(f"q{n}",) for n in range(40)]
    joined = [first + second for first, second in zip(names[::2], names[1::2], strict=True)]
    terms = [Term(0.5, plain, names), Term(0.5, plain.reshape(20, 2).mean(axis=1), joined)]
    found, alone = combined.interval(terms, "share"), stats.wilson(0.5, 40)
    second = stats.interval_of(terms[1].values, np.arange(20), "share")
    assert second.low is not None
    independent = 40 / (80 / 60)  # 60 groups have 80 units, 40 different ones
    wider = t_quantile(0.975, independent - 1) / NORMAL.inv_cdf(0.975)
    assert found.low == pytest.approx(0.5 - ((0.5 - alone[0]) * wider + 0.5 - second.low) / 2)


def test_two_questions_with_opposite_results_leave_the_interval_its_width() -> None:
    terms = combined.macro_terms([1.0, 0.0, 0.0, 1.0], ["q1", "q2", "q1", "q2"], "aabb")
    apart = combined.macro_terms([1.0, 0.0, 0.0, 1.0], ["q1", "q2", "q3", "q4"], "aabb")
    found, alone = combined.interval(terms, "share"), combined.interval(apart, "share")
    assert (found.low, found.high) == pytest.approx((alone.low, alone.high))
    assert present(found.low) < 0.25


@pytest.mark.full
@pytest.mark.parametrize(
    ("shares", "questions"),
    [((0.9, 0.6, 0.5, 0.3), 20), ((0.97, 0.9, 0.8, 0.05), 40), ((0.99, 0.98, 0.95, 0.9), 50)],
)
def test_the_interval_of_a_macro_average_holds_the_truth(shares: tuple[float, ...], questions: int) -> None:
    """As RGB asks: noise and rejection share their questions, the other two have questions of their own."""
    draws = np.random.default_rng(questions)
    truth, held, tested, times = float(np.mean(shares)), 0, 0, 400
    for _ in range(times):
        # Questions that are hard for one of the two are hard for the other: half of them are drawn together.
        hard = draws.uniform(size=questions)
        same = draws.uniform(size=(2, questions)) < 0.5
        luck = np.where(same, hard, draws.uniform(size=(2, questions)))
        right = [
            *(luck < np.array(shares[:2])[:, None]),
            *(draws.uniform(size=questions) < p for p in shares[2:]),
        ]
        groups = [[f"plain{n}" for n in range(questions)]] * 2
        groups += [[f"{kind}{n}" for n in range(questions)] for kind in ("int", "fact")]
        terms = [Term(0.25, each.astype(float), own) for each, own in zip(right, groups, strict=True)]
        held += holds(combined.interval(terms, "share"), truth)
        low, high = stats.t_interval(present(combined.estimate(terms))) or (inf, -inf)
        tested += low <= truth <= high
    assert 0.92 <= held / times <= 0.985
    assert min(shares[-1], 1 - shares[0]) < 0.05 or 0.92 <= tested / times <= 0.985
