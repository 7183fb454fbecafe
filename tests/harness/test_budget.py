"""Limits: stop in time, whatever is still on its way, failed, or was asked in an earlier start."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import evenkeel as ek
from evenkeel.errors import BudgetReached
from evenkeel.harness.budget import Budget, estimate
from evenkeel.harness.limits import Limits
from evenkeel.journal.journal import Journal
from evenkeel.journal.writer import Usage
from evenkeel.types import Embed, Generate, Rank, Request, Response, Sampling
from loopback import Loopback

pytestmark = pytest.mark.slow


def ask(number: int) -> Generate:
    return Generate(prompt=f"{number} words to read here", sampling=Sampling(max_tokens=100))


class Spent:
    """What a budget stores."""

    def __init__(self, budget: Budget) -> None:
        self.usage = Usage()
        budget.resume({}, self.store)

    def store(self, role: str, usage: Usage) -> None:
        self.usage = usage


def test_requests_in_flight_count_with_the_most_they_may_write() -> None:
    budget = Budget(Limits(max_usd=250e-6, price_in=1.0, price_out=1.0))
    spent = Spent(budget)
    passed = list(budget.admit([ask(n) for n in range(10)]))
    assert len(passed) == 2
    for request in passed:
        budget.spend(request, Response(status="ok", tokens_in=5, tokens_out=10))
    assert spent.usage == Usage(2, 10, 20)
    assert len(list(budget.admit([ask(n) for n in range(10)]))) == 2


@pytest.mark.parametrize(
    ("response", "tokens_in", "tokens_out"),
    [
        (Response(status="error", reason="HTTP 500"), 0, 0),
        (Response(status="error", reason="no text", tokens_in=7, tokens_out=9), 7, 9),
        (Response(status="ok", text="four words or so"), estimate(ask(1))[0], 4),
    ],
)
def test_a_reply_costs_what_it_reports_or_an_estimate(
    response: Response, tokens_in: int, tokens_out: int
) -> None:
    budget = Budget(Limits(max_usd=1.0, price_in=1.0))
    spent = Spent(budget)
    (request,) = budget.admit([ask(1)])
    budget.spend(request, response)
    assert spent.usage == Usage(1, tokens_in, tokens_out)


def test_every_try_and_every_paid_reply_counts() -> None:
    budget = Budget(Limits(max_requests=3, max_usd=1.0, price_in=1.0, price_out=2.0))
    meter = budget.meter("model")
    (request,) = budget.admit([ask(1)])
    meter.used(1000, 500)
    assert meter.may_retry()
    meter.used(1000, 500)
    assert meter.may_retry()
    meter.used(1000, 500)
    assert not meter.may_retry()
    assert budget.exhausted == "--max-requests 3"
    assert budget.usd == pytest.approx(3 * 0.002)
    budget.spend(request, Response(status="error", reason="no text"))
    assert list(budget.admit([ask(2)])) == []


def test_embedding_and_ranking_are_not_counted() -> None:
    budget = Budget(Limits(max_requests=1))
    requests: list[Request] = [Embed(text="a"), Embed(text="b"), Rank(query="a", document="b")]
    assert len(list(budget.admit([*requests, ask(1), ask(2)]))) == 4
    assert budget.requests == 1


@pytest.mark.parametrize("limit", [{"max_requests": 5}, {"max_usd": 0.002, "price_out": 10.0}])
def test_a_runs_budget_holds_over_all_its_starts(
    questions: Path, tmp_path: Path, limit: dict[str, Any]
) -> None:
    settings: dict[str, Any] = {
        "data": questions, "levels": "1", "repeats": 5, "embedder": "openai:embed", "concurrency": 1,
        "max_tokens": 64,         "out": tmp_path / "run", "progress": False,
    }  # fmt: skip
    with Loopback(words=30) as server:
        for start in range(3):
            with pytest.raises(BudgetReached):
                ek.run("mirae", "openai:loop", base_url=server.url, **settings, **limit)
            if not start:
                asked = server.requests
                assert 0 < asked <= 6  # one of them may be a probe
        assert server.requests <= asked + 2
        ek.run("mirae", "openai:loop", base_url=server.url, **settings)


class Broken(Loopback):
    """A server whose first replies lack the last brace, and are paid for all the same."""

    def _answer(self, path: str, body: Any, key: str) -> bytes:
        reply = super()._answer(path, body, key)
        return reply[:-1] if path.endswith("/chat/completions") and self.requests <= 8 else reply


def test_replies_that_cannot_be_used_count(questions: Path, tmp_path: Path) -> None:
    with Broken(words=30, record=True) as server, pytest.raises(BudgetReached):
        ek.run(
            "mirae", "openai:loop", base_url=server.url, data=questions, levels="1", repeats=5,
            embedder="openai:embed", max_tokens=64, concurrency=2, out=tmp_path / "run", progress=False,
            max_usd=0.002, price_out=10.0,
        )  # fmt: skip
    with closing(Journal(tmp_path / "run" / "journal.sqlite")) as journal:
        usage = journal.usage()["model"]
    assert usage.requests == sum(body["path"].endswith("/chat/completions") for body in server.bodies)
    assert usage.tokens_out * 10.0 / 1e6 <= 0.002
