"""The journal: every answered request of a run with its answer, in SQLite, as it came.

An answer is kept under the key of its request (`journal/key.py`): a killed run resumes where it stopped, and
scoring never needs the model again.

A thread of its own commits the answers as they come (`journal/writer.py`), so that the thread that talks to
the model never waits for the disk, and a kill loses next to nothing.

A row that cannot be read (bits flip, disks fail) is an answer that is missing, and is asked for again.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from evenkeel.errors import RunConflict, StorageError
from evenkeel.files.cache import write_whole
from evenkeel.journal.key import Key, Keyed
from evenkeel.journal.writer import Usage, Writer
from evenkeel.types import Response, Sample

VERSION = 2
LOOKUP = 500  # keys per SELECT; SQLite's oldest default allows 999 variables

SCHEMA = f"""
BEGIN;
CREATE TABLE requests (
    digest BLOB PRIMARY KEY,  -- of the content alone: no model, no repeat
    kind TEXT NOT NULL,
    body BLOB NOT NULL        -- JSON
) WITHOUT ROWID;
CREATE TABLE responses (
    key BLOB PRIMARY KEY,     -- of model, content and repeat
    digest BLOB NOT NULL REFERENCES requests,
    repeat INTEGER NOT NULL,
    status TEXT NOT NULL,
    body BLOB NOT NULL,       -- JSON
    at REAL NOT NULL          -- when it came, in seconds since 1970
);
CREATE TABLE samples (id TEXT PRIMARY KEY, body BLOB NOT NULL);  -- what the run is about, as JSON
CREATE TABLE usage (          -- what was asked over all starts, failed tries included
    role TEXT PRIMARY KEY,
    requests INTEGER NOT NULL,
    tokens_in INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL
);
CREATE INDEX responses_by_request ON responses (digest, repeat);
PRAGMA user_version = {VERSION};
COMMIT;
"""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Response).decode

WAL_MODE = slice(18, 20)
"""The bytes of a database's header that say how it is written: https://sqlite.org/fileformat2.html"""
UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError)
NOT_ASKED = Response(status="error", reason="not asked")


