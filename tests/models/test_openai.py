"""The openai backend against a real server on loopback: what is sent, and what a reply becomes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from aiohttp import web

from loopback import Loopback
from models.hostile import Hostile, chat, fixed, model_of, one, says
from sealegs.errors import UsageError
from sealegs.files.jsonfile import repaired
from sealegs.models.openai.dialect import seed_of
from sealegs.models.openai.protocol import read_chat
from sealegs.models.registry import load_model
from sealegs.types import Generate, Sampling


def test_a_chat_body_holds_what_was_asked_and_no_more() -> None:
    with Loopback(record=True) as server:
        one(model_of(server), chat("hi", temperature=0.5, max_tokens=7))
        seeded = model_of(server, send_seed=True, extra_body='{"top_k": 3}')
        one(seeded, chat("hi", top_p=0.9, stop=("\n",), seed=4))
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
    assert (response.status, response.text[:8]) == ("ok", "Answer 0")
    assert (server.bodies[0]["path"], server.bodies[0]["prompt"]) == ("/v1/completions", "Once upon")


def test_usage_is_reported_and_absent_usage_is_none() -> None:
    with Loopback(words=30) as server:
        response = one(model_of(server), chat("hello"))
    assert (response.tokens_in, response.tokens_out) == (2, 40)
    bare = read_chat(says("hello"))
    assert (bare.tokens_in, bare.tokens_out) == (None, None)


@pytest.mark.parametrize(
    "beside",
    ['"usage":{"prompt_tokens":1e999}', '"usage":{"prompt_tokens":%s}' % ("7" * 5000), '"usage":[7]'],
)
def test_an_answer_is_not_lost_for_a_broken_count(beside: str) -> None:
    with fixed(says("a keel").removesuffix(b"}") + f",{beside}}}".encode()) as server:
        response = one(model_of(server), chat("q"))
    assert (response.status, response.text, response.tokens_in) == ("ok", "a keel", None)


def test_only_the_reply_itself_states_what_sampling_was_used() -> None:
    nested = (
        b'{"choices":[{"debug":{"temperature":0.9},"message":{"content":"a keel"},"finish_reason":"stop"}]}'
    )
    with fixed(nested) as server:
        model = model_of(server)
        one(model, chat("q", temperature=0.2))
        assert not [note for note in model.notes() if "temperature" in note]


@pytest.mark.parametrize(
    ("message", "finish", "status", "text", "reason"),
    [
        ({"content": "so"}, "stop", "ok", "so", ""),
        ({"content": "so"}, "length", "truncated", "so", "length"),
        ({"content": ""}, "content_filter", "refused", "", "content_filter"),
        ({"content": None, "refusal": "No."}, "stop", "refused", "No.", "refusal"),
        ({"content": None, "tool_calls": [1]}, "tool_calls", "unparsed", "", "finish_reason tool_calls"),
        ({"content": "so"}, "sunset", "unparsed", "so", "finish_reason sunset"),
    ],
)
def test_a_reply_becomes_a_response(
    message: dict[str, Any], finish: str, status: str, text: str, reason: str
) -> None:
    reply = {"choices": [{"message": message, "finish_reason": finish}]}
    response = read_chat(msgspec.json.encode(reply))
    assert (response.status, response.text, response.reason) == (status, text, reason)


@pytest.mark.parametrize("hint", ["", " Use 'max_completion_tokens' instead."])
def test_max_completion_tokens_is_found_out_and_kept(hint: str) -> None:
    refusal = f"Unsupported parameter: 'max_tokens'.{hint}"
    with Loopback(wants_completion_tokens=refusal, record=True) as server:
        model = model_of(server, concurrency=1)
        assert [one(model, chat(text, max_tokens=9)).status for text in "ab"] == ["ok", "ok"]
    assert server.statuses == {400: 1, 200: 2}
    assert server.bodies[-1]["max_completion_tokens"] == 9
    assert "max_tokens" not in server.bodies[-1]


# Options


@pytest.mark.parametrize(
    "options", [{"base_url": "localhost:8000"}, {"extra_body": "[1]"}, {"concurrency": 0}]
)
def test_an_invalid_option_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        load_model("openai:m", **options)


def test_identity_holds_what_decides_the_answers_and_nothing_else() -> None:
    model = load_model("openai:m", base_url="http://127.0.0.1:1/v1", concurrency=3, send_seed=True)
    assert model.identity() == {"spec": "openai:m", "send_seed": True, "extra_body": ""}


# A schema


SCHEMA = '{"type":"object","properties":{"right":{"type":"boolean"},"why":{"type":"string","maxLength":9}}}'


def test_a_schema_is_sent_as_the_response_format() -> None:
    with Loopback(record=True) as server:
        assert one(model_of(server), chat("is it so?", schema=SCHEMA)).status == "ok"
        one(model_of(server), chat("is it so?"))
    with_schema, without = server.bodies
    assert with_schema["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": msgspec.json.decode(SCHEMA)},
    }
    assert "response_format" not in without


@pytest.mark.parametrize(
    "complaint",
    ["Unrecognized request argument supplied: response_format", "guided decoding is off"],
)
def test_a_server_that_takes_no_schema_is_asked_again_without_and_never_with_it(complaint: str) -> None:
    with Loopback(script=("400",), says=complaint, record=True) as server:
        model = model_of(server, concurrency=1)
        assert [one(model, chat(text, schema=SCHEMA)).status for text in "ab"] == ["ok", "ok"]
    assert server.statuses == {400: 1, 200: 2}
    assert ["response_format" in body for body in server.bodies] == [True, False, False]


def test_a_server_that_takes_no_bounds_is_sent_the_schema_without_them() -> None:
    schema = '{"type":"object","properties":{"a":{"type":"string","maxLength":9}}}'
    complaint = "Invalid schema for response_format 'answer': 'maxLength' is not permitted."
    requests = [chat(text, schema=schema) for text in "ab"]
    with Loopback(script=("400",), says=complaint, record=True) as server:
        model = model_of(server, concurrency=1)
        assert [one(model, request).status for request in requests] == ["ok", "ok"]
    sent = [body["response_format"]["json_schema"]["schema"] for body in server.bodies]
    assert ["maxLength" in str(each) for each in sent] == [True, False, False]
    assert len(model.notes()) == 1


def test_half_a_character_does_not_cost_the_answer() -> None:
    reply = rb'{"choices":[{"message":{"content":"a \ud83d b \ud83d\ude00"},"finish_reason":"stop"}]}'
    assert read_chat(repaired(reply)).text == "a \ufffd b \U0001f600"


def refused(text: str, *, field: str = "", complaint: str = "Unknown: {}") -> list[dict[str, Any]]:
    """What is sent for a prompt that the server refuses with a message that repeats it, and for the next."""
    error = {"message": complaint.format(f"{text} ({text.lower()})"), "param": field or None}

    async def respond(server: Hostile, request: web.BaseRequest) -> web.StreamResponse:
        bodies.append(msgspec.json.decode(await request.read()))
        if server.requests == 1:
            return web.Response(status=400, body=msgspec.json.encode({"error": error}))
        return web.Response(body=says("fine"))

    bodies: list[dict[str, Any]] = []
    with Hostile(respond) as server:
        model = model_of(server, concurrency=1)
        for each in (text, "another"):
            one(model, chat(each, schema=SCHEMA, temperature=0.5))
        bodies.append({"notes": model.notes()})
    return bodies


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("an Unknown star's Temperature", "Unknown: {}"),
        ("a star", 'Unknown error in {{"temperature": 0.5, "text": "{}"}}'),
        ("a star", 'Unknown error in {{"type": "json_schema", "text": "{}"}}'),
    ],
)
def test_a_refusal_that_quotes_the_request_teaches_nothing(text: str, complaint: str) -> None:
    first, second, last = refused(text, complaint=complaint)
    assert first["messages"] != second["messages"]
    assert {"temperature", "response_format"} <= set(second)
    assert last["notes"] == []


@pytest.mark.parametrize("field", ["temperature", "response_format"])
def test_a_field_that_the_refusal_names_is_left_out_and_noted(field: str) -> None:
    text = "an unknown star's surface temperature in the grammar of Latin"
    _, second, third, last = refused(text, field=field)
    assert field not in second
    assert field not in third
    assert len({"temperature", "response_format"} & set(second)) == 1
    assert [note for note in last["notes"] if f"'{field}'" in note]


def test_sampling_of_the_run_is_sent_with_every_request() -> None:
    with Loopback(record=True) as server:
        model = model_of(server, top_p=0.9, top_k=40)
        one(model, chat("q", temperature=1.0))
        identity = model.identity()
    assert (server.bodies[0]["top_p"], server.bodies[0]["top_k"]) == (0.9, 40)
    assert (identity["top_p"], identity["top_k"]) == (0.9, 40)
    assert "top_p" not in model_of(server).identity()
