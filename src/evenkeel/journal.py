"""The journal: every answered request of a run with its answer, in SQLite, as it came.

An answer is kept under a key, the hash of three things: who was asked (the model's identity), what was
asked (the request's content and sampling) and the repeat number. So five repeats of one prompt are five
entries, a killed run goes on where it stopped, and scoring never needs the model again.

One thread writes. It commits what has arrived every COMMIT_SECONDS, so that the thread that talks to
the model never waits for the disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from evenkeel.errors import RunConflict, StorageError
from evenkeel.types import Embed, Generate, Rank, Request, Response, Sample, Weigh

VERSION = 1
COMMIT_SECONDS = 0.5
AHEAD = 20_000  # answers that may wait for the disk before the asker has to
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
CREATE INDEX responses_by_request ON responses (digest, repeat);
PRAGMA user_version = {VERSION};
COMMIT;
"""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Response).decode
_decode_sample = msgspec.json.Decoder(Sample).decode


class Key(NamedTuple):
    """Where an answer is filed: under `key`; `digest` and `body` are the request's content."""

    key: bytes
    digest: bytes
    body: bytes


def model_digest(identity: dict[str, Any]) -> bytes:
    return hashlib.sha256(msgspec.json.encode(identity, order="deterministic")).digest()


def make_key(model: bytes, request: Request) -> Key:
    """The key of a request to the model with this digest."""
    # The role says whom to ask and the model's digest who that was, so the role itself stays out.
    match request:
        case Generate():
            schema = [request.schema] if request.schema else []
            body = _encode(["generate", request.prompt, request.sampling, *schema])
        case Weigh():
            body = _encode(["weigh", request.prefix, request.continuation])
        case Embed():
            body = _encode(["embed", request.text])
        case Rank():
            body = _encode(["rank", request.query, request.document])
    digest = hashlib.sha256(body).digest()
    return Key(hashlib.sha256(model + digest + request.repeat.to_bytes(8, "big")).digest(), digest, body)


class Journal:
    """A run's journal: written by this process alone, read by any."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _storage_errors(path), contextlib.ExitStack() as stack:
            self._reader = stack.enter_context(contextlib.closing(_connect(path)))
            self.empty = _prepare(self._reader, path)
            stack.pop_all()
            """True while no answer is filed, so that there is nothing to look up."""
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._pending: list[tuple[Key, Request, Response]] = []
        self._waiting: list[threading.Event] = []
        self._closing = False
        self._failure: BaseException | None = None
        self._writer = threading.Thread(target=self._write, name="evenkeel-journal", daemon=True)
        self._writer.start()

    def put(self, key: Key, request: Request, response: Response) -> None:
        """File an answer. One that comes later under the same key takes its place."""
        self._raise_failure()
        with self._lock:
            self.empty = False
            self._pending.append((key, request, response))
            full = len(self._pending) >= AHEAD
        if full:
            self.flush()

    def flush(self) -> None:
        """Return when everything put so far is on disk."""
        done = threading.Event()
        with self._lock:
            self._waiting.append(done)
        self._wake.set()
        while not done.wait(0.2) and self._writer.is_alive():
            pass
        self._raise_failure()

    def unanswered(self, model: bytes, requests: Iterable[Request]) -> Iterator[Request]:
        """The requests that still have to be asked, each once, read lazily. What failed is asked again."""
        seen: set[bytes] = set()
        # What this very pass puts is in `seen`; so over a journal that was empty nothing need be looked up.
        search = not self.empty
        stream = iter(requests)
        while chunk := list(islice(stream, LOOKUP)):
            new: dict[bytes, Request] = {}
            for request in chunk:
                key = make_key(model, request).key
                if key not in seen:
                    seen.add(key)
                    new[key] = request
            answered = (
                {key for key, status in self._find("status", new) if status != "error"} if search else ()
            )
            yield from (request for key, request in new.items() if key not in answered)

    def read(self, model: bytes, requests: Iterable[Request]) -> Iterator[Response]:
        """The stored answer of each request, in order. What was never answered reads as an error."""
        missing = Response(status="error", reason="not asked")
        stream = iter(requests)
        while chunk := [make_key(model, request).key for request in islice(stream, LOOKUP)]:
            found = {key: _decode(body) for key, body in self._find("body", chunk)}
            yield from (found.get(key, missing) for key in chunk)

    def put_samples(self, samples: Iterable[Sample]) -> None:
        """Keep what the run is about, so that the folder alone is enough to score it again."""
        with _storage_errors(self.path), self._reader:
            self._reader.execute("DELETE FROM samples")
            self._reader.executemany(
                "INSERT INTO samples VALUES (?, ?)", ((sample.id, _encode(sample)) for sample in samples)
            )

    def samples(self) -> list[Sample]:
        """The samples, in the order in which they were put."""
        rows = self._reader.execute("SELECT body FROM samples ORDER BY rowid")
        return [_decode_sample(body) for (body,) in rows]

    def copy_from(self, other: Path) -> int:
        """Take over the answers of another run's journal; returns how many were new here."""
        self.flush()
        with contextlib.closing(open_read_only(other)):
            pass  # refuses what is no journal of this version
        with _storage_errors(self.path):
            self._reader.execute("ATTACH ? AS other", (str(other),))
            with self._reader:
                self._reader.execute("INSERT OR IGNORE INTO requests SELECT * FROM other.requests")
                self._reader.execute(
                    "DELETE FROM responses WHERE status = 'error' AND key IN "
                    "(SELECT key FROM other.responses WHERE status != 'error')"
                )
                taken = self._reader.execute(
                    "INSERT OR IGNORE INTO responses SELECT * FROM other.responses WHERE status != 'error'"
                ).rowcount
            self._reader.execute("DETACH other")
        self.empty = False
        return int(taken)

    def close(self) -> None:
        """Write what is left, fold the write-ahead log back in, and let go of the file."""
        self._closing = True
        self._wake.set()
        self._writer.join()
        self._reader.close()
        self._raise_failure()

    def _find(self, column: str, keys: Iterable[bytes]) -> list[tuple[bytes, Any]]:
        wanted = list(keys)
        marks = ",".join("?" * len(wanted))
        query = f"SELECT key, {column} FROM responses WHERE key IN ({marks})"
        return self._reader.execute(query, wanted).fetchall()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _write(self) -> None:
        try:
            with _storage_errors(self.path), contextlib.closing(_connect(self.path)) as connection:
                closing = False
                while not closing:
                    self._wake.wait(COMMIT_SECONDS)
                    self._wake.clear()
                    with self._lock:
                        closing = self._closing
                        entries, self._pending = self._pending, []
                        waiting, self._waiting = self._waiting, []
                    _insert(connection, entries)
                    for done in waiting:
                        done.set()
        except BaseException as error:  # noqa: BLE001  # raised again at the next put or flush: no answer is lost silently
            self._failure = error


