"""What a comparison says: better, worse, no clear difference, or too few to tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sealegs as sl
from sealegs.analysis.outcome import Outcome, needed_groups, outcome_of
from sealegs.page.metrics import Better
from stored import store_pair


@pytest.mark.parametrize(
    ("difference", "limits", "significant", "better", "outcome"),
    [
        (-0.3, (-0.4, -0.2), True, "higher", "worse"),
        (-0.3, (-0.4, -0.2), True, "lower", "better"),
        (0.3, (0.2, 0.4), True, None, "higher"),
        (0.01, (-0.05, 0.07), False, "higher", "no clear difference"),
        (0.1, (-0.3, 0.5), False, "higher", "too few to tell"),
        (-0.67, (None, None), False, "higher", "too few to tell"),
    ],
)
def test_a_difference_has_one_of_three_answers(
    difference: float, limits: tuple[Any, Any], significant: bool, better: Better | None, outcome: Outcome
) -> None:
    found = outcome_of(
        difference, limits, tested=True, groups=20, significant=significant, unit="share", better=better
    )
    assert found == outcome


@pytest.mark.parametrize(
    ("groups", "limit", "outcome"),
    [(20, 0.3, "no clear difference"), (6, 0.9, "too few to tell"), (3, 0.3, "too few to tell")],
)
def test_what_is_the_same_in_many_samples_is_not_too_few(groups: int, limit: float, outcome: Outcome) -> None:
    found = outcome_of(
        0.0, (-limit, limit), tested=False, groups=groups, significant=False, unit="share", better="higher"
    )
    assert found == outcome


def test_a_small_difference_needs_more_questions_than_a_large_one() -> None:
    assert needed_groups(0.67, None, "share") == 9  # ((1.96 + 0.84) / √2 / 0.67)²
    assert needed_groups(0.2, None, "share") == 99
    assert needed_groups(0.0, None, "share") == needed_groups(0.1, None, "share") == 400
    assert needed_groups(0.0, None, "tokens") is None


def test_two_runs_of_three_questions_are_too_few(tmp_path: Path) -> None:
    values = np.array([[0.9, 0.8], [0.7, 0.9], [0.8, 0.6]])
    runs = store_pair(tmp_path, values, values - np.array([[0.6], [0.2], [0.5]]))
    found = sl.compare(*runs, metrics="mean_similarity")
    [difference] = found.differences
    assert difference.outcome == "too few to tell"
    assert f"too few to tell, about {difference.needed} questions would do" in repr(found)


def test_published_results_are_listed_for_orientation(tmp_path: Path) -> None:
    values = np.random.default_rng(0).uniform(0.4, 0.6, (12, 2))
    found = sl.compare(*store_pair(tmp_path, values, values), reference=[tmp_path / "old"])
    assert [mark.kind for mark in found.references] == ["own", "published"]
    assert "Claude 3.5 Haiku" in repr(found)
