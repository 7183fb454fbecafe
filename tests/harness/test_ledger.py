"""A budget that several processes share: never overrun, whoever is killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evenkeel.errors import DataError
from evenkeel.harness.budget import Budget
from evenkeel.harness.ledger import Ceiling, Ledger
from evenkeel.harness.limits import Limits
from evenkeel.types import Generate, Response, Sampling

pytestmark = pytest.mark.slow

SPENDER = """
import sys
from pathlib import Path
from evenkeel.harness.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]))
sent = 0
while not ledger.reserve(3):
    sent += 1
    if sent % 3:
        ledger.settle(3, 2)
    if sent == int(sys.argv[2]):
        import os
        os.kill(os.getpid(), 9)
ledger.close()
print(sent)
"""


def request(text: str = "word " * 40) -> Generate:
    return Generate(prompt=text, sampling=Sampling(max_tokens=100))


def test_processes_together_never_spend_more_than_is_allowed(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "budget.sqlite")
    ledger.begin(Ceiling(usd=300))
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
    account = ledger.begin(Ceiling(usd=300))
    assert account.requests == sum(sent)
    assert account.reserved == 0
    spent = sum(3 * (number // 3) + 2 * (number - number // 3) for number in sent)
    assert account.usd == spent
    assert 295 < spent <= 300


def test_what_a_killed_process_had_reserved_is_spent(tmp_path: Path) -> None:
    path = tmp_path / "budget.sqlite"
    Ledger(path).begin(Ceiling(requests=10))
    Ledger(path, "1").reserve(7)
    Ledger(path, "2").reserve(5)
    Ledger(path, "1").close()
    account = Ledger(path).read()
    assert (account.usd, account.reserved) == (7, 5)
    assert Ledger(path).begin(Ceiling()).usd == 12


@pytest.mark.parametrize(
    ("ceiling", "shown", "sent"),
    [
        (Ceiling(requests=2), "2 requests", 2),
        (Ceiling(usd=0.00045), "$0.00045", 3),
    ],
)
def test_a_run_stops_at_the_budget_that_it_shares(
    tmp_path: Path, ceiling: Ceiling, shown: str, sent: int
) -> None:
    """Each request is estimated at 100 tokens out and about 40 in, and costs what the answer says."""
    ledger = Ledger(tmp_path / "budget.sqlite")
    ledger.begin(ceiling)
    budget = Budget(Limits(price_in=1.0, price_out=1.0), shared=ledger)
    for each in budget.admit(request() for _ in range(100)):
        budget.spend(each, Response(status="ok", text="x", tokens_in=40, tokens_out=100))
    assert shown in budget.exhausted
    account = ledger.read()
    assert account.requests == sent
    assert (account.usd, account.reserved) == pytest.approx((sent * 140e-6, 0.0))


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
