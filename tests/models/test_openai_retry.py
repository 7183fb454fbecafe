"""What the openai backend tries again, at which pace, and when it gives a server up."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from evenkeel.errors import ModelUnreachable
from evenkeel.models.openai import retry
from evenkeel.models.openai.transport import requested_wait
from evenkeel.types import Request, Response
from loopback import Loopback
from models.hostile import answers, chat, free_port, model_of, one


@pytest.mark.parametrize(
    "fault", ["408", "409", "425", "429", "500", "502", "529", "drop", "broken", "shape"]
)
def test_what_may_pass_is_tried_again(fault: str) -> None:
    with Loopback(script=(fault, fault)) as server:
        assert one(model_of(server), chat("q")).status == "ok"
    assert server.requests == 3


@pytest.mark.parametrize("status", ["400", "405", "413", "422"])
def test_what_will_not_pass_is_not_tried_again(status: str) -> None:
    with Loopback(script=("ok", status)) as server:
        model = model_of(server, concurrency=1)
        one(model, chat("first"))
        response = one(model, chat("second"))
    assert response.status == "error"
    assert response.reason == f"HTTP {status}: the keel is cracked (loopback_error)"
    assert server.requests == 2


def test_a_lone_request_that_is_refused_does_not_condemn_the_server() -> None:
    with Loopback() as server:
        assert one(model_of(server), chat("[poison]")).reason.startswith(
            "HTTP 400: this text is not accepted"
        )


def test_an_unsupported_temperature_is_left_out_once_and_noted() -> None:
    refusal = "temperature does not support 0.0 with this model"
    with Loopback(refuses=refusal, record=True) as server:
        model = model_of(server)
        assert [one(model, chat(text)).status for text in ("q", "r")] == ["ok", "ok"]
    assert [body.get("temperature") for body in server.bodies] == [0.0, None, None]
    (note,) = model.notes()
    assert refusal in note


def test_a_temperature_out_of_range_is_an_error_and_is_never_changed() -> None:
    with Loopback(always=400, says="temperature must be between 0.1 and 1", record=True) as server:
        model = model_of(server)
        response = one(model, chat("q"))
    assert "temperature must be between 0.1 and 1" in response.reason
    assert [body["temperature"] for body in server.bodies] == [0.0]
    assert not model.notes()


def test_a_request_that_keeps_failing_says_how_often_it_was_tried() -> None:
    with Loopback(script=("ok", "500", "500", "500")) as server:
        model = model_of(server, retries=2, concurrency=1)
        one(model, chat("first"))
        response = one(model, chat("second"))
    assert response.status == "error"
    assert response.reason == "HTTP 500 after 3 tries: the keel is cracked (loopback_error)"


def test_a_reply_that_takes_too_long_is_a_timeout() -> None:
    with Loopback() as server:
        model = model_of(server, timeout=0.6, retries=1)
        one(model, chat("first"))
        server.behaviour.latency = 10.0
        response = one(model, chat("second"))
    assert response.reason == "timeout after 2 tries: no reply within 0.6 s"


def test_a_disturbed_run_gives_the_same_answers_as_an_undisturbed_one() -> None:
    requests = [chat(f"question {i}", repeat=repeat) for i in range(60) for repeat in range(5)]
    texts = []
    for fail in (0.0, 0.3):
        with Loopback(fail=fail) as server:
            responses = answers(model_of(server), requests)
        assert {response.status for response in responses.values()} == {"ok"}
        assert set(server.answered.values()) == {5}
        texts.append(sorted(response.text for response in responses.values()))
    assert {429, 500, 0} < set(server.statuses)
    assert texts[0] == texts[1]


def test_overload_lowers_concurrency_and_quiet_raises_it_again() -> None:
    with Loopback(overload_above=8, latency=0.005) as server:
        responses = answers(model_of(server, concurrency=64), [chat(f"q{i}") for i in range(600)])
        refused = server.statuses[429]
        assert {response.status for response in responses.values()} == {"ok"}
        assert refused < 300  # without adaptation most of 64 at once would be refused, again and again
        server.behaviour.overload_above = 0
        server.peak = 0
        answers(model_of(server, concurrency=64), [chat(f"r{i}") for i in range(200)])
    assert server.peak > 32


def test_a_burst_of_refusals_halves_the_limit_once_and_success_restores_it() -> None:
    async def scenario() -> None:
        gate = retry.Throttle(64)
        now = asyncio.get_running_loop().time
        sent = now()
        await asyncio.sleep(0.001)
        for _ in range(50):
            gate.overloaded(sent)
        assert gate.limit == 32
        await asyncio.sleep(0.001)
        gate.overloaded(now())
        assert gate.limit == 16
        for _ in range(2000):
            gate.succeeded()
        assert gate.limit == 64

    asyncio.run(scenario())


@pytest.mark.parametrize("status", ["429", "503"])
def test_retry_after_holds_back_every_new_request(status: str) -> None:
    with Loopback(script=(status,), retry_after="1") as server:
        started = time.monotonic()
        stream = model_of(server, concurrency=2).answer(chat(f"q{i}") for i in range(10))
        times = [time.monotonic() - started for _ in stream]
    assert sum(seconds < 1.0 for seconds in times) <= 2  # what was under way when the server said so
    assert len(times) == 10
    assert server.requests == 11


def test_retry_after_is_read_as_seconds_milliseconds_or_a_date() -> None:
    assert requested_wait({"Retry-After": "2.5"}) == 2.5
    assert requested_wait({"retry-after-ms": "1500", "Retry-After": "2"}) == 1.5
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert requested_wait({"Retry-After": date}) == pytest.approx(30, abs=2)
    assert requested_wait({"Retry-After": "soon"}) is None
    assert requested_wait({}) is None


def test_a_pause_of_hours_is_not_waited_for() -> None:
    with Loopback(script=("ok", "429"), retry_after="86400") as server:
        model = model_of(server, concurrency=1)
        one(model, chat("first"))
        assert one(model, chat("second")).reason.startswith("HTTP 429:")


# Giving up


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_of_every_call_is_raised_at_once(status: int) -> None:
    with Loopback(always=status) as server, pytest.raises(ModelUnreachable) as raised:
        answers(model_of(server, concurrency=1), [chat(f"q{i}") for i in range(100)])
    assert (
        str(raised.value)
        == f"{server.url} refuses the requests. HTTP {status}: the keel is cracked (loopback_error)"
    )
    assert server.requests == 1


def test_a_spent_quota_is_not_waited_for() -> None:
    with (
        Loopback(always=429, code="insufficient_quota") as server,
        pytest.raises(ModelUnreachable, match="quota"),
    ):
        answers(model_of(server, concurrency=1), [chat("q")])
    assert server.requests == 1


def test_a_forbidden_prompt_among_good_ones_is_its_own_failure() -> None:
    with Loopback(script=("ok", "403")) as server:
        responses = answers(model_of(server, concurrency=1), [chat(f"q{i}") for i in range(3)])
    assert sorted(response.status for response in responses.values()) == ["error", "ok", "ok"]


@pytest.mark.parametrize("concurrency", [2, 64])
def test_a_dead_server_is_reported_before_the_retries_are_used_up(
    concurrency: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "NO_CONTACT_S", 1.5)
    url = f"http://127.0.0.1:{free_port()}/v1"
    seen: list[tuple[Request, Response]] = []
    pattern = r"none of the requests at .*: no connection \((\d+) times\)"
    with pytest.raises(ModelUnreachable, match=pattern) as caught:
        seen.extend(
            model_of(url, retries=100, concurrency=concurrency).answer(chat(f"q{i}") for i in range(500))
        )
    attempts = re.search(pattern, str(caught.value))
    assert attempts is not None
    assert int(attempts[1]) < 100 * 500 / 2  # all retries of all requests are twice as many
    assert {response.status for _, response in seen} == {"error"}
    assert len(seen) >= 8


def test_a_single_request_to_a_dead_server_is_reported_too() -> None:
    with pytest.raises(ModelUnreachable, match="no connection"):
        one(model_of(f"http://127.0.0.1:{free_port()}/v1", retries=1), chat("q"))


def test_a_server_that_is_still_starting_is_waited_for() -> None:
    port = free_port()
    late = Loopback(port=port)
    timer = threading.Timer(0.5, late.__enter__)
    timer.start()
    try:
        response = one(model_of(f"http://127.0.0.1:{port}/v1"), chat("q"))
    finally:
        timer.join()
        late.__exit__()
    assert response.status == "ok"


def test_a_server_that_fails_every_request_is_given_up_with_the_kinds_of_failure() -> None:
    with Loopback(fail=1.0, faults=("500", "broken")) as server, pytest.raises(ModelUnreachable) as raised:
        answers(model_of(server, retries=1, concurrency=4), [chat(f"q{i}") for i in range(100)])
    assert "HTTP 500 (" in str(raised.value)
    assert "broken reply (" in str(raised.value)


def test_a_server_that_dies_midway_is_given_up_after_what_was_answered() -> None:
    seen: list[tuple[Request, Response]] = []
    with (
        Loopback(dies_after=40) as server,
        pytest.raises(ModelUnreachable, match="last 50 requests have failed"),
    ):
        seen.extend(model_of(server, retries=1).answer(chat(f"q{i}") for i in range(500)))
    assert sum(response.status == "ok" for _, response in seen) == 40
    assert 50 <= sum(response.status == "error" for _, response in seen) < 120


def test_a_run_of_prompts_that_are_too_long_does_not_look_like_a_dead_server() -> None:
    with Loopback() as server:
        requests = [chat("fine"), *(chat(f"[poison] {i}") for i in range(60)), chat("fine again")]
        responses = answers(model_of(server, concurrency=1), requests)
    assert [response.status for response in responses.values()].count("ok") == 2
