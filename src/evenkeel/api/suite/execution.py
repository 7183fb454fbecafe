"""Execute the runs of a suite in one process. Runs on servers are threads, side by side where they keep
different servers busy, and share one gate for the budget. Runs that load a model are child processes, one at
a time, so that one that crashes or runs out of memory costs no other.

Ctrl-C stops them all; the file `stop` in a run's folder stops that run.
"""

from __future__ import annotations

import contextlib
import os
import pkgutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol

import msgspec

from evenkeel.api.earlier import EarlierStart
from evenkeel.api.launch import Started, Task, launch, record, stored
from evenkeel.api.run import run as run_benchmark
from evenkeel.api.setup import ASSIGNED_GATE
from evenkeel.api.suite.runs import THIS_MACHINE, PlannedRun
from evenkeel.errors import BudgetReached, EvenkeelError, StorageError, place_of
from evenkeel.files import lock
from evenkeel.harness.control import PARENT_VARIABLE, interrupt, read_progress
from evenkeel.harness.folder import Run
from evenkeel.harness.folder.layout import LOG, STARTED, STOP, STOPPED
from evenkeel.harness.gate import Gate
from evenkeel.harness.progress import Progress
from evenkeel.harness.registry import benchmark_class, record_type, sample_type
from evenkeel.page.format import share
from evenkeel.report.suite import State, SuiteRun
from evenkeel.report.terminal.runs import RunsWatcher

POLL_SECONDS = 0.1
SHOW_SECONDS = 0.5
STOP_SECONDS = 20.0
"""How long runs that were asked to stop may take."""
LEFT_SECONDS = 30.0
"""How long the child of an earlier call, which was killed, may take to notice that."""
PROBLEM_CHARACTERS = 600
PACKAGES = (
    "analysis",
    "benchmarks",
    "files",
    "harness",
    "journal",
    "models.openai",
    "page",
    "report",
    "text",
)
"""Where the types are that a run on servers reads."""
INTERRUPTED = (129, 130, 143)
"""Exit codes of a child that a signal, or `evenkeel.stop`, ended."""


class _Running(Protocol):
    """A run that was begun."""

    def outcome(self) -> SuiteRun | None:
        """How it ended; None while it runs."""

    def ask_to_stop(self) -> None: ...

    def end(self, seconds: float) -> None:
        """Wait so long for it to end."""


class Execution:
    """Begins, watches and stops the runs of a suite."""

    def __init__(
        self,
        root: Path,
        runs: Sequence[PlannedRun],
        *,
        parallel: int,
        budget: Gate | None,
        watcher: RunsWatcher,
    ) -> None:
        self._root = root
        self._waiting = list(runs)
        self._running: dict[str, tuple[PlannedRun, _Running]] = {}
        self._outcomes = {run.name: outcome_of(run, "waiting") for run in runs}
        self._parallel = parallel
        self._budget = budget
        self._watcher = watcher
        self._shown = 0.0

    def execute(self) -> dict[str, SuiteRun]:
        """Execute what is not finished. Interrupted, it stops all runs and raises the interrupt."""
        try:
            build_types([run.task.benchmark for run in self._waiting])
            self._wait_for_earlier()
            for run in list(self._waiting):
                outcome = earlier_outcome(self._root, run)
                # Of a folder without settings the run itself finds out whether it is this one.
                if outcome.ranked and stored(self._root / run.name):
                    self._waiting.remove(run)
                    self._outcomes[run.name] = outcome
            while self._waiting or self._running:
                self._begin_next()
                for run, running in list(self._running.values()):
                    if (ended := running.outcome()) is not None:
                        del self._running[run.name]
                        self._outcomes[run.name] = ended
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
        """The child of an earlier call that was killed ends by itself; it holds its run until then."""
        end = time.monotonic() + LEFT_SECONDS
        while left := [run.name for run in self._waiting if lock.is_written(self._root / run.name)]:
            if time.monotonic() > end:
                self._watcher.note(f"still being written by another process: {', '.join(left)}")
                return
            time.sleep(POLL_SECONDS)

    def _begin_next(self) -> None:
        """Begin each run, in their order, whose servers are free."""
        for run in list(self._waiting):
            active = [other for other, _ in self._running.values()]
            busy = {server for other in active for server in other.servers}
            alone = self._is_alone(run) or any(map(self._is_alone, active))
            if len(active) < self._parallel and not busy & run.servers and not (alone and active):
                self._waiting.remove(run)
                self._begin(run)

    def _is_alone(self, run: PlannedRun) -> bool:
        """Whether a run is a child that spends of the budget, which no other may do meanwhile."""
        return self._budget is not None and THIS_MACHINE in run.servers and not run.is_free

    def _begin(self, run: PlannedRun) -> None:
        folder = self._root / run.name
        try:
            if THIS_MACHINE in run.servers:
                running: _Running = _Child(folder, run, self._limited(run))
            else:
                running = _Thread(folder, run)
        except (EvenkeelError, OSError) as error:
            self._outcomes[run.name] = outcome_of(run, "failed", str(error), 1)
        else:
            self._running[run.name] = run, running
            self._outcomes[run.name] = outcome_of(run, "running")

    def _limited(self, run: PlannedRun) -> Task:
        """The task of a child, with what is left of the budget."""
        if self._budget is None or run.is_free:
            return run.task
        limits = self._budget.limits
        left: dict[str, float] = {}
        if limits.max_requests is not None:
            left["max_requests"] = limits.max_requests - self._budget.requests
        if limits.max_usd is not None:
            left["max_usd"] = limits.max_usd - self._budget.usd
        if any(amount <= 0 for amount in left.values()):
            raise BudgetReached("the suite's budget is spent: raise it to resume.")
        spent = {"max_requests": run.gate.requests, "max_usd": run.gate.usd}  # limits count over all starts
        limited = {name: amount + spent[name] for name, amount in left.items()}
        return msgspec.structs.replace(run.task, settings={**run.task.settings, **limited})

    def _show(self) -> None:
        if time.monotonic() - self._shown >= SHOW_SECONDS:
            self._shown = time.monotonic()
            progress = {name: read_progress(self._root / name) for name in self._running}
            self._watcher.update([(run, progress.get(run.name)) for run in self._outcomes.values()])

    def _stop(self) -> None:
        """Ask all runs to end, and wait for them."""
        for _, running in self._running.values():
            running.ask_to_stop()
        end = time.monotonic() + STOP_SECONDS
        for run, running in self._running.values():
            running.end(max(0.0, end - time.monotonic()))
            self._outcomes[run.name] = outcome_of(run, "stopped")


