"""The thread that writes a journal: an answer is committed at once, or with those that came meanwhile.

There is no waiting for company: while one commit is made the next answers gather, so an answer waits for at
most one commit before its own. A commit appends to SQLite's write-ahead log and does not wait for the disk
(`synchronous = NORMAL`): it survives the end of the process, however it ends; after a power failure the last
commits may be missing, and the file is sound. What does wait for the disk, moving the log into the file, is
done by a second thread, which holds up neither answers nor commits.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from evenkeel.types import Request, Response

Entry: TypeAlias = tuple[tuple[bytes, bytes, bytes], Request, Response]
"""The key of an answer (its own, that of the content, and the content), the request and the answer."""

AHEAD = 20_000
"""Answers that may wait for the disk before the asker has to."""
ROWS = 128
"""Most rows of one statement; SQLite's oldest default allows 999 variables."""
LOG_BYTES = 2**22
"""Size of the write-ahead log from which on it is moved into the file."""
LARGE_LOG_BYTES = 2**26
"""Size from which on the log also starts anew, for which a commit may have to wait a moment."""

_encode = msgspec.json.Encoder().encode


class Writer:
    """Commits what is put. What fails is raised at the next call: no answer is lost silently."""

    def __init__(
        self,
        path: Path,
        connect: Callable[[Path], sqlite3.Connection],
        errors: Callable[[Path], contextlib.AbstractContextManager[None]],
    ) -> None:
        self._path = path
        self._connect = connect
        self._errors = errors
        self._log = path.with_name(f"{path.name}-wal")
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._log_grown = threading.Event()
        self._pending: list[Entry] = []
        self._waiting: list[threading.Event] = []
        self._closing = False
        self._failure: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._write, name="evenkeel-journal", daemon=True),
            threading.Thread(target=self._shorten_log, name="evenkeel-journal-log", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def is_alive(self) -> bool:
        return self._threads[0].is_alive()

    def put(self, entry: Entry) -> None:
        self.raise_failure()
        with self._lock:
            self._pending.append(entry)
            waiting = len(self._pending)
        if waiting == 1:
            self._wake.set()
        elif waiting >= AHEAD:
            self.flush()

    def flush(self) -> None:
        """Return when everything put so far is committed."""
        done = threading.Event()
        with self._lock:
            self._waiting.append(done)
        self._wake.set()
        while not done.wait(0.2) and self.is_alive:
            pass
        self.raise_failure()

    def close(self) -> None:
        """Commit what is left and end."""
        self._closing = True
        self._wake.set()
        self._log_grown.set()
        for thread in self._threads:
            thread.join()

    def raise_failure(self) -> None:
        """Raise what kept an answer from being committed, if anything did."""
        if self._failure is not None:
            raise self._failure

    def _write(self) -> None:
        try:
            with self._errors(self._path), contextlib.closing(self._connect(self._path)) as connection:
                connection.execute("PRAGMA wal_autocheckpoint = 0")
                closing = False
                while not closing:
                    self._wake.wait()
                    with self._lock:
                        self._wake.clear()
                        closing = self._closing
                        entries, self._pending = self._pending, []
                        waiting, self._waiting = self._waiting, []
                    try:
                        insert(connection, entries)
                    except sqlite3.OperationalError:  # a full disk: as many as there is room for
                        for entry in entries:
                            insert(connection, [entry])
                    for done in waiting:
                        done.set()
                    if self._log_size() > LOG_BYTES:
                        self._log_grown.set()
        except BaseException as error:  # noqa: BLE001  # raised again at the next put or flush
            self._failure = error

    def _shorten_log(self) -> None:
        """Move the log into the file beside the writing. A disk that is full is the writer's to report."""
        with contextlib.suppress(sqlite3.Error), contextlib.closing(self._connect(self._path)) as connection:
            connection.execute("PRAGMA busy_timeout = 0")  # what another process is reading can wait
            while True:
                self._log_grown.wait()
                if self._closing:
                    return
                self._log_grown.clear()
                with contextlib.suppress(sqlite3.OperationalError):
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                    if self._log_size() > LARGE_LOG_BYTES:
                        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _log_size(self) -> int:
        try:
            return self._log.stat().st_size
        except OSError:
            return 0


def insert(connection: sqlite3.Connection, entries: Sequence[Entry]) -> None:
    """Put answers into the tables, all or none."""
    if not entries:
        return
    now = time.time()
    requests = [(key[1], type(request).__name__.lower(), key[2]) for key, request, _ in entries]
    responses = [
        (key[0], key[1], request.repeat, response.status, _encode(response), now)
        for key, request, response in entries
    ]
    with connection:
        _insert_rows(connection, "INSERT OR IGNORE INTO requests", requests)
        _insert_rows(connection, "INSERT OR REPLACE INTO responses", responses)


def _insert_rows(connection: sqlite3.Connection, head: str, rows: Sequence[tuple[Any, ...]]) -> None:
    # A statement for many rows: at the end of each statement this thread queues for the interpreter, behind
    # the one that talks to the servers.
    for portion in _in_powers_of_two(rows):
        statement = _statement(head, len(portion), len(portion[0]))
        connection.execute(statement, [value for row in portion for value in row])


def _in_powers_of_two(rows: Sequence[tuple[Any, ...]]) -> Iterator[Sequence[tuple[Any, ...]]]:
    """Portions of few sizes, so that SQLite has met the statement before."""
    start = 0
    while left := len(rows) - start:
        size = min(ROWS, 1 << (left.bit_length() - 1))
        yield rows[start : start + size]
        start += size


@cache
def _statement(head: str, rows: int, columns: int) -> str:
    row = f"({','.join('?' * columns)})"
    return f"{head} VALUES {','.join([row] * rows)}"
