"""Presets speak their providers' dialects, and the table of the documentation is that of the presets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import dialects
import sealegs as sl
from dialects import PROVIDERS, Imitated, ProviderServer, chat, opened
from models.hostile import one
from sealegs.errors import CapabilityError, UsageError
from sealegs.harness.gate import RequestGate
from sealegs.models.openai.protocol import read_chat
from sealegs.types import Generate, Sampling


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_preset_speaks_its_providers_dialect(name: str, tmp_path: Path) -> None:
    dialects.verify(name, tmp_path)


def test_the_table_of_the_documentation_is_that_of_the_presets() -> None:
    written = dialects.PAGE.read_text(encoding="utf-8")
    assert written == dialects.page(), "run: python tests/dialects.py"


def test_a_temperature_that_the_server_lowers_is_noted(imitated: Imitated) -> None:
    imitated("anthropic")
    model = opened("anthropic")
    one(model, chat("a", temperature=1.0))
    assert model.notes() == []
    one(model, chat("b", temperature=1.5))
    assert model.notes() == ["Anthropic lowers a temperature of 1.5 to 1."]


def test_what_a_provider_does_not_have_is_refused_before_it_is_asked(imitated: Imitated) -> None:
    server = imitated("groq")
    model, gate = opened("groq"), RequestGate()
    assert model.capabilities == {"generate"}
    model.count_with(gate, "model")
    request = Generate(prompt="plain", sampling=Sampling())
    gate.admit(request, wait=False)
    with pytest.raises(CapabilityError, match="Groq has no /completions"):
        list(model.answer([request]))
    assert server.received == []
    assert gate.requests == 0


@pytest.mark.parametrize(
    ("name", "field", "budget"),
    [
        ("openrouter", "max_tokens", {"reasoning": {"max_tokens": 900}}),
        ("groq", "max_completion_tokens", {}),
    ],
)
def test_tokens_for_thinking_come_beside_those_of_the_answer(
    name: str, field: str, budget: dict[str, object], imitated: Imitated
) -> None:
    server = imitated(name)
    model = opened(name, reasoning_tokens="900")
    assert one(model, chat("think")).status == "ok"
    assert "reasoning_tokens" in model.identity()
    assert "reasoning_tokens" not in opened(name).identity()
    body = server.received[-1]
    assert body[field] == 950
    assert {key: body[key] for key in ("reasoning", "thinking") if key in body} == budget


def test_a_model_that_refuses_adaptive_thinking_gets_a_budget(imitated: Imitated) -> None:
    class Older(ProviderServer):
        def _problem(self, part: str, body: dict[str, Any]) -> str:
            if body.get("thinking", {}).get("type") == "adaptive":
                return "adaptive thinking is not supported on this model"
            return super()._problem(part, body)

    server = imitated("anthropic", kind=Older)
    model = opened("anthropic", reasoning_tokens="900")
    assert [one(model, chat(text)).status for text in "ab"] == ["ok", "ok"]
    kinds = [body["thinking"] for body in server.received]
    budget = {"type": "enabled", "budget_tokens": 900}
    assert kinds == [{"type": "adaptive"}, budget, budget]
    assert ["thinking" in note for note in model.notes()].count(True) == 1


MESSAGES: list[tuple[dict[str, object], str, str]] = [
    ({"content": "a", "reasoning": "r", "reasoning_details": [{"text": "r"}]}, "a", "r"),
    ({"content": "a", "reasoning_content": "r"}, "a", "r"),
    ({"content": "a", "reasoning_details": [{"summary": "s"}, {"data": "x"}, "odd", 7]}, "a", "s\nodd"),
    ({"content": [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "a"}]}, "a", "t"),
    ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}]}, "", "t"),
    ({"content": "<thought>t</thought>a"}, "a", "t"),
    ({"content": "a", "thinking": {"text": {"text": {"text": {"text": {"text": "deep"}}}}}}, "a", ""),
    ({"content": "a", "reasoning": 7, "reasoning_content": [[[[[["deep"]]]]]]}, "a", ""),
]


@pytest.mark.parametrize(("message", "text", "reasoning"), MESSAGES)
def test_thinking_is_found_in_any_shape_and_only_there(
    message: dict[str, object], text: str, reasoning: str
) -> None:
    reply = {"choices": [{"message": message, "finish_reason": "stop"}]}
    response = read_chat(msgspec.json.encode(reply))
    assert (response.text, response.reasoning) == (text, reasoning)
    assert response.status == ("ok" if text else "unparsed")


def test_thinking_that_is_counted_and_not_shown_is_no_answer() -> None:
    usage = {"completion_tokens": 50, "completion_tokens_details": {"reasoning_tokens": 50}}
    reply = {"choices": [{"message": {"content": ""}, "finish_reason": "length"}], "usage": usage}
    response = read_chat(msgspec.json.encode(reply))
    assert (response.status, response.reason) == ("truncated", "length inside the reasoning")


@pytest.mark.parametrize("spec", ["groq:", "ollama:", "ollama"])
def test_a_preset_needs_the_name_of_a_model(spec: str) -> None:
    with pytest.raises(UsageError, match="give the name of a model"):
        sl.load_model(spec)
