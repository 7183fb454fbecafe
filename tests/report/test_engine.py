"""Charts are drawn by another process, which may die, hang or be left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from evenkeel.errors import DrawingError
from evenkeel.report import charts, pictures
from evenkeel.report.engine import client
from evenkeel.report.engine.client import Engine
from evenkeel.report.html_page import render
from stored import store_run

CHART = '{"data": {"values": [{"x": 1}]}, "mark": "point", "encoding": {"x": {"field": "x"}}}'


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.close()


def script(folder: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program in the place of the one that draws."""
    path = folder / "process.py"
    path.write_text(dedent(code))
    monkeypatch.setattr(client, "SCRIPT", path)


def test_a_chart_that_is_not_one_is_an_error_and_the_next_is_drawn(engine: Engine) -> None:
    with pytest.raises(DrawingError, match="could not be drawn: "):
        engine.draw("svg", '{"mark": 7}')
    assert engine.draw("svg", CHART).startswith(b"<svg")
    assert engine.draw("png", CHART).startswith(b"\x89PNG")


def test_a_process_that_was_killed_is_started_again(engine: Engine) -> None:
    engine.start()
    first = engine._process
    assert first is not None
    first.kill()
    first.wait()
    assert engine.draw("svg", CHART).startswith(b"<svg")
    assert engine._process is not first


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import sys; sys.stdin.readline(); sys.exit(3)", r"ended \(exit code 3\)"),
        ("import sys; sys.stdin.readline(); print('no JSON', flush=True); sys.stdin.read()", "ended"),
        ("import time; time.sleep(600)", "took longer than 1.5 s"),
    ],
)
def test_a_process_that_fails_is_named_and_not_waited_for(
    code: str, problem: str, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path, code, monkeypatch)
    monkeypatch.setattr(client, "SECONDS", 1.5)
    with pytest.raises(DrawingError, match=problem):
        engine.draw("svg", CHART)
    assert engine._process is None


def test_a_page_without_its_charts_says_why_and_has_the_figures(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = store_run(tmp_path / "run", {"mean_similarity": np.array([[0.5, 0.6], [0.7, 0.9], [0.1, 0.2]])})
    script(tmp_path, "import sys; sys.exit(9)", monkeypatch)
    monkeypatch.setattr(charts, "ENGINE", engine)
    drawn = pictures.Drawn("Similarity", charts.heatmap([[1.0, 0.5], [0.5, 1.0]]), "")
    monkeypatch.setattr(pictures, "draw", lambda *_: [drawn])
    page = render(run)
    assert "The chart could not be drawn: the process that draws charts ended (exit code 9)." in page
    assert "Its figures are in the tables below." in page
    assert "<svg" not in page
    assert f"<strong>{run.headline.value:.4f}</strong>" in page


def test_the_process_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    """Even where that is killed, and cannot clean up."""
    code = """
        import os, signal, sys
        from evenkeel.report.engine.client import ENGINE
        ENGINE.draw("svg", sys.argv[1])
        assert "vl_convert" not in sys.modules
        print(ENGINE._process.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", dedent(code), CHART], capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    child = int(done.stdout)
    for _ in range(600):
        if not is_running(child):
            break
        time.sleep(0.05)
    assert not is_running(child)


def is_running(pid: int) -> bool:
    """Not where it only waits for somebody to ask how it ended."""
    try:
        os.kill(pid, 0)
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False
