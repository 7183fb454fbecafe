"""The file of a journal: its tables, how it is opened, and what is found in it. It may come from anywhere."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from sealegs.errors import RunConflict, StorageError
from sealegs.types import Response, Sample

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

WAL_MODE = slice(18, 20)
"""The bytes of a database's header that say how it is written: https://sqlite.org/fileformat2.html"""
UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError)

_decode = msgspec.json.Decoder(Response).decode


class JournalUsage(Struct, frozen=True):
    """What was asked of a model: tries, and the tokens that they used."""

    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


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


def read_usage(connection: sqlite3.Connection) -> dict[str, JournalUsage]:
    rows = connection.execute("SELECT role, requests, tokens_in, tokens_out FROM usage")
    return {role: JournalUsage(*amounts) for role, *amounts in rows}


def read_samples(connection: sqlite3.Connection, path: Path, kind: Any, most: int = -1) -> list[Sample]:
    """The samples of the run, in the order in which they were put: all, or the first of them."""
    query = "SELECT CAST(body AS BLOB) FROM samples ORDER BY rowid LIMIT ?"
    rows = connection.execute(query, [most]).fetchall()
    decoder = msgspec.json.Decoder(kind)
    try:
        return [decoder.decode(body) for (body,) in rows]
    except UNDECODABLE:
        raise RunConflict(
            f"{path}: a sample that is stored there cannot be read. "
            "Run the command that made the run again: it stores the samples anew and keeps the answers."
        ) from None


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
        raise RunConflict(f"{file} is not written by Sealegs: delete it, if you know where it comes from.")


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
            f"{path} was written in journal version {version}; this Sealegs reads version {VERSION}. "
            "Use the Sealegs that made it, or choose another folder with --out."
        )
    if _schema_of(connection) != _expected_schema():
        raise RunConflict(
            f"{path} is not a journal of Sealegs: its tables are not a journal's. "
            "Choose another folder with --out."
        )


def _schema_of(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Tables, indexes, views and triggers, each with its definition less comments and spaces."""
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name")
    return [
        (*names, re.sub(r"--[^\n]*|\s+", "", sql) if isinstance(sql, str) else sql) for *names, sql in rows
    ]


@cache
def empty_journal() -> bytes:
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
def storage_errors(path: Path) -> Iterator[None]:
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
