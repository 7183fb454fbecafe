"""The loopback server in the dialects of providers, and what the client is found to do with them.

A dialect is written down apart from `presets.json`, from documentation and reports as far as they were
found: the server refuses what the provider is not known to take. No provider was asked. `verify` speaks to
it through the whole client.

    python tests/dialects.py          write docs/tables/presets.md
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import msgspec
from aiohttp import web

import interfaces
from loopback import Loopback, json_reply
from models import hostile
from models.hostile import one
from sealegs.models.openai.backend import OpenAI
from sealegs.models.openai.listing import list_models
from sealegs.models.presets import Feature, Preset, presets
from sealegs.models.registry import load_model
from sealegs.types import Embed, Generate

KEY = "sk-loop-4f9a0c2d7b61e835"
SCHEMA = '{"type":"object","properties":{"verdict":{"type":"string"}},"required":["verdict"]}'
PAGE = Path(__file__).parents[1] / "docs" / "tables" / "presets.md"
HEAD = """# Presets: providers and local servers

<!-- Written by `python tests/dialects.py` from models/presets.json. -->

A model is named `PRESET:NAME`: see [integrations](../integrations.md). "Tried" is sent, and left out where
the server refuses it. "Yes" and "no" are from the providers' documentation and, for about a third, from
common knowledge. No provider was asked: the client is tested against a server that plays each dialect. """


def _openai_error(message: str) -> Any:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}


def _google_error(message: str) -> Any:
    return [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}]


def _flat_error(message: str) -> Any:
    return {"object": "error", "message": message, "type": "BadRequestError", "code": 400}


def _anthropic_error(message: str) -> Any:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


@dataclass(frozen=True)
class Provider:
    """How a provider's server differs, from its documentation."""

    prefix: str = "/v1"
    key_header: str = "Authorization"
    token_fields: tuple[str, ...] = ("max_tokens",)
    seed: str = "seed"
    """The field of a seed; empty where none is taken."""
    formats: tuple[str, ...] = ("json_schema", "json_object")
    """Types of `response_format` that are taken."""
    refused: tuple[str, ...] = ()
    """Further fields that are a 400."""
    error: Callable[[str], Any] = _openai_error
    embeddings: bool | None = None
    """None: not documented, so not tried."""
    completions: bool = True
    interface: str = "chat"
    """`messages` or `responses`, where chats are asked by another interface."""


PROVIDERS = {
    "openai": Provider(token_fields=("max_tokens", "max_completion_tokens"), embeddings=True),
    "anthropic": Provider(
        key_header="x-api-key", seed="", formats=(), error=_anthropic_error, embeddings=False,
        completions=False, interface="messages",
    ),
    "gemini": Provider(prefix="/v1beta/openai", error=_google_error, embeddings=True),
    "groq": Provider(
        prefix="/openai/v1", token_fields=("max_completion_tokens",), refused=("logprobs", "top_logprobs"),
        embeddings=False, completions=False,
    ),
    "mistral": Provider(seed="random_seed", error=_flat_error, embeddings=True, completions=False),
    "deepseek": Provider(seed="", formats=("json_object",), embeddings=False, completions=False),
    "openrouter": Provider(prefix="/api/v1"),
    "azure": Provider(
        prefix="/openai/v1", key_header="api-key", embeddings=True,
        token_fields=("max_tokens", "max_completion_tokens"),
    ),
    "bedrock": Provider(
        prefix="/openai/v1", token_fields=("max_completion_tokens",), embeddings=False, completions=False,
    ),
    "huggingface": Provider(embeddings=False, completions=False),
    "ollama": Provider(embeddings=True),
    "vllm": Provider(error=_flat_error, embeddings=True),
    "sglang": Provider(error=_flat_error, embeddings=True),
}  # fmt: skip
"""One for each way in which a preset differs; those that speak as OpenAI does have no entry."""
RESPONSES = Provider(
    token_fields=("max_output_tokens",), seed="", embeddings=False, completions=False, interface="responses"
)
"""OpenAI, for a model that has no other interface."""


class ProviderServer(Loopback):
    """The loopback server as a provider's: its paths, fields, errors and headers."""

    def __init__(self, provider: Provider, *, models: tuple[str, ...] = ("loop",), **behaviour: Any) -> None:
        super().__init__(record=False, **behaviour)
        self.provider = provider
        self.models = models
        self.received: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.stated_temperature: float | None = None
        """What responses state as used in the place of what was requested."""

    @property
    def host(self) -> str:
        return self.url.removesuffix("/v1")

    async def _reply(self, request: web.BaseRequest, path: str, data: bytes) -> web.StreamResponse | None:
        provider = self.provider
        self.keys.append(request.headers.get(provider.key_header, "").removeprefix("Bearer "))
        part = path.removeprefix(provider.prefix)
        if part == path:
            return self._refusal(404, "Resource not found")
        if part == "/models" and request.method == "GET":
            return json_reply({"data": [{"id": name} for name in self.models]})
        body = msgspec.json.decode(data)
        self.received.append(dict(body))
        if problem := self._problem(part, body):
            return self._refusal(404 if problem == interfaces.ONLY_RESPONSES else 400, problem)
        if provider.interface != "chat":
            return await self._other_interface(request, part, body)
        body["seed"] = body.pop(provider.seed or "seed", None)
        return await super()._reply(request, f"/v1{part}", msgspec.json.encode(body))

    async def _other_interface(
        self, request: web.BaseRequest, part: str, body: dict[str, Any]
    ) -> web.StreamResponse | None:
        if self.provider.interface == "messages" and request.headers.get("anthropic-version") != "2023-06-01":
            return self._refusal(400, "anthropic-version: header is required")
        chat = msgspec.json.encode(interfaces.chat_of(body))
        answer = await super()._reply(request, "/v1/chat/completions", chat)
        if not isinstance(answer, web.Response) or answer.status != 200:
            return answer
        assert isinstance(answer.body, bytes)
        reply = msgspec.json.decode(answer.body)
        if part == "/messages":
            return json_reply(interfaces.message_of(reply))
        return json_reply(interfaces.response_of(reply, body, temperature=self.stated_temperature))

    def _problem(self, part: str, body: dict[str, Any]) -> str:
        """Why a body is refused: an unknown path or field, or a text that says so."""
        provider = self.provider
        if "[poison]" in str(body):
            return "the text is not accepted"
        if provider.interface == "messages":
            return interfaces.messages_problem(body) if part == "/messages" else "Not Found"
        if provider.interface == "responses":
            return interfaces.responses_problem(body) if part == "/responses" else interfaces.ONLY_RESPONSES
        if part == "/completions" and not provider.completions:
            return "this model answers chats alone"
        tokens = {"max_tokens", "max_completion_tokens"} - set(provider.token_fields)
        for name in (*tokens, *({"seed", "random_seed"} - {provider.seed}), *provider.refused):
            if name in body and part == "/chat/completions":
                return f"{name}: Extra inputs are not permitted"
        if (kind := body.get("response_format", {}).get("type")) and kind not in provider.formats:
            return f"This response_format type is unavailable: {kind}"
        return ""

    def _refusal(self, status: int, message: str) -> web.Response:
        return json_reply(self.provider.error(message), status=status)


