"""Execute the runs of a suite, each as a process of its own: side by side where they keep different servers
busy, one at a time where they load a model or share a budget. One that crashes or runs out of memory costs no
other.

Ctrl-C stops them all; the file `stop` in a run's folder stops that run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from sealegs.api.earlier import EarlierStart
from sealegs.api.launch import ProcessTask, Started, launch, stored
from sealegs.api.suite.definition import BudgetEntry
from sealegs.api.suite.runs import PlannedRun
from sealegs.errors import SealegsError, bounded
from sealegs.files import lock
from sealegs.harness.control import PARENT_VARIABLE, read_progress
from sealegs.harness.folder import Run
from sealegs.harness.folder.layout import STOP
from sealegs.page.format import share
from sealegs.report.suite import State, SuiteRun
from sealegs.report.terminal.runs import RunsWatcher

POLL_SECONDS = 0.1
SHOW_SECONDS = 0.5
STOP_SECONDS = 20.0
"""How long runs that were asked to stop may take."""
UNFINISHED = "not finished: the same command resumes it"
INTERRUPTED = (129, 130, 143)
"""Exit codes of a process that a signal, or `stop`, ended."""
AT_LIMIT = "stopped at --max-"
"""Begins the reason of a run that has used up what was left of the budget."""


class Budget:
    """What all runs of a suite may spend together. Their journals say what they have spent."""

    def __init__(self, entry: BudgetEntry, root: Path, runs: Sequence[PlannedRun]) -> None:
        self._entry = entry
        self._root = root
        self._runs = [run for run in runs if run.is_counted]

    def __str__(self) -> str:
        limits = [f"{self._entry.requests:,} requests"] if self._entry.requests is not None else []
        return " and ".join([*limits, *([f"${self._entry.usd:g}"] if self._entry.usd is not None else [])])

    @property
    def usd(self) -> float | None:
        """What was spent; None where the budget is not in dollars."""
        return self._spent()[1] if self._entry.usd is not None else None

    def task(self, run: PlannedRun) -> ProcessTask | None:
        """The task of a run with what is left as its limits, which hold over all its starts; None where
        nothing is left."""
        if not run.is_counted:
            return run.task
        limits: dict[str, float] = {}
        names, totals = ("max_requests", "max_usd"), (self._entry.requests, self._entry.usd)
        for name, total, spent, before in zip(names, totals, self._spent(), _spent_by(run), strict=True):
            if total is not None:
                limits[name] = before + total - spent
                if total <= spent:
                    return None
        return replace(run.task, settings={**run.task.settings, **limits})

    def _spent(self) -> tuple[int, float]:
        for run in self._runs:
            run.gate.resume(EarlierStart(self._root / run.name).usage())
        amounts = [_spent_by(run) for run in self._runs]
        return sum(requests for requests, _ in amounts), sum(usd for _, usd in amounts)


def _spent_by(run: PlannedRun) -> tuple[int, float]:
    return run.gate.requests, run.gate.usd


class _BegunRun(NamedTuple):
    """A run whose process has begun."""

    run: PlannedRun
    started: Started
    child: subprocess.Popen[bytes]


class Execution:
    """Begins, watches and stops the runs of a suite."""

    def __init__(
        self,
        root: Path,
        runs: Sequence[PlannedRun],
        *,
        budget: Budget,
        parallel: int,
        watcher: RunsWatcher,
    ) -> None:
        self._root = root
        self._budget = budget
        self._waiting: list[PlannedRun] = []
        self._running: list[_BegunRun] = []
        self._outcomes: dict[str, SuiteRun] = {}
        self._parallel = parallel
        self._watcher = watcher
        self._shown = 0.0
        for run in runs:
            outcome = earlier_outcome(root, run)
            # Of a folder without settings the run itself finds out whether it is this one.
            if not outcome.ranked or stored(root / run.name) is None:
                self._waiting.append(run)
                outcome = outcome_of(run, "waiting")
            self._outcomes[run.name] = outcome

    def execute(self) -> dict[str, SuiteRun]:
        """Execute what is not finished. Interrupted, it stops all runs and raises the interrupt."""
        try:
            while self._waiting or self._running:
                self._begin_next()
                self._show()
                time.sleep(POLL_SECONDS)
                for begun in list(self._running):
                    if (code := begun.child.poll()) is not None:
                        self._running.remove(begun)
                        self._outcomes[begun.run.name] = self._ended(begun, code)
        except BaseException as error:
            self._stop()
            finished = sum(outcome.ranked for outcome in self._outcomes.values())
            error.add_note(
                f"{finished} of {len(self._outcomes)} runs are finished. Answers are saved in "
                f"{self._root}: the same command resumes from there."
            )
            raise
        finally:
            self._shown = 0.0
            self._show()
            self._watcher.finish()
        return self._outcomes

    def _begin_next(self) -> None:
        """Begin each run, in their order, whose servers are free, and whose folder is: the process of an
        earlier call that was killed writes until it notices that."""
        for run in list(self._waiting):
            busy = {each for begun in self._running for each in begun.run.occupied}
            is_free = len(self._running) < self._parallel and not busy & run.occupied
            if is_free and not lock.is_written(self._root / run.name):
                self._waiting.remove(run)
                self._outcomes[run.name] = self._begin(run)

    def _begin(self, run: PlannedRun) -> SuiteRun:
        """Begin the process of a run, which ends with this one."""
        if (task := self._budget.task(run)) is None:
            return outcome_of(run, "failed", self._spent_all, 1)
        try:
            begun = launch(self._root / run.name, task, {PARENT_VARIABLE: str(os.getpid())})
        except SealegsError as error:
            return outcome_of(run, "failed", str(error), error.exit_code)
        self._running.append(_BegunRun(run, *begun))
        return outcome_of(run, "running")

    @property
    def _spent_all(self) -> str:
        return f"the suite's budget of {self._budget} is spent: raise it in the file, and run it again"

    def _ended(self, begun: _BegunRun, code: int) -> SuiteRun:
        run, problem = begun.run, _reason(begun.started, code) if code else ""
        if code in INTERRUPTED:
            return outcome_of(run, "stopped", UNFINISHED)
        if code in (0, 1) and (low := _low_coverage(self._root / run.name, run.task.min_coverage)):
            return outcome_of(run, "low coverage", low, 1)
        if problem.startswith(AT_LIMIT):
            problem = self._spent_all
        return outcome_of(run, "failed" if code else "finished", problem, code)

    def _show(self) -> None:
        if time.monotonic() - self._shown >= SHOW_SECONDS:
            self._shown = time.monotonic()
            progress = {each.run.name: read_progress(self._root / each.run.name) for each in self._running}
            self._watcher.update([(run, progress.get(run.name)) for run in self._outcomes.values()])

    def _stop(self) -> None:
        """Ask all runs to end, and wait for them. One that takes longer ends after this process."""
        for begun in self._running:
            (self._root / begun.run.name / STOP).touch()
        end = time.monotonic() + STOP_SECONDS
        for begun in self._running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                begun.child.wait(max(0.0, end - time.monotonic()))
            self._outcomes[begun.run.name] = outcome_of(begun.run, "stopped", UNFINISHED)


def outcome_of(run: PlannedRun, state: State, problem: str = "", code: int = 0) -> SuiteRun:
    return SuiteRun(
        name=run.name,
        benchmark=run.task.benchmark,
        model=run.model,
        state=state,
        problem=problem,
        exit_code=code,
    )


def earlier_outcome(root: Path, run: PlannedRun) -> SuiteRun:
    """How a run of an earlier call ended. Its page, which is written last, says that it is whole."""
    folder = root / run.name
    if not (folder / "spec.json").is_file():
        return outcome_of(run, "waiting")
    if not all((folder / name).is_file() for name in ("summary.json", "report.html")):
        return outcome_of(run, "stopped", UNFINISHED)
    problem = _low_coverage(folder, run.task.min_coverage)
    return outcome_of(run, "low coverage" if problem else "finished", problem)


def _low_coverage(folder: Path, floor: float) -> str:
    """`coverage 62% is below 95%`; empty where the run is not finished, or covers enough."""
    try:
        coverages = Run(folder).coverages
    except SealegsError:
        return ""
    for metric, coverage in coverages.items():
        if coverage < floor:
            return f"coverage{f' of {metric}' if metric else ''} {share(coverage)} is below {share(floor)}"
    return ""


def _reason(process: Started, code: int) -> str:
    """Why a run failed, from the last error in its log."""
    if code < 0:
        name = signal.Signals(-code).name if -code in signal.valid_signals() else f"signal {-code}"
        return f"its process was ended by {name}; the machine may have run out of memory"
    lines = [line for line in process.log_tail(200).splitlines() if line.strip()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return bounded((errors or lines or [f"its process ended with {code}"])[-1])
