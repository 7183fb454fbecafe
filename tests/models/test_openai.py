"""The openai backend against a real server on loopback that misbehaves as real ones do."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from evenkeel.errors import BudgetReached, CapabilityError, ModelUnreachable, UsageError
from evenkeel.models.openai import retry as health
from evenkeel.models.openai import throttle
from evenkeel.models.openai import transport as openai_client
from evenkeel.models.openai.backend import OpenAI
from evenkeel.models.openai.logprobs import read_loglikelihood
from evenkeel.models.openai.protocol import read_chat, seed_of
from evenkeel.models.openai.throttle import asked_wait
from evenkeel.options import describe
from evenkeel.run.registry import load_model
from evenkeel.types import Capability, Embed, Generate, LogLikelihood, Message, Request, Response, Sampling
from loopback import DIMENSIONS, Loopback, embedding, logprob, tokenise

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CANARY = "sk-canary-7f3a9b2c1d"
LOGLIKELIHOOD: frozenset[Capability] = frozenset({"loglikelihood"})


@pytest.fixture(autouse=True)
def _quick_and_keyless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setattr(throttle, "BACK_OFF_S", 0.02)
    monkeypatch.setattr(throttle, "OVERLOAD_BACK_OFF_S", 0.02)


def model_of(server: Loopback | str, **options: Any) -> OpenAI:
    url = server if isinstance(server, str) else server.url
    model = load_model("openai:loop", base_url=url, **options)
    assert isinstance(model, OpenAI)
    return model


def chat(text: str, *, repeat: int = 0, **sampling: Any) -> Generate:
    return Generate(prompt=(Message("user", text),), sampling=Sampling(**sampling), repeat=repeat)


def answers(model: OpenAI, requests: Iterable[Request]) -> dict[Request, Response]:
    return dict(model.answer(requests))


def one(model: OpenAI, request: Request) -> Response:
    [(asked, response)] = model.answer([request])
    assert asked is request
    return response


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("evenkeel")]


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


# Asking


def test_every_request_is_answered_once_with_its_own_text() -> None:
    with Loopback() as server:
        got = answers(
            model_of(server), [chat(f"question {i}", repeat=r) for i in range(20) for r in range(5)]
        )
    assert len(got) == 100
    assert {response.status for response in got.values()} == {"ok"}
    assert len({response.text for response in got.values()}) == 100
    assert set(server.answered.values()) == {5}


def test_a_chat_body_holds_what_was_asked_and_no_more() -> None:
    with Loopback(record=True) as server:
        one(model_of(server), chat("hi", temperature=0.5, max_tokens=7))
        one(
            model_of(server, send_seed=True, extra_body='{"top_k": 3}'),
            chat("hi", top_p=0.9, stop=("\n",), seed=4),
        )
    plain, full = server.bodies
    assert plain == {
        "path": "/v1/chat/completions",
        "model": "loop",
        "messages": [{"role": "user", "content": "hi"}],
        "temperature": 0.5,
        "max_tokens": 7,
    }
    assert full["top_p"] == 0.9
    assert full["stop"] == ["\n"]
    assert full["top_k"] == 3
    assert full["seed"] == seed_of(chat("hi", seed=4)) != seed_of(chat("hi", seed=4, repeat=1))


def test_a_plain_prompt_goes_to_completions() -> None:
    with Loopback(record=True) as server:
        response = one(model_of(server), Generate(prompt="Once upon", sampling=Sampling()))
    assert response.status == "ok"
    assert response.text.startswith("Answer 0")
    assert server.bodies[0]["path"] == "/v1/completions"
    assert server.bodies[0]["prompt"] == "Once upon"


def test_usage_is_reported_and_absent_usage_is_none() -> None:
    with Loopback(words=30) as server:
        response = one(model_of(server), chat("hello"))
        bare = one(model_of(server), chat("[length] hello"))
    assert (response.tokens_in, response.tokens_out) == (2, 40)
    assert (bare.tokens_in, bare.tokens_out) == (None, None)


@pytest.mark.parametrize(
    ("mark", "status", "reason"),
    [
        ("[plain]", "ok", ""),
        ("[length]", "truncated", "length"),
        ("[filter]", "refused", "content_filter"),
        ("[refuse]", "refused", "refusal"),
        ("[tool]", "unparsed", "finish_reason tool_calls"),
        ("[odd]", "unparsed", "finish_reason sunset"),
        ("[silent]", "unparsed", "no message"),
        ("[think-on]", "truncated", "length inside the reasoning"),
    ],
)
def test_a_finish_reason_becomes_a_status(mark: str, status: str, reason: str) -> None:
    with Loopback() as server:
        response = one(model_of(server), chat(mark))
    assert (response.status, response.reason) == (status, reason)


def test_a_refusal_keeps_its_words() -> None:
    with Loopback() as server:
        assert one(model_of(server), chat("[refuse]")).text == "I would rather not."


@pytest.mark.parametrize("mark", ["[think]", "[template]", "[reason]"])
def test_reasoning_is_kept_apart_from_the_answer(mark: str) -> None:
    with Loopback() as server:
        response = one(model_of(server), chat(mark))
    assert response.reasoning == "well now"
    assert response.text.startswith("Answer 0")


def test_thinking_that_never_ends_is_all_reasoning() -> None:
    with Loopback() as server:
        response = one(model_of(server), chat("[think-on]"))
    assert (response.text, response.reasoning) == ("", "well now and so on")


def test_thinking_that_stops_without_an_end_is_no_answer() -> None:
    message = {"content": "<think> and so"}
    response = read_chat(msgspec.json.encode({"choices": [{"message": message, "finish_reason": "stop"}]}))
    assert (response.status, response.text, response.reasoning) == ("unparsed", "", "and so")


def test_max_completion_tokens_is_found_out_and_kept() -> None:
    with Loopback(wants_completion_tokens=True, record=True) as server:
        model = model_of(server, concurrency=1)
        assert one(model, chat("a", max_tokens=9)).status == "ok"
        assert one(model, chat("b", max_tokens=9)).status == "ok"
    assert server.statuses == {400: 1, 200: 2}
    assert server.bodies[-1]["max_completion_tokens"] == 9
    assert "max_tokens" not in server.bodies[-1]


# Failing, and trying again


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


def test_an_unsupported_temperature_is_an_error_and_is_never_changed() -> None:
    with Loopback(always=400, says="temperature does not support 0.0 with this model", record=True) as server:
        response = one(model_of(server), chat("q"))
    assert "temperature does not support 0.0" in response.reason
    assert [body["temperature"] for body in server.bodies] == [0.0]


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
    asked = [chat(f"question {i}", repeat=repeat) for i in range(60) for repeat in range(5)]
    texts = []
    for fail in (0.0, 0.3):
        with Loopback(fail=fail) as server:
            got = answers(model_of(server), asked)
        assert {response.status for response in got.values()} == {"ok"}
        assert set(server.answered.values()) == {5}
        texts.append(sorted(response.text for response in got.values()))
    assert {429, 500, 0} < set(server.statuses)
    assert texts[0] == texts[1]


def test_overload_lowers_concurrency_and_quiet_raises_it_again() -> None:
    with Loopback(overload_above=8, latency=0.005) as server:
        got = answers(model_of(server, concurrency=64), [chat(f"q{i}") for i in range(600)])
        refused = server.statuses[429]
        assert {response.status for response in got.values()} == {"ok"}
        assert refused < 300  # without adaptation most of 64 at once would be refused, again and again
        server.behaviour.overload_above = 0
        server.peak = 0
        answers(model_of(server, concurrency=64), [chat(f"r{i}") for i in range(200)])
    assert server.peak > 32


def test_a_burst_of_refusals_halves_the_limit_once_and_success_restores_it() -> None:
    async def scenario() -> None:
        gate = throttle.Throttle(64)
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
    assert times[-1] < 8.0
    assert server.requests == 11


def test_retry_after_is_read_as_seconds_milliseconds_or_a_date() -> None:
    assert asked_wait({"Retry-After": "2.5"}) == 2.5
    assert asked_wait({"retry-after-ms": "1500", "Retry-After": "2"}) == 1.5
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert asked_wait({"Retry-After": date}) == pytest.approx(30, abs=2)
    assert asked_wait({"Retry-After": "soon"}) is None
    assert asked_wait({}) is None


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
        got = answers(model_of(server, concurrency=1), [chat(f"q{i}") for i in range(3)])
    assert sorted(response.status for response in got.values()) == ["error", "ok", "ok"]


@pytest.mark.parametrize("concurrency", [2, 64])
def test_a_dead_server_is_told_within_seconds(concurrency: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "NO_CONTACT_S", 1.5)
    url = f"http://127.0.0.1:{free_port()}/v1"
    started = time.monotonic()
    seen: list[tuple[Request, Response]] = []
    with pytest.raises(ModelUnreachable, match=r"none of the requests at .*: no connection \(\d+ times\)"):
        seen.extend(
            model_of(url, retries=100, concurrency=concurrency).answer(chat(f"q{i}") for i in range(500))
        )
    assert time.monotonic() - started < 3
    assert {response.status for _, response in seen} == {"error"}
    assert len(seen) >= 8


def test_a_single_request_to_a_dead_server_is_told_too() -> None:
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
        got = answers(model_of(server, concurrency=1), requests)
    assert [response.status for response in got.values()].count("ok") == 2


# Secrets


def test_the_key_shows_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", CANARY)
    shown: list[object] = []
    with Loopback(echo_key=True, key=CANARY, script=("ok", "ok", "400")) as server:
        model = model_of(server, api_key_env="MY_KEY", concurrency=1)
        requests: list[Request] = [
            chat("a"),
            chat("[think]"),
            chat("c"),
            Generate(prompt="d", sampling=Sampling()),
        ]
        shown += [*model.answer(requests), model, model.identity(), vars(model)["_options"]]
        server.behaviour.key = "another"
        with pytest.raises(ModelUnreachable) as raised:
            one(model, chat("e"))
        shown += [raised.value, raised.value.__cause__]
    assert "[key]" in repr(shown)
    assert "Incorrect API key" in repr(shown)
    assert CANARY not in repr(shown)
    assert server.statuses == {200: 3, 400: 1, 401: 1}  # the key itself was sent


def test_credentials_in_the_address_are_used_and_not_shown() -> None:
    with Loopback(key="Basic bWU6aHVudGVyMg==", echo_key=True) as server:
        url = server.url.replace("//", "//me:hunter2@")
        model = model_of(url)
        response = one(model, chat("q"))
    assert response.status == "ok"
    with pytest.raises(ModelUnreachable) as raised:
        one(model_of(url, retries=0), chat("q"))
    shown = repr([response, model, model.identity(), vars(model)["_options"], raised.value])
    assert "hunter2" not in shown
    assert "bWU6" not in shown
    assert model.address == server.url


def test_a_key_in_the_query_is_used_and_not_shown() -> None:
    model = model_of(f"https://example.test/v1?api-version=3&api-key={CANARY}")
    assert model.address == "https://example.test/v1?api-version&api-key"


def test_a_missing_key_is_named_before_anything_is_sent() -> None:
    model = load_model("openai:gpt", api_key_env="SOME_KEY")
    assert isinstance(model, OpenAI)
    assert model.address == "https://api.openai.com/v1"
    for use in (lambda: model.probe(frozenset()), lambda: model.answer([])):
        with pytest.raises(UsageError, match="SOME_KEY"):
            use()


def test_the_address_comes_from_the_environment_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:9/v1/")
    model = load_model("openai:m")
    assert isinstance(model, OpenAI)
    assert model.address == "http://localhost:9/v1"


@pytest.mark.parametrize(
    "options", [{"base_url": "localhost:8000"}, {"extra_body": "[1]"}, {"concurrency": 0}]
)
def test_an_option_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        load_model("openai:m", **options)


def test_identity_holds_what_decides_the_answers_and_nothing_else() -> None:
    identity = load_model(
        "openai:m", base_url="http://127.0.0.1:1/v1", concurrency=3, send_seed=True
    ).identity()
    assert identity == {
        "spec": "openai:m",
        "send_seed": True,
        "extra_body": "",
    }
    assert all(option.description for option in describe(OpenAI.Options))


# Weighing


@pytest.mark.parametrize("offsets", ["given", "unset", "absent"])
@pytest.mark.parametrize("bos", ["", "<s>"])
@pytest.mark.parametrize("min_tokens", [0, 1])
def test_the_tokens_of_the_continuation_are_weighed(offsets: str, bos: str, min_tokens: int) -> None:
    with Loopback(offsets=offsets, bos=bos, min_tokens=min_tokens) as server:
        model = model_of(server)
        model.probe(LOGLIKELIHOOD)
        response = one(model, LogLikelihood(prefix="The ship is", continuation=" even keeled"))
    assert response.logprobs is not None
    assert response.logprobs.tokens == (" even", " keel", "ed")
    assert response.logprobs.values == tuple(logprob(token) for token in (" even", " keel", "ed"))
    assert not response.logprobs.merged


@pytest.mark.parametrize("offsets", ["given", "unset"])
def test_a_token_across_the_border_follows_the_published_rule(offsets: str) -> None:
    """The continuation begins after as many tokens as the prefix alone has."""
    assert (tokenise("The sh"), tokenise("The shipping")) == (["The", " sh"], ["The", " ship", "ping"])
    with Loopback(offsets=offsets, record=True) as server:
        response = one(model_of(server), LogLikelihood(prefix="The sh", continuation="ipping"))
    assert [body["prompt"] for body in server.bodies] == ["The shipping", "The sh"]
    assert response.logprobs is not None
    assert response.logprobs.tokens == ("ping",)
    assert response.logprobs.values == (logprob("ping"),)
    assert response.logprobs.merged


def test_a_target_that_merges_into_the_prefix_leaves_nothing_to_weigh() -> None:
    with Loopback() as server:
        response = one(model_of(server), LogLikelihood(prefix="The sh", continuation="ip"))
    assert response.status == "ok"
    assert response.logprobs is not None
    assert (response.logprobs.tokens, response.logprobs.values, response.logprobs.merged) == ((), (), True)


def test_a_first_token_without_a_value_is_not_scored_as_something() -> None:
    with Loopback() as server:
        response = one(model_of(server), LogLikelihood(prefix="", continuation="The ship"))
    assert response.status == "unparsed"
    assert response.logprobs is None
    assert "null" in response.reason


@pytest.mark.parametrize(
    ("logprobs", "reason"),
    [
        ("missing", "no prompt logprobs"),
        ("zero", "all zero"),
        ("null", "null"),
        ("equal", "all equal"),
        ("positive", "not log-probabilities"),
    ],
)
def test_unsound_log_probabilities_are_found_by_the_probe(logprobs: str, reason: str) -> None:
    with Loopback(logprobs=logprobs) as server, pytest.raises(CapabilityError, match=reason):
        model_of(server).probe(LOGLIKELIHOOD)


def test_a_server_without_completions_cannot_weigh() -> None:
    with Loopback(always=404, says="Not Found", code="") as server:
        with pytest.raises(CapabilityError, match="HTTP 404"):
            model_of(server).probe(LOGLIKELIHOOD)
        server.behaviour.says = "The model `loop` does not exist"
        with pytest.raises(ModelUnreachable):
            model_of(server).probe(LOGLIKELIHOOD)


def test_nothing_is_asked_to_probe_what_needs_no_probe() -> None:
    with Loopback() as server:
        model_of(server).probe(frozenset({"generate", "embed"}))
    assert server.requests == 0


def echoed(tokens: list[str], offsets: list[int] | None = None) -> bytes:
    values = [None, *(-float(i) for i in range(1, len(tokens)))]
    logprobs = {"tokens": tokens, "token_logprobs": values, "text_offset": offsets}
    return msgspec.json.encode({"choices": [{"text": "", "logprobs": logprobs}]})


@pytest.mark.parametrize(
    ("tokens", "offsets", "wanted"),
    [
        # vLLM shows a part of a character with the last part only
        (["나", "는", "", "간", "다"], None, (2, 3, 4)),
        # OpenAI gives the bytes of the parts
        (["나", "는", "bytes:\\xea", "bytes:\\xb0\\x84", "다"], [0, 1, 2, 2, 3], (2, 3, 4)),
        # a special token in front, and a generated one behind
        (["<|begin|>", "▁나는", "▁간다"], None, None),
        (["<|begin|>", "나는", "간다", "!"], [0, 9, 11, 13], (2,)),
    ],
)
def test_tokens_find_their_place_in_the_text(
    tokens: list[str], offsets: list[int] | None, wanted: tuple[int, ...] | None
) -> None:
    response = read_loglikelihood(echoed(tokens, offsets), LogLikelihood(prefix="나는", continuation="간다"))
    assert isinstance(response, Response)
    if wanted is None:
        assert (response.status, response.reason) == (
            "unparsed",
            "the server's tokens do not spell the prompt",
        )
    else:
        assert response.logprobs is not None
        assert response.logprobs.values == tuple(-float(i) for i in wanted)
        assert not response.logprobs.merged


# Embedding


@pytest.mark.parametrize("vectors", ["as asked", "float"])
def test_texts_are_embedded_many_at_a_time(vectors: str) -> None:
    texts = [f"text number {i}" for i in range(150)]
    with Loopback(vectors=vectors, record=True) as server:
        got = answers(model_of(server), [Embed(text=text) for text in texts])
    assert [len(body["input"]) for body in server.bodies] == [64, 64, 22]
    for request, response in got.items():
        assert isinstance(request, Embed)
        assert response.vector == struct.pack(f"<{DIMENSIONS}f", *embedding(request.text))
    assert sum(response.tokens_in or 0 for response in got.values()) == sum(len(t) // 4 + 1 for t in texts)


def test_one_bad_text_does_not_fail_its_neighbours() -> None:
    texts = [f"text {i}" if i not in (3, 40) else f"[poison] {i}" for i in range(64)]
    with Loopback() as server:
        got = answers(model_of(server), [Embed(text=text) for text in texts])
    failed = {request.text for request, response in got.items() if response.status == "error"}  # type: ignore[union-attr]
    assert failed == {"[poison] 3", "[poison] 40"}
    assert sum(response.status == "ok" for response in got.values()) == 62


def test_kinds_of_requests_may_be_mixed() -> None:
    requests: list[Request] = []
    for i in range(10):
        requests += [
            Embed(text=f"a{i}"),
            Embed(text=f"b{i}"),
            chat(f"c{i}"),
            LogLikelihood(prefix="a ship", continuation=" at sea"),
        ]
    with Loopback() as server:
        got = list(model_of(server, concurrency=4).answer(requests))
    assert sorted(map(repr, requests)) == sorted(repr(request) for request, _ in got)
    assert {response.status for _, response in got} == {"ok"}


# The stream


def test_the_stream_is_read_no_further_ahead_than_the_ceiling() -> None:
    pulled = 0

    def requests() -> Iterator[Request]:
        nonlocal pulled
        for i in range(40):
            pulled += 1
            assert pulled - server.statuses[200] <= 5
            yield chat(f"q{i}")

    with Loopback(latency=0.01) as server:
        got = answers(model_of(server, concurrency=5), requests())
    assert len(got) == 40
    assert server.peak <= 5


def test_a_reader_who_stops_reading_holds_the_stream_up() -> None:
    pulled = 0

    def requests() -> Iterator[Request]:
        nonlocal pulled
        for i in range(100_000):
            pulled += 1
            yield chat(f"q{i}")

    with Loopback(words=5) as server:
        stream = model_of(server, concurrency=4).answer(requests())
        next(stream)
        time.sleep(1.0)
        first = pulled
        time.sleep(0.5)
        assert pulled == first
        stream.close()  # type: ignore[attr-defined]


def test_leaving_early_ends_the_thread_and_what_is_under_way() -> None:
    with Loopback(latency=0.05) as server:
        for _ in model_of(server, concurrency=8).answer(chat(f"q{i}") for i in range(10_000)):
            assert threads()
            break
        deadline = time.monotonic() + 15
        while threads() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not threads()
        assert server.requests <= 17


def test_an_error_in_the_reader_ends_the_thread() -> None:
    def read() -> None:
        for _ in model_of(server).answer(chat(f"q{i}") for i in range(10_000)):
            raise KeyError("mine")

    with Loopback(latency=0.02) as server:
        with pytest.raises(KeyError, match="mine"):
            read()
        assert not threads()


def test_closing_the_model_ends_its_streams() -> None:
    with Loopback(latency=0.02) as server:
        model = model_of(server)
        stream = model.answer(chat(f"q{i}") for i in range(10_000))
        next(stream)
        model.close()
        assert not threads()
        assert list(stream) == []


def test_an_error_in_the_stream_is_raised_after_what_is_under_way() -> None:
    def requests() -> Iterator[Request]:
        yield from (chat(f"q{i}") for i in range(6))
        raise BudgetReached("enough")

    seen: list[tuple[Request, Response]] = []
    with Loopback(latency=0.05) as server, pytest.raises(BudgetReached, match="enough"):
        seen.extend(model_of(server).answer(requests()))
    assert len(seen) == 6


def test_it_works_inside_a_running_event_loop() -> None:
    async def notebook() -> Response:
        return one(model_of(server), chat("q"))

    with Loopback() as server:
        assert asyncio.run(notebook()).status == "ok"


def test_an_empty_stream_gives_nothing() -> None:
    assert list(model_of("http://127.0.0.1:1/v1").answer([])) == []


def test_ctrl_c_is_heeded_while_the_server_is_slow() -> None:
    script = (
        "import sys\n"
        "from evenkeel.run.registry import load_model\n"
        "from evenkeel.types import Generate, Sampling\n"
        "print('ready', flush=True)\n"
        "model = load_model('openai:m', base_url=sys.argv[1])\n"
        "try:\n"
        "    list(model.answer([Generate(prompt='q', sampling=Sampling())]))\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    with Loopback(latency=60.0) as server:
        command = [sys.executable, "-W", "error", "-c", script, server.url]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
        ) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            while not server.requests:
                time.sleep(0.01)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=30)  # the server would take twice that
    assert (out, err, child.returncode) == ("interrupted\n", "", 0)


def test_the_server_as_a_process_prints_its_address_and_tells_its_counters() -> None:
    import urllib.request
    from pathlib import Path

    import loopback

    command = [sys.executable, str(Path(loopback.__file__)), "--port", "0", "--words", "9"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            url = child.stdout.readline().strip()
            assert len(one(model_of(url), chat("q")).text.split()) == 4 + 9
            with urllib.request.urlopen(url.replace("/v1", "/stats")) as reply:
                stats = msgspec.json.decode(reply.read())
        finally:
            child.terminate()
    assert (stats["requests"], stats["answers"], stats["statuses"]) == (1, 1, {"200": 1})


# As long as another text


class Writer(Loopback):
    """A base model: it writes as many tokens as it may, and says that it was cut off."""

    def _completion(self, body: Any, key: str) -> bytes:
        text = " keel" * body.max_tokens
        usage = {"prompt_tokens": len(tokenise(body.prompt)), "completion_tokens": body.max_tokens}
        ends = "content_filter" if "[filter]" in body.prompt else "length"
        return msgspec.json.encode({"choices": [{"text": text, "finish_reason": ends}], "usage": usage})


def as_long_as(prompt: str, text: str, **sampling: Any) -> Generate:
    return Generate(prompt=prompt, sampling=Sampling(length_of=text, stop=("\n",), **sampling))


def test_a_text_as_long_as_another_is_counted_by_the_server_then_written() -> None:
    with Writer(record=True) as server:
        response = one(model_of(server), as_long_as("The ship is", " unsinkable"))
    pieces = len(tokenise(" unsinkable"))
    assert pieces == 3
    counted, written = server.bodies
    assert (counted["prompt"], counted["echo"], counted["path"]) == (
        "The ship is unsinkable",
        True,
        "/v1/completions",
    )
    assert (written["prompt"], written["max_tokens"], written["stop"]) == ("The ship is", pieces, ["\n"])
    assert "length_of" not in written
    # It has the length that it was to have, so that it is whole.
    assert (response.status, response.reason, response.text) == ("ok", "", " keel" * pieces)
    assert response.tokens_out == pieces


def test_a_text_as_long_as_another_has_a_limit_like_any() -> None:
    with Writer(record=True) as server:
        one(model_of(server), as_long_as("The", " ship is unsinkable", max_tokens=2))
    assert server.bodies[1]["max_tokens"] == 2


def test_only_a_cut_at_the_wanted_length_is_taken_for_an_end() -> None:
    with Writer() as server:
        response = one(model_of(server), as_long_as("The [filter] ship", " sails"))
    assert (response.status, response.reason) == ("refused", "content_filter")


def test_where_log_probabilities_fail_the_server_counts_by_what_it_reads() -> None:
    with Writer(logprobs="missing", record=True) as server:
        response = one(model_of(server), as_long_as("The ship is", " unsinkable"))
    pieces = len(tokenise(" unsinkable"))
    assert (response.status, response.reason, response.text) == ("ok", "", " keel" * pieces)
    assert [(body["prompt"], body["max_tokens"]) for body in server.bodies] == [
        ("The ship is unsinkable", 0),
        ("The ship is unsinkable", 1),
        ("The ship is", 1),
        ("The ship is", pieces),
    ]


def test_a_count_that_fails_fails_the_text() -> None:
    with Loopback() as server:
        response = one(model_of(server), as_long_as("The [poison] ship", " sails"))
    assert response.status == "error"
    assert response.reason.startswith("HTTP 400")


@pytest.mark.parametrize("offsets", ["given", "absent"])
@pytest.mark.parametrize(
    ("prefix", "pieces"),
    [("The ship is unsinkable", 3), ("The ship\nunsinkable", 4), ("unsink ", 3), ("", 0)],
)
def test_the_pieces_of_the_last_word_and_the_start_token_are_told(
    prefix: str, pieces: int, offsets: str
) -> None:
    with Loopback(bos="<s>", offsets=offsets) as server:
        response = one(model_of(server), LogLikelihood(prefix=prefix, continuation="!"))
    assert response.logprobs is not None
    assert (response.logprobs.last_word, response.logprobs.start) == (pieces, "<s>")


# A schema


SCHEMA = '{"type":"object","properties":{"right":{"type":"boolean"}},"required":["right"]}'


def judged(text: str) -> Generate:
    return Generate(prompt=(Message("user", text),), sampling=Sampling(), schema=SCHEMA)


def test_a_schema_is_sent_as_the_response_format() -> None:
    with Loopback(record=True) as server:
        assert one(model_of(server), judged("is it so?")).status == "ok"
        one(model_of(server), chat("is it so?"))
    with_schema, without = server.bodies
    assert with_schema["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": msgspec.json.decode(SCHEMA)},
    }
    assert "response_format" not in without


@pytest.mark.parametrize(
    "complaint",
    [
        "Unrecognized request argument supplied: response_format",
        "'json_schema' is not supported by this model",
        "guided decoding is off",
        "failed to parse grammar",
    ],
)
def test_a_server_that_takes_no_schema_is_asked_again_without_and_never_with_it(complaint: str) -> None:
    with Loopback(script=("400",), says=complaint, record=True) as server:
        model = model_of(server, concurrency=1)
        assert one(model, judged("a")).status == "ok"
        assert one(model, judged("b")).status == "ok"
    assert server.statuses == {400: 1, 200: 2}
    assert ["response_format" in body for body in server.bodies] == [True, False, False]


def test_another_complaint_does_not_cost_the_schema() -> None:
    with Loopback(script=("ok", "400"), record=True) as server:
        model = model_of(server, concurrency=1)
        assert [one(model, judged(text)).status for text in "abc"] == ["ok", "error", "ok"]
    assert all("response_format" in body for body in server.bodies)


def test_half_a_character_does_not_cost_the_answer() -> None:
    reply = rb'{"choices":[{"message":{"content":"a \ud83d b \ud83d\ude00"},"finish_reason":"stop"}]}'
    assert read_chat(openai_client.mended(reply)).text == "a \ufffd b \U0001f600"
