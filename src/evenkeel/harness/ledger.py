"""A budget that several processes share: a SQLite file in which each reserves and settles its requests.

A request is counted at what it may cost at most before it is sent, and corrected to what it did cost, in
dollars, when it is answered. So what a process had under way when it ended counts as spent: it may have been
answered and billed.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from evenkeel.errors import DataError, StorageError
from evenkeel.harness.limits import ROUNDING, Refused
from evenkeel.journal.journal import harden

VARIABLE = "EVENKEEL_BUDGET"
"""The file of the budget that this process shares with others."""
NOT_NOW = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY)
"""What SQLite says of a budget that is whole, and that another process holds or the disk does not take."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS spending (
    requests INTEGER NOT NULL, usd REAL NOT NULL, max_requests INTEGER, max_usd REAL
);
INSERT INTO spending SELECT 0, 0.0, NULL, NULL WHERE NOT EXISTS (SELECT 1 FROM spending);
"""


class Account(NamedTuple):
    """What all processes have spent together, and what they may; None is no limit."""

    requests: int
    usd: float
    max_requests: int | None
    max_usd: float | None

    def refusal(self, usd: float) -> str:
        """The limit that one more request of this cost would break."""
        if self.max_requests is not None and self.requests >= self.max_requests:
            return f"the suite's budget of {self.max_requests:,} requests"
        if self.max_usd is not None and self.usd + usd > self.max_usd + ROUNDING:
            return f"the suite's budget of ${self.max_usd:g}"
        return ""


class Ledger:
    """The account in its file, for one process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def begin(self, *, max_usd: float | None, max_requests: int | None) -> None:
        """Set the limits; what was spent before stays."""
        with self._changing(create=True) as connection:
            connection.execute("UPDATE spending SET max_requests = ?, max_usd = ?", (max_requests, max_usd))

    def read(self) -> Account:
        with self._changing() as connection:
            return _account(connection)

    def reserve(self, usd: float) -> Refused | None:
        """Count a request at what it may cost at most; else the limit that it would break. What other
        processes have set aside is not waited for."""
        with self._changing() as connection:
            refusal = _account(connection).refusal(usd)
            if not refusal:
                connection.execute("UPDATE spending SET requests = requests + 1, usd = usd + ?", (usd,))
            return Refused(refusal, may_pass=False) if refusal else None

    def settle_usd(self, reserved: float, usd: float) -> None:
        """Replace what a request might have cost by what it did cost."""
        with self._changing() as connection:
            connection.execute("UPDATE spending SET usd = usd + ?", (usd - reserved,))

    @cached_property
    def _connection(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=60, check_same_thread=False)
        weakref.finalize(self, connection.close)
        harden(connection)
        connection.execute("PRAGMA synchronous = OFF")  # a kill harms nothing; a power failure is rare
        return connection

    @contextlib.contextmanager
    def _changing(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """A transaction that no other process's overlaps."""
        try:
            if self.path.is_symlink() or (not create and not self.path.is_file()):
                raise sqlite3.DatabaseError
            with self._lock, self._connection:
                if create:
                    self._connection.executescript(SCHEMA)
                self._connection.execute("BEGIN IMMEDIATE")
                yield self._connection
        except (sqlite3.DatabaseError, TypeError) as error:  # TypeError: there is no row
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in NOT_NOW:
                raise StorageError(f"{self.path}: the suite's budget cannot be written: {error}.") from None
            raise DataError(
                self.path,
                "this is not a suite's budget. Delete it to begin a new one: what was spent is then unknown.",
            ) from None


def _account(connection: sqlite3.Connection) -> Account:
    return Account(
        *connection.execute("SELECT requests, usd, max_requests, max_usd FROM spending").fetchone()
    )


def assigned_ledger() -> Ledger | None:
    """The ledger of whoever began this process, if it has one."""
    path = os.environ.get(VARIABLE, "")
    return Ledger(Path(path)) if path else None
