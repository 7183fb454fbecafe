"""Simulation: intervals contain the true value as often as they say, and equal models rarely differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from designs import Design, around, designs, false_alarms, power, simulate
from evenkeel.analysis.comparison import compare
from stored import store_run

DRAWS = 2000
CHOSEN = {
    "share, values k/5": ("p = 0.02", "p = 0.98"),
    "share, clustered 0/1": ("p = 0.02, ρ = 0.3", "p = 0.05, ρ = 0.6"),
    "share, 0/1": ("p = 0.1",),
    "cosine, skewed": ("beta(20, 1)",),
    "score": ("85% at 0, 5% at 100",),
    "tokens, lognormal": ("σ = 1",),
    "difference of shares, paired 0/1": ("only A 0, only B 0.1",),
    "difference of shares, paired k/5": ("0.05 and 0.1, ρ = 0.5",),
    "difference of shares, paired and clustered": ("0.02 and 0.08, ρ = 0.8",),
    "difference of cosines, paired": ("beta(20, 1) and beta(20, 3), r = 0.5",),
    "difference of tokens, paired": ("σ = 1",),
    "difference of shares, unpaired k/5": ("0.05 and 0.1",),
    "difference of cosines, unpaired": ("beta(20, 1) and beta(20, 3)",),
}
"""Of the table in docs/statistics.md, what a plain t would get wrong and some that it would not."""
FEWEST = {
    "share, values k/5": 20,
    "share, clustered 0/1": 100,
    "difference of shares, paired 0/1": 40,
    "difference of shares, unpaired k/5": 40,
}
"""With fewer groups so rare a thing is mostly not seen at all, and nearly every interval holds the truth."""
SLOW = ("ratio of counts", "ratio of sums", "slope", "rank correlation")


def chosen() -> list[Design]:
    return [
        design
        for design in designs()
        if design.parameters in CHOSEN.get(design.kind, ()) and design.groups >= FEWEST.get(design.kind, 0)
    ]


@pytest.mark.parametrize("design", chosen(), ids=lambda design: design.name)
def test_the_interval_holds_the_truth_about_as_often_as_it_says(design: Design) -> None:
    assert 0.92 <= simulate(design, DRAWS)[0] <= 0.98


def test_a_mean_corrected_for_chance_has_an_interval_that_allows_for_the_error_of_the_floor() -> None:
    for design in designs():
        if "corrected for chance" in design.kind and design.groups == 40:
            assert 0.92 <= simulate(design, 250)[0] <= 0.985


@pytest.mark.parametrize("kind", SLOW)
def test_figures_contain_the_true_value_as_often_as_they_say(kind: str) -> None:
    for design in designs():
        if design.kind == kind:
            assert 0.92 <= simulate(design, 150 if kind == "rank correlation" else 400)[0] <= 0.98


@pytest.mark.parametrize("rows", [1, 6])
@pytest.mark.parametrize("kind", ["normal cosines", "shares k/5"])
def test_equal_models_differ_by_any_metric_in_one_of_twenty_comparisons(kind: str, rows: int) -> None:
    assert 0.02 <= false_alarms(kind, rows, 1000) <= 0.06


@pytest.mark.parametrize("rows", [1, 6, 12])
def test_the_detectable_difference_is_found_four_times_out_of_five(rows: int) -> None:
    """By what is said to differ: with Holm's correction for all rows of the comparison."""
    assert power(40, rows, 600) == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize("unpaired", [False, True])
def test_equal_models_differ_in_one_of_twenty_comparisons(tmp_path: Path, unpaired: bool) -> None:
    """Two metrics, whole run folders: whichever of them is said to differ is said so wrongly."""
    wrongly, draws = 0, 120
    for seed in range(draws):
        rng = np.random.default_rng([seed, unpaired])
        # The same questions in both runs; unpaired, each run has its own.
        questions = [rng.normal(0, 1, 12) for _ in range(2)] if unpaired else [rng.normal(0, 1, 12)] * 2
        runs = [
            store_run(tmp_path / side, {
                "mean_similarity": around(own, 2, rng) / 10, "estimated_tokens": rng.normal(90, 9, (12, 2)),
            })
            for side, own in zip("ab", questions, strict=True)
        ]  # fmt: skip
        wrongly += any(found.different for found in compare(*runs, unpaired=unpaired).differences)
    assert 0.02 <= wrongly / draws <= 0.07
