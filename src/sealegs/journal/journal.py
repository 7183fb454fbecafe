"""The journal: every answered request of a run with its answer, in SQLite, as it came.

An answer is kept under the key of its request, the hash of who is asked (the model's identity), what is
asked, and the repeat. So a killed run resumes where it stopped, scoring never needs the model again, five
repeats of one prompt are five entries, and the same question in another run is the same.

A thread of its own commits the answers as they come, so that the thread that talks to the model never waits
for the disk, and a kill loses next to nothing: a commit survives the end of the process, however it ends;
after a power failure the last commits may be missing, and the file is whole. A row that cannot be read (bits
flip, disks fail) is an answer that is missing, and is asked for again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import astuple

from sealegs.errors import DataError, StorageError
from sealegs.files.cache import write_whole
from sealegs.journal.database import (
    LOOKUP,
    JournalUsage,
    connect,
    empty_journal,
    find,
    read_samples,
    read_usage,
    refuse_links,
    storage_errors,
)
from sealegs.types import (
    LARGE_RESPONSE_CHARACTERS,
    Embed,
    Generate,
    LogLikelihood,
    Rank,
    Request,
    Response,
    Sample,
    StringLikelihood,
)

HALF_A_CHARACTER = "its text holds half a character (a lone surrogate), which JSON cannot. Remove it."
AHEAD = 20_000
"""Answers that may wait for the disk before the asker has to."""
GATHER_S = 0.02
"""For which an answer waits for others, unless someone waits for it."""
NOT_ASKED = Response(status="error", reason="not asked")

_encode = msgspec.json.Encoder().encode


class Keyed(NamedTuple):
    """A request with its key, which is made once and stays with it until the answer is stored."""

    key: bytes
    request: Request


def model_digest(identity: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(msgspec.json.encode(identity, order="deterministic")).digest()


def make_key(model: bytes, request: Request) -> bytes:
    """The key of a request to the model with this digest."""
    return hashlib.sha256(model + content_digest(request) + request.repeat.to_bytes(8, "big")).digest()


def content_digest(request: Request) -> bytes:
    """That of what is asked, whoever is asked, and however often."""
    try:
        return hashlib.sha256(content(request)).digest()
    except UnicodeEncodeError:
        raise DataError("a request", HALF_A_CHARACTER) from None


def content(request: Request) -> bytes:
    """What is asked, as JSON. The role stays out: it says whom to ask, and the model's digest who that is."""
    match request:
        case Generate():
            schema = [request.schema] if request.schema else []
            return _encode(["generate", request.prompt, request.sampling, *schema])
        case LogLikelihood():
            return _encode(["loglikelihood", request.prefix, request.continuation])
        case StringLikelihood():
            return _encode(["stringlikelihood", request.prefix, request.continuation])
        case Embed():
            return _encode(["embed", request.text])
        case Rank():
            return _encode(["rank", request.query, request.document])


Entry: TypeAlias = tuple[Keyed, Response]


