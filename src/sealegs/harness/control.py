"""How far a run is, and how it is asked to stop: small files in its folder, for whoever looks from outside.

While a process writes a run, `progress.json` says how far it is. A file `stop` asks it to end, as Ctrl-C
would; the process renames it to `stopped`. No process is ever signalled by another.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import os
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sealegs.errors import DataError, StorageError, UsageError
from sealegs.files import lock
from sealegs.files.cache import write_whole
from sealegs.harness.folder.layout import PROGRESS, STOP, STOPPED, run_file
from sealegs.harness.progress import Pace, Progress
from sealegs.types import Response

VARIABLE = "SEALEGS_CONTROL"
"""The folder in which a process that `start` began says how far it is and is asked to stop."""
PARENT_VARIABLE = "SEALEGS_PARENT"
"""The number of the process without which this one ends; not set for one that goes on alone."""
SECONDS = 0.5
"""Between two looks at the folder, and two writes to it."""


class RunProgress(Struct, frozen=True, kw_only=True):
    """How far a run is that a process is writing."""

    phase: str = ""
    """`asking`, `embedding`, `judging`; empty while nothing has been asked."""
    total: int = 0
    done: int = 0
    """Requests of this phase that are answered, those of an earlier process included."""
    failed: int = 0
    """Those of this process without an answer, in all phases; one that was cut off is an answer."""
    rate: float = 0.0
    """Requests a second."""
    seconds_left: float | None = None
    """Of this phase, once enough was answered to tell."""
    usd: float = 0.0
    waiting: str = ""
    """What is waited for, and how far that is."""
    started: str = ""


def read_progress(path: str | Path) -> RunProgress | None:
    """How far a run is: `read_progress("runs/today")`. None where no process is writing it."""
    folder = Path(path)
    try:
        file = run_file(folder, PROGRESS) if lock.is_written(folder) else None
        return msgspec.json.decode(file.read_bytes(), type=RunProgress) if file else None
    except (OSError, DataError, ValueError, RecursionError):
        return None  # gone in the meantime, or not ours


def stop(path: str | Path) -> None:
    """Ask the process that writes a run to stop, as Ctrl-C would: `stop("runs/today")`.

    It ends within a second or so. Its answers are saved: `sealegs resume` continues.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise UsageError(f"{path}: there is no such folder.")
    if (folder / "spec.json").exists() and not lock.is_written(folder):
        raise UsageError(f"{path}: no process is writing this run.")
    with contextlib.suppress(FileExistsError):  # it was asked before
        os.close(os.open(folder / STOP, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))


def clear_control(folder: Path) -> None:
    """Delete what an earlier process left: requests to stop (only empty files), and in a run's folder the
    progress file. Other files of these names are left alone."""
    if (folder / "spec.json").is_file():
        _remove(folder / PROGRESS)
    for path in (folder / STOP, folder / STOPPED):
        if path.is_file() and not path.is_symlink() and not path.stat().st_size:
            _remove(path)


def is_assigned(folder: Path) -> bool:
    """Whether this process was begun to write a folder."""
    return os.environ.get(VARIABLE) == str(folder.resolve())


@contextlib.contextmanager
def _every_so_often(look: Callable[[], None], name: str) -> Iterator[None]:
    """Have a thread call a function again and again while the block runs."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(SECONDS):
            look()

    thread = threading.Thread(target=repeat, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextlib.contextmanager
def interrupt_on_stop_file(folder: Path) -> Iterator[None]:
    """While the block runs, a file `stop` in the folder interrupts the main thread, and so does the end of
    the process that this one depends on."""
    parent = os.environ.get(PARENT_VARIABLE, "")

    def look() -> None:
        nonlocal parent
        if parent and str(os.getppid()) != parent:
            parent = ""
            interrupt(threading.main_thread())
        if _take_stop(folder):
            interrupt(threading.main_thread())

    with _every_so_often(look, "sealegs-stop"):
        yield


@contextlib.contextmanager
def controlled(folder: Path, progress: Progress) -> Iterator[Progress]:
    """A watcher that also writes progress.json and obeys `stop`. The folder's lock must be held.

    What a killed process left there is removed. A `stop` for a process that was begun with this folder is not
    left over: it may have come while models were being loaded.
    """
    for name in (PROGRESS,) if is_assigned(folder) else (PROGRESS, STOP, STOPPED):
        _remove(folder / name)
    watcher = _Controlled(folder, progress)
    watcher.look()
    try:
        with _every_so_often(watcher.look, "sealegs-progress"):
            yield watcher
    finally:
        _remove(folder / PROGRESS)
        _remove(folder / STOP)


class _Controlled(Progress):
    """Passes on to another watcher what it is told, and counts it."""

    def __init__(self, folder: Path, progress: Progress) -> None:
        self._folder = folder
        self._progress = progress
        self._thread = threading.current_thread()
        self._state = RunProgress(started=datetime.now(UTC).isoformat(timespec="seconds"))
        self._done = self._failed = 0
        self._usd = 0.0
        self._pace = Pace(0)
        self._written: RunProgress | None = None

    def phase(self, title: str, *, total: int, done: int) -> None:
        self._pace, self._done = Pace(done), done
        self._state = replace(self._state, phase=title, total=total, waiting="")
        self._progress.phase(title, total=total, done=done)

    def answered(self, response: Response, *, usd: float) -> None:
        self._done += 1
        self._failed += response.status not in ("ok", "truncated")
        self._usd = usd
        self._progress.answered(response, usd=usd)

    def loaded(self) -> None:
        self._pace = Pace(self._done)
        self._state = replace(self._state, waiting="")
        self._progress.loaded()

    def waiting(self, text: str) -> None:
        self._state = replace(self._state, waiting=text)
        self._progress.waiting(text)

    def retrying(self, count: int) -> None:
        self._progress.retrying(count)

    def note(self, text: str) -> None:
        self._progress.note(text)

    def finish(self) -> None:
        self._progress.finish()

    def look(self) -> None:
        """Write how far it is, where that has changed, and look for `stop`."""
        state = replace(self._state, done=self._done, failed=self._failed, usd=self._usd)
        if state != self._written:
            self._written = state
            rate, left = self._pace.rate(state.done), self._pace.seconds_left(state.done, state.total)
            content = msgspec.json.encode(replace(state, rate=rate, seconds_left=left))
            with contextlib.suppress(StorageError):  # a full disk is reported by what the run itself writes
                write_whole(self._folder / PROGRESS, content)
        if _take_stop(self._folder):
            interrupt(self._thread)


def _take_stop(folder: Path) -> bool:
    """Whether the folder has a `stop`, which is renamed: of two who look for it one obeys."""
    try:
        if not stat.S_ISREG((folder / STOP).lstat().st_mode):
            return False
        (folder / STOP).replace(folder / STOPPED)
    except OSError:
        return False
    return True


def interrupt(thread: threading.Thread) -> None:
    """Raise KeyboardInterrupt in a thread of this process: in the main thread as Ctrl-C does, also where it
    waits in a system call; in another when it next runs Python, as whatever waits in a run does twice a
    second."""
    if thread.ident is None:
        return
    if thread is not threading.main_thread():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident), ctypes.py_object(KeyboardInterrupt)
        )
    elif hasattr(signal, "pthread_kill"):
        signal.pthread_kill(thread.ident, signal.SIGINT)
    else:  # Windows
        _thread.interrupt_main()


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
