"""Signals: a run that is told to end keeps what was answered, says how to go on, and ends by convention."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

import sealegs as sl
from commandline import command
from killing import contents, watched
from loopback import Loopback
from runs import small_command
from sealegs import api
from sealegs.api.launch import resumable
from sealegs.cli.run import demo_command
from sealegs.harness.folder.layout import how_to_resume
from sealegs.report.terminal.progress import Watcher
from suites import PATIENCE, journaled

pytestmark = pytest.mark.slow

IGNORING = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])
"""
DEAF = """
import sys, threading, time
from sealegs.cli.signals import stopping
with stopping():
    try:
        print("ready", flush=True); time.sleep(60)
    except KeyboardInterrupt:
        print("first", flush=True)
        while True:  # a library that hears no interrupt
            try: threading.Event().wait(60)
            except BaseException: pass
"""


def run_command(questions: Path, server: Loopback, out: Path) -> list[str]:
    return command(*small_command("mirae", out, server, data=questions, levels="1-3", concurrency=2))


def hearing() -> None:
    """Signals as a terminal leaves them: whoever runs the tests may ignore some, as `nohup` and `&` do."""
    for each in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)


def begun(arguments: list[str], server: Loopback, run: Path) -> subprocess.Popen[str]:
    """A run that has stored some answers."""
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, preexec_fn=hearing)
    while sum(server.answered.values()) < 6 or not journaled(run.parent):
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.02)
    return process


def test_a_demo_that_is_stopped_can_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(name: str, *, out: Path, progress: Watcher, **_: object) -> None:
        out.mkdir(parents=True)
        progress.began(out)
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(api, "run", stopped)
    with pytest.raises(click.Abort):
        demo_command.main([], standalone_mode=False)
    (first,) = tmp_path.glob("runs/*-demo-embedded/*")
    assert how_to_resume(first) == f"`sealegs resume {first}`"
    assert resumable(first).task.settings == sl.list_benchmarks()[first.name].help.demo


def test_a_run_is_finished_though_the_reader_of_its_messages_has_left(
    questions: Path, tmp_path: Path
) -> None:
    with Loopback() as server:
        line = run_command(questions, server, tmp_path / "run")
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert process.stdout
        process.stdout.close()
        assert process.wait() == 0
    assert sl.load_run(tmp_path / "run").headline.coverage == 1.0


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_signal_ends_a_run_and_keeps_its_answers(
    questions: Path, tmp_path: Path, sent: signal.Signals, code: int
) -> None:
    with Loopback(holds_after=8) as server:
        process = begun(run_command(questions, server, tmp_path / "run"), server, tmp_path / "run")
        process.send_signal(sent)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert "stopped." in said
    assert "Traceback" not in said
    assert f"saved in {tmp_path / 'run'}: resume with `sealegs resume {tmp_path / 'run'}`" in said
    assert not list((tmp_path / "run").glob("journal.sqlite-*"))  # the log was folded in
    assert journaled(tmp_path) >= 2


def test_a_run_that_outlives_its_terminal_goes_on(questions: Path, tmp_path: Path) -> None:
    """nohup has SIGHUP ignored, and it stays so."""
    with Loopback(holds_after=8) as server:
        arguments = [sys.executable, "-c", IGNORING, *run_command(questions, server, tmp_path / "run")]
        process = begun(arguments, server, tmp_path / "run")
        process.send_signal(signal.SIGHUP)
        server.behaviour.holds_after = 0
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


def test_a_second_signal_ends_it_at_once() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", DEAF], stdout=subprocess.PIPE, text=True, preexec_fn=hearing
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "first\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == -signal.SIGTERM


def test_ctrl_c_ends_a_command_that_reads_a_run(questions: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with Loopback(words=10) as server:
        done = subprocess.run(run_command(questions, server, folder), capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
    before = contents(folder)
    stopped = subprocess.run(
        [*watched(folder, 2, sent=signal.SIGINT), "rescore", str(folder)],
        capture_output=True, text=True, preexec_fn=hearing, check=False,
    )  # fmt: skip
    assert stopped.returncode == 130, stopped.stderr
    assert stopped.stderr.split("\n")[-2:] == ["stopped.", ""]
    after = contents(folder)
    for name in set(before) - {"journal.sqlite"}:
        assert after[name] == before[name]
