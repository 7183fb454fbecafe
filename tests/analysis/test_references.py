"""Reference results: those of the package, with their sources, and a user's own runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

import sealegs as sl
from records import score
from sealegs import analysis
from sealegs.analysis.references import (
    fetched_references,
    published_references,
    reference_marks,
    references,
)
from sealegs.benchmarks.mirae.added import summarise
from sealegs.benchmarks.mirae.data import LANGUAGES
from sealegs.benchmarks.mirae.results import read_recording
from sealegs.files import datasets
from sealegs.types import Summary
from triplets import store, triplet

RESULTS = "MIRAE_claude_haiku_results_english.json"
SCOPES: list[tuple[str, ...]] = [(), ("level",), ("domain",), ("level", "domain")]


def published_figures(path: Path) -> Summary:
    """The figures of a published results file, by level and domain, from the similarities that it gives."""
    scores = [
        score(
            sample.id, {"mean_similarity": sample.inputs.published["mean_similarity"]}, group=sample.group,
            tags=sample.tags, statuses={"ok": sample.inputs.samples}, answered=sample.inputs.samples,
        )
        for sample in read_recording(path).samples
    ]  # fmt: skip
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
        runs[task] = sl.run("multiview", data=data, out=tmp_path / task)
    same, other = runs.values()
    assert len(references("multiview", beside=[same])) == 5
    assert references("multiview", beside=[other]) == references("multiview", beside=[same, other]) == []
    assert "Gemini Flash" in (same.path / "report.html").read_text()
    assert "Gemini Flash" not in (other.path / "report.html").read_text()


def test_every_reference_has_a_source_and_a_date() -> None:
    assert all(each.source.startswith("https://") and each.date for each in published_references())


@pytest.fixture
def fetched(reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Published results in English and Korean in the cache, as far as their content can be had here."""
    content = (reference / "mirae" / RESULTS).read_bytes()
    texts = {"en": content, "ko": content.replace(b'"language": "English"', b'"language": "Korean"')}
    chosen = datasets.published_set("mirae")
    files = [
        replace(file, blob=datasets.git_blob(texts[file.lang]))
        for file in chosen.files
        if "gemini2_results" in file.path and file.lang in texts
    ]
    sets = {"mirae": replace(chosen, files=files)}
    monkeypatch.setattr(datasets, "published_sets", lambda: sets)
    monkeypatch.setenv("SEALEGS_CACHE", str(tmp_path))
    for file in files:
        path = datasets.cached_path("mirae", file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(texts[file.lang])
    fetched_references.cache_clear()
    yield
    fetched_references.cache_clear()


def run_in(*langs: str) -> Any:
    """What a run in these languages shows of itself: the figures."""
    scores = [
        score(
            f"{lang}-{group}", {"mean_similarity": 0.9}, group=str(group), tags={"lang": lang, "level": 1},
            statuses={"ok": 5}, answered=5,
        )
        for group in range(3)
        for lang in langs
    ]  # fmt: skip
    return SimpleNamespace(summary=summarise(scores))


def test_results_that_were_fetched_are_references(fetched: None) -> None:
    english, korean = fetched_references("mirae")
    packaged = published_references()[0]
    figure = english.figures["mean_similarity/level=4"]
    assert figure.value == pytest.approx(packaged.figures["mean_similarity/level=4"].value, abs=1e-6)
    assert english.source.endswith("example_results/gemini2.0flash/MIRAE_gemini2_results_english.json")
    assert (english.only_beside, korean.only_beside) == ({"lang": "en"}, {"lang": "ko"})


def test_a_run_is_shown_beside_the_published_results_of_its_language(fetched: None) -> None:
    english, korean, chinese = map(run_in, LANGUAGES)
    names = {lang: [each.name for each in references("mirae", beside=[run])]
             for lang, run in {"en": english, "ko": korean, "zh": chinese}.items()}  # fmt: skip
    assert names["en"] == ["Claude 3.5 Haiku (20241022)", "claude-3-5-haiku-20241022"]
    assert names["ko"] == ["claude-3-5-haiku-20241022 (ko)"]
    assert names["zh"] == []
    marks = reference_marks("mirae", "mean_similarity", beside=[korean])
    assert [mark.label for mark in marks] == names["ko"]
    of_both = references("mirae", beside=[run_in("en", "ko")])  # what has no language is of neither alone
    langs = [{figure.scope["lang"] for figure in each.figures.values()} for each in of_both]
    assert langs == [{"en"}, {"ko"}]
