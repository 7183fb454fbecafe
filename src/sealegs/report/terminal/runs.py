"""The progress of several runs: a line for each change, and on a terminal a bar for each that is running."""

from __future__ import annotations

import sys
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


class RunsWatcher:
    """Is told how far all runs are, several times a second, and shows nothing."""

    def update(self, runs: Runs) -> None: ...

    def note(self, text: str) -> None: ...

    def finish(self) -> None: ...


def runs_watcher(progress: RunsWatcher | bool | None) -> RunsWatcher:
    """What `progress=` means: a watcher, True for the usual one, False or None for none.

    The usual one has bars where stderr is a terminal, and lines elsewhere.
    """
    if isinstance(progress, RunsWatcher):
        return progress
    if not progress:
        return RunsWatcher()
    return RunBars() if sys.stderr is not None and sys.stderr.isatty() else PlainRuns()


def _details(run: SuiteRun, progress: RunProgress | None) -> str:
    """`asking 20 of 100, 14 s left, $0.02`, or why it ended."""
    if progress is None or not progress.phase:
        return run.problem
    parts = [f"{progress.phase} {progress.done:,} of {progress.total:,}"]
    parts += [f"{duration(progress.seconds_left)} left"] if progress.seconds_left is not None else []
    parts += [f"${progress.usd:.2f}"] if progress.usd else []
    return ", ".join(parts)


class PlainRuns(RunsWatcher):
    """Lines on stderr: when a run begins or ends, and now and then in between."""

    seconds = PLAIN_SECONDS

    def __init__(self) -> None:
        self._states: dict[str, str] = {}
        self._next: dict[str, float] = {}

    def update(self, runs: Runs) -> None:
        now = time.monotonic()
        for run, progress in runs:
            changed = self._states.get(run.name, "waiting") != run.state
            details = _details(run, progress)
            if changed or (details and run.state == "running" and now >= self._next[run.name]):
                self.note(f"{run.name}: {run.state}{f' ({details})' if details else ''}")
                self._next[run.name] = now + self.seconds
            self._states[run.name] = run.state

    def note(self, text: str) -> None:
        print(escape_controls(text), file=sys.stderr, flush=True)


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

    def update(self, runs: Runs) -> None:
        super().update(runs)
        self._bars.start()  # which does nothing from the second time on
        for run, progress in runs:
            if run.state == "running":
                if run.name not in self._tasks:
                    self._tasks[run.name] = self._bars.add_task(
                        escape_controls(run.name), details="", total=None
                    )
                if progress is not None:
                    details, total = escape_controls(_details(run, progress)), progress.total or None
                    task = self._tasks[run.name]
                    self._bars.update(task, completed=progress.done, total=total, details=details)
            elif run.name in self._tasks:
                self._bars.remove_task(self._tasks.pop(run.name))

    def note(self, text: str) -> None:
        self._console.print(escape_controls(text), style="dim", markup=False, highlight=False)

    def finish(self) -> None:
        self._bars.stop()
