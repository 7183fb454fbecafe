"""Whole runs whose page or published files cannot be written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import evenkeel as ek
from commandline import evenkeel
from evenkeel.benchmarks.mirae import files as mirae_data
from evenkeel.report import html_page
from loopback import Loopback

pytestmark = pytest.mark.slow


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
