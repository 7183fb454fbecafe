"""The openai backend against every fault of `faults.py`: what is recovered, after how many tries, and what
is said where nothing helps."""

from __future__ import annotations

import asyncio
import re
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from evenkeel.errors import ModelUnreachable
from evenkeel.models.openai import retry
from evenkeel.models.openai.connections import Connector
from evenkeel.types import Embed, Generate, Rank, Request, Response, Sampling
from faults import EVERY_FAULT, FAULTS, JSON, STATUSES, WAITS
from loopback import Loopback, embedding, shared_words
from models.hostile import KEY, Hostile, Recorder, chat, fixed, model_of, says

TIMEOUT_S = 60.0
"""Of one try: more than any reply takes on a machine that is busy."""
STALL_S = 3.0
"""Of one try of a server that stands still."""
ANSWERS = ("slow", "another type")
"""Faults that are right answers all the same."""
FAILURES = tuple(name for name in FAULTS if name not in (*ANSWERS, "twice"))
OVERLOADS = ("429", "503", "529", "503 1", "503 86400", *(f"429 {wait}" for wait in WAITS))
OTHER_STATUSES = tuple(name for name in STATUSES if name not in OVERLOADS)
STALLS = (
    "stall before the headers",
    "stall in the headers",
    "stall in the body",
    "informational without end",
)
KINDS = {
    "connection lost": (
        "reset", "reset in the headers", "reset in the body", "cut in the headers", "cut in the body",
        "a chunk of exabytes", "cut in a chunk",
    ),
    "timeout": STALLS,
    "broken reply: it breaks the rules of HTTP": (
        "not HTTP", "no such status", "a line of a megabyte", "headers without end", "other length",
        "negative length", "length too small", "chunks of garbage",
    ),
    "broken reply": (
        "broken", "a list", "shape", "no choices", "null choices", "choices of numbers",
        "content is a number", "a number as content", "an object as content",
        "not UTF-8", "nested", "error in a success", "not gzip", "gzip cut", "brotli",
    ),
    "reply is not JSON": (
        "empty", "null", "a string", "UTF-16", "a page", "a text", "events", "broken events",
    ),
    "reply too large": ("without end", "petabytes announced", "a bomb"),
    "HTTP 101": ("switching protocols",),
    "HTTP 204": ("no content",),
    "HTTP 304": ("not modified",),
    "HTTP 307: it redirects to https://elsewhere.test/v1/chat/completions": ("redirect",),
    "HTTP 308: it redirects to /v1/chat/completions": ("redirect to itself",),
    "HTTP 302: it redirects to nowhere": ("redirect nowhere",),
    **{f"HTTP {status}: the keel is cracked [key]": (status,) for status in OTHER_STATUSES},
}  # fmt: skip
"""What is said of each fault that stays."""


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
    return str(body.get("prompt") or (body.get("input") or body["documents"])[0])


def plain(text: str) -> Request:
    return Generate(prompt=text, sampling=Sampling())


def embed(text: str) -> Request:
    return Embed(text=text)


def rank(text: str) -> Request:
    return Rank(query=text, document=text)


def is_right(text: str, response: Response) -> bool:
    """Whether a response is the one to this prompt, and to no other."""
    if response.vector is not None:
        import numpy

        vector = numpy.frombuffer(response.vector, dtype="<f4")
        return bool(numpy.allclose(vector, embedding(text)))
    if response.rank is not None:
        return response.rank == shared_words(text, text)
    return f"{zlib.crc32(text.encode()):08x}" in response.text


def asked(
    server: Loopback, make: Callable[[str], Request], texts: list[str], **args: Any
) -> dict[str, Response]:
    model = model_of(server, **{"timeout": TIMEOUT_S, "embed_batch": 1, **args})
    requests = {make(text): text for text in texts}
    return {requests[request]: response for request, response in model.answer(requests)}


@pytest.mark.parametrize("make", [chat, plain, embed, rank])
def test_every_fault_is_recovered_by_one_more_try(make: Callable[[str], Request]) -> None:
    faults = (*(name for name in FAILURES if name not in STALLS), *OTHER_STATUSES, *ANSWERS)
    texts = [f"{number}: {fault}" for number, fault in enumerate(faults)]
    with PerPrompt(1) as server:
        responses = asked(server, make, texts, concurrency=16)
    assert {text: response.reason for text, response in responses.items() if response.status != "ok"} == {}
    assert [text for text, response in responses.items() if not is_right(text, response)] == []
    answers = {text for text in texts if text.partition(": ")[2] in ANSWERS}
    again = Counter({text: server.tries[text] - (1 if text in answers else 2) for text in texts})
    assert min(again.values()) == 0
    # Equal scores of two documents are equal replies, one of which is asked for once more.
    assert again.total() <= (make is rank)


@pytest.mark.parametrize("make", [chat, plain, embed, rank])
def test_a_server_that_stands_still_is_asked_again(make: Callable[[str], Request]) -> None:
    texts = [f"{number}: {fault}" for number, fault in enumerate(STALLS)]
    with PerPrompt(1) as server:
        responses = asked(server, make, texts, timeout=STALL_S)
    assert all(response.status == "ok" and is_right(text, response) for text, response in responses.items())
    assert all(server.tries[text] >= 2 for text in texts)


