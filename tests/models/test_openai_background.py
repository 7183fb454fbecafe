"""A reader that is interrupted is given all that was received, wherever the interrupt comes."""

from __future__ import annotations

import asyncio
import threading
from queue import SimpleQueue
from typing import Any

import pytest

from sealegs.models.openai import background
from sealegs.models.openai.background import Outbox, iterate
from suites import PATIENCE


def received_by_ctrl_c() -> list[int]:
    """What a reader is given of three items when it is interrupted."""

    async def produce(outbox: Outbox[int]) -> None:
        for number in range(3):
            outbox.put(number)

    received: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        for number in iterate(produce):
            received.append(number)  # noqa: PERF402  # what came before the interrupt counts
    return received


def test_ctrl_c_between_taking_answers_and_reading_them_loses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(SimpleQueue[Any]):
        def get(self, block: bool = True, timeout: float | None = None) -> Any:
            super().get(block, PATIENCE)
            raise KeyboardInterrupt

    monkeypatch.setattr(background, "SimpleQueue", Interrupted)
    assert received_by_ctrl_c() == [0, 1, 2]


def test_ctrl_c_while_the_thread_begins_loses_none_and_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        threading.Thread.start(thread)
        thread.join(PATIENCE)
        raise KeyboardInterrupt

    monkeypatch.setattr(background._Producer, "start", start)
    assert received_by_ctrl_c() == [0, 1, 2]


def test_ctrl_c_before_the_thread_begins_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(background._Producer, "start", start)
    monkeypatch.setattr(background, "START_S", 0.0)
    assert received_by_ctrl_c() == []


def test_what_waits_for_its_turn_is_handed_over_when_the_reader_is_interrupted() -> None:
    """A large reply is read only when the one before is stored."""

    async def produce(outbox: Outbox[int]) -> None:
        outbox.put(0)
        await outbox.taken()
        outbox.put(1)
        await asyncio.sleep(PATIENCE)

    items = iterate(produce)
    assert next(items) == 0
    assert items.throw(KeyboardInterrupt()) == 1
    with pytest.raises(KeyboardInterrupt):
        next(items)
