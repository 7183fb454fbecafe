"""OpenAI's Responses, Anthropic's Messages, Bedrock and routers; how hard a model thinks; what it states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import sealegs as sl
from dialects import PROVIDERS, RESPONSES, SCHEMA, Imitated, ProviderServer, chat, opened
from interfaces import messages_problem
from loopback import Loopback
from models.hostile import one
from sealegs.errors import SealegsError
from sealegs.models.openai import messages, responses
from sealegs.models.openai.backend import NO_CHATS
from sealegs.models.openai.protocol import read_chat
from sealegs.types import Generate, Message, Sampling

SPOKEN = {
    "openai": RESPONSES,
    "anthropic": PROVIDERS["anthropic"],
    "bedrock": PROVIDERS["bedrock"],
    "huggingface": PROVIDERS["huggingface"],
}
"""By preset: the server that it is imitated by."""


@pytest.fixture
def serving(imitated: Imitated) -> Imitated:
    def start(name: str, **behaviour: Any) -> ProviderServer:
        return imitated(name, SPOKEN[name], words=30, **behaviour)

    return start


@pytest.mark.parametrize("name", SPOKEN)
def test_benchmarks_run_on_each_interface(name: str, serving: Imitated, tmp_path: Path) -> None:
    serving(name)
    with Loopback() as vectors:
        common: dict[str, Any] = {"progress": False, "lang": "en", "limit": 1}
        model = {**common, "model": f"{name}:loop"}
        embedder = f"openai:e?base_url={vectors.url}&api_key_env=NO_KEY"
        methods = [f"j=judge:{name}:loop", "bm25"]
        runs = [
            sl.run("mirae", **model, out=tmp_path / "a", levels="1", repeats=2, embedder=embedder),
            sl.run("rgb", **model, out=tmp_path / "b", ability="noise", noise_rates="0"),
            sl.run("multiview", progress=False, limit=1, out=tmp_path / "c", method=methods),
        ]
        for run in runs[:2]:
            assert run.headline.coverage == 1
            assert not run.failures()
        judged = [answer for record in runs[2].records() for answer in record.answers]
        assert all(answer.status != "error" for answer in judged)
        with pytest.raises(SealegsError, match="plain texts|v1/responses"):
            sl.run("miron", **model, out=tmp_path / "d", confidence="no")


@pytest.mark.parametrize("name", ["anthropic", "bedrock", "huggingface"])
def test_log_probabilities_are_refused_with_a_reason(name: str, serving: Imitated) -> None:
    server = serving(name)
    with pytest.raises(SealegsError, match="log-likelihood|log-probabilities"):
        sl.run("miron", model=f"{name}:loop", limit=1, lang="en", confidence="yes", progress=False)
    assert server.received == []


def test_a_model_without_chats_is_found_out_by_one_refusal(serving: Imitated) -> None:
    server = serving("openai")
    model = opened("openai", concurrency="1")
    answers = [one(model, chat(text)) for text in ("one", "two", "three")]
    assert [answer.status for answer in answers] == ["ok"] * 3
    assert ["input" in body for body in server.received] == [False, True, True, True]
    assert model.notes() == [NO_CHATS]
    assert (answers[0].tokens_in, answers[0].tokens_out, answers[0].model) == (36, 87, "loop")


def test_a_preset_may_name_the_interface(
    serving: Imitated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serving("openai")
    settings = tmp_path / "own.toml"
    settings.write_text(f'[presets.pro]\nbase_url = "{server.url}"\ninterface = "responses"\n')
    monkeypatch.setenv("SEALEGS_CONFIG", str(settings))
    assert one(opened("pro"), chat("hello")).status == "ok"
    assert ["input" in body for body in server.received] == [True]


def test_a_refusal_for_another_reason_changes_nothing(serving: Imitated) -> None:
    server = serving("huggingface", script=("400",))
    model = opened("huggingface")
    assert one(model, chat("hello")).status == "error"
    assert one(model, chat("hello")).status == "ok"
    assert all("messages" in body for body in server.received)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("openai", {"reasoning": {"effort": "low"}}),
        ("anthropic", {"output_config": {"effort": "low"}}),
        ("bedrock", {"reasoning_effort": "low"}),
    ],
)
def test_effort_is_sent_in_the_providers_field(name: str, field: dict[str, Any], serving: Imitated) -> None:
    server = serving(name)
    model = opened(name, effort="low")
    assert one(model, chat("hello")).status == "ok"
    body = server.received[-1]
    assert {key: body.get(key) for key in field} == field
    assert model.identity()["effort"] == "low"
    assert "effort" not in opened(name).identity()


def test_an_effort_that_there_is_not_is_refused(serving: Imitated) -> None:
    serving("openai")
    with pytest.raises(SealegsError, match="effort"):
        opened("openai", effort="huge")


def test_a_schema_and_a_system_prompt_have_their_own_places(serving: Imitated) -> None:
    server = serving("openai")
    turns = (Message("system", "Be brief."), Message("user", "hello"))
    request = Generate(prompt=turns, sampling=Sampling(max_tokens=4), schema=SCHEMA)
    assert one(opened("openai"), request).status == "ok"
    body = server.received[-1]
    assert body["text"]["format"]["type"] == "json_schema"
    assert body["text"]["format"]["schema"] == msgspec.json.decode(SCHEMA)
    assert body["max_output_tokens"] == 16, "fewer are refused"
    assert body["store"] is False
    other = serving("anthropic")
    assert one(opened("anthropic"), request).status == "ok"
    assert (other.received[-1]["system"], other.received[-1]["messages"]) == (
        "Be brief.",
        [{"role": "user", "content": "hello"}],
    )


# What was used of the sampling


def test_a_model_that_takes_no_temperature_is_asked_without(
    serving: Imitated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Anthropic's models of 2026 answer."""
    server = serving("anthropic")
    deprecated = "`temperature` is deprecated for this model."
    monkeypatch.setattr(
        server, "_problem", lambda part, body: deprecated if "temperature" in body else messages_problem(body)
    )
    model = opened("anthropic")
    assert [one(model, chat(text)).status for text in "ab"] == ["ok", "ok"]
    assert ["temperature" in body for body in server.received] == [True, False, False]
    assert model.refused() == ["temperature"]


