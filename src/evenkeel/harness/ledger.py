"""A budget that several processes share: a SQLite file in which each reserves and settles its requests.

A request is reserved at what it may cost at most before it is sent, and settled at what it did cost, in
dollars. What a process had reserved when it ended counts as spent: its requests may have been answered and
billed.
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

from evenkeel.errors import DataError
from evenkeel.journal.journal import harden

VARIABLE = "EVENKEEL_BUDGET"
"""The file of the budget that this process shares with others."""
ROUNDING = 1e-9
"""Dollars that the sum of many costs may be off."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS ceiling (usd REAL, requests INTEGER);
CREATE TABLE IF NOT EXISTS spending (
    holder TEXT PRIMARY KEY, requests INTEGER NOT NULL, usd REAL NOT NULL, reserved REAL NOT NULL
);
"""
ADD = """
INSERT INTO spending VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET requests = requests + excluded.requests,
usd = usd + excluded.usd, reserved = reserved + excluded.reserved
"""
SPEND_RESERVED = "UPDATE spending SET usd = usd + reserved, reserved = 0"
SUMS = "SELECT ifnull(sum(requests), 0), ifnull(sum(usd), 0.0), ifnull(sum(reserved), 0.0) FROM spending"


class Ceiling(NamedTuple):
    """What all processes together may spend; None is no limit."""

    usd: float | None = None
    requests: int | None = None

    def refusal(self, requests: int, usd: float) -> str:
        """The limit that one more request would break, where so much would be spent with it."""
        if self.requests is not None and requests >= self.requests:
            return f"the suite's budget of {self.requests:,} requests"
        if self.usd is not None and usd > self.usd + ROUNDING:
            return f"the suite's budget of ${self.usd:g}"
        return ""


class Account(NamedTuple):
    """What all processes have spent, and what is on its way."""

    requests: int
    usd: float
    reserved: float


class Ledger:
    """The account in its file, for one process."""

    def __init__(self, path: Path, holder: str = "") -> None:
        self.path = path
        self._holder = holder or str(os.getpid())
        self._lock = threading.Lock()

    def begin(self, ceiling: Ceiling) -> Account:
        """Set the limits. No process may be at work: what one left reserved is spent."""
        with self._changing(create=True) as connection:
            connection.execute("DELETE FROM ceiling")
            connection.execute("INSERT INTO ceiling VALUES (?, ?)", ceiling)
            connection.execute(SPEND_RESERVED)
            return Account(*connection.execute(SUMS).fetchone())

    def read(self) -> Account:
        with self._changing() as connection:
            return Account(*connection.execute(SUMS).fetchone())

    def reserve(self, usd: float) -> str:
        """Reserve a request; the limit that it would break, or nothing."""
        with self._changing() as connection:
            ceiling = Ceiling(*connection.execute("SELECT usd, requests FROM ceiling").fetchone())
            account = Account(*connection.execute(SUMS).fetchone())
            refusal = ceiling.refusal(account.requests, account.usd + account.reserved + usd)
            if not refusal:
                connection.execute(ADD, (self._holder, 1, 0.0, usd))
            return refusal

    def settle(self, reserved: float, usd: float) -> None:
        """Replace what was reserved by what it did cost."""
        with self._changing() as connection:
            connection.execute(ADD, (self._holder, 0, usd, -reserved))

    def close(self) -> None:
        """Count what the process has reserved and not settled as spent."""
        with self._changing() as connection:
            connection.execute(f"{SPEND_RESERVED} WHERE holder = ?", (self._holder,))

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
        except (sqlite3.DatabaseError, TypeError):  # TypeError: there is no ceiling
            raise DataError(
                self.path,
                "this is not a suite's budget. Delete it to begin a new one: what was spent is then unknown.",
            ) from None


def assigned_ledger() -> Ledger | None:
    """The ledger of whoever began this process, if it has one."""
    path = os.environ.get(VARIABLE, "")
    return Ledger(Path(path)) if path else None
