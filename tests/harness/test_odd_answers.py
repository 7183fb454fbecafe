"""Whole runs in which one answer breaks the scoring, the page or the published files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import evenkeel as ek
from commandline import evenkeel
from evenkeel.benchmarks.mirae import files as mirae_data
from evenkeel.benchmarks.rgb import scoring as rgb_scoring
from evenkeel.report import html_page
from loopback import Loopback
from records import Notes
from scripted import Scripted

pytestmark = pytest.mark.slow

CHANCE = ("chance_floor", "corrected_similarity")


def breaking(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, odd: Any) -> None:
    """Have a function of a benchmark's scoring fail as a defect would, for what is odd."""
    function = getattr(module, name)

    def broken(*args: Any, **kwargs: Any) -> Any:
        if odd(*args):
            raise KeyError("fıve")
        return function(*args, **kwargs)

    monkeypatch.setattr(module, name, broken)


def scores(run: ek.Run, leave: str) -> list[Any]:
    """What was found of all samples but one, apart from values that depend on all of them."""
    found = [record.score for record in run.records() if record.sample.id != leave]
    return [
        (
            score.sample_id,
            {name: value for name, value in score.values.items() if not name.startswith(CHANCE)},
            score.statuses,
            score.answered,
        )
        for score in found
    ]


def check(whole: ek.Run, odd: ek.Run, sample: str, notes: Notes, *, told: str) -> None:
    """One sample is an error, told with its place; the rest is as it was."""
    assert scores(odd, sample) == scores(whole, sample)
    assert odd.headline.coverage < whole.headline.coverage
    assert odd.headline.statuses["error"]
    (failure,) = [why for why in odd.failures() if why.startswith("scoring failed")]
    assert failure.startswith("scoring failed: KeyError in harness/test_odd_answers.py:")
    assert any(note.startswith(f"scoring failed for 1 of {told} samples") for note in notes.told)
    assert (odd.path / "report.html").is_file()
    assert not odd.problems


def _copied(run: ek.Run, tmp_path: Path) -> ek.Run:
    return ek.load_run(shutil.copytree(run.path, tmp_path / "whole"))


def test_an_odd_answer_costs_its_sample_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(range(1000))
    with Scripted(lambda _: f"answer {next(answers)}") as server:
        options: dict[str, Any] = {"ability": "noise", "noise_rates": "0", "limit": 4, "base_url": server.url}
        whole = ek.run("rgb", "openai:x", out=tmp_path / "run", **options)
    record = list(whole.records())[2]
    breaking(monkeypatch, rgb_scoring, "published", lambda text, *_: text == record.answers[0].text)
    notes, whole = Notes(), _copied(whole, tmp_path)
    check(whole, ek.rescore(tmp_path / "run", progress=notes), record.sample.id, notes, told="4")


@pytest.mark.parametrize(
    ("name", "said", "lost"),
    [
        ("publish", "the published files", "export"),
        ("page", "the page", "report.html"),
    ],
)
def test_a_page_or_file_that_fails_does_not_lose_the_run(
    questions: Path, tmp_path: Path, name: str, said: str, lost: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def broken(*_: object) -> Any:
        raise KeyError("odd")

    if name == "publish":
        monkeypatch.setattr(mirae_data, "results_files", broken)
    else:
        monkeypatch.setattr(html_page, "sample_table", broken)
    with Loopback() as server:
        code = evenkeel(
            "run", "mirae", "--model", "openai:loop", "--base-url", server.url, "--levels", "1",
            "--data", questions, "--embedder", "openai:embed", "--out", tmp_path / "run",
        ).code  # fmt: skip
    assert code == 1
    told = capsys.readouterr()
    assert f"{said} could not be written: KeyError in harness/test_odd_answers.py:" in told.err
    assert "The figures are whole" in told.err
    assert "coverage 100%" in told.out
    assert not (tmp_path / "run" / lost).exists()
    assert ek.load_run(tmp_path / "run").headline.coverage == 1.0
