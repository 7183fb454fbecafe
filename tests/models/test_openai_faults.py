"""The openai backend against every fault of `faults.py`: what is recovered, after how many tries, and what
is said where nothing helps."""

from __future__ import annotations

import asyncio
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from faults import FAULTS, JSON, STATUSES
from loopback import Loopback, embedding
from models.hostile import KEY, Hostile, Recorder, chat, model_of, one
from sealegs.models.openai.transport import Connector
from sealegs.types import Embed, Request, Response
from suites import until

TIMEOUT_S = 60.0
"""Of one try: more than any reply takes on a machine that is busy."""
STALL_S = 3.0
"""Of one try of a server that stands still."""
ANSWERS = ("slow", "another type")
"""Faults that are right answers all the same."""
FINAL = ("redirect", "not modified", "a page")
STALLS = ("stall before the headers", "stall in the body", "informational without end")
FAILURES = tuple(name for name in FAULTS if name not in (*ANSWERS, *FINAL, *STALLS))
OTHER_STATUSES = tuple(name for name in STATUSES if name not in ("429", "503", "529"))
KINDS = ("connection lost", "broken reply", "web page", "HTTP ")


class PerPrompt(Loopback):
    """Does to a prompt what the prompt says, so many times."""

    def __init__(self, times: int, **behaviour: Any) -> None:
        super().__init__(words=3, **behaviour)
        self.times = times
        self.tries: Counter[str] = Counter()

    def _fault(self, data: bytes) -> str:
        text = prompt_of(data)
        self.tries[text] += 1
        fault = text.partition(": ")[2]
        return fault if self.tries[text] <= self.times else ""


def prompt_of(data: bytes) -> str:
    body: dict[str, Any] = msgspec.json.decode(data)
    if "messages" in body:
        return str(body["messages"][-1]["content"])
    return str(body["input"][0])


def embed(text: str) -> Request:
    return Embed(text=text)


def is_right(text: str, response: Response) -> bool:
    """Whether a response is the one to this prompt, and to no other."""
    if response.vector is not None:
        import numpy

        vector = numpy.frombuffer(response.vector, dtype="<f4")
        return bool(numpy.allclose(vector, embedding(text)))
    return f"{zlib.crc32(text.encode()):08x}" in response.text


def asked(
    server: Loopback, make: Callable[[str], Request], texts: list[str], **args: Any
) -> dict[str, Response]:
    model = model_of(server, **{"timeout": TIMEOUT_S, "embed_batch": 1, **args})
    requests = {make(text): text for text in texts}
    responses = {requests[request]: response for request, response in model.answer(requests)}
    model.close()
    return responses


@pytest.mark.parametrize("make", [chat, embed])
def test_every_fault_is_recovered_by_one_more_try(make: Callable[[str], Request]) -> None:
    faults = (*FAILURES, *OTHER_STATUSES, *ANSWERS)
    texts = [f"{number}: {fault}" for number, fault in enumerate(faults)]
    with PerPrompt(1) as server:
        responses = asked(server, make, texts, concurrency=16)
    assert {text: response.reason for text, response in responses.items() if response.status != "ok"} == {}
    assert [text for text, response in responses.items() if not is_right(text, response)] == []
    expected = {text: 1 if text.partition(": ")[2] in ANSWERS else 2 for text in texts}
    assert server.tries == expected


def test_a_server_that_stands_still_is_asked_again() -> None:
    texts = [f"{number}: {fault}" for number, fault in enumerate(STALLS)]
    with PerPrompt(1) as server, leaving_nothing_open(server):
        responses = asked(server, chat, texts, timeout=STALL_S)
    assert all(response.status == "ok" and is_right(text, response) for text, response in responses.items())


def test_a_fault_that_stays_fails_its_request_alone_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    faults = [f"{number}: {fault}" for number, fault in enumerate((*FAILURES, *FINAL, *OTHER_STATUSES))]
    watcher = Recorder()
    with PerPrompt(99, echo_key=True) as server:
        model = model_of(server, timeout=TIMEOUT_S, concurrency=16, retries=1, api_key_env="OPENAI_API_KEY")
        model.watch(watcher)
        texts = [text for fault in faults for text in (f"good before {fault.partition(':')[0]}", fault)]
        one(model, chat("first"))
        responses = {
            request.prompt[0].content: response  # type: ignore[union-attr]
            for request, response in model.answer(chat(text) for text in texts)
        }
    assert {text for text, response in responses.items() if response.status != "ok"} == set(faults)
    for text in faults:
        reason = responses[text].reason
        tries = 1 if text.partition(": ")[2] in FINAL else 2
        assert reason.startswith(KINDS), text
        assert (" after 2 tries" in reason) == (tries == 2), text
        assert server.tries[text] == tries
        assert len(reason) < 700
    shown = " ".join([*watcher.notes, *(response.reason for response in responses.values())])
    assert shown.isprintable()
    assert "anary" not in shown


# Replies that come twice


def test_a_connection_on_which_a_second_copy_came_is_not_used_again() -> None:
    async def scenario(server: Loopback) -> None:
        again = JSON + b"Content-Length: 4\r\n\r\nlate"
        async with Connector() as connector, aiohttp.ClientSession(connector=connector) as session:
            async with session.get(f"{server.url}/first") as reply:
                await reply.read()
            [[(idle, _)]] = connector._conns.values()
            [connection] = server._server.connections
            assert connection.transport is not None
            server._loop.call_soon_threadsafe(connection.transport.write, again)
            while not idle.should_close:  # until it has come
                await asyncio.sleep(0.01)
            async with session.get(f"{server.url}/second") as reply:
                assert await reply.read() == b"/v1/second"

    async def respond(_: Hostile, request: web.BaseRequest) -> web.Response:
        return web.Response(text=request.path)

    with Hostile(respond) as server:
        asyncio.run(asyncio.wait_for(scenario(server), TIMEOUT_S))


@contextmanager
def leaving_nothing_open(server: Loopback) -> Iterator[None]:
    """Around what asks a server: its connections are closed after it, and no thread is left."""
    descriptors, threads = Path("/proc/self/fd"), threading.active_count()
    before = len(list(descriptors.iterdir()))
    yield
    until(lambda: not server.connections)
    assert len(list(descriptors.iterdir())) <= before
    assert threading.active_count() == threads


def test_a_load_with_faults_of_every_kind_ends_whole_and_leaves_nothing_open() -> None:
    texts = [f"question {number}" for number in range(500)]
    faults = (*STATUSES, *(name for name in FAULTS if name not in (*FINAL, *STALLS)))
    with Loopback(fail=0.1, faults=faults, words=20) as server, leaving_nothing_open(server):
        model = model_of(server, timeout=TIMEOUT_S, concurrency=128)
        one(model, chat("question first"))
        responses = dict(model.answer(chat(text) for text in texts))
        model.close()
    assert Counter(response.status for response in responses.values()) == {"ok": 500}
    assert all(is_right(request.prompt[0].content, response) for request, response in responses.items())  # type: ignore[union-attr]
    assert server.requests >= 530