Imitated: TypeAlias = Callable[..., ProviderServer]
"""Starts the server of a preset: the fixture `imitated`."""


def chat(text: str, *, schema: str = "", temperature: float = 0.7) -> Generate:
    return hostile.chat(text, schema=schema, temperature=temperature, max_tokens=50)


def named_at(name: str, server: ProviderServer, folder: Path) -> dict[str, str]:
    """The environment in which a preset's name means this server, and its key is set."""
    preset = presets()[name]
    settings = folder / f"{name}.toml"
    address = server.host if preset.path else f"{server.host}{server.provider.prefix}"
    variable = preset.key or "NO_KEY"
    environment = {"SEALEGS_CONFIG": str(settings), variable: KEY}
    if name == "openai":
        settings.touch()
        return {**environment, "OPENAI_BASE_URL": address}
    if preset.host_variable:
        settings.touch()
        return {**environment, preset.host_variable: address}
    settings.write_text(f'[presets.{name}]\nbase_url = "{address}"\nkey = "{preset.key}"\n')
    return environment


def opened(name: str, **args: Any) -> OpenAI:
    model = load_model(f"{name}:loop", **args)
    assert isinstance(model, OpenAI)
    return model


def verify(name: str, folder: Path) -> None:
    """Speak to a provider's dialect by the preset's name."""
    provider, preset = PROVIDERS[name], presets()[name]
    with ProviderServer(provider, words=8) as server, patch.dict(os.environ, named_at(name, server, folder)):
        model = opened(name)
        assert model.identity()["spec"] == f"{name}:loop"
        assert one(model, chat("hello")).status == "ok"
        body = server.received[-1]
        assert [body[field] for field in provider.token_fields if field in body] == [50]
        assert server.keys[-1] == (KEY if preset.key else "")
        _seed(name, server)
        _schema(name, server)
        _errors(model)
        if provider.embeddings:
            assert one(model, Embed(text="a boat")).status == "ok"
        elif provider.embeddings is False:
            assert "embed" not in model.capabilities
        [endpoint] = [server.endpoint for server in model._servers]
        assert list_models({name: endpoint})[name].models == ["loop"]


def _seed(name: str, server: ProviderServer) -> None:
    seeded = opened(name, send_seed="true")
    assert one(seeded, chat("seeded")).status == "ok"
    body = server.received[-1]
    if server.provider.seed:
        assert isinstance(body[server.provider.seed], int)
        assert not [note for note in seeded.notes() if "seed" in note]
        return
    assert not {"seed", "random_seed"} & set(body)
    assert [note for note in seeded.notes() if "takes no seed" in note]


def _schema(name: str, server: ProviderServer) -> None:
    model = opened(name)
    before = len(server.received)
    assert one(model, chat("judge [as json]", schema=SCHEMA)).status == "ok"
    assert len(server.received) == before + 1  # nothing had to be refused first
    kind = server.received[-1].get("response_format", {}).get("type", "")
    if kind != "json_schema":
        assert [note for note in model.notes() if "takes no JSON schema" in note]


def _errors(model: OpenAI) -> None:
    response = one(model, chat("[poison]"))
    assert response.status == "error"
    assert "HTTP 400: the text is not accepted" in response.reason


# The table of the documentation


def page() -> str:
    """The presets as a table in Markdown."""
    lines = [
        HEAD,
        "| preset | address | key | seed | JSON | embeddings | log-probabilities of the prompt |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, preset in presets().items():
        kinds: dict[Feature, str] = {"json_schema": "schema", "json_mode": "mode"}
        json = ", ".join(word for feature, word in kinds.items() if preset.supports.get(feature))
        seed = f"`{preset.names['seed']}`" if "seed" in preset.names else _word(preset, "seed")
        address = preset.base_url or f"`{preset.host_variable}`"
        key = f"`{preset.key}`" if preset.key else "none"
        lines.append(
            f"| `{name}:` | {address} | {key} | {seed} | {json or _word(preset, 'json_schema')} | "
            f"{_word(preset, 'embeddings')} | {_word(preset, 'prompt_logprobs')} |"
        )
    return "\n".join([*lines, ""])


def _word(preset: Preset, feature: Feature) -> str:
    return {True: "yes", False: "no", None: "tried"}[preset.supports.get(feature)]


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
