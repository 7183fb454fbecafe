"""How far a run is, seen from outside, and how it is stopped from there."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from sealegs.errors import UsageError
from sealegs.files import lock
from sealegs.harness.control import clear_control, controlled, read_progress, stop
from sealegs.harness.progress import LOADING, Progress
from sealegs.report.terminal.progress import Watcher
from sealegs.types import Response
from stored import store_run
from suites import until

pytestmark = pytest.mark.slow

CONTROL = {"progress.json", "stop", "stopped"}


def test_how_far_a_run_is_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    with lock.writing(tmp_path), controlled(tmp_path, Progress()) as watcher:
        watcher.phase("asking", total=9, done=2)
        for status in ("ok", "truncated", "error"):
            watcher.answered(Response(status=status), usd=0.5)
        until(lambda: (progress := read_progress(tmp_path)) and progress.done == 5)
        progress = read_progress(tmp_path)
        assert progress is not None
        assert (progress.phase, progress.total, progress.failed, progress.usd) == ("asking", 9, 1, 0.5)
        assert progress.rate > 0
    assert read_progress(tmp_path) is None


def test_the_rate_counts_from_when_the_model_was_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = 0.0
    monkeypatch.setattr("sealegs.harness.progress.monotonic", lambda: seconds)
    with lock.writing(tmp_path), controlled(tmp_path, Watcher(plain_seconds=0.0)) as watcher:
        watcher.phase("asking", total=100, done=0)
        watcher.waiting(LOADING)
        seconds = 90.0
        watcher.loaded()
        seconds = 100.0
        for _ in range(20):
            watcher.answered(Response(status="ok"), usd=0.0)
        until(lambda: (progress := read_progress(tmp_path)) and progress.done == 20)
        progress = read_progress(tmp_path)
    assert progress is not None
    assert (progress.rate, progress.seconds_left, progress.waiting) == (2.0, 40.0, "")
    assert capsys.readouterr().err.splitlines()[-1] == "asking: 20 of 100, 2.0/s, 40 s left"


def test_a_stop_interrupts_and_is_renamed(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), lock.writing(tmp_path), controlled(tmp_path, Progress()):
        stop(tmp_path)
        time.sleep(60)
    assert set(os.listdir(tmp_path)) & CONTROL == {"stopped"}


def test_a_stop_that_came_before_the_run_began_is_obeyed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a process that was begun with this folder; any other finds what an earlier one left."""
    monkeypatch.setenv("SEALEGS_CONTROL", str(tmp_path))
    stop(tmp_path)
    with pytest.raises(KeyboardInterrupt), lock.writing(tmp_path), controlled(tmp_path, Progress()):
        time.sleep(60)


def test_what_a_killed_process_left_is_removed_and_stops_nothing(tmp_path: Path) -> None:
    for name in CONTROL:
        (tmp_path / name).write_text("left over")
    with lock.writing(tmp_path), controlled(tmp_path, Progress()):
        until(lambda: read_progress(tmp_path))
        assert set(os.listdir(tmp_path)) & CONTROL == {"progress.json"}
    assert not set(os.listdir(tmp_path)) & CONTROL


@pytest.mark.parametrize("content", ["[" * 5000, "x" * 70_000, '{"done": "5"}'])
def test_a_file_that_is_not_ours_is_no_progress(content: str, tmp_path: Path) -> None:
    (tmp_path / "progress.json").write_text(content)
    with lock.writing(tmp_path):
        assert read_progress(tmp_path) is None


def test_a_run_that_nobody_writes_cannot_be_stopped(tmp_path: Path) -> None:
    store_run(tmp_path / "run", {"mean_similarity": np.eye(4, 2)})
    with pytest.raises(UsageError, match="no process is writing this run"):
        stop(tmp_path / "run")
    with pytest.raises(UsageError, match="no such folder"):
        stop(tmp_path / "absent")
    assert not (tmp_path / "run" / "stop").exists()


def test_only_what_sealegs_left_is_cleared(tmp_path: Path) -> None:
    for name in ("stop", "progress.json"):
        (tmp_path / name).write_text("mine")
    (tmp_path / "stopped").touch()
    clear_control(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"stop", "progress.json"}
