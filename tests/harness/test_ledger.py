"""A budget that several processes share: never overrun, whoever is killed."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evenkeel.errors import BudgetReached, DataError, StorageError
from evenkeel.harness.gate import Gate
from evenkeel.harness.ledger import Ledger
from evenkeel.harness.limits import Limits
from evenkeel.types import Generate, Response, Sampling

pytestmark = pytest.mark.slow

SPENDER = """
import os, sys
from pathlib import Path
from evenkeel.harness.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]))
sent = 0
while not ledger.reserve(3):
    sent += 1
    if sent % 3:
        ledger.settle_usd(3, 2)
    if sent == int(sys.argv[2]):
        os.kill(os.getpid(), 9)
print(sent)
"""


def begun(path: Path, **limits: Any) -> Ledger:
    ledger = Ledger(path)
    ledger.begin(**{"max_usd": None, "max_requests": None, **limits})
    return ledger


def test_processes_together_never_spend_more_than_is_allowed(tmp_path: Path) -> None:
    """What a killed one had under way counts as spent, also when the limits are set again."""
    ledger = begun(tmp_path / "budget.sqlite", max_usd=300)
    dies_after = (0, 0, 10)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SPENDER, ledger.path, str(number)], stdout=subprocess.PIPE, text=True
        )
        for number in dies_after
    ]
    sent = [
        int(process.communicate()[0] or number) for process, number in zip(processes, dies_after, strict=True)
    ]
    account = begun(ledger.path, max_usd=400).read()
    assert (account.requests, account.max_usd) == (sum(sent), 400)
    assert account.usd == sum(3 * (number // 3) + 2 * (number - number // 3) for number in sent)
    assert 295 < account.usd <= 300


@pytest.mark.parametrize(
    ("limit", "shown", "sent"),
    [({"max_requests": 2}, "2 requests", 2), ({"max_usd": 0.00045}, "$0.00045", 3)],
)
def test_a_run_stops_at_the_budget_that_it_shares(
    tmp_path: Path, limit: dict[str, Any], shown: str, sent: int
) -> None:
    """Each request is estimated at 100 tokens out and about 40 in, and costs what the answer says."""
    ledger = begun(tmp_path / "budget.sqlite", **limit)
    gate = Gate(Limits(price_in=1.0, price_out=1.0), shared=ledger)
    request = Generate(prompt="word " * 40, sampling=Sampling(max_tokens=100))
    answer = Response(status="ok", text="x", tokens_in=40, tokens_out=100)

    def ask() -> None:
        for _ in range(100):
            if ticket := gate.admit(request, wait=True):
                gate.settle(ticket, answer)

    with pytest.raises(BudgetReached, match=re.escape(shown)):
        ask()
    account = ledger.read()
    assert account.requests == sent
    assert account.usd == pytest.approx(sent * 140e-6)


@pytest.mark.parametrize("content", [b"{}", b"not a database " * 100, None])
def test_a_file_that_is_no_budget_is_not_taken_for_an_empty_one(
    tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "budget.sqlite"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match="not a suite's budget"):
        Ledger(path).read()
    assert (path.read_bytes() if path.exists() else None) == content


def test_a_budget_that_another_process_holds_is_not_called_damaged(tmp_path: Path) -> None:
    ledger = begun(tmp_path / "budget.sqlite", max_usd=1)
    ledger._connection.execute("PRAGMA busy_timeout = 0")
    holder = sqlite3.connect(ledger.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StorageError, match="locked"):
        ledger.reserve(0.5)
    holder.close()
    assert ledger.reserve(0.5) is None
