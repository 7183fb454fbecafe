"""The progress of several runs: a line for each change, and on a terminal a bar for each that is running."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from evenkeel.page.format import duration, visible
from evenkeel.report.terminal.progress import in_notebook

PLAIN_SECONDS = 30.0
"""Between two lines about a run in progress, where there is no terminal."""


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

    The usual one has bars where stderr is a terminal, and lines in a notebook or where `plain` is set.
    """
    if progress is not None and not isinstance(progress, bool):
        return progress
    if progress and sys.stderr is not None and sys.stderr.isatty():
        return RunBars()
    return PlainRuns() if progress and (plain or in_notebook()) else SilentRuns()


class SilentRuns:
    """Shows nothing."""

    def update(self, lines: Sequence[RunLine]) -> None: ...

    def note(self, text: str) -> None: ...

    def finish(self) -> None: ...


class PlainRuns(SilentRuns):
    """Lines on stderr: when a run begins or ends, and now and then in between."""

    seconds = PLAIN_SECONDS

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
                self._next[line.name] = now + self.seconds
            self._states[line.name] = line.state

    def note(self, text: str) -> None:
        print(visible(text), file=sys.stderr, flush=True)


class RunBars(PlainRuns):
    """A line when a run begins or ends, and below them a bar for each that is running."""

    seconds = float("inf")

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._console = Console(stderr=True)
        words = (TextColumn(f"{{task.{name}}}", markup=False) for name in ("description", "fields[details]"))
        self._bars = Progress(next(words), BarColumn(), next(words), console=self._console, transient=True)
        self._tasks: dict[str, Any] = {}

    def update(self, lines: Sequence[RunLine]) -> None:
        super().update(lines)
        self._bars.start()  # which does nothing from the second time on
        for line in lines:
            if line.state == "running":
                if line.name not in self._tasks:
                    self._tasks[line.name] = self._bars.add_task(visible(line.name), details="")
                task, details = self._tasks[line.name], visible(line.details)
                self._bars.update(task, completed=line.done, total=line.total or None, details=details)
            elif line.name in self._tasks:
                self._bars.remove_task(self._tasks.pop(line.name))

    def note(self, text: str) -> None:
        self._console.print(visible(text), style="dim", markup=False, highlight=False)

    def finish(self) -> None:
        self._bars.stop()
