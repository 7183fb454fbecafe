"""The verdict: one plain sentence on a run, with what makes its figure uncertain."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from msgspec.structs import replace

from sealegs.page.layout import Column, Layout, Note
from sealegs.page.metrics import Metric
from sealegs.page.verdict import judge
from sealegs.types import Figure, Unit

RIGHT = Layout(metrics=(Metric("right", "Accuracy", "share", "higher"),), question="?", verdict="Right in {}")


def figure(value: float | None, low: float | None, high: float | None, **fields: Any) -> Figure:
    settings: dict[str, Any] = {
        "n": 8,
        "clusters": 8,
        "coverage": 1.0,
        "statuses": {"ok": 8},
        "unit": "share",
    }
    return Figure(value=value, low=low, high=high, method="Wilson", metric="right", **settings | fields)


def of(headline: Figure, layout: Layout = RIGHT, **settings: Any) -> str:
    return judge(layout, {layout.headline: headline}, {"model": headline}, **settings).text


@pytest.mark.parametrize(
    ("headline", "sentence"),
    [
        (
            figure(0.125, 0.0, 0.2, statuses={"ok": 4, "truncated": 8}),
            "Right in 1 of 8 prompts; 8 of the 12 answers to all prompts were cut off, so treat this as a "
            "test run.",
        ),
        (
            figure(0.5, 0.2, 0.8, coverage=0.5, statuses={"ok": 4, "error": 4}),
            "Right in 4 of 8 prompts; coverage is only 50% and there are only 8 prompts (95% interval 20% to "
            "80%), so treat this as a test run.",
        ),
        (  # one request failed, and with it all pairs of its answer
            figure(0.5, 0.4, 0.6, coverage=0.5, statuses={"ok": 239, "error": 1}),
            "Right in 4 of 8 prompts; coverage is only 50%, so treat this as a test run.",
        ),
        (
            figure(0.63, 0.6, 0.66, n=1200, clusters=1200),
            "Right in 63% of 1,200 prompts (95% interval 60% to 66%).",
        ),
        (
            figure(0.5, -0.68, 1.0, unit="cosine", clusters=3),
            "Right in 0.50; there are only 8 prompts from 3 questions, so treat this as a test run.",
        ),
        (
            replace(figure(None, None, None), reason="nothing to count"),
            "There is no score: nothing to count.",
        ),
        (
            figure(1.0, None, None, n=1, clusters=1),
            "Right in 1 of 1 prompt; there is only 1 prompt, so treat this as a test run.",
        ),
    ],
)
def test_a_verdict_says_what_is_uncertain(headline: Figure, sentence: str) -> None:
    assert of(headline) == sentence


def test_a_macro_average_is_not_a_share_of_prompts() -> None:
    layout = Layout(
        metrics=(Metric("right", "Accuracy", "share", "higher", mean_over="ability"),),
        question="?",
        verdict="Right in {}",
    )
    headline = figure(0.5, 0.4, 0.6)
    parts = {f"right/ability={n}": figure(0.5, 0.4, 0.6, scope={"ability": n}) for n in ("one", "two")}
    summary = {"right": headline, **parts}
    expected = "Right in 50%, averaged over two abilities (95% interval 40% to 60%)."
    assert judge(layout, summary, {"model": headline})[:2] == (expected, ())
    del summary["right/ability=two"]
    assert judge(layout, summary, {"model": headline}).text.startswith("Right in 4 of 8 prompts (")


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_the_figure_of_a_verdict_is_that_of_the_best(better: Literal["higher", "lower"]) -> None:
    layout = Layout(metrics=(Metric("right", "Errors", "share", better),), question="?")
    figures = {"one": figure(0.2, 0.1, 0.3), "two": figure(0.7, 0.6, 0.8)}
    verdict = judge(layout, {"right": figure(None, None, None)}, figures)
    assert verdict.figure is figures["two" if better == "higher" else "one"]


def test_a_title_may_have_braces() -> None:
    metric = Metric("right", "Answers in {json}", "share", "higher")
    text = of(figure(0.63, 0.6, 0.66, n=1200, clusters=1200), replace(RIGHT, metrics=(metric,), verdict=""))
    assert text.startswith("Answers in {json}: 63%")


def test_remarks_on_the_figures_follow() -> None:
    layout = replace(RIGHT, remarks=lambda summary: [f"It was asked {summary['right'].n} times."])
    assert of(figure(0.5, 0.4, 0.6), layout).endswith(" (95% interval 40% to 60%). It was asked 8 times.")


def test_the_highest_of_several_methods_is_described_and_ties_are_named() -> None:
    best, other = figure(0.9, 0.85, 0.95), figure(0.5, 0.45, 0.55)
    text = judge(RIGHT, {"right": best}, {"bm25": other, "judge": best}).text
    assert text.startswith("Highest of 2 methods: judge, right in 90% of 8 prompts")
    wide = figure(0.9, 0.8, 1.0)
    text = judge(RIGHT, {"right": best}, {"a": best, "b": other, "c": wide}).text
    assert text.startswith("Highest of 3 methods: a and c (a tie), right in 90% of 8 prompts (the widest 95%")
    assert judge(RIGHT, {"right": best}, {"a": best, "b": best}).text.startswith(
        "Both methods tie, right in 90%"
    )
    text = judge(RIGHT, {"right": best}, dict.fromkeys("abc", best)).text
    assert text.startswith("All 3 methods tie, right in 90% of 8 prompts (95% interval")


def test_who_made_the_data_is_not_put_first() -> None:
    best, other = figure(0.9, 0.85, 0.95), figure(0.5, 0.45, 0.55)
    notes = [Note("judge built these triplets", involved=("judge",))]
    text = judge(RIGHT, {"right": best}, {"bm25": other, "embed": other, "judge": best}, notes=notes).text
    made = "(without judge, which helped to make the data)"
    assert text.startswith(f"Highest of 3 methods {made}: bm25 and embed (a tie), right in 4 of 8 prompts")
    assert judge(RIGHT, {"right": best}, {"judge": best}, notes=notes).text.startswith("Right in 90%")


def test_a_baseline_and_a_doubt_of_the_benchmark_are_said() -> None:
    unit: Unit = "score"
    layout = Layout(
        metrics=(Metric("right", "Score", unit, "higher"),),
        question="?",
        verdict="Scores {} of 100",
        baseline=Column("copy", "copying"),
    )
    headline = figure(38.1, 35.0, 41.0, unit=unit)
    summary = {"right": headline, "copy": figure(40.2, None, None, unit=unit)}
    notes = [Note("", doubt="all answers are the same text")]
    assert judge(layout, summary, {"model": headline}, notes=notes)[:2] == (
        "Scores 38.1 of 100, where copying gives 40.2; all answers are the same text, so treat this as a "
        "test run.",
        ("all answers are the same text",),
    )
