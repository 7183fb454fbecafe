"""The thread that writes a journal: an answer is committed with those that come within GATHER_S.

A commit takes as long for one answer as for twenty. It appends to SQLite's write-ahead log and does not wait
for the disk (`synchronous = NORMAL`): it survives the end of the process, however it ends; after a power
failure the last commits may be missing, and the file is whole.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from evenkeel.journal.key import Keyed, content
from evenkeel.types import Response

Entry: TypeAlias = tuple[Keyed, Response]

AHEAD = 20_000
"""Answers that may wait for the disk before the asker has to."""
GATHER_S = 0.02
"""For which an answer waits for others, unless someone waits for it."""

_encode = msgspec.json.Encoder().encode


class Usage(NamedTuple):
    """What was asked of a model: tries, and the tokens that they used."""

    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def plus(self, other: Usage) -> Usage:
        return Usage(
            self.requests + other.requests,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
        )


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
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._urgent = threading.Event()
        self._entries: list[Entry] = []
        self._usage: dict[str, Usage] = {}
        self._waiting: list[threading.Event] = []
        self._closing = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._write, name="evenkeel-journal", daemon=True)
        self._thread.start()

    def put(self, entry: Entry) -> None:
        self.raise_failure()
        with self._lock:
            self._entries.append(entry)
            waiting = len(self._entries)
        if waiting == 1:
            self._wake.set()
        elif waiting >= AHEAD:
            self.flush()

    def put_usage(self, role: str, usage: Usage) -> None:
        """Store what was asked of the model of a role so far. It is committed also where no answer comes: a
        kill must not make the budget fresh."""
        with self._lock:
            self._usage[role] = usage
        if not self._wake.is_set():
            self._wake.set()

    def flush(self) -> None:
        """Return when everything put so far is committed."""
        done = threading.Event()
        with self._lock:
            self._waiting.append(done)
        self._urgent.set()
        self._wake.set()
        while not done.wait(0.2) and self._thread.is_alive():
            pass
        self.raise_failure()

    def close(self) -> None:
        """Commit what is left and end."""
        self._closing = True
        self._urgent.set()
        self._wake.set()
        self._thread.join()

    def raise_failure(self) -> None:
        """Raise what kept an answer from being committed, if anything did."""
        if self._failure is not None:
            raise self._failure

    def _write(self) -> None:
        try:
            with self._errors(self._path), contextlib.closing(self._connect(self._path)) as connection:
                closing = False
                while not closing:
                    self._wake.wait()
                    self._urgent.wait(GATHER_S)
                    with self._lock:
                        self._wake.clear()
                        self._urgent.clear()
                        closing = self._closing
                        entries, self._entries = self._entries, []
                        usage, self._usage = self._usage, {}
                        waiting, self._waiting = self._waiting, []
                    _commit(connection, entries, usage)
                    for done in waiting:
                        done.set()
        except BaseException as error:  # noqa: BLE001  # raised again at the next put or flush
            self._failure = error


def _commit(connection: sqlite3.Connection, entries: Sequence[Entry], usage: Mapping[str, Usage]) -> None:
    """Put answers and usage into the tables, all or none."""
    if not entries and not usage:
        return
    with connection:
        connection.executemany("INSERT OR IGNORE INTO requests VALUES (?, ?, ?)", _requests(entries))
        connection.executemany(
            "INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?, ?, ?)", _responses(entries)
        )
        connection.executemany(
            "INSERT OR REPLACE INTO usage VALUES (?, ?, ?, ?)",
            [(role, *amounts) for role, amounts in usage.items()],
        )


def _requests(entries: Sequence[Entry]) -> Iterable[tuple[bytes, str, bytes]]:
    return [(key.digest, type(request).__name__.lower(), content(request)) for (key, request), _ in entries]


def _responses(entries: Sequence[Entry]) -> Iterable[tuple[bytes, bytes, int, str, bytes, float]]:
    now = time.time()
    return [
        (key.key, key.digest, request.repeat, response.status, _encode(response), now)
        for (key, request), response in entries
    ]
