"""Requests as one server takes them: as its preset says, and as its refusals teach."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from sealegs.errors import DataError
from sealegs.files.jsonfile import NOT_JSON, strings_in
from sealegs.journal.journal import HALF_A_CHARACTER
from sealegs.models.openai.interfaces import CHATS, Interface
from sealegs.models.presets import ANY_SERVER, EFFORT, TOKENS
from sealegs.text.judge import without_bounds
from sealegs.types import Generate, Sampling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sealegs.models.openai.options import OpenAIOptions
    from sealegs.models.openai.transport import TryFailed
    from sealegs.models.presets import Feature, Preset

OPTIONAL = ("temperature", "top_p", "top_k", "seed")
"""Fields that some models take only at their default: a request is sent without one that was refused."""
REFUSED = re.compile(
    r"unsupported|not support|unrecognized|unknown|unexpected|not permitted|not allowed|not accept|deprecated"
    r"|only (the default|\d)|must be (1\b|strictly positive)|cannot be (set|changed|specified)"
    r"|extra (inputs|fields)",
    re.IGNORECASE,
)

UNKNOWN = re.compile(r"unsupported|not support|unrecognized|unknown|unexpected", re.IGNORECASE)
"""Of a field, whatever its value."""

SENT_FIELD = re.compile(r""""\w+"\s*:\s*"\w*"|["'`]\w+["'`]\s*[:=]""")
"""In a message that repeats the request: a field, with its value where that is one word in JSON."""
BOUND = re.compile(r"\b(min|max)(Length|Items)\b")
SENT_FORMAT = re.compile(rb'"(response_)?format":')
SENT_BOUND = re.compile(rb'"(min|max)(Length|Items)":')
"""In a schema, and not in a prompt that quotes it: there the quotation marks are escaped."""
STATED = (b'"temperature"', b'"top_p"')
"""In a reply, by the same rule: the sampling that was used."""

LEFT_OUT: dict[Feature, str] = {
    "seed": "takes no seed: requests were sent without one, so that the same answers cannot be had again.",
    "json_schema": "takes no JSON schema: the form of an answer was asked for in words alone.",
}


class _Stated(Struct):
    """What a reply may state of the sampling that was used."""

    temperature: float | None = None
    top_p: float | None = None


class Dialect:
    """Requests to one model as its server takes them: as its preset says, and as its error messages teach."""

    def __init__(
        self,
        model: str,
        options: OpenAIOptions,
        extra: dict[str, Any],
        preset: Preset = ANY_SERVER,
    ) -> None:
        self._model = model
        self._options = options
        self._extra = extra
        self._preset = preset
        self._supports = preset.supports
        self._seed_field = preset.names.get("seed", "seed")
        self._left_out: dict[Feature, str] = {}
        """What the server does not take, by its preset; what it refused itself is in `_refused`."""
        self._hottest = 0.0
        self._stated: dict[str, tuple[float, float]] = {}
        """By parameter: what was requested, and what a reply states as used where that differs."""
        self._confirmed = False
        self._token_field = preset.names.get("max_tokens", "max_tokens")
        self._logprobs_max_tokens = 0
        self._encoding_format = "base64"
        self._takes_bounds = True
        self._rank_field = "documents"
        self._refused: dict[str, str] = {}
        """Fields that the server refused, with its message; requests are sent without them."""
        self._thinking = list(preset.reasoning_budgets)
        """Ways to allow tokens for thinking; the first is used until the server refuses it."""

    def notes(self) -> list[str]:
        """What the server did not take, and was left out of the requests."""
        title, limit = self._preset.title, self._preset.max_temperature
        known = [f"{title} {problem}" for problem in self._left_out.values()]
        if limit is not None and self._hottest > limit:
            known.append(f"{title} lowers a temperature of {self._hottest:g} to {limit:g}.")
        known += [
            f"{title} states {name} {used:g} as used, where {requested:g} was requested."
            for name, (requested, used) in self._stated.items()
        ]
        if self._preset.routes and self._hottest and not self._confirmed:
            known.append(
                f"{title} passes requests on and does not state which sampling was used: temperature "
                f"{self._hottest:g} was requested and is not confirmed."
            )
        if not self._takes_bounds:
            known.append(f"{title} takes no lengths in a JSON schema: requests were sent without them.")
        if len(self._thinking) < len(self._preset.reasoning_budgets):
            known.append(f"{title} refused one way to allow tokens for thinking: another was used.")
        return known + [
            f"The server refused the field '{name}' ({message}): requests were sent without it, so that the "
            "server's default applied."
            for name, message in self._refused.items()
        ]

    def refused(self) -> list[str]:
        """The settings that the server refused, and that were not sent."""
        return [name for name in self._refused if name in OPTIONAL]

    def confirm(self, sampling: Sampling, data: bytes) -> None:
        """Keep what a reply states of the sampling that was used."""
        if STATED[0] not in data and STATED[1] not in data:
            return
        try:
            stated = msgspec.json.decode(data, type=_Stated)
        except NOT_JSON:  # an answer is not lost for it
            return
        top_p = sampling.top_p if self._options.top_p is None else self._options.top_p
        for name, requested in (("temperature", sampling.temperature), ("top_p", top_p)):
            used = getattr(stated, name)
            self._confirmed |= used is not None
            if used is not None and used != requested and name not in self._refused:
                self._stated[name] = (requested, used)

    def use_completion_tokens(self) -> None:
        self._token_field = "max_completion_tokens"

    def learn(self, error: TryFailed, body: bytes = b"") -> None:
        """Adapt to a refusal of a body. Each field changes once, so that retries end.

        The server's own `param` or `loc` decides; where it names none, the words of its message, unless the
        prompt has the same word: servers repeat what they were sent.
        """
        sent = _sent_texts(body)
        message = SENT_FIELD.sub("", error.detail)

        def names(pattern: str) -> bool:
            if error.field:
                return re.search(pattern, error.field) is not None
            return re.search(pattern, message) is not None and not re.search(pattern, sent, re.IGNORECASE)

        named_instead = re.search(r"\bmax_completion_tokens\b", message) and names(
            r"max_(completion_)?tokens"
        )
        if named_instead or (names(r"\bmax_tokens\b") and UNKNOWN.search(message)):
            self._token_field = "max_completion_tokens"
        if names(r"max_(new_)?tokens"):
            self._logprobs_max_tokens = 1
        if names(r"encoding_format|base64"):
            self._encoding_format = "float"
        bounded = BOUND.search(message) and not BOUND.search(SENT_FIELD.sub("", sent))
        if bounded and SENT_BOUND.search(body):
            self._takes_bounds = False
        elif names(r"response_format|json_schema|guided|grammar|text\.format") and SENT_FORMAT.search(body):
            self._refused["response_format"] = error.detail
        if names(r"\btexts\b"):
            self._rank_field = "texts"  # Text Embeddings Inference
        if names(r"\bthinking\b") and b'"thinking"' in body and len(self._thinking) > 1:
            del self._thinking[0]
        if REFUSED.search(message):
            for name in dict.fromkeys((*OPTIONAL, self._seed_field)):
                if names(rf"\b{name}\b"):
                    self._refused.setdefault(name, error.detail)

    def generate_body(self, request: Generate, interface: Interface = CHATS) -> bytes:
        sampling, chat, options = request.sampling, not isinstance(request.prompt, str), self._options
        body: dict[str, Any] = {
            "messages" if chat else "prompt": request.prompt,
            "temperature": sampling.temperature,
            self._token_field if chat else "max_tokens": sampling.max_tokens,
        }
        self._hottest = max(self._hottest, sampling.temperature)
        if chat and options.reasoning_tokens:
            body[self._token_field] += options.reasoning_tokens
            if self._thinking:
                body |= _filled(self._thinking[0], TOKENS, options.reasoning_tokens)
        if chat and options.effort:
            body |= _filled(self._preset.effort or {"reasoning_effort": EFFORT}, EFFORT, options.effort)
        if (top_p := sampling.top_p if options.top_p is None else options.top_p) != 1:
            body["top_p"] = top_p
        if options.top_k is not None:
            body["top_k"] = options.top_k
        if sampling.stop:
            body["stop"] = sampling.stop
        if request.schema and not self._supports.get("json_schema", True):
            self._left_out["json_schema"] = LEFT_OUT["json_schema"]
            if self._supports.get("json_mode"):
                body["response_format"] = {"type": "json_object"}
        elif request.schema:
            text = request.schema if self._takes_bounds else without_bounds(request.schema)
            schema = {"name": "answer", "strict": True, "schema": msgspec.Raw(text.encode())}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if options.send_seed and self._supports.get("seed", True):
            body[self._seed_field] = seed_of(request)
        elif options.send_seed:
            self._left_out["seed"] = LEFT_OUT["seed"]
        return self._encoded(body, interface)

    def logprobs_body(self, text: str) -> bytes:
        """Have a text echoed with the log-probability of each of its tokens."""
        max_tokens = self._logprobs_max_tokens
        body = {"prompt": text, "echo": True, "logprobs": 1, "max_tokens": max_tokens, "temperature": 0}
        return self._encoded(body)

    def embed_body(self, texts: Sequence[str]) -> bytes:
        return self._encoded({"input": texts, "encoding_format": self._encoding_format})

    def rank_body(self, query: str, documents: Sequence[str]) -> bytes:
        return self._encoded({"query": query, self._rank_field: documents})

    def _encoded(self, body: dict[str, Any], interface: Interface = CHATS) -> bytes:
        for name in self._refused:
            body.pop(name, None)
        try:
            whole = {"model": self._model, **body, **self._extra}
            if interface.body is not None:
                whole["messages"] = msgspec.to_builtins(whole["messages"])
                whole = interface.body(whole)
            return msgspec.json.encode(whole)
        except UnicodeEncodeError:
            raise DataError("a request", HALF_A_CHARACTER) from None


def _sent_texts(body: bytes) -> str:
    """The texts of a request that a message about it may repeat."""
    request = msgspec.json.decode(body) if body else {}
    names = ("messages", "prompt", "input", "query", "documents", "texts")
    return " ".join(strings_in([request.get(name) for name in names]))


def _filled(value: Any, mark: str, filling: int | str) -> Any:
    """A preset's fields with a number for TOKENS, or a word for EFFORT."""
    if isinstance(value, dict):
        return {name: _filled(part, mark, filling) for name, part in value.items()}
    return filling if value == mark else value


def seed_of(request: Generate) -> int:
    """A seed that differs from repeat to repeat: CRC-32 of `seed:repeat`, as a positive int32."""
    return zlib.crc32(f"{request.sampling.seed}:{request.repeat}".encode()) & 0x7FFFFFFF
