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
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

import msgspec

from sealegs.api.launch import Started, launch, record, stored
from sealegs.api.run import run as run_benchmark
from sealegs.api.setup import ASSIGNED_GATE
from sealegs.api.suite.runs import PlannedRun
from sealegs.errors import SealegsError, StorageError, bounded, place_of
from sealegs.files import lock
from sealegs.harness.benchmark import record_type, sample_type
from sealegs.harness.control import PARENT_VARIABLE, interrupt, read_progress
from sealegs.harness.folder import Run
from sealegs.harness.folder.layout import LOG, STARTED, STOP, STOPPED
from sealegs.harness.progress import Progress
from sealegs.harness.registry import benchmark_class
from sealegs.page.format import share
from sealegs.report.suite import State, SuiteRun
from sealegs.report.terminal.runs import RunsWatcher

POLL_SECONDS = 0.1
STOP_SECONDS = 20.0
"""How long runs that were asked to stop may take."""
THREADED = (
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
"""The packages with the types that a run on servers reads."""
UNFINISHED = "not finished: the same command resumes it"
INTERRUPTED = (129, 130, 143)
"""Exit codes of a child that a signal, or `stop`, ended."""


class Execution:
    """Begins, watches and stops the runs of a suite."""

    def __init__(
        self, root: Path, runs: Sequence[PlannedRun], *, parallel: int, watcher: RunsWatcher
    ) -> None:
        self._root = root
        self._waiting: list[PlannedRun] = []
        self._running: list[_BegunRun] = []
        self._outcomes: dict[str, SuiteRun] = {}
        self._parallel = parallel
        self._watcher = watcher
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
            build_types(run.task.benchmark for run in self._waiting)
            while self._waiting or self._running:
                self._begin_next()
                self._show()
                time.sleep(POLL_SECONDS)
                for begun in [begun for begun in self._running if not begun.thread.is_alive()]:
                    self._running.remove(begun)
                    self._outcomes[begun.run.name] = begun.outcome
        except BaseException as error:
            self._stop()
            finished = sum(outcome.ranked for outcome in self._outcomes.values())
            error.add_note(
                f"{finished} of {len(self._outcomes)} runs are finished. Answers are saved in "
                f"{self._root}: the same command resumes from there."
            )
            raise
        finally:
            self._show()
            self._watcher.finish()
        return self._outcomes

    def _begin_next(self) -> None:
        """Begin each run, in their order, whose servers are free, and whose folder is: the child of an
        earlier call that was killed writes until it notices that."""
        for run in list(self._waiting):
            busy = {server for begun in self._running for server in begun.run.servers}
            is_free = len(self._running) < self._parallel and not busy & run.servers
            if is_free and not lock.is_written(self._root / run.name):
                self._waiting.remove(run)
                self._outcomes[run.name] = outcome_of(run, "running")
                self._running.append(_BegunRun(self._root / run.name, run))

    def _show(self) -> None:
        progress = {begun.run.name: read_progress(begun.folder) for begun in self._running}
        self._watcher.update([(run, progress.get(run.name)) for run in self._outcomes.values()])

    def _stop(self) -> None:
        """Ask all runs to end, and wait for them. A child that takes longer ends after this process."""
        for begun in self._running:
            interrupt(begun.thread)
        end = time.monotonic() + STOP_SECONDS
        for begun in self._running:
            begun.thread.join(max(0.0, end - time.monotonic()))
            self._outcomes[begun.run.name] = outcome_of(begun.run, "stopped", UNFINISHED)


class _BegunRun(Progress):
    """A run in a thread of this process, which asks servers, or waits for the child that loads a model."""

    def __init__(self, folder: Path, run: PlannedRun) -> None:
        self.folder = folder
        self.run = run
        self.outcome = outcome_of(run, "stopped", UNFINISHED)
        """How it ended; `stopped` until it has."""
        self._has_log = False
        self.thread = threading.Thread(target=self._execute, name=f"sealegs-{run.name}", daemon=True)
        self.thread.start()

    def began(self, folder: Path) -> None:
        record(folder, self.run.task, os.getpid())
        if not self._has_log:
            (folder / LOG).unlink(missing_ok=True)  # never written through a link
        self._has_log = True

    def note(self, text: str) -> None:
        with contextlib.suppress(OSError), (self.folder / LOG).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")

    def _execute(self) -> None:
        run, task = self.run, self.run.task
        try:
            if run.in_child:
                code, problem = self._in_child()
            else:
                ASSIGNED_GATE.set(run.gate)
                run_benchmark(task.benchmark, **task.settings, out=self.folder, progress=self)
                code, problem = 0, ""
            if code in (0, 1) and (low := _low_coverage(self.folder, task.min_coverage)):
                self.outcome = outcome_of(run, "low coverage", low, 1)
            else:
                self.outcome = outcome_of(run, "failed" if code else "finished", problem, code)
        except KeyboardInterrupt:
            if (self.folder / STARTED).is_file():
                (self.folder / STOPPED).touch()
        except SealegsError as error:
            self._fail(str(error), error.exit_code)
        except Exception as error:  # noqa: BLE001  # whatever it is, it costs no other run
            self._fail(f"{place_of(error)}: {error}", StorageError.exit_code)

    def _in_child(self) -> tuple[int, str]:
        """Execute the run in a process that ends with this one; its exit code, and why it failed."""
        started, child = launch(self.folder, self.run.task, {PARENT_VARIABLE: str(os.getpid())})
        try:
            while (code := child.poll()) is None:
                time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            (self.folder / STOP).touch()
            child.wait()
            raise
        if code in INTERRUPTED:
            raise KeyboardInterrupt
        return code, _reason(started, code) if code else ""

    def _fail(self, problem: str, code: int) -> None:
        if (self.folder / STARTED).is_file():
            self.note(f"error: {problem}")
        self.outcome = outcome_of(self.run, "failed", bounded(problem), code)


def build_types(benchmarks: Iterable[str]) -> None:
    """Have msgspec build what it knows of every type that a run may read, before threads do: it does so when
    a type is first used, and two threads that use one for the first time at once crash the process (0.22)."""
    for name in THREADED:
        package = import_module(f"sealegs.{name}")
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
    """Why a child failed, from the last error in its log."""
    if code < 0:
        name = signal.Signals(-code).name if -code in signal.valid_signals() else f"signal {-code}"
        return f"its process was ended by {name}; the machine may have run out of memory"
    lines = [line for line in process.log_tail(200).splitlines() if line.strip()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return bounded((errors or lines or [f"its process ended with {code}"])[-1])