class Recording:
    """Another run's journal as a source of answers: those of one model, or of whichever answered alone."""

    def __init__(self, path: Path, model: bytes | None) -> None:
        self._connection = open_read_only(path)
        self._model = model

    def find(self, request: Request) -> Response | None:
        if self._model is not None:
            where, value = "key = ?", make_key(self._model, request).key
        else:
            where, value = f"repeat = {request.repeat:d} AND digest = ?", make_key(b"", request).digest
        rows = self._connection.execute(f"SELECT body FROM responses WHERE {where}", (value,)).fetchall()
        if len(rows) > 1:
            raise RunConflict("the recording holds several models' answers and no spec.json that says which.")
        return _decode(rows[0][0]) if rows else None

    def close(self) -> None:
        self._connection.close()


def open_read_only(path: Path) -> sqlite3.Connection:
    """A connection to an existing journal of this version."""
    if not path.is_file():
        raise RunConflict(f"{path}: there is no journal here.")
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
    with contextlib.ExitStack() as stack, _storage_errors(path):
        stack.callback(connection.close)
        _check_version(connection, path)
        stack.pop_all()
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    # A backend may pull the request stream, and with it the look-ups, from a thread of its own.
    connection = sqlite3.connect(path, timeout=30, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> bool:
    """Make the tables where there are none, check the version where there are; True if nothing is filed."""
    if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        connection.executescript(SCHEMA)
    _check_version(connection, path)
    return connection.execute("SELECT 1 FROM responses LIMIT 1").fetchone() is None


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != VERSION:
        raise RunConflict(
            f"{path} was written in journal version {version}; this Evenkeel reads version {VERSION}. "
            "Use the Evenkeel that made it, or choose another folder with --out."
        )


def _insert(connection: sqlite3.Connection, entries: list[tuple[Key, Request, Response]]) -> None:
    now = time.time()
    with connection:
        connection.executemany(
            "INSERT OR IGNORE INTO requests VALUES (?, ?, ?)",
            ((key.digest, type(request).__name__.lower(), key.body) for key, request, _ in entries),
        )
        connection.executemany(
            "INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?, ?, ?)",
            (
                (key.key, key.digest, request.repeat, response.status, _encode(response), now)
                for key, request, response in entries
            ),
        )


@contextlib.contextmanager
def _storage_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.OperationalError, OSError) as error:
        raise StorageError(
            f"{path}: the journal cannot be written ({error}). What was stored before is kept: "
            "make room or mend the permissions, then run the same command again."
        ) from error
    except sqlite3.DatabaseError as error:
        raise RunConflict(
            f"{path} is not a sound journal ({error}). Choose another folder with --out."
        ) from None
