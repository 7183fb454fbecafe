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

import msgspec

from sealegs.errors import DataError, RunConflict
from sealegs.files import lock
from sealegs.journal.database import JournalUsage, check, decode, find, harden, read_usage, refuse_links
from sealegs.journal.journal import make_key
from sealegs.types import Request, Response, Sample

R = TypeVar("R")
State: TypeAlias = tuple[tuple[int, int], ...]


class Recording:
    """The answers of one model, or of whichever answered alone."""

    def __init__(self, path: Path, model: bytes | None = None) -> None:
        self.path = path
        self._model = model
        self._stack = contextlib.ExitStack()
        self._open()

    def find(self, request: Request) -> Response | None:
        """The answer to a request; None where there is none that can be read."""
        key, digest = make_key(self._model or b"", request)
        if self._model is not None:
            return self.find_keys([key]).get(key)
        query = (
            "SELECT CAST(status AS BLOB), CAST(body AS BLOB) FROM responses WHERE digest = ? AND repeat = ?"
        )

        def rows_of(connection: sqlite3.Connection) -> list[Any]:
            try:
                return connection.execute(query, (digest, request.repeat)).fetchall()
            except sqlite3.DatabaseError:  # a damaged page
                return []

        rows = self._read(rows_of)
        if len(rows) > 1:
            raise RunConflict("the recording holds several models' answers and no spec.json that says which.")
        return decode(*rows[0]) if rows else None

    def find_keys(self, keys: Sequence[bytes]) -> dict[bytes, Response]:
        """The answers that are there under some keys and can be read."""
        return self._read(lambda connection: find(connection, keys))

    def samples(self, kind: Any) -> list[Sample]:
        """The samples of the run, in their order."""
        query = "SELECT CAST(body AS BLOB) FROM samples ORDER BY rowid"
        rows = self._read(lambda connection: connection.execute(query).fetchall())
        decoder = msgspec.json.Decoder(kind)
        return [decoder.decode(body) for (body,) in rows]

    def usage(self) -> dict[str, JournalUsage]:
        """What was asked of the model of each role, over all starts of the run."""
        return self._read(read_usage)

    def pace(self) -> float | None:
        """Answers per second, from the first to the last; None where that cannot be said."""
        query = "SELECT COUNT(*) - 1, MAX(at) - MIN(at) FROM responses"
        ((count, seconds),) = self._read(lambda connection: connection.execute(query).fetchall())
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
        self._connection, self._at_rest = self._stack.enter_context(reading(self.path))

    def close(self) -> None:
        self._stack.close()


@contextlib.contextmanager
def reading(path: Path) -> Iterator[tuple[sqlite3.Connection, State | None]]:
    """A connection to an existing journal of this version that leaves nothing where it lies; with the state
    of a journal that nobody writes, for as long as it stays so."""
    if not path.is_file():
        raise RunConflict(f"{path}: there is no journal here.")
    refuse_links(path)
    with contextlib.ExitStack() as stack:
        with _reading_errors(path):
            uri, state = _uri(path, stack)
            connection = sqlite3.connect(uri, uri=True, timeout=30, check_same_thread=False)
            stack.enter_context(contextlib.closing(connection))
            harden(connection)
            connection.execute("PRAGMA query_only = ON")
            check(connection, path)
        yield connection, state


def _uri(path: Path, stack: contextlib.ExitStack) -> tuple[str, State | None]:
    """How to open a journal: as it changes, where a process writes it; else as a file that stays as it is,
    for which SQLite needs no files beside it."""
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
