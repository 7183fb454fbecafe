"""The progress of one run and of several: a line for each, whatever the size of the terminal."""

from __future__ import annotations

import re

import pytest

from sealegs.harness.control import RunProgress
from sealegs.page.format import duration, rate
from sealegs.report.suite import State, SuiteRun
from sealegs.report.terminal.progress import Watcher
from sealegs.report.terminal.runs import RunsWatcher
from sealegs.types import Response


def run(name: str, state: State, problem: str = "") -> SuiteRun:
    return SuiteRun(name=name, benchmark="rgb", model="m", state=state, problem=problem)


@pytest.mark.parametrize("width", [80, 120])
def test_each_run_in_progress_is_one_line_of_a_terminal(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"FORCE_COLOR": "1", "COLUMNS": str(width), "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    watcher = RunsWatcher()
    progress = RunProgress(phase="asking", done=1220, total=4000, seconds_left=431)
    asking = run("rgb-one", "running"), progress
    waiting = [(run(f"miron-{number}", "waiting"), None) for number in range(40)]
    watcher.update([asking, (run("mirae-one", "running"), None), *waiting])
    watcher.update([asking, (run("mirae-one", "failed", "no\x1b[31m answer"), None), *waiting])
    watcher.finish()
    output = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert "mirae-one: failed (no␛[31m answer)" in output
    last = [line.split() for line in output.splitlines() if "7 min left" in line][-1]
    assert (last[0], " ".join(last[-7:])) == ("rgb-one", "asking 1,220 of 4,000, 7 min left")
    assert "miron" not in output


def test_without_a_terminal_a_line_is_printed_when_a_run_begins_and_ends(
    capsys: pytest.CaptureFixture[str],
) -> None:
    watcher = RunsWatcher()
    states: list[State] = ["waiting", "running", "running", "failed", "failed"]
    for state in states:
        watcher.update([(run("rgb-one", state, "why" if state == "failed" else ""), None)])
    assert capsys.readouterr().err.splitlines() == ["rgb-one: running", "rgb-one: failed (why)"]


def test_a_line_of_progress_has_a_name_without_addresses(capsys: pytest.CaptureFixture[str]) -> None:
    watcher = Watcher(plain_seconds=0.0)
    watcher.retrying(3)  # before anything was asked
    watcher.phase("judge:llamacpp:?base_url=http%3A%2F%2F127.0.0.1", total=1, done=0)
    watcher.answered(Response(status="ok"), usd=0.0)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "judge:llamacpp: 1 request"
    assert second.startswith("judge:llamacpp: 1 of 1")


def test_durations_are_short() -> None:
    assert [duration(seconds) for seconds in (0.4, 89, 90, 5399, 12_000)] == [
        "0 s", "89 s", "2 min", "90 min", "3.3 h",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("per_second", "words"), [(0, ""), (0.0001, ""), (0.03, "1.8/min"), (0.5, "0.5/s"), (31.4, "31/s")]
)
def test_a_rate_is_never_zero(per_second: float, words: str) -> None:
    assert rate(per_second) == words
