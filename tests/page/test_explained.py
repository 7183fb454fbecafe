"""What metrics mean is said by their declarations: in Python, at the terminal and in the docs."""

from __future__ import annotations

import json
from pathlib import Path

from commandline import sealegs
from sealegs.harness.registry import BENCHMARKS
from sealegs.page.metrics import Metric

ROOT = Path(__file__).parents[2]


def test_a_metric_shows_its_meaning_direction_and_caution_escaped() -> None:
    metric = Metric(
        "wrong", "answers <b>wrong</b>", "share", "lower",
        meaning="The share of wrong answers.", caution="Guessing helps.", chance=0.5,
    )  # fmt: skip
    assert repr(metric).splitlines() == [
        "wrong: Answers <b>wrong</b>",
        "The share of wrong answers.",
        "Lower is better. Guessing gives 50%.",
        "Careful: Guessing helps.",
    ]
    assert "<b>" not in metric._repr_html_()
    bare = Metric("length", "length", "tokens", None)
    assert repr(bare).splitlines() == ["length: Length", "Neither direction is better."]


def test_the_command_lists_the_metrics_of_a_benchmark() -> None:
    printed = sealegs("list", "metrics", "multiview").stdout
    assert "accuracy: " in printed
    assert "lev_score" not in printed
    listed = json.loads(sealegs("list", "metrics", "--json").stdout)
    assert {*BENCHMARKS} <= {*listed}
    assert listed["miron"][0]["name"] == "lev_score"