class Journal:
    """A run's journal: written by this process alone, read by any."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.empty = True
        """True while no answer is filed, so that there is nothing to look up."""
        self._lock = threading.Lock()
        self._urgent = threading.Event()
        self._entries: list[Entry] = []
        self._usage: dict[str, JournalUsage] = {}
        self._next_commit: Future[None] | None = None
        """The next commit, which takes all that is put until it begins."""
        self._failure: BaseException | None = None
        refuse_links(path)
        with storage_errors(path), contextlib.ExitStack() as stack:
            if not path.is_file() or not path.stat().st_size:
                write_whole(path, empty_journal())
            self._reader = stack.enter_context(contextlib.closing(connect(path)))
            self._writer = stack.enter_context(contextlib.closing(connect(path)))
            if (problem := self._reader.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise sqlite3.DatabaseError(problem.splitlines()[-1])
            self.empty = self._reader.execute("SELECT 1 FROM responses LIMIT 1").fetchone() is None
            self._status = path.stat()
            stack.pop_all()
        self._thread = ThreadPoolExecutor(1, "sealegs-journal")
        self._thread.submit(
            int
        )  # begun here: begun by a put that Ctrl-C interrupts, close would not wait for it

    def put(self, keyed: Keyed, response: Response) -> None:
        """File an answer. One that comes later under the same key takes its place."""
        self._raise_failure()
        self.empty = False
        with self._lock:
            self._entries.append((keyed, response))
            if self._next_commit is None:
                self._schedule()
            waiting = len(self._entries)
        if waiting >= AHEAD or response.is_large:
            self.flush()

    def put_usage(self, role: str, usage: JournalUsage) -> None:
        """Store what was asked of the model of a role so far, also where no answer comes of it: a kill must
        not make the budget fresh."""
        with self._lock:
            self._usage[role] = usage
            if self._next_commit is None:
                self._schedule()

    def usage(self) -> dict[str, JournalUsage]:
        """What was asked of the model of each role, over all starts of the run."""
        self.flush()
        with storage_errors(self.path):
            return read_usage(self._reader)

    def flush(self) -> None:
        """Return when everything put so far is on disk."""
        with self._lock:
            commit = self._schedule()
            self._urgent.set()
        commit.result()
        self._raise_failure()
        self._check_place()

    def unanswered(self, keys: Iterable[bytes], *, again: bool = True) -> set[bytes]:
        """The keys that have no stored answer; of what failed, unless `again` says otherwise, too."""
        missing = set(keys)
        if self.empty:
            return missing
        stream = iter(list(missing))
        while chunk := list(islice(stream, LOOKUP)):
            stored = self._find(chunk)
            missing -= {key for key, response in stored.items() if not again or response.status != "error"}
        return missing

    def read(self, keys: Iterable[bytes]) -> Iterator[Response]:
        """The stored answer under each key, in order. What was never answered reads as an error."""
        stream = iter(keys)
        while chunk := list(islice(stream, LOOKUP)):
            stored = self._find(chunk)
            yield from (stored.get(key, NOT_ASKED) for key in chunk)

    def stored_bytes(self, keys: Iterable[bytes]) -> int:
        """What the stored answers under some keys take in memory: of a long one, four bytes a character."""
        stream, total = iter(keys), 0
        while chunk := list(islice(stream, LOOKUP)):
            marks = ",".join("?" * len(chunk))
            size = f"LENGTH(body) * CASE WHEN LENGTH(body) > {LARGE_RESPONSE_CHARACTERS} THEN 4 ELSE 1 END"
            query = f"SELECT TOTAL({size}) FROM responses WHERE key IN ({marks})"
            with storage_errors(self.path):
                total += int(self._reader.execute(query, chunk).fetchone()[0])
        return total

    def holds_answers(self) -> bool:
        """Whether any request was answered, however it ended; what failed was not."""
        self.flush()
        with storage_errors(self.path):
            row = self._reader.execute("SELECT 1 FROM responses WHERE status != 'error' LIMIT 1")
            return row.fetchone() is not None

    def put_samples(self, samples: Iterable[Sample]) -> None:
        """Keep what the run is about, so that the folder alone is enough to score it again."""
        with storage_errors(self.path), self._reader:
            self._reader.execute("DELETE FROM samples")
            self._reader.executemany(
                "INSERT INTO samples VALUES (?, ?)", ((sample.id, _encode(sample)) for sample in samples)
            )

    def holds_samples(self) -> bool:
        """Whether a run has begun here."""
        with storage_errors(self.path):
            return self._reader.execute("SELECT 1 FROM samples LIMIT 1").fetchone() is not None

    def samples(self, kind: Any = Sample) -> list[Sample]:
        """The samples, in the order in which they were put."""
        with storage_errors(self.path):
            return read_samples(self._reader, self.path, kind)

    def close(self) -> None:
        """Write what is left, fold the write-ahead log back in, and let go of the file."""
        with self._lock:
            last = self._schedule()
            self._urgent.set()
        self._thread.shutdown()
        self._next_commit = last  # a sum that comes later is not stored
        self._writer.close()
        self._reader.close()
        self._raise_failure()
        self._check_place()

    def _check_place(self) -> None:
        """Raise StorageError where the file is no longer at its path: what is written then is lost."""
        if not self.path.exists() or not os.path.samestat(self.path.stat(), self._status):
            raise StorageError(
                f"{self.path} was moved or removed while it was being written. Put the folder back and run "
                "the same command again: what is missing is asked again."
            )

    def _find(self, keys: Sequence[bytes]) -> dict[bytes, Response]:
        with storage_errors(self.path):
            return find(self._reader, keys)

    def _raise_failure(self) -> None:
        """Raise what kept an answer from being committed, if anything did: none is lost silently."""
        if self._failure is not None:
            raise self._failure

    def _schedule(self) -> Future[None]:
        """The next commit; the lock must be held."""
        if self._next_commit is None:
            self._next_commit = self._thread.submit(self._commit_all)
        return self._next_commit

    def _commit_all(self) -> None:
        """Commit an answer with those that come within GATHER_S: a commit takes as long for one as for
        twenty. It appends to SQLite's write-ahead log and does not wait for the disk."""
        self._urgent.wait(GATHER_S)
        with self._lock:
            self._urgent.clear()
            self._next_commit = None
            entries, self._entries = self._entries, []
            usage, self._usage = self._usage, {}
        try:
            with storage_errors(self.path):
                _commit(self._writer, entries, usage)
        except BaseException as error:  # noqa: BLE001  # raised again at the next put or flush
            self._failure = self._failure or error


def _commit(
    connection: sqlite3.Connection, entries: Sequence[Entry], usage: Mapping[str, JournalUsage]
) -> None:
    """Put answers and usage into the tables, all or none."""
    if not entries and not usage:
        return
    now = time.time()
    requests, responses = {}, []
    for (key, request), response in entries:
        body = content(request)
        digest = hashlib.sha256(body).digest()
        requests[digest] = digest, type(request).__name__.lower(), body  # once for all its repeats
        responses.append((key, digest, request.repeat, response.status, _encode(response), now))
    sums = [(role, *astuple(amounts)) for role, amounts in usage.items()]
    with connection:
        connection.executemany("INSERT OR IGNORE INTO requests VALUES (?, ?, ?)", requests.values())
        connection.executemany("INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?, ?, ?)", responses)
        connection.executemany("INSERT OR REPLACE INTO usage VALUES (?, ?, ?, ?)", sums)
