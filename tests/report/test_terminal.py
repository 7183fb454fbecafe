"""The progress of one run and of several: a line for each, whatever the size of the terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from evenkeel.report.terminal.progress import Watcher
from evenkeel.report.terminal.runs import PlainRuns, RunLine, duration, runs_table
from evenkeel.types import Response

LINES = [
    RunLine(name="mirae-one", state="finished"),
    RunLine(name="rgb-one", state="running", phase="asking", done=1220, total=4000, seconds_left=431),
    RunLine(name="rgb-a-name-that-is-longer-than-others", state="failed", problem="no\x1b[31m " + "x" * 200),
    *(RunLine(name=f"miron-{number}", state="waiting") for number in range(40)),
]


@pytest.mark.parametrize("width", [80, 120])
def test_each_run_is_one_line_with_its_time_left(width: int) -> None:
    file = io.StringIO()
    Console(file=file, width=width, no_color=True).print(runs_table(LINES))
    lines = [line.rstrip() for line in file.getvalue().splitlines()]
    assert len(lines) == len(LINES)
    assert lines[0].split(maxsplit=2) == ["rgb-one", "running", "asking 1,220 of 4,000, 7 min left"]
    assert lines[1].startswith("rgb-a-name-that-is-longer-tha…  failed")
    assert "\x1b" not in lines[1]
    assert lines[2].split() == ["mirae-one", "finished"]
    assert all(len(line) <= width for line in lines)


def test_without_a_terminal_a_line_is_printed_when_a_run_begins_and_ends(
    capsys: pytest.CaptureFixture[str],
) -> None:
    watcher = PlainRuns()
    for state in ("waiting", "running", "running", "failed", "failed"):
        watcher.update([RunLine(name="rgb-one", state=state, problem="why" if state == "failed" else "")])
    assert capsys.readouterr().err.splitlines() == ["rgb-one: running", "rgb-one: failed (why)"]


def test_a_line_of_progress_has_a_name_without_addresses(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenkeel.report.terminal.progress.PLAIN_SECONDS", 0.0)
    watcher = Watcher()
    watcher.retrying(3)  # before anything was asked
    watcher.phase("judge:llamacpp:?base_url=http%3A%2F%2F127.0.0.1", total=1, done=0)
    watcher.answered(Response(status="ok"), usd=0.0)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "judge:llamacpp: 1 request"
    assert second.startswith("judge:llamacpp: 1 of 1")


def test_durations_are_short() -> None:
    assert [duration(seconds) for seconds in (0.4, 89, 90, 3600, 12_000)] == [
        "0 s", "89 s", "2 min", "60 min", "3 h 20 min",
    ]  # fmt: skip
