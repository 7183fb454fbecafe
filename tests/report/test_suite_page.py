"""The leaderboards of a suite as page and Markdown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sealegs as sl
from sealegs.report.suite import State, SuiteResult, SuiteRun, write_leaderboards
from stored import store_run


def outcome(folder: Path) -> SuiteResult:
    """Two ranked runs below a folder, and one that failed."""
    for number, name in enumerate(("<b>one", "two")):
        values = 0.5 + number / 10 + np.random.default_rng(number).normal(0, 0.02, (8, 2))
        run = store_run(folder / f"m{number}", {"mean_similarity": values}, model=name)
        (run.path / "report.html").write_text("a report")
    states: list[State] = ["finished", "finished", "failed"]
    runs = [
        SuiteRun(name=f"m{number}", benchmark="mirae", model=f"m{number}", state=state)
        for number, state in enumerate(states)
    ]
    boards = tuple(sl.leaderboard([folder / "m0", folder / "m1"]))
    return SuiteResult(name="suite", path=str(folder), runs=tuple(runs), boards=boards, usd=1.5)


@pytest.mark.parametrize("relative", [False, True])
def test_names_are_links_also_where_the_folder_is_relative(
    relative: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page, _ = write_leaderboards(outcome(Path("suite") if relative else tmp_path / "suite"))
    text = page.read_text()
    assert '<a href="m1/report.html">two</a>' in text
    assert '<a href="m0/report.html">&lt;b&gt;one</a>' in text


def test_the_files_and_the_terminal_have_the_same_rows(tmp_path: Path) -> None:
    result = outcome(tmp_path / "suite")
    _, markdown = write_leaderboards(result)
    text = markdown.read_text()
    assert text.startswith("# Leaderboard: suite\n\n3 runs: 2 finished, 1 failed.\n")
    assert "two is best" in text
    assert "| 2 | &lt;b\\>one |" in text
    assert "1.5" not in text  # what was spent differs where a suite was interrupted
    assert "Spent so far: $1.5000" in repr(result)
    assert "## Not ranked" in text
