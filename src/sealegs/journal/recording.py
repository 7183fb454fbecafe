"""Another run's journal as a source of answers: read where it lies, never written.

The folder may be read-only, may hold what a killed process left, and another process may be writing it.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from sealegs.errors import DataError, RunConflict
from sealegs.files import lock
from sealegs.journal.database import JournalUsage, check, find, harden, read_samples, read_usage, refuse_links
from sealegs.types import Response, Sample

R = TypeVar("R")
State: TypeAlias = tuple[tuple[int, int], ...]


class Recording:
    """What a journal holds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._open()

    def find(self, keys: Sequence[bytes]) -> dict[bytes, Response]:
        """The answers that are there under some keys and can be read."""
        return self._read(lambda connection: find(connection, keys))

    def samples(self, kind: Any, most: int = -1) -> list[Sample]:
        """The samples of the run, in their order; with `most` no more than the first of them."""
        return self._read(lambda connection: read_samples(connection, self.path, kind, most))

    def count_samples(self) -> int:
        query = "SELECT COUNT(*) FROM samples"
        return int(self._read(lambda connection: connection.execute(query).fetchone()[0]))

    def usage(self) -> dict[str, JournalUsage]:
        """What was asked of the model of each role, over all starts of the run."""
        return self._read(read_usage)

    def pace(self) -> float | None:
        """Answers per second, from the first to the last; None where that cannot be said."""
        query = "SELECT COUNT(*) - 1, MAX(at) - MIN(at) FROM responses"
        count, seconds = self._read(lambda connection: connection.execute(query).fetchone())
        return float(count / seconds) if seconds else None

    def _read(self, query: Callable[[sqlite3.Connection], R]) -> R:
        """What a query gives. A journal that was at rest, and is written by now, is opened anew: SQLite would
        not notice."""
        with _reading_errors(self.path):
            result = query(self._connection)
            while self._at_rest is not None and self._at_rest != _state(self.path):
                self._stack.close()
                self._open()
                result = query(self._connection)
        return result

    def _open(self) -> None:
        """Connect to the journal, if it is there and of this version, and leave nothing where it lies."""
        if not self.path.is_file():
            raise RunConflict(f"{self.path}: there is no journal here.")
        refuse_links(self.path)
        with contextlib.ExitStack() as stack, _reading_errors(self.path):
            uri, self._at_rest = _uri(self.path, stack)
            self._connection = sqlite3.connect(uri, uri=True, timeout=30, check_same_thread=False)
            stack.enter_context(contextlib.closing(self._connection))
            harden(self._connection)
            self._connection.execute("PRAGMA query_only = ON")
            check(self._connection, self.path)
            self._stack = stack.pop_all()

    def close(self) -> None:
        self._stack.close()


def _uri(path: Path, stack: contextlib.ExitStack) -> tuple[str, State | None]:
    """How to open a journal: as it changes, where a process writes it; else, with its state, as a file that
    stays as it is, for which SQLite needs no files beside it."""
    if lock.is_written(path.parent):
        return f"{path.resolve().as_uri()}?mode=ro", None
    state, log = _state(path), path.with_name(f"{path.name}-wal")
    if not log.is_file() or not log.stat().st_size:
        return f"{path.resolve().as_uri()}?mode=ro&immutable=1", state
    # A process was killed before it could fold its log in. That is done on a copy.
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sealegs-")))
    for file in (path, log):
        shutil.copyfile(file, folder / file.name)
    return f"{(folder / path.name).resolve().as_uri()}?mode=rw", state


def _state(path: Path) -> State:
    """What changes when a journal is written: its size and time, and those of its log."""
    files = [path, path.with_name(f"{path.name}-wal")]
    statuses = [file.stat() if file.is_file() else None for file in files]
    return tuple((status.st_size, status.st_mtime_ns) if status else (0, 0) for status in statuses)


@contextlib.contextmanager
def _reading_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.DatabaseError, OSError) as error:
        raise DataError(
            path, f"this journal cannot be read ({error}). `sqlite3 {path.name} .recover` may repair a copy."
        ) from None
