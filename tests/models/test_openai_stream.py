"""How the openai backend reads a stream of requests, and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from loopback import Loopback
from models.hostile import answers, chat, model_of
from sealegs.errors import BudgetReached
from sealegs.types import Request, Response

PATIENCE_S = 120


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("sealegs")]


def test_the_stream_is_read_no_further_ahead_than_the_ceiling() -> None:
    pulled = 0

    def requests() -> Iterator[Request]:
        nonlocal pulled
        for i in range(40):
            pulled += 1
            assert pulled - server.statuses[200] <= 5
            yield chat(f"q{i}")

    with Loopback(latency=0.01) as server:
        responses = answers(model_of(server, concurrency=5), requests())
    assert len(responses) == 40
    assert server.peak <= 5


def test_leaving_early_ends_the_thread_and_what_is_under_way() -> None:
    with Loopback(holds_after=1) as server:
        for _ in model_of(server, concurrency=8).answer(chat(f"q{i}") for i in range(10_000)):
            assert threads()
            break
        for thread in threads():
            thread.join(PATIENCE_S)
        assert not threads()
        assert server.requests <= 9


def test_two_streams_of_one_model_do_not_hold_each_other_up() -> None:
    with Loopback(latency=0.02) as server:
        model = model_of(server, concurrency=2)
        streams = [model.answer(chat(f"{name}{i}") for i in range(10)) for name in "ab"]
        assert len(list(zip(*streams, strict=True))) == 10


def test_an_error_in_the_stream_is_raised_after_what_is_under_way() -> None:
    def requests() -> Iterator[Request]:
        yield from (chat(f"q{i}") for i in range(6))
        raise BudgetReached("enough")

    seen: list[tuple[Request, Response]] = []
    with Loopback(latency=0.05) as server, pytest.raises(BudgetReached, match="enough"):
        seen.extend(model_of(server).answer(requests()))
    assert len(seen) == 6
