"""Runs and builds as processes: begun, watched, stopped, resumed, unharmed by the end of their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import sealegs as sl
from commandline import command, sealegs, sealegs_process
from loopback import Loopback
from runs import small_command
from sealegs.api.launch import (
    ProcessTask,
    Started,
    record,
    resumable,
    start,
    start_again,
    start_build,
    started,
)
from sealegs.api.run import new_folder
from sealegs.errors import SealegsError, UsageError
from sealegs.files.lock import writing
from sealegs.harness.control import stop
from suites import journaled, until

pytestmark = pytest.mark.slow

PARENT = """
import sys, time
from sealegs.api.launch import start
run = start(sys.argv[1], "mirae", "openai:loop", base_url=sys.argv[2], embedder="openai:embed",
            data=sys.argv[3], levels="1", concurrency=1)
print(run.path, flush=True)
time.sleep(600)
"""


def ended(folder: Path) -> Started:
    until(lambda: not started(folder)[0].active)
    return started(folder)[0]


def mirae(folder: Path, server: Loopback, questions: Path, **more: Any) -> Started:
    return start(
        folder, "mirae", "openai:loop", base_url=server.url, embedder="openai:embed", data=questions, **more
    )


def test_a_run_survives_the_death_of_what_began_it(questions: Path, tmp_path: Path) -> None:
    with Loopback(holds_after=3) as server:
        parent = subprocess.Popen(
            [sys.executable, "-c", PARENT, tmp_path / "runs", server.url, questions],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert parent.stdout is not None
        path = Path(parent.stdout.readline().strip())
        until(lambda: sum(server.answered.values()) > 2)
        assert started(tmp_path / "runs")[0].state == "running"
        os.killpg(parent.pid, signal.SIGKILL)
        parent.communicate()
        server.behaviour.holds_after = 0
        process = ended(tmp_path / "runs")
    assert process.state == "finished", process.log_tail()
    assert Path(process.path) == path
    assert sl.load_run(path).headline.coverage == 1
    assert "Report:" in process.log_tail()


def test_a_run_is_stopped_and_says_so(questions: Path, tmp_path: Path) -> None:
    with Loopback(latency=600) as server:
        process = mirae(tmp_path, server, questions)
        until(lambda: server.requests)
        assert started(tmp_path)[0].state == "running"
        stop(process.path)
        stopped = ended(tmp_path)
    assert stopped.state == "stopped"
    assert f"Resume with `sealegs resume {process.path}`" in stopped.log_tail()
    assert "saved" not in stopped.log_tail()  # nothing was answered


def test_a_run_that_failed_says_why_and_goes_on(questions: Path, tmp_path: Path) -> None:
    with Loopback(always=401, says="no\x1b[31m key") as server:
        mirae(tmp_path, server, questions, levels="1")
        failed = ended(tmp_path)
        assert failed.state == "failed"
        assert "401" in failed.log_tail()
        assert "\x1b" not in failed.log_tail()
        server.behaviour.always = 0
        again = start_again(failed)
        assert (again.name, again.path, again.task) == (failed.name, failed.path, failed.task)
        done = ended(tmp_path)
    assert done.state == "finished", done.log_tail()
    assert sl.load_run(done.path).headline.coverage == 1
    with pytest.raises(UsageError, match="is finished: only what stopped or failed"):
        start_again(done)


def test_a_resumed_run_names_its_report_as_the_run_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Loopback() as server:
        ran = sealegs(*small_command("rgb", Path("runs/mine"), server, limit=1))
        resumed = sealegs("resume", "runs/mine")
    last = f"Report: {Path('runs/mine/report.html')}"
    assert (ran.stdout.splitlines()[-1], resumed.stdout.splitlines()[-1]) == (last, last)


def test_a_killed_run_of_a_terminal_is_resumed_elsewhere(
    questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-1234567890")
    out = tmp_path / "runs" / "mine"
    with Loopback(holds_after=4) as server, Loopback() as embedder:
        arguments = small_command(
            "mirae", out, server, data=questions.name, embedder=f"openai:embed?base_url={embedder.url}",
            levels="1-2", repeats=5, concurrency=1,
        )  # fmt: skip
        process = subprocess.Popen(command(*arguments), stderr=subprocess.PIPE, cwd=questions.parent)
        until(lambda: journaled(tmp_path / "runs") == 4)  # the first four answers are committed
        [running] = started(tmp_path / "runs")
        assert (running.name, running.state, running.kind) == ("mine", "running", "run")
        process.kill()
        process.communicate()
        server.behaviour.holds_after = 0
        [failed] = started(tmp_path / "runs")
        assert (failed.state, failed.command) == ("failed", ["sealegs", "resume", str(out)])
        before = sum(server.answered.values())
        monkeypatch.chdir(tmp_path)
        assert sealegs("report", out).code == 2
        assert f"resume it with `sealegs resume {out}`" in capsys.readouterr().err
        assert sealegs_process("resume", out).code == 0
        asked = sum(server.answered.values()) - before
    assert 4 + asked in (40, 41)  # the request under way at the kill may be counted after it
    assert sl.load_run(out).headline.coverage == 1
    stored = (out / "started.json").read_text()
    assert "secret" not in stored
    assert started(tmp_path / "runs")[0].state == "finished"


@pytest.mark.parametrize(
    "settings",
    [
        {"data": ["https://me:word@host/q.json"]},
        {"engine_args": {"address": "https://me:word@host"}},
        {"reuse": "https://host/q?key=word"},
    ],
)
def test_settings_with_a_login_are_not_stored(settings: dict[str, Any], tmp_path: Path) -> None:
    task = ProcessTask(kind="run", benchmark="mirae", settings=settings)
    with pytest.raises(UsageError, match="cannot be given here"):
        record(tmp_path, task, 0)
    assert not list(tmp_path.glob("started.json"))


TASK = ProcessTask(kind="run", benchmark="mirae", settings={"model": "openai:x?base_url=http://h/v1"})


def test_what_a_stranger_stored_is_not_started(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    for folder in (mine, theirs):
        folder.mkdir()
    record(mine, TASK, 0)
    assert resumable(mine).task == TASK
    (theirs / "started.json").write_bytes((mine / "started.json").read_bytes())
    changed = msgspec.structs.replace(TASK, settings={"model": "openai:x?base_url=http://other/v1"})
    (mine / "started.json").write_bytes(msgspec.json.encode({"task": changed, "created": "2026"}))
    assert len(started(tmp_path)) == 2
    for process in started(tmp_path):
        with pytest.raises(UsageError, match="a folder may come from anyone"):
            start_again(process)
        assert sealegs("resume", process.path).code == 2
        assert "Run the original command again" in capsys.readouterr().err


def test_a_run_begins_where_nothing_can_be_remembered(
    questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEALEGS_CACHE", os.fspath(questions / "no-folder"))
    with Loopback() as server:
        mirae(tmp_path, server, questions, levels="1")
        done = ended(tmp_path)
    assert done.state == "finished", done.log_tail()
    with pytest.raises(UsageError, match="nothing shows that you began this here"):
        resumable(Path(done.path))


def test_a_folder_whose_name_is_no_text_is_run_and_not_stored(questions: Path, tmp_path: Path) -> None:
    out = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    with Loopback() as server:
        assert sealegs(*small_command("mirae", out, server, data=questions)).code == 0
    assert not (out / "started.json").exists()


def test_a_run_of_a_suite_is_resumed_by_the_suite_alone(tmp_path: Path) -> None:
    task = msgspec.structs.replace(TASK, identity="digest")
    record(tmp_path, task, 0)
    with pytest.raises(UsageError, match="is a run of a suite"):
        resumable(tmp_path)


def test_a_build_is_made_below_the_runs_folder(tmp_path: Path) -> None:
    first = start_build(tmp_path, "miron", seed=7, per_category=2)
    process = ended(tmp_path)
    assert (process.state, process.kind, process.name) == ("finished", "build", first.name)
    assert Path(process.path).parent == tmp_path / "data"
    assert list(Path(process.path).glob("*.jsonl"))
    assert sl.list_runs(tmp_path) == []


def test_a_build_in_use_keeps_the_process_that_is_stored(tmp_path: Path) -> None:
    task = ProcessTask(kind="build", benchmark="miron", settings={"seed": 7, "per_category": 2})
    record(tmp_path, task, 1)
    with writing(tmp_path):
        assert sealegs("resume", tmp_path).code == 2
    assert msgspec.json.decode((tmp_path / "started.json").read_bytes())["pid"] == 1


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"levels": "99"}, "99"),
        ({"out": "/etc"}, "'out' cannot be set"),
        ({"max_requests": 0}, "at least 1"),
        ({"model": None}, "needs a model"),
        ({"base_url": "http://user:pass@host/v1"}, "may not hold"),
        ({"model_args": {"api_key_env": "sk-abc123"}}, "may not hold"),
        ({"judge": "openai:m?api_key=sk-abc123"}, "no option 'api_key'"),
        ({"column": ["question"]}, "column"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_begins(
    settings: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(SealegsError, match=problem):
        start(tmp_path, "mirae", **{"model": "openai:x", **settings})
    assert list(tmp_path.iterdir()) == []


def test_a_run_with_a_method_of_two_specs_can_be_resumed(tmp_path: Path) -> None:
    where = "temperature=0.2&base_url=http://127.0.0.1:9/v1"
    method = f"rewrite:openai:m?{where}+embed:openai:e?{where.partition('&')[2]}&embed_batch=2"
    task = ProcessTask(kind="run", benchmark="multiview", settings={"method": [method]})
    record(tmp_path, task, os.getpid())
    assert resumable(tmp_path).task == task


def test_the_folder_of_a_run_is_a_new_one(tmp_path: Path) -> None:
    folders = [new_folder(tmp_path, "mirae", "org/../big model") for _ in range(3)]
    assert len(set(folders)) == 3
    assert {folder.parent for folder in folders} == {tmp_path}


def test_what_is_stored_of_a_process_is_not_trusted(tmp_path: Path) -> None:
    def store(name: str, **fields: Any) -> None:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "started.json").write_bytes(msgspec.json.encode({"task": TASK, "created": name, **fields}))

    store("a", pid=os.getpid(), began="1", path="/etc")  # the number of another process by now
    store("b", pid=-1)
    store("c", task={"kind": "other"})
    store("d", pid=2**70)
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "started.json").write_text("[" * 9000)
    (tmp_path / "f").symlink_to(tmp_path / "a")
    processes = started(tmp_path)
    assert [(process.name, process.state) for process in processes] == [(name, "failed") for name in "dba"]
    assert [process.path for process in processes] == [str(tmp_path / name) for name in "dba"]
    assert processes[0].log_tail() == ""


def test_only_the_end_of_a_log_is_shown_and_no_other_file(tmp_path: Path) -> None:
    process = Started(path=str(tmp_path), task=TASK, created="")
    (tmp_path / "log").write_bytes(b"x" * 10_000_000 + b"\n\xff\x1b[31mred\n" + b"last\n")
    assert process.log_tail().endswith("\ufffd␛[31mred\nlast")
    assert len(process.log_tail()) < 70_000
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "secret").write_text("secret")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        (tmp_path / name).replace(tmp_path / "log")
        assert process.log_tail() == ""
