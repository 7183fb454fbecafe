"""Limits: stop in time, whatever is still on its way, failed, or was asked in an earlier start."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from loopback import Loopback
from present import present
from runs import run_small
from sealegs.errors import BudgetReached, ModelUnreachable
from sealegs.harness.gate import MoneySetAside, RequestGate, Ticket, estimate
from sealegs.harness.limits import Limits
from sealegs.journal.database import JournalUsage
from sealegs.journal.journal import Journal
from sealegs.types import Generate, Response, Sampling
from suites import PATIENCE

pytestmark = pytest.mark.slow


def ask(number: int) -> Generate:
    return Generate(prompt=f"{number} words to read here", sampling=Sampling(max_tokens=100))


def admit(gate: RequestGate, number: int) -> Ticket:
    return present(gate.admit(ask(number), wait=True))


class Spent:
    """What a gate stores."""

    def __init__(self, gate: RequestGate) -> None:
        self.usage = JournalUsage()
        gate.resume({}, self.store)

    def store(self, role: str, usage: JournalUsage) -> None:
        self.usage = usage


def test_requests_under_way_count_with_the_most_they_may_write() -> None:
    gate = RequestGate(Limits(max_usd=250e-6, price_in=1.0, price_out=1.0))
    spent = Spent(gate)
    tickets = [ticket for n in range(10) if (ticket := gate.admit(ask(n), wait=False))]
    assert len(tickets) == 2
    assert spent.usage.tokens_out == 200  # a kill must not make them free
    for ticket in tickets:
        gate.settle(ticket, Response(status="ok", tokens_in=5, tokens_out=10))
    assert spent.usage == JournalUsage(2, 10, 20)
    assert sum(gate.admit(ask(n), wait=False) is not None for n in range(10)) == 2


def test_tries_from_before_there_was_a_journal_are_stored_in_it() -> None:
    gate = RequestGate()
    gate.count_try("model")  # its server was tried out
    assert Spent(gate).usage == JournalUsage(1, 0, 0)


def test_where_the_money_is_spent_nothing_that_is_set_aside_is_waited_for() -> None:
    gate = RequestGate(Limits(max_usd=300e-6, price_in=1.0, price_out=1.0))
    paused, dear = admit(gate, 1), admit(gate, 2)
    gate.settle(dear, Response(status="ok", tokens_in=200, tokens_out=200))
    with pytest.raises(BudgetReached, match="has sent 2 requests, [$]0[.]0004: raise the limit"):
        gate.count_try("model")
    with pytest.raises(BudgetReached):
        gate.admit(ask(3), wait=True)
    gate.settle(paused, None)


@pytest.mark.parametrize(
    ("response", "tokens_in", "tokens_out"),
    [
        (Response(status="error", reason="HTTP 500"), 0, 0),
        (Response(status="error", reason="no text", tokens_in=7, tokens_out=9), 7, 9),
        (Response(status="ok", text="four words or so"), estimate(ask(1))[0], 4),
        (None, 0, 0),
    ],
)
def test_a_reply_costs_what_it_reports_or_an_estimate(
    response: Response | None, tokens_in: int, tokens_out: int
) -> None:
    gate = RequestGate(Limits(max_usd=1.0, price_in=1.0))
    spent = Spent(gate)
    gate.settle(admit(gate, 1), response)
    assert spent.usage == JournalUsage(1, tokens_in, tokens_out)


def test_every_try_and_every_paid_reply_counts() -> None:
    gate = RequestGate(Limits(max_requests=3, max_usd=1.0, price_in=1.0, price_out=2.0))
    ticket = admit(gate, 1)
    for _ in range(2):
        gate.add_used("model", 1000, 500)
        gate.count_try("model")
    gate.add_used("model", 1000, 500)
    with pytest.raises(BudgetReached, match="has sent 3 requests"):
        gate.count_try("model")
    gate.settle(ticket, Response(status="error", reason="no text"))
    assert gate.usd == pytest.approx(3 * 0.002)
    with pytest.raises(BudgetReached):
        admit(gate, 2)


def test_a_further_try_for_which_money_may_become_free_is_refused_as_such() -> None:
    """A reply that was paid for and is no answer: what the next try may cost is set aside still."""
    gate = RequestGate(Limits(max_usd=200e-6, price_out=1.0))
    admit(gate, 1)
    admit(gate, 2)
    gate.count_try("model")
    gate.add_used("model", 0, 10)
    with pytest.raises(MoneySetAside, match="has sent 3 requests"):
        gate.count_try("model")
    gate.check_try()  # so that no pause is cut short
    gate.count_try("embedder", priced=False)


def test_replies_that_were_paid_for_in_vain_end_no_run_that_has_money_left(
    questions: Path, tmp_path: Path
) -> None:
    """At a limit that is set aside as a whole: their requests wait for what the others leave over."""
    with Broken(words=4, record=True) as server:
        server.most = 5
        run = run_small(
            "mirae", tmp_path / "run", server, data=questions, repeats=5, max_tokens=640,
            concurrency=2, max_usd=0.01285, price_out=10.0,
        )  # fmt: skip
    assert {answer.status for record in run.records() for answer in record.answers} == {"ok"}
    with closing(Journal(tmp_path / "run" / "journal.sqlite")) as journal:
        used = journal.usage()["model"]
    assert used.requests == sum(body["path"].endswith("/chat/completions") for body in server.bodies)
    assert used.tokens_out * 10.0 / 1e6 <= 0.01285


def test_runs_that_share_a_limit_wait_for_each_other_and_end_together() -> None:
    """The second waits while the first may leave money over, and goes on with what is left."""
    shared = RequestGate(Limits(max_usd=300e-6), owner="the suite")
    first, second = (RequestGate(Limits(price_out=1.0), shared=shared) for _ in range(2))
    tickets = [admit(first, 1), admit(first, 2), admit(first, 3)]
    assert second.admit(ask(4), wait=False) is None
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(admit, second, 4)
        first.settle(tickets[0], Response(status="ok", tokens_in=1, tokens_out=10))
        with pytest.raises(TimeoutError):
            waiting.result(0.1)  # 90 of the 100 that it may need
        first.settle(tickets[1], Response(status="ok", tokens_in=1, tokens_out=10))
        second.settle(waiting.result(PATIENCE), Response(status="ok", tokens_in=1, tokens_out=100))
    first.settle(tickets[2], Response(status="ok", tokens_in=1, tokens_out=100))
    assert shared.requests == 4
    assert shared.usd == pytest.approx(220e-6)
    assert shared.reserved_usd == pytest.approx(0)
    with pytest.raises(BudgetReached, match=re.escape("the suite's budget of $0.0003")):
        admit(second, 5)


def test_threads_together_never_pass_a_shared_limit() -> None:
    shared = RequestGate(Limits(max_requests=100, max_usd=1.0), owner="the suite")

    def spend(number: int) -> int:
        gate, sent = RequestGate(Limits(price_out=1.0), shared=shared), 0
        with pytest.raises(BudgetReached):
            while True:
                ticket = admit(gate, number)
                sent += 1
                gate.settle(ticket, Response(status="ok", tokens_in=1, tokens_out=100))
        return sent

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(spend, range(4))) == shared.requests == 100


def test_earlier_starts_count_once_however_often_they_are_read() -> None:
    shared = RequestGate(Limits(max_requests=10), owner="the suite")
    gate = RequestGate(Limits(price_out=1.0), shared=shared)
    gate.count_try("model")  # a probe, before the run's folder is open
    for _ in range(2):
        gate.resume({"model": JournalUsage(4, 0, 1_000_000)})
    assert (gate.requests, gate.usd, shared.requests, shared.usd) == (5, 1.0, 5, 1.0)


@pytest.mark.parametrize("limit", [{"max_requests": 5}, {"max_usd": 0.002, "price_out": 10.0}])
def test_a_runs_budget_holds_over_all_its_starts(
    questions: Path, tmp_path: Path, limit: dict[str, Any]
) -> None:
    settings: dict[str, Any] = {"data": questions, "repeats": 5, "concurrency": 1, "max_tokens": 64}
    with Loopback(words=30) as server:
        for start in range(3):
            with pytest.raises(BudgetReached):
                run_small("mirae", tmp_path / "run", server, **settings, **limit)
            if not start:
                asked = server.requests
                assert 0 < asked <= 6  # one of them may be a probe
        assert server.requests <= asked + 2
        run_small("mirae", tmp_path / "run", server, **settings)


class Broken(Loopback):
    """A server whose first replies lack the last brace, and are paid for all the same."""

    most = 8

    def _answer(self, path: str, body: Any, key: str) -> bytes:
        reply = super()._answer(path, body, key)
        return reply[:-1] if path.endswith("/chat/completions") and self.requests <= self.most else reply


def test_replies_that_cannot_be_used_count(questions: Path, tmp_path: Path) -> None:
    with Broken(words=30, record=True) as server, pytest.raises(BudgetReached):
        run_small(
            "mirae", tmp_path / "run", server, data=questions, repeats=5, max_tokens=64, concurrency=2,
            max_usd=0.002, price_out=10.0,
        )  # fmt: skip
    with closing(Journal(tmp_path / "run" / "journal.sqlite")) as journal:
        usage = journal.usage()["model"]
    assert usage.requests == sum(body["path"].endswith("/chat/completions") for body in server.bodies)
    assert usage.tokens_out * 10.0 / 1e6 <= 0.002


def test_a_run_without_an_answer_keeps_what_its_replies_cost(questions: Path, tmp_path: Path) -> None:
    """Else each start would have the whole budget again."""
    with Broken(words=30) as server:
        server.most = 1000
        for error in (ModelUnreachable, BudgetReached):
            with pytest.raises(error) as raised:
                run_small(
                    "mirae", tmp_path / "run", server, data=questions, repeats=5, max_tokens=64,
                    concurrency=1, max_usd=0.0008, price_out=10.0, model_args={"retries": 0},
                )  # fmt: skip
            assert (tmp_path / "run").exists()
            if error is ModelUnreachable:
                assert any("replies cost counts in" in note for note in raised.value.__notes__)
                asked = server.requests
        assert server.requests <= asked + 1