class _Thread(Progress):
    """A run on servers, in a thread of this process; what it has to say is written to its log."""

    def __init__(self, folder: Path, run: PlannedRun) -> None:
        self._folder = folder
        self._run = run
        self._ended: SuiteRun | None = None
        self._has_log = False
        self._thread = threading.Thread(target=self._execute, name=f"evenkeel-{run.name}", daemon=True)
        self._thread.start()

    def began(self, folder: Path) -> None:
        record(folder, self._run.task, os.getpid())
        if not self._has_log:
            (folder / LOG).unlink(missing_ok=True)  # never written through a link
        self._has_log = True

    def note(self, text: str) -> None:
        with contextlib.suppress(OSError), (self._folder / LOG).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")

    def outcome(self) -> SuiteRun | None:
        if self._thread.is_alive():
            return None
        return self._ended or outcome_of(self._run, "stopped")

    def ask_to_stop(self) -> None:
        interrupt(self._thread)

    def end(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _execute(self) -> None:
        run, task = self._run, self._run.task
        ASSIGNED_GATE.set(run.gate)
        try:
            run_benchmark(task.benchmark, **task.settings, out=self._folder, progress=self)
            problem = _low_coverage(self._folder, task.min_coverage)
            if problem:
                self._ended = outcome_of(run, "low coverage", problem, 1)
            else:
                self._ended = outcome_of(run, "finished")
        except KeyboardInterrupt:
            if (self._folder / STARTED).is_file():
                (self._folder / STOPPED).touch()
            self._ended = outcome_of(run, "stopped")
        except EvenkeelError as error:
            self._fail(str(error), error.exit_code)
        except Exception as error:  # noqa: BLE001  # whatever it is, it costs no other run
            self._fail(f"{place_of(error)}: {error}", StorageError.exit_code)

    def _fail(self, problem: str, code: int) -> None:
        if (self._folder / STARTED).is_file():
            self.note(f"error: {problem}")
        self._ended = outcome_of(self._run, "failed", _shortened(problem), code)


class _Child:
    """A run that loads a model, in a process of its own, which ends with this one."""

    def __init__(self, folder: Path, run: PlannedRun, task: Task) -> None:
        self._folder = folder
        self._run = run
        self._started, self._process = launch(folder, task, {PARENT_VARIABLE: str(os.getpid())})

    def outcome(self) -> SuiteRun | None:
        if (code := self._process.poll()) is None:
            return None
        run = self._run
        run.gate.resume(EarlierStart(self._folder).usage())
        if code == 0:
            return outcome_of(run, "finished")
        if code == 1 and (problem := _low_coverage(self._folder, run.task.min_coverage)):
            return outcome_of(run, "low coverage", problem, code)
        state: State = "stopped" if code in INTERRUPTED else "failed"
        return outcome_of(run, state, _reason(self._started, code), code)

    def ask_to_stop(self) -> None:
        with contextlib.suppress(OSError):
            (self._folder / STOP).touch()

    def end(self, seconds: float) -> None:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def build_types(benchmarks: Iterable[str]) -> None:
    """Have msgspec build what it knows of every type that a run may read, before threads do: it does so when
    a type is first used, and two threads that use one for the first time at once crash the process (0.22)."""
    for name in PACKAGES:
        package = import_module(f"evenkeel.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            with contextlib.suppress(ImportError):  # of an extra
                import_module(module.name)
    classes = map(benchmark_class, dict.fromkeys(benchmarks))
    types = [kind(cls) for cls in classes for kind in (record_type, sample_type)]
    for each in (*types, *_subclasses(msgspec.Struct)):
        with contextlib.suppress(TypeError, NameError, AttributeError):  # a type that nothing is read into
            msgspec.json.Decoder(each)


def _subclasses(cls: type) -> Iterator[type]:
    subclass: type
    for subclass in cls.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


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


def count_earlier(root: Path, run: PlannedRun) -> None:
    """Count what earlier calls have spent on a run."""
    run.gate.resume(EarlierStart(root / run.name).usage())


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
    """Why a run ended, from the last error in its log."""
    if code < 0:
        name = signal.Signals(-code).name if -code in signal.valid_signals() else f"signal {-code}"
        return f"its process was ended by {name}; the machine may have run out of memory"
    lines = [line for line in process.log_tail(200).splitlines() if line.strip()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return _shortened((errors or lines or [f"its process ended with {code}"])[-1])


def _shortened(problem: str) -> str:
    return problem if len(problem) <= PROBLEM_CHARACTERS else f"{problem[: PROBLEM_CHARACTERS - 1]}…"
