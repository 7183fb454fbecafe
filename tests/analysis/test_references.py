"""Reference results: those of the package, with their sources, and a user's own runs."""

from __future__ import annotations

from pathlib import Path

import pytest

import evenkeel as ek
from evenkeel import analysis
from evenkeel.analysis.references import fetched_references, published_references, references
from evenkeel.benchmarks.mirae.recorded import read_recording
from evenkeel.files.datasets import cached_path, published_set
from evenkeel.types import Score, Summary
from triplets import store, triplet

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
    [haiku] = [each for each in published_references() if each.benchmark == "mirae"]
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


def test_published_figures_of_a_task_are_shown_beside_that_task_alone(tmp_path: Path) -> None:
    runs = {}
    for task in ("gsm8k__arithmetic", "tools__use"):
        data = store(tmp_path / f"{task}.jsonl", [triplet(n, task=task) for n in range(3)])
        runs[task] = ek.run("multiview", data=data, out=tmp_path / task)
    same, other = runs.values()
    assert len(references("multiview", beside=[same])) == 5
    assert references("multiview", beside=[other]) == references("multiview", beside=[same, other]) == []
    assert "Gemini Flash" in (same.path / "report.html").read_text()
    assert "Gemini Flash" not in (other.path / "report.html").read_text()


def test_every_reference_has_a_source_and_a_date() -> None:
    assert all(each.source.startswith("https://") and each.date for each in published_references())


def test_results_that_were_fetched_are_references(
    reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENKEEL_CACHE", str(tmp_path))
    fetched_references.cache_clear()
    assert fetched_references("mirae") == fetched_references("rgb") == ()
    file = next(each for each in published_set("mirae").files if "gemini2_results_english" in each.path)
    path = cached_path("mirae", file)
    path.parent.mkdir(parents=True)
    path.write_bytes((reference / "mirae" / "MIRAE_claude_haiku_results_english.json").read_bytes())
    fetched_references.cache_clear()
    (fetched,) = fetched_references("mirae")
    fetched_references.cache_clear()
    packaged = published_references()[0]
    figure = fetched.figures["mean_similarity/level=4"]
    assert figure.value == pytest.approx(packaged.figures["mean_similarity/level=4"].value, abs=1e-6)
    assert fetched.source.endswith("sbert/gemini2.0flash/MIRAE_gemini2_results_english.json")
