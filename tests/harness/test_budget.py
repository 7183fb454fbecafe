"""Limits: stop in time, whatever is still on its way."""

from __future__ import annotations

import pytest

from evenkeel.harness.budget import Budget, Limits, estimate
from evenkeel.types import Embed, Generate, Response, Sampling


def ask(number: int) -> Generate:
    return Generate(prompt=f"{number} words to read here", sampling=Sampling(max_tokens=100))


def test_no_more_requests_pass_than_allowed() -> None:
    budget = Budget(Limits(max_requests=3))
    assert len(list(budget.admit(ask(n) for n in range(10)))) == 3
    assert budget.exhausted == "--max-requests 3"


def test_requests_in_flight_count_with_the_most_they_may_write() -> None:
    budget = Budget(Limits(max_tokens_total=250))
    passed = list(budget.admit([ask(n) for n in range(10)]))
    assert len(passed) == 2
    for request in passed:
        budget.spend(request, Response(status="ok", tokens_in=5, tokens_out=10))
    assert budget.tokens_in + budget.tokens_out == 30
    assert len(list(budget.admit([ask(n) for n in range(10)]))) == 2


def test_a_failure_costs_nothing() -> None:
    budget = Budget(Limits(max_tokens_total=1000))
    (request,) = budget.admit([ask(1)])
    budget.spend(request, Response(status="error", reason="HTTP 500"))
    assert budget.tokens_in + budget.tokens_out == 0


def test_a_server_that_reports_no_usage_is_estimated() -> None:
    budget = Budget(Limits(max_tokens_total=1000))
    (request,) = budget.admit([ask(1)])
    budget.spend(request, Response(status="ok", text="four words or so"))
    assert budget.tokens_in == estimate(request)[0] > 0
    assert 0 < budget.tokens_out < 10


def test_dollars_are_per_million_tokens() -> None:
    limits = Limits(max_usd=1.0, price_in=2.0, price_out=10.0)
    assert limits.price is not None
    assert limits.price.usd(500_000, 100_000) == pytest.approx(2.0)
    long = Generate(prompt="word " * 2_000_000, sampling=Sampling(max_tokens=1))
    assert list(Budget(limits).admit([long])) == []


def test_embedding_is_not_counted() -> None:
    budget = Budget(Limits(max_requests=1))
    texts = [Embed(text=f"text {n}") for n in range(3)]
    assert len(list(budget.admit([*texts, ask(1), ask(2)]))) == 4
    for text in texts:
        budget.spend(text, Response(status="ok", tokens_in=5))
    assert budget.tokens_in == 0