def test_sampling_that_a_reply_states_otherwise_is_noted(serving: Imitated) -> None:
    server = serving("openai")
    model = opened("openai")
    one(model, chat("hello", temperature=0.7))
    assert model.notes() == [NO_CHATS]
    server.stated_temperature = 1.0
    one(model, chat("again", temperature=0.7))
    assert model.notes()[1:] == ["The server states temperature 1 as used, where 0.7 was requested."]


def test_a_seed_that_the_interface_does_not_have_is_noted(serving: Imitated) -> None:
    serving("openai")
    model = opened("openai", send_seed="true")
    assert one(model, chat("hello")).status == "ok"
    assert [note for note in model.notes() if "refused the field 'seed'" in note]


def test_sampling_that_a_router_does_not_state_is_noted_as_not_confirmed(serving: Imitated) -> None:
    serving("huggingface")
    model = opened("huggingface")
    one(model, chat("hello", temperature=0.0))
    assert model.notes() == []
    one(model, chat("hello", temperature=0.7))
    [note] = model.notes()
    assert note == (
        "Hugging Face router passes requests on and does not state which sampling was used: temperature 0.7 "
        "was requested and is not confirmed."
    )


def test_an_answer_about_sampling_states_none() -> None:
    text = 'It says {"temperature": 2}'
    reply = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
    model = opened("openai", base_url="http://127.0.0.1:9/v1")
    model._dialect.confirm(Sampling(temperature=0.5), msgspec.json.encode(reply))
    assert model.notes() == []


# Replies


RESPONSE: dict[str, Any] = {"status": "completed", "model": "m", "output": []}


def output(*parts: dict[str, Any], **fields: Any) -> bytes:
    items = [{"type": "message", "role": "assistant", "content": list(parts)}]
    return msgspec.json.encode({**RESPONSE, "output": [*fields.pop("before", []), *items], **fields})


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (output({"type": "output_text", "text": "yes"}), ("ok", "yes", "")),
        (
            output(
                {"type": "output_text", "text": "yes"},
                before=[{"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}],
            ),
            ("ok", "yes", "hm"),
        ),
        (output({"type": "refusal", "refusal": "no"}), ("refused", "no", "")),
        (
            output(
                {"type": "output_text", "text": "ye"},
                status="incomplete",
                incomplete_details={"reason": "max_output_tokens"},
            ),
            ("truncated", "ye", ""),
        ),
        (
            output(status="incomplete", incomplete_details={"reason": "content_filter"}),
            ("refused", "", ""),
        ),
        (output(before=[{"type": "function_call", "name": "f"}]), ("unparsed", "", "")),
        (output({"type": "output_text", "text": "yes"}, status="queued"), ("unparsed", "yes", "")),
    ],
)
def test_every_way_a_response_ends_has_its_status(data: bytes, expected: tuple[str, str, str]) -> None:
    response = read_chat(responses.chat_reply(data))
    assert (response.status, response.text, response.reasoning) == expected


@pytest.mark.parametrize("translate", [responses.chat_reply, messages.chat_reply])
@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"output": 1}', b'{"content": 1}', b'{"output": [{"type": 1}]}']
)
def test_a_reply_of_another_shape_is_an_error_and_no_answer(translate: Any, data: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, ValueError)):
        read_chat(translate(data))


def test_a_failed_response_is_an_error() -> None:
    data = msgspec.json.encode({**RESPONSE, "status": "failed", "error": {"code": "x", "message": "on fire"}})
    with pytest.raises(ValueError, match="on fire"):
        read_chat(responses.chat_reply(data))
