"""What metrics mean is said by their declarations: in Python, at the terminal and in the docs."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

import evenkeel as ek
from commandline import evenkeel
from evenkeel.errors import UsageError
from evenkeel.harness.registry import BENCHMARKS, benchmark_class
from evenkeel.page.metrics import Metric

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_every_declared_metric_is_explained_in_its_order(benchmark: str) -> None:
    declared = benchmark_class(benchmark).layout.metrics
    assert [metric.name for metric in ek.explained(benchmark)] == [metric.name for metric in declared]
    assert sum(metric.main for metric in declared) <= 10


def test_a_metric_shows_its_meaning_direction_and_caution_escaped() -> None:
    metric = Metric(
        "wrong", "answers <b>wrong</b>", "share", "lower",
        meaning="The share of wrong answers.", caution="Guessing helps.", chance=0.5,
    )  # fmt: skip
    assert repr(metric).splitlines() == [
        "wrong: Answers <b>wrong</b>",
        "The share of wrong answers.",
        "Lower is better. Chance 50%.",
        "Careful: Guessing helps.",
    ]
    assert "<b>" not in metric._repr_html_()
    bare = Metric("length", "length", "tokens", None)
    assert repr(bare).splitlines() == ["length: Length", "Neither direction is better."]


def test_the_command_lists_the_metrics_of_a_benchmark() -> None:
    printed = evenkeel("list", "metrics", "multiview").stdout
    assert "accuracy: " in printed
    assert "lev_score" not in printed
    listed = json.loads(evenkeel("list", "metrics", "--json").stdout)
    assert {*BENCHMARKS} <= {*listed}
    assert listed["miron"][0]["name"] == "lev_score"


def test_the_page_of_all_metrics_is_written_from_the_declarations() -> None:
    spec = importlib.util.spec_from_file_location("write_metrics", ROOT / "tools" / "write_metrics.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    page = tool.page()
    assert all(f"### `{m.name}`" in page for name in BENCHMARKS for m in ek.explained(name))


def test_an_unknown_benchmark_is_refused() -> None:
    with pytest.raises(UsageError, match="Did you mean 'mirae'"):
        ek.explained("mire")
