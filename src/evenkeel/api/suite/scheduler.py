"""Carry out the runs of a suite: a process for each, side by side where they keep different servers busy.

A process that is killed, or runs out of memory, costs its own run alone. All end with this one: Ctrl-C asks
each to stop, as `evenkeel.stop` does, and they notice by themselves where this process is killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from evenkeel.api.launch import Started, launch, stored
from evenkeel.api.suite.runs import PlannedRun
from evenkeel.errors import EvenkeelError
from evenkeel.harness.control import PARENT_VARIABLE, read_progress
from evenkeel.harness.folder import Run
from evenkeel.harness.ledger import VARIABLE, Ledger
from evenkeel.harness.spec import STOP
from evenkeel.page.format import share
from evenkeel.report.suite import State, SuiteRun
from evenkeel.report.terminal.runs import RunsWatcher

POLL_SECONDS = 0.1
SHOW_SECONDS = 0.5
STOP_SECONDS = 20.0
"""How long processes that were asked to stop may take."""
LEFT_SECONDS = 30.0
"""How long processes of an earlier call, which was killed, may take to notice that."""
PROBLEM_CHARACTERS = 600
STOPPED = (129, 130, 143)
"""Exit codes of a run that a signal, or `evenkeel.stop`, ended."""


class Scheduler:
    """Starts, watches and stops the runs of a suite."""

    def __init__(
        self,
        root: Path,
        runs: Sequence[PlannedRun],
        *,
        parallel: int,
        ledger: Ledger | None,
        watcher: RunsWatcher,
    ) -> None:
        self._root = root
        self._waiting = list(runs)
        self._running: dict[str, tuple[PlannedRun, Started, subprocess.Popen[bytes]]] = {}
        self._outcomes = {run.name: outcome_of(run, "waiting") for run in runs}
        self._parallel = parallel
        self._ledger = ledger
        self._watcher = watcher
        self._shown = 0.0

    def carry_out(self) -> dict[str, SuiteRun]:
        """Run what is not finished. Interrupted, it stops all processes and raises the interrupt."""
        try:
            self._wait_for_earlier()
            for run in list(self._waiting):
                outcome = earlier_outcome(self._root, run)
                # Of a folder without settings a process finds out whether it is this run.
                if outcome.ranked and stored(self._root / run.name):
                    self._waiting.remove(run)
                    self._outcomes[run.name] = outcome
            while self._waiting or self._running:
                self._begin_next()
                for run, process, child in list(self._running.values()):
                    if (code := child.poll()) is not None:
                        del self._running[run.name]
                        self._outcomes[run.name] = _ended(self._root, run, process, code)
                self._show()
                time.sleep(POLL_SECONDS)
        except BaseException as error:
            self._stop()
            if isinstance(error, KeyboardInterrupt):
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

    def _wait_for_earlier(self) -> None:
        """Processes of an earlier call that was killed end by themselves; they hold their runs until then."""
        end = time.monotonic() + LEFT_SECONDS
        processes = [stored(self._root / run.name) for run in self._waiting]
        while left := [each.name for each in processes if each is not None and each.active]:
            if time.monotonic() > end:
                self._watcher.note(f"still being written by another process: {', '.join(left)}")
                return
            time.sleep(POLL_SECONDS)

    def _begin_next(self) -> None:
        """Begin each run, in their order, whose servers are free."""
        busy = {server for run, _, _ in self._running.values() for server in run.servers}
        for run in list(self._waiting):
            if len(self._running) >= self._parallel:
                return
            if not busy & run.servers:
                self._waiting.remove(run)
                self._begin(run)
                busy |= run.servers

    def _begin(self, run: PlannedRun) -> None:
        environment = {PARENT_VARIABLE: str(os.getpid())}
        if self._ledger is not None:
            environment[VARIABLE] = str(self._ledger.path.resolve())
        try:
            self._running[run.name] = run, *launch(self._root / run.name, run.task, environment)
            self._outcomes[run.name] = outcome_of(run, "running")
        except (EvenkeelError, OSError) as error:
            self._outcomes[run.name] = outcome_of(run, "failed", str(error), 1)

    def _show(self) -> None:
        if time.monotonic() - self._shown >= SHOW_SECONDS:
            self._shown = time.monotonic()
            progress = {name: read_progress(self._root / name) for name in self._running}
            self._watcher.update([(run, progress.get(run.name)) for run in self._outcomes.values()])

    def _stop(self) -> None:
        """Ask all processes to end, and end those that do not."""
        for run, _, _ in self._running.values():
            self._outcomes[run.name] = outcome_of(run, "stopped")
            with contextlib.suppress(OSError):
                (self._root / run.name / STOP).touch()
        end = time.monotonic() + STOP_SECONDS
        for _, _, child in self._running.values():
            try:
                child.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


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
    if all((folder / name).is_file() for name in ("summary.json", "report.html")):
        problem = _low_coverage(folder, run.task.min_coverage)
        return outcome_of(run, "low coverage" if problem else "finished", problem)
    process = stored(folder)
    if process is None or not (folder / "spec.json").is_file():
        return outcome_of(run, "waiting")
    return outcome_of(run, "stopped" if process.state == "stopped" else "failed", _reason(process, 1))


def _ended(root: Path, run: PlannedRun, process: Started, code: int) -> SuiteRun:
    """How a run ended whose process did, by its exit code."""
    if code == 0:
        return outcome_of(run, "finished")
    if code == 1 and (problem := _low_coverage(root / run.name, run.task.min_coverage)):
        return outcome_of(run, "low coverage", problem, code)
    return outcome_of(run, "stopped" if code in STOPPED else "failed", _reason(process, code), code)


def _low_coverage(folder: Path, floor: float) -> str:
    """`coverage 62% is below 95%`; empty where the run is not finished, or covers enough."""
    try:
        coverages = Run(folder).coverages
    except EvenkeelError:
        return ""
    for metric, coverage in coverages.items():
        if coverage < floor:
            return f"coverage{f' of {metric}' if metric else ''} {share(coverage)} is below {share(floor)}"
    return ""


def _reason(process: Started, code: int) -> str:
    """Why a process ended, from the last error that it printed."""
    if code < 0:
        name = signal.Signals(-code).name if -code in signal.valid_signals() else f"signal {-code}"
        return f"its process was ended by {name}; the machine may have run out of memory"
    lines = [line for line in process.log_tail(200).splitlines() if line.strip()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    reason = (errors or lines or [f"its process ended with {code}"])[-1]
    return reason if len(reason) <= PROBLEM_CHARACTERS else f"{reason[: PROBLEM_CHARACTERS - 1]}…"
