"""Reference results: those of the package, with their sources, and a user's own runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenkeel import analysis
from evenkeel.analysis.references import published_references, references
from evenkeel.benchmarks.mirae.recorded import read_recording
from evenkeel.types import Score, Summary

RESULTS = "MIRAE_claude_haiku_results_english.json"
SCOPES: list[tuple[str, ...]] = [(), ("level",), ("domain",), ("level", "domain")]


def published_figures(path: Path) -> Summary:
    """The figures of a published results file, by level and domain, from the similarities that it gives."""
    scores = [
        Score(
            sample_id=sample.id,
            group=sample.group,
            tags=sample.tags,
            values={"mean_similarity": sample.inputs.published["mean_similarity"]},
            statuses={"ok": sample.inputs.samples},
            answered=sample.inputs.samples,
        )
        for sample in read_recording(path).samples
    ]
    return analysis.summarise(scores, {"mean_similarity": SCOPES}, units={"mean_similarity": "cosine"})


def test_mirae_references_equal_the_published_file(reference: Path) -> None:
    [haiku] = references("mirae")
    figures = published_figures(reference / "mirae" / RESULTS)
    assert haiku.figures.keys() == figures.keys()
    for name, figure in figures.items():
        ours = haiku.figures[name]
        assert (ours.value, ours.low, ours.high) == pytest.approx((figure.value, figure.low, figure.high))
        assert ours.n == figure.n


def test_multiview_references_are_the_published_counts() -> None:
    accuracies = {each.name: each.figures["accuracy"] for each in references("multiview")}
    assert {name: f"{figure.value:.2%}" for name, figure in accuracies.items()} == {
        "Gemini Flash judge with annotation": "98.81%",
        "Gemini Flash judge without annotation": "91.27%",
        "BM25": "10.28%",
        "Qwen3-Embedding-8B with instructions": "12.65%",
        "Qwen3-Embedding-8B without instructions": "13.44%",
    }
    assert all(figure.n == 253 for figure in accuracies.values())


def test_every_reference_has_a_source_and_a_date() -> None:
    assert all(each.source.startswith("https://") and each.date for each in published_references())
