"""Simulation: intervals hold the truth as often as they say, and equal models are told apart as rarely."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

from evenkeel import stats
from evenkeel.comparison import compare
from evenkeel.types import Figure, Score
from stored import NUMBERS, store_run

DRAWS = 500
Rng: TypeAlias = np.random.Generator
Draw: TypeAlias = Callable[[Rng], Figure]


def scores(values: NUMBERS, sizes: NUMBERS | None = None, **more: NUMBERS) -> list[Score]:
    """A score for each cell of questions × samples; of question i only the first sizes[i]."""
    return [
        Score(
            sample_id=f"{i}-{j}", group=str(i), tags={"side": j},
            values={"m": float(values[i, j]), **{name: float(column[i, j]) for name, column in more.items()}},
            statuses={"ok": 1}, answered=1,
        )
        for i in range(values.shape[0])
        for j in range(values.shape[1] if sizes is None else int(sizes[i]))
    ]  # fmt: skip


def mean(values: NUMBERS, sizes: NUMBERS | None = None) -> Figure:
    return stats.summarise(scores(values, sizes), {"m": [()]}, units={"m": "count"})["m"]


def share(values: NUMBERS) -> Figure:
    return stats.summarise(scores(values), {"m": [()]}, units={"m": "share"})["m"]


def around(questions: NUMBERS, each: int, rng: Rng) -> NUMBERS:
    """Samples that scatter about their question's own value."""
    return questions[:, None] + rng.normal(0, 0.5, (len(questions), each))


def yes_or_no(chances: NUMBERS, each: int, rng: Rng) -> NUMBERS:
    return (rng.random((len(chances), each)) < chances[:, None]).astype(float)


def corrected(rng: Rng, questions: int, each: int) -> Figure:
    """Of what was detected (60 %), 70 % is corrected; easy questions are so in all their samples."""
    detected = yes_or_no(rng.beta(3, 2, questions), each, rng)
    right = yes_or_no(rng.beta(7, 3, questions), each, rng) * detected
    return stats.ratio(scores(right, None, detected=detected), "m", "detected")


def ratio_of_sums(rng: Rng) -> Figure:
    """Twice as much above as below, with noise that is the question's own."""
    below = rng.gamma(4, 1, (25, 3))
    above = 2 * below + below * rng.normal(0, 0.4, (25, 1)) + rng.normal(0, 0.5, (25, 3))
    return stats.ratio(scores(above, None, below=below), "m", "below", unit="count")


def paired(rng: Rng, questions: int) -> Figure:
    """Two levels of the same questions, 0.3 apart."""
    values = around(rng.normal(0, 1, questions), 2, rng) + np.array([0.0, 0.3])
    return stats.difference(scores(values), "m", "side", 0, 1)


def line(rng: Rng) -> Figure:
    """Four levels of fifteen questions, each with a slope of its own about 0.2."""
    slopes = rng.normal(0.2, 0.3, (15, 1))
    values = around(rng.normal(0, 1, 15), 4, rng) + slopes * np.arange(4)
    return stats.slope(scores(values), "m", "side", {level: float(level) for level in range(4)})


def ranked(rng: Rng) -> Figure:
    """Normal values with a correlation of 0.6, half of whose spread is the question's."""
    first, noise = (rng.normal(0, 1, (25, 1)) + rng.normal(0, 1, (25, 2)) for _ in range(2))
    return stats.rank_correlation(scores(0.6 * first + 0.8 * noise, None, other=first), "m", "other", seed=0)


KINDS: dict[str, tuple[float, Draw]] = {
    "mean of few questions": (0.0, lambda rng: mean(around(rng.normal(0, 1, 6), 4, rng))),
    "mean of many questions": (0.0, lambda rng: mean(around(rng.normal(0, 1, 60), 4, rng))),
    "mean of skewed values": (20 / 23, lambda rng: mean(rng.beta(20, 3, (40, 1)))),
    "mean of uneven questions": (
        0.0,
        lambda rng: mean(around(rng.normal(0, 1, 20), 9, rng), rng.integers(1, 10, 20)),
    ),
    "proportion of few": (0.7, lambda rng: share(yes_or_no(np.full(12, 0.7), 1, rng))),
    "proportion of few, near one": (0.9, lambda rng: share(yes_or_no(np.full(25, 0.9), 1, rng))),
    "proportion of many": (0.3, lambda rng: share(yes_or_no(np.full(200, 0.3), 1, rng))),
    "clustered proportion of few": (0.6, lambda rng: share(yes_or_no(rng.beta(1.8, 1.2, 12), 5, rng))),
    "clustered proportion of many": (0.8, lambda rng: share(yes_or_no(rng.beta(2.4, 0.6, 60), 5, rng))),
    "clustered proportion, independent": (0.5, lambda rng: share(yes_or_no(np.full(30, 0.5), 4, rng))),
    "paired difference of few": (0.3, lambda rng: paired(rng, 8)),
    "paired difference of many": (0.3, lambda rng: paired(rng, 60)),
    "ratio of counts": (0.7, lambda rng: corrected(rng, 40, 1)),
    "ratio of clustered counts": (0.7, lambda rng: corrected(rng, 30, 4)),
    "ratio of sums": (2.0, ratio_of_sums),
    "slope": (0.2, line),
    "rank correlation": (6 / np.pi * np.arcsin(0.6 / 2), ranked),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_interval_holds_the_truth_about_as_often_as_it_says(kind: str) -> None:
    truth, draw = KINDS[kind]
    figures = [draw(np.random.default_rng([seed, *kind.encode()])) for seed in range(DRAWS)]
    held = [f.low <= truth <= f.high for f in figures if f.low is not None and f.high is not None]
    assert len(held) == DRAWS
    assert 0.92 <= np.mean(held) <= 0.98


@pytest.mark.parametrize("unpaired", [False, True])
def test_two_equal_models_are_told_apart_in_one_of_twenty_comparisons(tmp_path: Path, unpaired: bool) -> None:
    """Two metrics, whole run folders: whichever of them is said to differ is said so wrongly."""
    wrongly = 0
    for seed in range(DRAWS):
        rng = np.random.default_rng([seed, unpaired])
        # The same questions in both runs; unpaired, each run has its own.
        questions = [rng.normal(0, 1, 12) for _ in range(2)] if unpaired else [rng.normal(0, 1, 12)] * 2
        runs = [
            store_run(tmp_path / side, {
                "mean_similarity": around(own, 2, rng), "drift": rng.normal(0, 1, (12, 2)),
            })
            for side, own in zip("ab", questions, strict=True)
        ]  # fmt: skip
        wrongly += any(found.different for found in compare(*runs, unpaired=unpaired).differences)
    assert 0.03 <= wrongly / DRAWS <= 0.07
