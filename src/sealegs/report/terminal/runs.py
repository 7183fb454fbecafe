"""The progress of several runs: a line for each change, and on a terminal a bar for each that is running."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, TypeAlias

from sealegs.harness.control import RunProgress
from sealegs.page.format import duration, escape_controls
from sealegs.report.suite import SuiteRun

PLAIN_SECONDS = 30.0
"""Between two lines about a run in progress, where there is no terminal."""

Runs: TypeAlias = Sequence[tuple[SuiteRun, RunProgress | None]]
"""All runs, each with how far it is where that is known."""


def runs_watcher(progress: RunsWatcher | bool | None) -> RunsWatcher:
    """What `progress=` means: a watcher, True for the usual one, False or None for none."""
    return progress if isinstance(progress, RunsWatcher) else RunsWatcher(quiet=not progress)


def _details(run: SuiteRun, progress: RunProgress | None) -> str:
    """`asking 20 of 100, 14 s left, $0.02`, or why it ended."""
    if progress is None or not progress.phase:
        return run.problem
    parts = [f"{progress.phase} {progress.done:,} of {progress.total:,}"]
    parts += [f"{duration(progress.seconds_left)} left"] if progress.seconds_left is not None else []
    parts += [f"${progress.usd:.2f}"] if progress.usd else []
    return ", ".join(parts)


class RunsWatcher:
    """Is told how far all runs are, several times a second, and says so on stderr: a line when a run begins
    or ends, and on a terminal a bar for each in progress, elsewhere a line now and then."""

    def __init__(self, *, quiet: bool = False) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._console = Console(stderr=True, quiet=quiet, force_jupyter=False, emoji=False)
        words = (TextColumn(f"{{task.{name}}}", markup=False) for name in ("description", "fields[details]"))
        columns = next(words), BarColumn(), next(words)
        terminal = self._console.is_terminal
        self._bars = Progress(*columns, console=self._console, transient=True, disable=quiet or not terminal)
        self._seconds = float("inf") if terminal else PLAIN_SECONDS
        self._tasks: dict[str, Any] = {}
        self._states: dict[str, str] = {}
        self._next: dict[str, float] = {}

    def update(self, runs: Runs) -> None:
        now = time.monotonic()
        for run, progress in runs:
            changed = self._states.get(run.name, "waiting") != run.state
            details = _details(run, progress)
            if changed or (details and run.state == "running" and now >= self._next[run.name]):
                self.note(f"{run.name}: {run.state}{f' ({details})' if details else ''}")
                self._next[run.name] = now + self._seconds
            self._states[run.name] = run.state
            self._draw(run, progress, escape_controls(details))
        self._bars.start()  # which does nothing from the second time on

    def _draw(self, run: SuiteRun, progress: RunProgress | None, details: str) -> None:
        if run.state != "running":
            if run.name in self._tasks:
                self._bars.remove_task(self._tasks.pop(run.name))
            return
        if run.name not in self._tasks:
            self._tasks[run.name] = self._bars.add_task(escape_controls(run.name), details="", total=None)
        if progress is not None:
            total = progress.total or None
            self._bars.update(self._tasks[run.name], completed=progress.done, total=total, details=details)

    def note(self, text: str) -> None:
        self._console.print(escape_controls(text), style="dim", markup=False, highlight=False, soft_wrap=True)

    def finish(self) -> None:
        self._bars.stop()