def test_a_fault_that_stays_fails_its_request_alone_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    expected = {
        f"{number}: {fault}": kind
        for number, (kind, fault) in enumerate((kind, name) for kind in KINDS for name in KINDS[kind])
        if kind != "timeout"
    }
    assert {text.partition(": ")[2] for text in expected} == {*FAILURES, *OTHER_STATUSES} - {*STALLS}
    watcher = Recorder()
    with PerPrompt(99, echo_key=True) as server:
        model = model_of(server, timeout=TIMEOUT_S, concurrency=16, retries=1)
        model.watch(watcher)
        texts = [text for each in expected for text in (f"good before {each.partition(':')[0]}", each)]
        responses = {
            request.prompt[0].content: response  # type: ignore[union-attr]
            for request, response in model.answer(chat(text) for text in texts)
        }
    shown = " ".join([*watcher.notes, *(response.reason for response in responses.values())])
    assert {text for text, response in responses.items() if response.status == "ok"} == {
        text for text in texts if text not in expected
    }
    for text, kind in expected.items():
        reason = responses[text].reason
        assert re.sub(" after 2 tries", "", reason).startswith(kind), text
        assert " after 2 tries" in reason
        assert server.tries[text] <= 2
        assert len(reason) < 700
    assert shown.isprintable()
    assert "anary" not in shown


def test_a_refusal_for_overload_is_recovered_whatever_pause_it_asks_for() -> None:
    # At one connection a pause of a day is believed; among good answers it is not.
    refused = [f"{number}: {fault}" for number, fault in enumerate(OVERLOADS)]
    texts = [
        text
        for each in refused
        for text in (*(f"good {each.partition(':')[0]} {n}" for n in range(30)), each)
    ]
    with PerPrompt(1, retry_after="") as server:
        responses = asked(server, chat, texts, concurrency=64)
    assert {text: response.reason for text, response in responses.items() if response.status != "ok"} == {}
    assert all(is_right(text, response) for text, response in responses.items())
    assert {text for text in texts if server.tries[text] > 1} == set(refused)
    assert {server.tries[text] for text in refused} == {2}


def test_a_stall_that_stays_is_a_timeout() -> None:
    texts = [f"{number}: {fault}" for number, fault in enumerate(STALLS)]
    with PerPrompt(99) as server:
        model = model_of(server, timeout=0.5, retries=1)
        model._health.answered()
        reasons = {response.reason for _, response in model.answer(chat(text) for text in texts)}
    assert reasons == {"timeout after 2 tries: no reply within 0.5 s"} | (
        reasons & {"timeout after 2 tries: the reply began and did not go on"}
    )
    assert max(server.tries.values()) == 2  # on a busy machine the time may end before a try arrives


# Replies that come twice


def test_an_answer_that_comes_twice_is_not_that_of_the_next_question() -> None:
    with PerPrompt(1) as server:
        texts = [f"{number}: twice" for number in range(6)]
        responses = asked(server, chat, texts, concurrency=1)
    assert [text for text, response in responses.items() if not is_right(text, response)] == []


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


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_server_with_one_answer_to_everything_is_asked_nothing_twice(concurrency: int) -> None:
    with fixed(says("yes")) as server:
        responses = asked(server, chat, [f"q{number}" for number in range(60)], concurrency=concurrency)
    assert {response.text for response in responses.values()} == {"yes"}
    assert server.requests == 60


def test_failures_that_come_before_the_first_answers_do_not_end_the_run() -> None:
    class FastFailures(PerPrompt):
        async def _reply(self, request: web.BaseRequest, path: str, data: bytes) -> web.StreamResponse | None:
            if ": " not in prompt_of(data):
                await asyncio.sleep(0.3)
            return await super()._reply(request, path, data)

    faults = ("a page", "empty", "redirect", "403", "405") * 3
    texts = [
        *(f"{number}: {fault}" for number, fault in enumerate(faults)),
        *(f"good {n}" for n in range(40)),
    ]
    with FastFailures(1) as server:
        responses = asked(server, chat, texts, concurrency=64)
    assert {response.status for response in responses.values()} == {"ok"}


@pytest.mark.parametrize("fault", ["403", "redirect", "a page"])
def test_a_server_that_refuses_all_of_many_requests_is_still_given_up(fault: str) -> None:
    with PerPrompt(999) as server, pytest.raises(ModelUnreachable):
        asked(server, chat, [f"{number}: {fault}" for number in range(200)], concurrency=32)
    assert server.requests < 100


def test_a_few_refusals_among_good_answers_hold_nobody_else_back() -> None:
    async def scenario() -> None:
        throttle = retry.Throttle(512)
        for number in range(2000):
            throttle.count(refused=number % 40 == 39)
            assert not throttle.is_overloaded
        for _ in range(16):
            throttle.count(refused=True)
        assert throttle.is_overloaded

    asyncio.run(scenario())


def test_a_load_with_faults_of_every_kind_ends_whole_and_leaves_nothing_open() -> None:
    texts = [f"question {number}" for number in range(1500)]
    descriptors, threads = Path("/proc/self/fd"), threading.active_count()
    with Loopback(fail=0.1, faults=EVERY_FAULT, words=20) as server:
        before = len(list(descriptors.iterdir()))
        model = model_of(server, timeout=STALL_S, concurrency=128)
        responses = dict(model.answer(chat(text) for text in texts))
        model.close()
        end = time.monotonic() + 30
        while server.connections and time.monotonic() < end:
            time.sleep(0.02)
        assert server.connections == 0
        assert len(list(descriptors.iterdir())) <= before
    assert threading.active_count() == threads
    assert Counter(response.status for response in responses.values()) == {"ok": 1500}
    assert all(is_right(request.prompt[0].content, response) for request, response in responses.items())  # type: ignore[union-attr]
    assert server.requests >= 1600
