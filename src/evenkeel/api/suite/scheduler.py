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
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from evenkeel.api.launch import Started, Task, launch, started
from evenkeel.api.suite.runs import PlannedRun
from evenkeel.errors import EvenkeelError
from evenkeel.harness.control import PARENT_VARIABLE, read_progress
from evenkeel.harness.folder import Run
from evenkeel.harness.ledger import VARIABLE, Ledger
from evenkeel.harness.spec import STOP
from evenkeel.page.format import share
from evenkeel.report.suite import State, SuiteRun
from evenkeel.report.terminal.runs import RunLine, RunsWatcher

POLL_SECONDS = 0.1
SHOW_SECONDS = 0.5
STOP_SECONDS = 20.0
"""How long processes that were asked to stop may take."""
LEFT_SECONDS = 30.0
"""How long processes of an earlier call, which was killed, may take to notice that."""
PROBLEM_CHARACTERS = 600
STOPPED = (129, 130, 143)
"""Exit codes of a run that a signal, or `evenkeel.stop`, ended."""


class _Job(Struct):
    """A run that is to be carried out."""

    run: PlannedRun
    state: State = "waiting"
    process: subprocess.Popen[bytes] | None = None
    started: Started | None = None
    problem: str = ""
    exit_code: int = 0


class Scheduler:
    """Starts, watches and stops the runs of a suite."""

    def __init__(
        self, root: Path, runs: Sequence[PlannedRun], *, parallel: int, min_coverage: float,
        ledger: Ledger | None, watcher: RunsWatcher,
    ) -> None:  # fmt: skip
        self._root = root
        self._jobs = [_Job(run) for run in runs]
        self._parallel = parallel
        self._min_coverage = min_coverage
        self._ledger = ledger
        self._watcher = watcher
        self._shown = 0.0

    def carry_out(self) -> list[SuiteRun]:
        """Run what is not finished. Interrupted, it stops all processes and raises the interrupt."""
        try:
            self._wait_for_earlier()
            earlier = earlier_processes(self._root)
            for job in self._jobs:
                outcome = earlier_outcome(self._root, earlier, job.run, self._min_coverage)
                if outcome.ranked and job.run.name in earlier:  # else its process finds out whether it is
                    job.state = "finished"
            while any(job.state in ("waiting", "running") for job in self._jobs):
                self._begin_next()
                for job in self._running():
                    self._look_at(job)
                self._show()
                time.sleep(POLL_SECONDS)
        except BaseException:
            self._stop()
            raise
        finally:
            self._shown = 0.0
            self._show()
            self._watcher.finish()
        return [as_ended(job.run, job.state, job.problem, job.exit_code) for job in self._jobs]

    def finished(self) -> int:
        return sum(job.state == "finished" for job in self._jobs)

    def _running(self) -> list[_Job]:
        return [job for job in self._jobs if job.state == "running"]

    def _wait_for_earlier(self) -> None:
        """Processes of an earlier call that was killed end by themselves; they hold their runs until then."""
        end = time.monotonic() + LEFT_SECONDS
        names = {job.run.name for job in self._jobs}
        while left := [each.name for each in started(self._root) if each.active and each.name in names]:
            if time.monotonic() > end:
                self._watcher.note(f"still being written by another process: {', '.join(left)}")
                return
            time.sleep(POLL_SECONDS)

    def _begin_next(self) -> None:
        """Begin each run, in their order, whose servers are free."""
        busy = {server for job in self._running() for server in job.run.servers}
        for job in self._jobs:
            if len(self._running()) >= self._parallel:
                return
            if job.state == "waiting" and not busy & job.run.servers:
                self._begin(job)
                busy |= job.run.servers

    def _begin(self, job: _Job) -> None:
        run = job.run
        task = Task(
            kind="run",
            benchmark=run.benchmark,
            settings={"model": run.spec, **run.settings},
            min_coverage=self._min_coverage,
            identity=run.identity,
        )
        environment = {PARENT_VARIABLE: str(os.getpid())}
        if self._ledger is not None:
            environment[VARIABLE] = str(self._ledger.path.resolve())
        try:
            job.started, job.process = launch(self._root / run.name, task, environment)
            job.state = "running"
        except (EvenkeelError, OSError) as error:
            job.state, job.problem, job.exit_code = "failed", str(error), 1

    def _look_at(self, job: _Job) -> None:
        assert job.process is not None
        assert job.started is not None
        code = job.process.poll()
        if code is None:
            return
        job.exit_code = code
        run_folder = self._root / job.run.name
        if code == 0:
            job.state = "finished"
        elif code == 1 and (problem := _low_coverage(run_folder, self._min_coverage)):
            job.state, job.problem = "low coverage", problem
        else:
            job.state = "stopped" if code in STOPPED else "failed"
            job.problem = _reason(job.started, code)

    def _show(self) -> None:
        if time.monotonic() - self._shown >= SHOW_SECONDS:
            self._shown = time.monotonic()
            self._watcher.update([self._line(job) for job in self._jobs])

    def _line(self, job: _Job) -> RunLine:
        name = job.run.name
        progress = read_progress(self._root / name) if job.state == "running" else None
        if progress is None:
            return RunLine(name=name, state=job.state, problem=job.problem)
        return RunLine(
            name=name, state=job.state, phase=progress.phase, done=progress.done, total=progress.total,
            seconds_left=progress.seconds_left, usd=progress.usd,
        )  # fmt: skip

    def _stop(self) -> None:
        """Ask all processes to end, and end those that do not."""
        running = self._running()
        for job in running:
            job.state = "stopped"
            with contextlib.suppress(OSError):
                (self._root / job.run.name / STOP).touch()
        end = time.monotonic() + STOP_SECONDS
        for job in running:
            assert job.process is not None
            try:
                job.process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                job.process.kill()
                job.process.wait()


def as_ended(run: PlannedRun, state: State, problem: str = "", code: int = 0) -> SuiteRun:
    """A run as it ended."""
    return SuiteRun(
        name=run.name, benchmark=run.benchmark, model=run.model, state=state, problem=problem, exit_code=code,
    )  # fmt: skip


def earlier_processes(root: Path) -> dict[str, Started]:
    """The processes of earlier calls, by the names of their runs."""
    return {process.name: process for process in started(root)}


def earlier_outcome(root: Path, earlier: Mapping[str, Started], run: PlannedRun, floor: float) -> SuiteRun:
    """How a run of an earlier call ended. Its page, which is written last, says that it is whole."""
    process, folder = earlier.get(run.name), root / run.name
    if all((folder / name).is_file() for name in ("summary.json", "report.html")):
        problem = _low_coverage(folder, floor)
        return as_ended(run, "low coverage" if problem else "finished", problem)
    if process is None or not (folder / "spec.json").is_file():
        return as_ended(run, "waiting")
    return as_ended(run, "stopped" if process.state == "stopped" else "failed", _reason(process, 1))


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
