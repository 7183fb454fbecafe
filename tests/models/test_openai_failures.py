"""What becomes of a request whose try failed: the table of `retry.py`, against a real server."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from contextlib import ExitStack
from itertools import count
from typing import Any

import msgspec
import pytest
from aiohttp import web

from loopback import Loopback
from models.hostile import (
    KEY,
    Hostile,
    Recorder,
    answers,
    chat,
    failing,
    fixed,
    free_port,
    model_of,
    one,
    says,
)
from sealegs.errors import BudgetReached, DataError, ModelUnreachable, UsageError
from sealegs.harness.gate import RequestGate
from sealegs.harness.limits import Limits
from sealegs.models.openai.servers import Throttle
from sealegs.models.openai.transport import requested_wait
from sealegs.models.registry import load_model
from sealegs.types import Request, Response
from suites import PATIENCE

FAILS = ["400", "413", "422", "418"]
SUSPECTS = ["401", "402", "403", "404", "405", "redirect", "a page"]
SLOWED = ["429", "503", "529"]


@pytest.mark.parametrize("fault", [*FAILS, *SUSPECTS, *SLOWED])
def test_a_request_is_refused_alone_or_tried_again_more_slowly(fault: str) -> None:
    """What else is tried again is in test_openai_faults.py."""
    with Loopback(script=("ok", fault)) as server:
        responses = answers(model_of(server, concurrency=1), [chat(f"q{i}") for i in range(3)])
    again = fault in SLOWED
    assert [response.status for response in responses.values()] == ["ok", "ok" if again else "error", "ok"]
    assert server.requests == (4 if again else 3)


@pytest.mark.parametrize("fault", SUSPECTS)
def test_a_suspected_server_is_given_up_before_any_answer(fault: str) -> None:
    with Loopback(fail=1.0, faults=(fault,)) as server, pytest.raises(ModelUnreachable):
        answers(model_of(server, concurrency=1), [chat(f"q{i}") for i in range(20)])
    assert server.requests == 1


@pytest.mark.parametrize("fault", ["400", "429", "500", "drop", "broken"])
def test_other_failures_before_any_answer_end_nothing(fault: str) -> None:
    with Loopback(script=(fault,)) as server:
        responses = answers(model_of(server, concurrency=1), [chat(f"q{i}") for i in range(3)])
    assert [response.status for response in responses.values()].count("ok") == (2 if fault in FAILS else 3)


def test_fast_refusals_with_many_under_way_end_nothing() -> None:
    class FastFailures(Loopback):
        """All are under way before the first is refused, and three are refused before one is answered."""

        numbers = count(1)

        async def _reply(self, request: web.BaseRequest, path: str, data: bytes) -> web.StreamResponse | None:
            number = next(self.numbers)
            while self.peak < 32 or (number > 3 and self.statuses.total() < 3):
                await asyncio.sleep(0.01)
            return await super()._reply(request, path, data)

    with FastFailures(script=("404", "402", "a page")) as server:
        responses = answers(model_of(server, concurrency=32), [chat(f"q{i}") for i in range(40)])
    assert [response.status for response in responses.values()].count("ok") == 37


def test_a_refusal_while_the_others_wait_out_an_overload_ends_nothing() -> None:
    with Loopback(script=("429", "429", "429", "404"), retry_after="0.5", latency=0.05) as server:
        responses = answers(model_of(server, concurrency=4), [chat(f"q{i}") for i in range(4)])
    assert [response.status for response in responses.values()].count("ok") == 3


# Pace


def test_an_overloaded_server_is_sent_fewer_at_once() -> None:
    with Loopback(overload_above=8, latency=0.005) as server:
        responses = answers(model_of(server, concurrency=64), [chat(f"q{i}") for i in range(400)])
    assert {response.status for response in responses.values()} == {"ok"}
    assert server.statuses[429] < 300  # without adaptation most of 64 at once would be refused


def test_overload_halves_the_limit_and_success_raises_it_again() -> None:
    throttle = Throttle(64)
    sent_at = time.monotonic()
    throttle.overloaded(sent_at)
    throttle.overloaded(sent_at)  # sent under the old limit
    assert throttle.limit == 32
    for _ in range(100):
        throttle.succeeded()
    assert 32 < throttle.limit < 64
    for _ in range(1000):
        throttle.succeeded()
    assert throttle.limit == 64


def test_a_few_refusals_among_good_answers_are_no_overload() -> None:
    throttle = Throttle(512)
    for number in range(2000):
        throttle.count(refused=number % 40 == 39)
        assert not throttle.is_overloaded
    for _ in range(16):
        throttle.count(refused=True)
    assert throttle.is_overloaded


def test_retry_after_holds_back_every_new_request() -> None:
    with Loopback(script=("429",), retry_after="1") as server:
        started = time.monotonic()
        stream = model_of(server, concurrency=2).answer(chat(f"q{i}") for i in range(10))
        times = [time.monotonic() - started for _ in stream]
    assert sum(seconds < 1.0 for seconds in times) <= 2  # what was under way when the server said so
    assert server.requests == 11


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "2.5"}, 2.5),
        ({"Retry-After": "-5"}, 0),
        ({"Retry-After": "1e999"}, None),
        ({"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}, None),
    ],
)
def test_retry_after_is_read_as_seconds(headers: dict[str, str], seconds: float | None) -> None:
    assert requested_wait(headers) == seconds


def test_a_pause_of_hours_fails_the_request_and_is_named() -> None:
    with Loopback(script=("ok", "429"), retry_after="86400") as server:
        model = model_of(server, concurrency=1)
        one(model, chat("first"))
        assert "; it asks for a pause of 86,400 s" in one(model, chat("second")).reason


def test_a_refusal_without_words_is_named_by_its_pause() -> None:
    async def respond(server: Hostile, request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=429, headers={"Retry-After": "86400"})

    assert failing(Hostile(respond))[0].startswith("HTTP 429: it asks for a pause of 86,400 s")


# Giving up


def test_a_spent_quota_ends_the_run() -> None:
    with (
        Loopback(script=("ok",), fail=1.0, faults=("429",), code="insufficient_quota") as server,
        pytest.raises(ModelUnreachable, match="quota"),
    ):
        answers(model_of(server, concurrency=1), [chat(f"q{i}") for i in range(5)])
    assert server.requests == 2


def test_a_server_that_is_still_starting_is_waited_for() -> None:
    """It starts when the first try has failed."""
    port = free_port()
    with ExitStack() as servers:

        class Starting(Recorder):
            def note(self, text: str) -> None:
                if not self.notes:
                    servers.enter_context(Loopback(port=port))
                super().note(text)

        watcher = Starting()
        model = model_of(f"http://127.0.0.1:{port}/v1", retries=100)
        model.watch(watcher)
        assert one(model, chat("q")).status == "ok"
    assert "Trying again" in watcher.notes[0]


def test_a_host_without_an_address_is_named_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with pytest.raises(ModelUnreachable, match="no connection: Name or service not known[.] Is the server"):
        one(model_of("http://keel.example/v1", retries=0), chat("q"))


def test_a_server_that_fails_every_request_is_given_up() -> None:
    with Loopback(fail=1.0, faults=("500", "broken")) as server, pytest.raises(ModelUnreachable) as raised:
        answers(model_of(server, retries=1, concurrency=4), [chat(f"q{i}") for i in range(100)])
    assert "HTTP 500" in str(raised.value)
    assert server.requests < 40


def test_a_server_that_dies_midway_is_given_up_after_what_was_answered() -> None:
    seen: list[tuple[Request, Response]] = []
    with Loopback(dies_after=40) as server, pytest.raises(ModelUnreachable, match="have all failed"):
        seen.extend(model_of(server, retries=1).answer(chat(f"q{i}") for i in range(500)))
    assert sum(response.status == "ok" for _, response in seen) == 40
    assert 50 <= sum(response.status == "error" for _, response in seen) < 120


def test_a_run_of_prompts_that_are_refused_is_no_dead_server() -> None:
    with Loopback() as server:
        requests = [chat("fine"), *(chat(f"[poison] {i}") for i in range(60)), chat("fine again")]
        responses = answers(model_of(server, concurrency=1), requests)
    assert [response.status for response in responses.values()].count("ok") == 2


# The budget


def test_tries_and_unusable_replies_are_counted() -> None:
    body = says("a keel").removesuffix(b"}") + b',"usage":{"prompt_tokens":7,"completion_tokens":3}'

    async def respond(server: Hostile, request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=says("whole") if server.requests == 1 else body)

    gate = RequestGate(Limits(max_requests=4, price_in=1e6, price_out=1e3))
    with Hostile(respond) as server:
        model = model_of(server, concurrency=1)
        one(model, chat("first"))
        model.count_with(gate, "model")
        with pytest.raises(BudgetReached):
            answers(model, [chat("second"), chat("third")])
    assert server.requests == 1 + 1 + 4
    assert gate.usd == pytest.approx(5 * 7 + 5 * 3 / 1000)


def test_a_budget_that_ends_during_a_pause_ends_the_pause() -> None:
    gate = RequestGate(Limits(max_requests=4))
    ended: list[BaseException] = []

    async def respond(server: Hostile, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        if b"slow" in body:
            return web.Response(status=429, headers={"Retry-After": "500"})
        return web.Response(status=500) if b"failing" in body else web.Response(body=says("fine"))

    def ask() -> None:
        requests = [chat("slow"), chat("failing")]
        try:
            answers(model, (request for request in requests if gate.admit(request, wait=False)))
        except BudgetReached as error:
            ended.append(error)

    with Hostile(respond) as server:
        model = model_of(server, concurrency=20, retries=50)
        answers(model, [chat(f"good {number}") for number in range(20)])  # one refusal is no overload then
        model.count_with(gate, "model")
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(PATIENCE)
        assert server.requests == 20 + 4
    assert len(ended) == 1


def test_a_request_that_cannot_be_written_is_not_counted() -> None:
    gate = RequestGate(Limits(max_requests=1))
    request = chat("half \ud83d")
    assert gate.admit(request, wait=False)
    with Loopback() as server:
        model = model_of(server)
        model.count_with(gate, "model")
        with pytest.raises(DataError):
            one(model, request)
    assert gate.requests == server.requests == 0


def test_a_count_that_no_reply_can_have_uses_up_no_budget() -> None:
    usage = b'{"usage":{"prompt_tokens":999999999,"completion_tokens":999999999}}'

    async def respond(server: Hostile, request: web.BaseRequest) -> web.StreamResponse:
        return (
            web.Response(body=says("a keel")) if server.requests > 1 else web.Response(body=usage, status=500)
        )

    gate = RequestGate(Limits(max_usd=1, price_in=1.0, price_out=1.0))
    with Hostile(respond) as server:
        model = model_of(server)
        model.count_with(gate, "model")
        assert one(model, chat("first")).text == "a keel"
    assert gate.usd == 0


def test_a_budget_that_ends_at_an_overloaded_server_ends_every_call_that_waits() -> None:
    gate = RequestGate(Limits(max_requests=60))
    requests = [chat(f"q{number}") for number in range(16)]
    ended: list[BaseException] = []

    def ask() -> None:
        try:
            answers(model, (request for request in requests if gate.admit(request, wait=False)))
        except BudgetReached as error:
            ended.append(error)

    with Loopback(fail=1.0, faults=("429",), latency=0.1) as server:
        model = model_of(server, concurrency=16, retries=50)
        model.count_with(gate, "model")
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(PATIENCE)
        assert server.requests == gate.requests == 60
    assert len(ended) == 1


def test_a_server_that_is_overloaded_is_asked_no_faster_by_the_next_stream() -> None:
    with Loopback(overload_above=2, latency=0.05) as server:
        model = model_of(server, concurrency=32)
        answers(model, [chat(f"first {number}") for number in range(64)])
        server.behaviour.overload_above = 0
        server.peak = 0
        answers(model, [chat(f"second {number}") for number in range(32)])
        assert server.peak < 24


# Odd replies and addresses


def test_the_choice_of_index_0_is_taken_wherever_it_is() -> None:
    choices = [
        {"index": index, "message": {"content": f"choice {index}"}, "finish_reason": "stop"}
        for index in (2, 0, 1)
    ]
    with fixed(msgspec.json.encode({"choices": choices})) as server:
        assert one(model_of(server), chat("q")).text == "choice 0"


def test_an_error_beside_choices_is_an_error() -> None:
    body: dict[str, Any] = msgspec.json.decode(says("half an answer"))
    body["error"] = {"message": "the provider went away", "code": 502}
    reason, _ = failing(fixed(msgspec.json.encode(body)), retries=0)
    assert "the provider went away" in reason


def test_half_a_character_in_a_prompt_is_named() -> None:
    with Loopback() as server, pytest.raises(DataError, match="half a character"):
        answers(model_of(server), [chat("half \ud83d")])
    assert server.requests == 0


@pytest.mark.parametrize(
    "address",
    [
        "http:///v1",
        "http://[::1/v1",
        f"http://me:{KEY}@127.0.0.1:99999/v1",
    ],
)
def test_a_malformed_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="is not a web address") as raised:
        load_model("openai:m", base_url=address)
    assert "Canary" not in str(raised.value)
