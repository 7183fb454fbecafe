"""A budget that several processes share: one file that each reads and writes in turn, request by request.

A request is reserved at what it may cost at most before it is sent, and settled at what it did cost. What a
process had reserved when it ended counts as spent: its requests may have been answered and billed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta, Struct

from evenkeel.errors import DataError
from evenkeel.files import lock
from evenkeel.files.cache import write_whole
from evenkeel.files.jsonfile import read_bytes

VARIABLE = "EVENKEEL_BUDGET"
"""The file of the budget that this process shares with others."""
BILLIONTH = 10**9
"""Of a dollar: whole numbers, so that a sum is the same in whatever order it is made."""
LARGEST = 2**20
"""Bytes of a file that is read."""

Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**62)]


class Cost(NamedTuple):
    """What a request costs, or may cost at most."""

    billionths: Count = 0
    tokens: Count = 0


class Ceiling(Struct, frozen=True, kw_only=True):
    """What all processes together may spend; None is no limit."""

    usd: float | None = None
    requests: int | None = None
    tokens: int | None = None


class Account(Struct, kw_only=True):
    """What was spent, and what is on its way."""

    ceiling: Ceiling = Ceiling()
    requests: Count = 0
    spent: Cost = Cost()
    reserved: dict[str, Cost] = {}
    """By process."""

    @property
    def usd(self) -> float:
        return self.spent.billionths / BILLIONTH

    def refusal(self, cost: Cost, *, flying: bool) -> str:
        """The limit that one more request would break: with what is on its way, or by itself."""
        ceiling = self.ceiling
        held = self.reserved.values() if flying else ()
        billionths = self.spent.billionths + cost.billionths + sum(each.billionths for each in held)
        tokens = self.spent.tokens + cost.tokens + sum(each.tokens for each in held)
        if ceiling.requests is not None and self.requests >= ceiling.requests:
            return f"the suite's budget of {ceiling.requests:,} requests"
        if ceiling.tokens is not None and tokens > ceiling.tokens:
            return f"the suite's budget of {ceiling.tokens:,} tokens"
        if ceiling.usd is not None and billionths > ceiling.usd * BILLIONTH:
            return f"the suite's budget of ${ceiling.usd:g}"
        return ""


class Ledger:
    """The account in its file, for one process."""

    def __init__(self, path: Path, holder: str = "") -> None:
        self.path = path
        self._holder = holder or str(os.getpid())
        self._lock = threading.Lock()

    def begin(self, ceiling: Ceiling) -> Account:
        """Set the limits. No process may be at work: what one left reserved is spent."""
        with self._lock, lock.in_turn(self.path):
            account = self._read() if self.path.exists() else Account()
            account.ceiling = ceiling
            for holder in list(account.reserved):
                _close(account, holder)
            self._write(account)
            return account

    def read(self) -> Account:
        with self._lock, lock.in_turn(self.path):
            return self._read()

    def reserve(self, cost: Cost) -> tuple[str, bool]:
        """Reserve a request; or the limit that it would break, and whether only other processes' requests,
        which are still on their way, keep it from being sent."""
        with self._changing() as account:
            refusal = account.refusal(cost, flying=True)
            if refusal:
                alone = self._holder not in account.reserved
                return refusal, alone and not account.refusal(cost, flying=False)
            account.requests += 1
            self._add(account, cost)
            return "", False

    def settle(self, reserved: Cost, cost: Cost) -> None:
        """Replace what was reserved by what it did cost."""
        with self._changing() as account:
            self._add(account, Cost(-reserved.billionths, -reserved.tokens))
            account.spent = _sum(account.spent, cost)

    def close(self) -> None:
        """Count what the process has reserved and not settled as spent."""
        with self._changing() as account:
            _close(account, self._holder)

    def _add(self, account: Account, cost: Cost) -> None:
        left = _sum(account.reserved.pop(self._holder, Cost()), cost)
        if any(left):
            account.reserved[self._holder] = left

    @contextmanager
    def _changing(self) -> Iterator[Account]:
        with self._lock, lock.in_turn(self.path):
            account = self._read()
            yield account
            self._write(account)

    def _read(self) -> Account:
        problem = (
            "this is not a suite's budget. Delete it to begin a new account: what was spent is then unknown."
        )
        try:
            if self.path.is_symlink() or self.path.stat().st_size > LARGEST:
                raise DataError(self.path, problem)
            return msgspec.json.decode(read_bytes(self.path), type=Account)
        except (OSError, DataError, ValueError, RecursionError):
            raise DataError(self.path, problem) from None

    def _write(self, account: Account) -> None:
        write_whole(self.path, msgspec.json.encode(account) + b"\n")


def assigned_ledger() -> Ledger | None:
    """The ledger of whoever began this process, if it has one."""
    path = os.environ.get(VARIABLE, "")
    return Ledger(Path(path)) if path else None


def _sum(a: Cost, b: Cost) -> Cost:
    return Cost(max(0, a.billionths + b.billionths), max(0, a.tokens + b.tokens))


def _close(account: Account, holder: str) -> None:
    account.spent = _sum(account.spent, account.reserved.pop(holder, Cost()))
