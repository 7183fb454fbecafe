"""One process at a time: locks on folders and files, which end with the process that holds them.

The locks are those of `filelock`, on empty hidden files that are removed when the lock is released.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from sealegs.errors import RunConflict, StorageError

LOCK = ".sealegs.lock"
"""The file in a folder that is locked while a process writes there."""
READERS_SECONDS = 0.5
"""How long a writer waits for those who only look whether one is at work."""


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Hold a folder for this process alone, or raise RunConflict."""
    with _held(folder / LOCK, folder, seconds=READERS_SECONDS):
        yield


@contextlib.contextmanager
def writing_file(path: Path, *, seconds: float = READERS_SECONDS) -> Iterator[None]:
    """The same for one file, which need not exist."""
    with _held(path.with_name(f".{path.name}{LOCK}"), path, seconds=seconds):
        yield


def in_turn(path: Path) -> contextlib.AbstractContextManager[None]:
    """Hold a file or folder after whoever holds it now, however long that takes."""
    return writing_file(path, seconds=-1)


def is_written(folder: Path) -> bool:
    """Whether a process is writing in a folder. A look leaves no file, not even one that was just removed."""
    path = folder / LOCK
    if not path.is_file() or path.is_symlink():
        return False
    try:
        with _held(path, folder, seconds=READERS_SECONDS / 5):
            return False
    except RunConflict:
        return True
    except StorageError:  # a folder of which this process may change nothing
        return False


def refuse_written(folder: Path) -> None:
    """Raise RunConflict while a process is writing in a folder."""
    if is_written(folder):
        raise _conflict(folder)


@contextlib.contextmanager
def _held(file: Path, target: Path, *, seconds: float) -> Iterator[None]:
    from filelock import FileLock, Timeout

    lock = FileLock(file, timeout=seconds)
    try:
        lock.acquire()
    except Timeout:
        raise _conflict(target) from None
    except OSError as error:
        raise StorageError(f"{target}: cannot be written ({error.strerror or error}).") from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if not file.stat().st_size:  # what is not empty was not written here
                file.unlink()
        lock.release()


def _conflict(target: Path) -> RunConflict:
    return RunConflict(f"{target} is in use by another process. Wait for it, or choose another --out.")


def process_began(pid: int) -> str:
    """When a process began, from Linux's /proc; empty elsewhere, and of one that has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return ""
    state, *fields = stat.rpartition(")")[2].split()  # the program's name, before it, may hold anything
    return "" if state in "ZX" else fields[18]