class Journal:
    """A run's journal: written by this process alone, read by any."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.empty = True
        """True while no answer is filed, so that there is nothing to look up."""
        refuse_links(path)
        with _storage_errors(path), contextlib.ExitStack() as stack:
            if not path.is_file() or not path.stat().st_size:
                write_whole(path, _empty_journal())
            self._reader = stack.enter_context(contextlib.closing(connect(path)))
            if (problem := self._reader.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise sqlite3.DatabaseError(problem.splitlines()[-1])
            self.empty = self._reader.execute("SELECT 1 FROM responses LIMIT 1").fetchone() is None
            self._status = path.stat()
            stack.pop_all()
        self._writer = Writer(path, connect, _storage_errors)

    def put(self, keyed: Keyed, response: Response) -> None:
        """File an answer. One that comes later under the same key takes its place."""
        self.empty = False
        self._writer.put((keyed, response))
        if response.is_large:
            self._writer.flush()

    def put_usage(self, role: str, usage: Usage) -> None:
        """Store what was asked of the model of a role so far, whether or not an answer came of it."""
        self._writer.put_usage(role, usage)

    def usage(self) -> dict[str, Usage]:
        """What was asked of the model of each role, over all starts of the run."""
        self.flush()
        with _storage_errors(self.path):
            return read_usage(self._reader)

    def flush(self) -> None:
        """Return when everything put so far is on disk."""
        self._writer.flush()
        self._check_place()

    def unanswered(self, keys: Iterable[Key], *, again: bool = True) -> set[bytes]:
        """The keys that have no stored answer; of what failed, unless `again` says otherwise, too."""
        missing = {key.key for key in keys}
        if self.empty:
            return missing
        stream = iter(list(missing))
        while chunk := list(islice(stream, LOOKUP)):
            stored = self._find(chunk)
            missing -= {key for key, response in stored.items() if not again or response.status != "error"}
        return missing

    def read(self, keys: Iterable[Key]) -> Iterator[Response]:
        """The stored answer under each key, in order. What was never answered reads as an error."""
        stream = iter(keys)
        while chunk := [key.key for key in islice(stream, LOOKUP)]:
            stored = self._find(chunk)
            yield from (stored.get(key, NOT_ASKED) for key in chunk)

    def holds_answers(self) -> bool:
        """Whether any request was answered, however it ended; what failed was not."""
        self.flush()
        with _storage_errors(self.path):
            row = self._reader.execute("SELECT 1 FROM responses WHERE status != 'error' LIMIT 1")
            return row.fetchone() is not None

    def put_samples(self, samples: Iterable[Sample]) -> None:
        """Keep what the run is about, so that the folder alone is enough to score it again."""
        with _storage_errors(self.path), self._reader:
            self._reader.execute("DELETE FROM samples")
            self._reader.executemany(
                "INSERT INTO samples VALUES (?, ?)", ((sample.id, _encode(sample)) for sample in samples)
            )

    def holds_samples(self) -> bool:
        """Whether a run has begun here."""
        with _storage_errors(self.path):
            return self._reader.execute("SELECT 1 FROM samples LIMIT 1").fetchone() is not None

    def samples(self, kind: Any = Sample) -> list[Sample]:
        """The samples, in the order in which they were put."""
        with _storage_errors(self.path):
            rows = self._reader.execute("SELECT CAST(body AS BLOB) FROM samples ORDER BY rowid").fetchall()
        try:
            decoder = msgspec.json.Decoder(kind)
            return [decoder.decode(body) for (body,) in rows]
        except UNDECODABLE:
            raise RunConflict(
                f"{self.path}: a sample that is stored there cannot be read. "
                "Run the command that made the run again: it stores the samples anew and keeps the answers."
            ) from None

    def close(self) -> None:
        """Write what is left, fold the write-ahead log back in, and let go of the file."""
        self._writer.close()
        self._reader.close()
        self._writer.raise_failure()
        self._check_place()

    def _check_place(self) -> None:
        """Raise StorageError where the file is no longer at its path: what is written then is lost."""
        if not self.path.exists() or not os.path.samestat(self.path.stat(), self._status):
            raise StorageError(
                f"{self.path} was moved or removed while it was being written. Put the folder back and run "
                "the same command again: what is missing is asked again."
            )

    def _find(self, keys: Sequence[bytes]) -> dict[bytes, Response]:
        with _storage_errors(self.path):
            return find(self._reader, keys)


def find(connection: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, Response]:
    """The answers that are stored under some keys and can be read."""
    marks = ",".join("?" * len(keys))
    # A status that is no text, or no UTF-8, must be found out here and not stop the whole look-up.
    query = f"SELECT key, CAST(status AS BLOB), CAST(body AS BLOB) FROM responses WHERE key IN ({marks})"
    try:
        rows = connection.execute(query, keys).fetchall()
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:  # a damaged page: what lies on others is found one by one
        if len(keys) == 1:
            return {}
        return {key: response for one in keys for key, response in find(connection, [one]).items()}
    decoded = {key: decode(status, body) for key, status, body in rows}
    return {key: response for key, response in decoded.items() if response is not None}


def read_usage(connection: sqlite3.Connection) -> dict[str, Usage]:
    rows = connection.execute("SELECT role, requests, tokens_in, tokens_out FROM usage")
    return {role: Usage(*amounts) for role, *amounts in rows}


def decode(status: Any, body: Any) -> Response | None:
    """A stored answer; None where the row is damaged."""
    try:
        response = _decode(body)
    except UNDECODABLE:
        return None
    vector, logprobs = response.vector, response.logprobs
    whole = vector is None or (len(vector) > 0 and len(vector) % 4 == 0)
    whole &= logprobs is None or len(logprobs.tokens) == len(logprobs.values)
    return response if whole and response.status.encode() == status else None


def refuse_links(path: Path) -> None:
    """A journal is a file of its own: a link could lead a reader, or worse a writer, anywhere."""
    for suffix in ("", "-wal", "-shm"):
        if (file := path.with_name(path.name + suffix)).is_symlink():
            raise RunConflict(f"{file} is a link: a run's files must lie in its own folder.")
    if (file := path.with_name(f"{path.name}-journal")).exists() or file.is_symlink():
        # SQLite would obey it, and it can name files elsewhere.
        raise RunConflict(f"{file} is not written by Evenkeel: delete it, if you know where it comes from.")


def connect(path: Path) -> sqlite3.Connection:
    """A connection to write with. A file that is not a whole journal is left as it is."""
    # A backend may pull the request stream, and with it the look-ups, from a thread of its own.
    connection = sqlite3.connect(path, timeout=30, check_same_thread=False)
    try:
        harden(connection)
        check(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
    except (sqlite3.Error, RunConflict):
        connection.close()
        raise
    return connection


def harden(connection: sqlite3.Connection) -> None:
    """The file may come from anywhere: its schema may call nothing, its cells are checked when read."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a database of another version, or one whose tables are not a journal's and nothing else."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != VERSION:
        raise RunConflict(
            f"{path} was written in journal version {version}; this Evenkeel reads version {VERSION}. "
            "Use the Evenkeel that made it, or choose another folder with --out."
        )
    if _schema_of(connection) != _expected_schema():
        raise RunConflict(
            f"{path} is not a journal of Evenkeel: its tables are not a journal's. "
            "Choose another folder with --out."
        )


def _schema_of(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Tables, indexes, views and triggers, each with its definition less comments and spaces."""
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name")
    return [
        (*names, re.sub(r"--[^\n]*|\s+", "", sql) if isinstance(sql, str) else sql) for *names, sql in rows
    ]


@cache
def _empty_journal() -> bytes:
    """A journal without answers, as a whole file: a kill leaves it or nothing, and no log of SQLite's that is
    neither. Two bytes of its header say that it is written in WAL mode."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        content = bytearray(connection.serialize())
    content[WAL_MODE] = b"\2\2"
    return bytes(content)


@cache
def _expected_schema() -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        return _schema_of(connection)


@contextlib.contextmanager
def _storage_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.OperationalError, OSError) as error:
        raise StorageError(
            f"{path}: the journal cannot be written ({error}). What was stored before is safe: "
            "make room or fix the permissions, then run the same command again."
        ) from error
    except sqlite3.DatabaseError as error:
        raise RunConflict(
            f"{path} is damaged ({error}) and was left as it is. Put back a copy; or repair it with `sqlite3 "
            f"{path.name} .recover | sqlite3 repaired.sqlite`; or choose another --out and take over what "
            "can be read with --reuse."
        ) from None
