"""Every metric is declared once: its unit, and the direction that is better."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

import sealegs as sl
from sealegs.harness.registry import BENCHMARKS, benchmark_class
from sealegs.page.format import counts
from sealegs.page.layout import Layout
from sealegs.page.metrics import Metric, declaration, title_of, unit_of


def layout_of(name: str) -> Layout:
    layout: Layout = benchmark_class(name).layout
    return layout


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_what_is_shown_is_declared(benchmark: str) -> None:
    layout = layout_of(benchmark)
    columns = [column.metric for table in layout.tables for column in table.metrics]
    columns += [table.metric for table in layout.tables if table.metric] + [c.metric for c in layout.facts]
    assert [name for name in columns if declaration(layout.metrics, name) is None] == []


def test_an_acronym_keeps_its_capitals_inside_a_sentence() -> None:
    for meaning, explained in {
        "BLEU of the answer.": "T: BLEU of the answer.",
        "F1 of it.": "T: F1 of it.",
        "A share.": "T: a share.",
        "The share.": "T: the share.",
    }.items():
        assert Metric("m", "T", "score", "higher", meaning).explained == explained


def test_a_method_whose_name_has_a_slash_is_named_whole() -> None:
    metrics = [Metric("accuracy", "accuracy", "share", "higher")]
    for name, title in {
        "accuracy@embed:sbert:my/minilm": "Accuracy (embed:sbert:my/minilm)",
        "accuracy@embed:my/minilm/task=stories": "Accuracy (embed:my/minilm), task stories",
        "accuracy@judge:openai:org/m?top_p=1": "Accuracy (judge:openai:org/m?top_p=1)",
        "accuracy/lang=a@b": "Accuracy, language a@b",
    }.items():
        assert title_of(metrics, name) == title


def test_tags_and_parts_may_be_written_as_lists() -> None:
    written = Metric("right", "Right", "share", "higher", by=["lang"], parts=["noise"])
    assert {written} == {Metric("right", "Right", "share", "higher", by=("lang",), parts=("noise",))}


def test_an_exact_name_comes_before_a_pattern() -> None:
    wide = Metric("a*", "", "share", None)
    exact = Metric("accuracy", "", "share", "higher")
    for name in ("accuracy", "accuracy@embed:org/name", "accuracy@embed:a/b/task=x", "accuracy/lang=a@b"):
        assert declaration([wide, exact], name) is exact
    assert declaration([wide], "accuracy@x") is wide
    assert declaration([wide], "b") is None
    with pytest.raises(LookupError, match="'b'"):
        unit_of([wide], "b")


def test_the_headline_does_not_depend_on_the_order_of_the_summary(tmp_path: Path) -> None:
    import msgspec
    import numpy as np

    from stored import store_run

    values = {"drift": np.full((3, 2), 0.1), "mean_similarity": np.full((3, 2), 0.7)}
    run = store_run(tmp_path / "run", values)
    assert next(iter(run.summary)) == "drift"
    assert run.headline == run.summary["mean_similarity"]
    assert list(run.headlines) == ["mean_similarity"]
    assert msgspec.json.encode(run.headline) == msgspec.json.encode(sl.load_run(run.path).headline)


@pytest.mark.parametrize(
    ("benchmark", "clusters", "words"),
    [
        ("mirae", 48, "48 prompts"),
        ("mirae", 8, "48 prompts from 8 questions"),
        ("multiview", 41, "48 triplets, counted as 41 since they overlap"),
        ("multiview", 1, "48 triplets, counted as 1 since they overlap"),
    ],
)
def test_samples_are_counted_with_their_groups(benchmark: str, clusters: int, words: str) -> None:
    class Counted(NamedTuple):
        n: int
        clusters: int

    assert counts(Counted(48, clusters), layout_of(benchmark)) == words
