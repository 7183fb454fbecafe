"""Answers to one prompt, asked several times."""

from __future__ import annotations

from itertools import combinations

import pytest

from sealegs.analysis.repeats import pass_hat_k


def test_pass_hat_k_is_the_share_of_choices_of_k_answers_that_are_all_right() -> None:
    for answers in range(1, 7):
        for right in range(answers + 1):
            outcomes = [index < right for index in range(answers)]
            for k in range(1, answers + 1):
                choices = list(combinations(outcomes, k))
                expected = sum(map(all, choices)) / len(choices)
                assert pass_hat_k(right, answers, k) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(("right", "answers", "k"), [(1, 2, 3), (3, 2, 1), (1, 2, 0), (-1, 2, 1)])
def test_impossible_counts_are_refused(right: int, answers: int, k: int) -> None:
    with pytest.raises(ValueError, match="pass"):
        pass_hat_k(right, answers, k)
