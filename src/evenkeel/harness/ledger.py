"""A budget that several processes share: a SQLite file in which each reserves and settles its requests.

A request is reserved at what it may cost at most before it is sent, and settled at what it did cost. What a
process had reserved when it ended counts as spent: its requests may have been answered and billed.
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
CREATE TABLE IF NOT EXISTS ceiling (usd REAL, requests INTEGER, tokens INTEGER);
CREATE TABLE IF NOT EXISTS spending (
    holder TEXT PRIMARY KEY, requests INTEGER NOT NULL DEFAULT 0,
    usd REAL NOT NULL DEFAULT 0, tokens INTEGER NOT NULL DEFAULT 0,
    reserved_usd REAL NOT NULL DEFAULT 0, reserved_tokens INTEGER NOT NULL DEFAULT 0
);
"""
SPEND_RESERVED = (
    "UPDATE spending SET usd = usd + reserved_usd, tokens = tokens + reserved_tokens, reserved_usd = 0, "
    "reserved_tokens = 0"
)


class Cost(NamedTuple):
    """What a request costs, or may cost at most."""

    usd: float = 0.0
    tokens: int = 0


class Ceiling(NamedTuple):
    """What all processes together may spend; None is no limit."""

    usd: float | None = None
    requests: int | None = None
    tokens: int | None = None


class Account(NamedTuple):
    """What all processes have spent, and what is on its way."""

    requests: int
    spent: Cost
    reserved: Cost


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
            connection.execute("INSERT INTO ceiling VALUES (?, ?, ?)", ceiling)
            connection.execute(SPEND_RESERVED)
            return _account(connection)

    def read(self) -> Account:
        with self._changing() as connection:
            return _account(connection)

    def reserve(self, cost: Cost) -> tuple[str, bool]:
        """Reserve a request; or the limit that it would break, and whether only other processes' requests,
        which are still on their way, keep it from being sent."""
        with self._changing() as connection:
            ceiling = Ceiling(*connection.execute("SELECT usd, requests, tokens FROM ceiling").fetchone())
            account = _account(connection)
            if refusal := _refusal(ceiling, account, cost, account.reserved):
                query = "SELECT reserved_usd, reserved_tokens FROM spending WHERE holder = ?"
                usd, tokens = connection.execute(query, (self._holder,)).fetchone() or Cost()
                holds_none = usd < ROUNDING and not tokens
                return refusal, holds_none and not _refusal(ceiling, account, cost, Cost())
            self._add(connection, requests=1, reserved=cost)
            return "", False

    def settle(self, reserved: Cost, cost: Cost) -> None:
        """Replace what was reserved by what it did cost."""
        with self._changing() as connection:
            self._add(connection, spent=cost, reserved=Cost(-reserved.usd, -reserved.tokens))

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

    def _add(
        self,
        connection: sqlite3.Connection,
        *,
        requests: int = 0,
        spent: Cost = Cost(),  # noqa: B008  # immutable
        reserved: Cost = Cost(),  # noqa: B008
    ) -> None:
        connection.execute("INSERT OR IGNORE INTO spending (holder) VALUES (?)", (self._holder,))
        connection.execute(
            "UPDATE spending SET requests = requests + ?, usd = usd + ?, tokens = tokens + ?, "
            "reserved_usd = reserved_usd + ?, reserved_tokens = reserved_tokens + ? WHERE holder = ?",
            (requests, *spent, *reserved, self._holder),
        )

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


def _account(connection: sqlite3.Connection) -> Account:
    sums = ", ".join(
        f"coalesce(sum({name}), 0)"
        for name in ("requests", "usd", "tokens", "reserved_usd", "reserved_tokens")
    )
    requests, usd, tokens, reserved_usd, reserved_tokens = connection.execute(
        f"SELECT {sums} FROM spending"
    ).fetchone()
    return Account(requests, Cost(usd, tokens), Cost(reserved_usd, reserved_tokens))


def _refusal(ceiling: Ceiling, account: Account, cost: Cost, reserved: Cost) -> str:
    """The limit that one more request would break, with what is reserved."""
    if ceiling.requests is not None and account.requests >= ceiling.requests:
        return f"the suite's budget of {ceiling.requests:,} requests"
    if ceiling.tokens is not None and account.spent.tokens + reserved.tokens + cost.tokens > ceiling.tokens:
        return f"the suite's budget of {ceiling.tokens:,} tokens"
    usd = account.spent.usd + reserved.usd + cost.usd
    if ceiling.usd is not None and usd > ceiling.usd + ROUNDING:
        return f"the suite's budget of ${ceiling.usd:g}"
    return ""


def assigned_ledger() -> Ledger | None:
    """The ledger of whoever began this process, if it has one."""
    path = os.environ.get(VARIABLE, "")
    return Ledger(Path(path)) if path else None
