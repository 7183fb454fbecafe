"""Variance components, of data whose components are known, and how often intervals hold them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from present import holds, present
from sealegs.analysis.components import components
from sealegs.analysis.intervals import interval_of
from sealegs.types import Unit

Draw = Callable[[np.random.Generator], list[NDArray[np.float64]]]


def normal(between: float, within: float, sizes: tuple[int, ...]) -> Draw:
    """Groups of numbers: a mean of each, and answers around it."""

    def draw(rng: np.random.Generator) -> list[NDArray[np.float64]]:
        means = rng.normal(0, between**0.5, len(sizes))
        return [m + rng.normal(0, within**0.5, (n, 1)) for m, n in zip(means, sizes, strict=True)]

    return draw


def yes_or_no(a: float, b: float, sizes: tuple[int, ...]) -> Draw:
    """Groups whose answers are right with a probability of their own."""

    def draw(rng: np.random.Generator) -> list[NDArray[np.float64]]:
        return [(rng.random((n, 1)) < rng.beta(a, b)).astype(float) for n in sizes]

    return draw


def directions(between: float, within: float, sizes: tuple[int, ...]) -> Draw:
    """Groups of vectors of eight numbers, as embeddings are."""

    def draw(rng: np.random.Generator) -> list[NDArray[np.float64]]:
        means = rng.normal(0, (between / 8) ** 0.5, (len(sizes), 8))
        return [m + rng.normal(0, (within / 8) ** 0.5, (n, 8)) for m, n in zip(means, sizes, strict=True)]

    return draw


def test_groups_of_one_size_have_the_components_of_the_analysis_of_variance() -> None:
    groups = normal(2.0, 1.0, (4, 4, 4))(np.random.default_rng(1))
    found = present(components(groups))
    mean_squares = [4 * np.var([g.mean() for g in groups], ddof=1), np.mean([g.var(ddof=1) for g in groups])]
    f = stats.f_oneway(*(group[:, 0] for group in groups)).statistic
    assert mean_squares[0] / mean_squares[1] == pytest.approx(f)
    assert found.within == pytest.approx(mean_squares[1])
    assert found.between == pytest.approx((mean_squares[0] - mean_squares[1]) / 4)


def test_of_unit_vectors_the_spread_within_is_one_less_the_mean_cosine() -> None:
    vectors = [np.random.default_rng(seed).normal(size=(3, 5)) for seed in (1, 2)]
    vectors = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in vectors]
    found = present(components(vectors))
    within = np.mean([(v @ v.T)[np.triu_indices(3, 1)].mean() for v in vectors])
    across = (vectors[0] @ vectors[1].T).mean()
    assert found.within == pytest.approx(1 - within)
    assert found.between == pytest.approx(within - across)


def test_fewer_than_two_groups_of_two_have_no_components() -> None:
    assert components([np.zeros((2, 1)), np.zeros((1, 1))]) is None
    assert components([]) is None


DESIGNS: dict[str, tuple[Draw, float, float, Unit]] = {
    "normal": (normal(0.5, 1.0, (5, 5, 5, 5)), 0.5, 1.0, "value"),
    "groups of other sizes": (normal(0.5, 1.0, (2, 5, 3, 5)), 0.5, 1.0, "value"),
    "nothing between": (normal(0.0, 1.0, (5, 5, 5)), 0.0, 1.0, "value"),
    "vectors": (directions(0.1, 0.2, (5, 5, 5, 5)), 0.1, 0.2, "cosine"),
    # Beta(2, 2) has the variance 1/20, and the mean of p(1 − p) is 1/5.
    "right or not": (yes_or_no(2, 2, (5, 5, 5, 5)), 0.05, 0.2, "value"),
}


OFTEN = ("normal", "vectors", "right or not")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in OFTEN else pytest.mark.full) for name in DESIGNS]
)
def test_intervals_over_questions_hold_the_true_components(name: str) -> None:
    draw, between, within, unit = DESIGNS[name]
    rng, questions, samples = np.random.default_rng(7), 30, 200
    held, estimates = np.zeros(2), np.zeros(2)
    for _ in range(samples):
        found = np.array([components(draw(rng)) for _ in range(questions)])
        for part, true in enumerate((between, within)):
            figure = interval_of(found[:, part], np.arange(questions), unit)
            held[part] += holds(figure, true)
            estimates[part] += (figure.value or 0) / samples
    assert estimates == pytest.approx([between, within], abs=0.03)
    assert ((held / samples >= 0.9) & (held / samples < 0.985)).all(), held / samples
