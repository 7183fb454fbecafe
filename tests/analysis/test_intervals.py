"""Simulation: intervals contain the true value as often as they say, and equal models rarely differ."""

from __future__ import annotations

import numpy as np
import pytest

from designs import Design, designs, false_alarms, power, simulate
from headlines import Headline, coverage, headlines
from sealegs.analysis import interval_of

pytestmark = pytest.mark.slow

DRAWS = 2000
QUICK = {
    "share, values k/5": ("p = 0.1", 20),
    "cosine, skewed": ("beta(20, 1)", 20),
    "difference of shares, paired k/5": ("0.5 and 0.6, ρ = 0.5", 20),
}
"""One design of each kind is drawn every time, with fewer draws; the others by `make full`."""
FALLS_SHORT = ("tokens, lognormal", "cosine, few unstable", "beta(8, 0.5)", "beta(40, 1)", "0.02 and 0.08")
"""Heavy tails, and what most samples do not have: docs/statistics.md has how often they hold."""
RARE = ("p = 0.02", "p = 0.98", "p = 0.05, ρ", "only A 0", "5 groups", "10 groups")
"""Most samples of so rare a thing do not have it at all, and nearly every interval holds the truth."""
SLOW = ("ratio", "slope", "rank correlation", "consistency")


@pytest.mark.parametrize(
    "design", [d for d in designs() if QUICK.get(d.kind) == (d.parameters, d.groups)], ids=lambda d: d.name
)
def test_an_interval_contains_the_true_value_as_often_as_it_says(design: Design) -> None:
    assert 0.92 <= simulate(design, 500)[0] <= 0.985


@pytest.mark.full
@pytest.mark.parametrize(
    "design",
    [d for d in designs() if not any(words in d.name for words in FALLS_SHORT)],
    ids=lambda d: d.name,
)
def test_every_interval_contains_the_true_value_that_often(design: Design) -> None:
    held, _ = simulate(design, 300 if design.kind.startswith(SLOW) else DRAWS)
    assert 0.9 <= held <= (1 if any(words in design.name for words in RARE) else 0.99)


@pytest.mark.parametrize(
    "headline",
    [h for h in headlines() if h.model == "middling" and h.benchmark in ("MIRON", "multiview")],
    ids=lambda headline: headline.name,
)
def test_headlines_of_known_models_hold_the_truth(headline: Headline) -> None:
    """Of the benchmarks whose samples are drawn fast; the others by `make full`."""
    assert all(0.9 <= found.held <= 0.99 for found in coverage(headline, 40, 150).values())


@pytest.mark.full
@pytest.mark.parametrize("headline", headlines(), ids=lambda headline: headline.name)
def test_every_headline_of_a_known_model_holds_the_truth(headline: Headline) -> None:
    """And a gate lets nineteen of twenty equal models pass."""
    assert all(found.held >= 0.9 for found in coverage(headline, 40, 300).values())


@pytest.mark.full
@pytest.mark.parametrize("rows", [1, 6])
@pytest.mark.parametrize("kind", ["normal cosines", "shares k/5"])
def test_equal_models_differ_in_one_of_twenty_comparisons(kind: str, rows: int) -> None:
    assert 0.02 <= false_alarms(kind, rows, 1000) <= 0.06


@pytest.mark.full
@pytest.mark.parametrize("rows", [1, 6, 12])
def test_the_detectable_difference_is_found_four_times_of_five(rows: int) -> None:
    assert power(40, rows, 600) == pytest.approx(0.8, abs=0.06)


@pytest.mark.parametrize(
    ("values", "deciding"),
    [
        ([0.5] + [0.99] * 24, 1),
        ([0.5, 0.6] + [0.99] * 24, 2),
        ([0.5] * 6 + [0.99] * 24, 0),  # six of thirty are not few
        ([0.5] + [0.99] * 3, 0),  # one of four always carries most of it
        (list(np.random.default_rng(1).normal(0.8, 0.05, 25)), 0),
    ],
)
def test_an_interval_says_how_many_groups_decide_it(values: list[float], deciding: int) -> None:
    array = np.array(values) - 0.001 * np.arange(len(values)) / len(values)
    assert interval_of(array, np.arange(len(array)), "cosine").deciding == deciding
