"""How far a run is, seen from outside, and how it is stopped from there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import evenkeel as ek
from commandline import command
from evenkeel.errors import UsageError
from evenkeel.files import lock
from evenkeel.harness.control import clear_control, controlled, read_progress, stop
from evenkeel.harness.progress import Progress
from loopback import Loopback
from stored import store_run
from suites import PATIENCE, until

pytestmark = pytest.mark.slow

CONTROL = {"progress.json", "stop", "stopped"}


def arguments(questions: Path, server: Loopback, out: Path) -> list[str]:
    return [
        *command("run", "mirae"), "--model=openai:loop", f"--base-url={server.url}",
        "--embedder=openai:embed", f"--data={questions}", "--levels=1-3", f"--out={out}", "--concurrency=2",
    ]  # fmt: skip


def begun(line: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(line, stderr=subprocess.PIPE, text=True)


def test_a_run_says_how_far_it_is_and_stops_when_asked(questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with Loopback(latency=0.2) as server:
        process = begun(arguments(questions, server, out))
        until(lambda: (progress := read_progress(out)) and progress.done > 1)
        progress = read_progress(out)
        assert progress is not None
        assert progress.phase == "asking"
        assert 1 < progress.done <= sum(server.answered.values())
        assert progress.total >= progress.done
        assert progress.rate > 0
        assert progress.started <= progress.updated
        stop(out)
        _, told = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
        assert f"saved in {out}: resume with `evenkeel resume {out}`" in told
        assert set(os.listdir(out)) & CONTROL == {"stopped"}
        assert read_progress(out) is None
    with Loopback() as server:
        process = begun(arguments(questions, server, out))
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        assert sum(server.answered.values()) > 0
    assert not set(os.listdir(out)) & CONTROL


def test_a_process_begun_with_a_folder_is_stopped_before_its_run_begins(
    questions: Path, tmp_path: Path
) -> None:
    with Loopback(latency=600) as server:
        settings = {"base_url": server.url, "embedder": "openai:embed", "data": str(questions)}
        process = ek.start(tmp_path, "mirae", "openai:loop", **settings)
        stop(process.path)
        until(lambda: not ek.started(tmp_path)[0].active)
    (process,) = ek.started(tmp_path)
    assert process.state == "stopped"
    assert Path(process.path, "stopped").is_file()


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


def test_only_what_evenkeel_left_is_cleared(tmp_path: Path) -> None:
    for name in ("stop", "progress.json"):
        (tmp_path / name).write_text("mine")
    (tmp_path / "stopped").touch()
    clear_control(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"stop", "progress.json"}
