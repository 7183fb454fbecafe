"""The progress of several runs: a line for each on a terminal, a line for each change elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from evenkeel.page.format import visible
from evenkeel.report.terminal.progress import in_notebook

PLAIN_SECONDS = 30.0
"""Between two lines about a run in progress, where there is no terminal."""
REFRESH_SECONDS = 0.25
LONGEST_NAME = 30
STYLES = {"finished": "green", "failed": "red", "low coverage": "red", "waiting": "dim", "stopped": "yellow"}


class RunLine(Struct, frozen=True, kw_only=True):
    """How far one of several runs is."""

    name: str
    state: str
    """`waiting`, `running`, or how it ended."""
    phase: str = ""
    done: int = 0
    total: int = 0
    seconds_left: float | None = None
    usd: float = 0.0
    problem: str = ""

    @property
    def details(self) -> str:
        """`asking 20 of 100, 14 s left, $0.02`"""
        parts = [f"{self.phase} {self.done:,} of {self.total:,}"] if self.phase else []
        parts += [f"{duration(self.seconds_left)} left"] if self.seconds_left is not None else []
        parts += [f"${self.usd:.2f}"] if self.usd else []
        parts += [self.problem] if self.problem else []
        return ", ".join(parts)


class RunsWatcher(Protocol):
    """Is told how far all runs are, several times a second."""

    def update(self, lines: Sequence[RunLine]) -> None: ...

    def note(self, text: str) -> None: ...

    def finish(self) -> None: ...


def runs_watcher(progress: RunsWatcher | bool | None, *, plain: bool = False) -> RunsWatcher:
    """What `progress=` means: a watcher, True for the usual one, False or None for none.

    The usual one is a table where stderr is a terminal, and lines in a notebook or where `plain` is set.
    """
    if progress is not None and not isinstance(progress, bool):
        return progress
    if progress and sys.stderr is not None and sys.stderr.isatty():
        return RunsTable()
    return PlainRuns() if progress and (plain or in_notebook()) else SilentRuns()


class SilentRuns:
    """Shows nothing."""

    def update(self, lines: Sequence[RunLine]) -> None: ...

    def note(self, text: str) -> None: ...

    def finish(self) -> None: ...


class PlainRuns(SilentRuns):
    """Lines on stderr: when a run begins or ends, and now and then in between."""

    def __init__(self) -> None:
        self._states: dict[str, str] = {}
        self._next: dict[str, float] = {}

    def update(self, lines: Sequence[RunLine]) -> None:
        for line in lines:
            changed = self._states.get(line.name, "waiting") != line.state
            details = f" ({line.details})" if line.details else ""
            now = time.monotonic()
            if changed or (details and line.state == "running" and now >= self._next[line.name]):
                self.note(f"{line.name}: {line.state}{details}")
                self._next[line.name] = now + PLAIN_SECONDS
            self._states[line.name] = line.state

    def note(self, text: str) -> None:
        print(visible(text), file=sys.stderr, flush=True)


class RunsTable(SilentRuns):
    """A table on a terminal, as far as it fits."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True)
        self._live: Any = Live(console=self._console, auto_refresh=False, transient=True)
        self._drawn = 0.0

    def update(self, lines: Sequence[RunLine]) -> None:
        if time.monotonic() - self._drawn >= REFRESH_SECONDS:
            self._drawn = time.monotonic()
            self._live.start()  # which does nothing from the second time on
            self._live.update(runs_table(lines), refresh=True)

    def note(self, text: str) -> None:
        self._console.print(visible(text), style="dim", markup=False, highlight=False)

    def finish(self) -> None:
        self._live.stop()


def runs_table(lines: Sequence[RunLine]) -> Any:
    """A line for each run: those in progress, what ended last, what waits. A terminal shows the first."""
    from rich.console import Group
    from rich.text import Text

    running = [line for line in lines if line.state == "running"]
    waiting = [line for line in lines if line.state == "waiting"]
    ended = [line for line in lines if line.state not in ("running", "waiting")]
    texts = []
    for line in (*running, *reversed(ended), *waiting):
        name = Text(visible(line.name))
        name.truncate(LONGEST_NAME, overflow="ellipsis", pad=True)
        state = Text(f"{line.state:<{max(map(len, STYLES))}}", style=STYLES.get(line.state, "bold"))
        text = Text("  ", no_wrap=True, overflow="ellipsis").join([name, state, Text(visible(line.details))])
        texts.append(text)
    return Group(*texts)


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
