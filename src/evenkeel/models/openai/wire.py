"""The OpenAI protocol as pure functions: a request to the bytes sent, the bytes received to a response.

A reply that does not have the expected shape raises `msgspec.DecodeError` or `ValueError`.
"""

from __future__ import annotations

import base64
import math
import re
import sys
import zlib
from array import array
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from evenkeel.models.reasoning import without_thought
from evenkeel.types import Generate, Response, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

CHAT, COMPLETIONS, EMBEDDINGS = "chat/completions", "completions", "embeddings"

FINISHED: dict[str, Status] = {
    "stop": "ok",
    "eos_token": "ok",  # Text Generation Inference
    "stop_sequence": "ok",
    "end_turn": "ok",
    "length": "truncated",
    "max_tokens": "truncated",
    "content_filter": "refused",
}


class Dialect:
    """In what this server's protocol differs from the common one; learnt from its complaints."""

    def __init__(self, token_field: str) -> None:
        self.token_field = token_field
        self.weigh_max_tokens = 0
        self.encoding_format = "base64"
        self.takes_schema = True

    def learn(self, complaint: str) -> None:
        """Take in what a refusal says. Each field changes once, so nothing is asked in circles."""
        if "max_completion_tokens" in complaint:
            self.token_field = "max_completion_tokens"
        if re.search(r"max_(new_)?tokens", complaint):
            self.weigh_max_tokens = 1
        if "encoding_format" in complaint or "base64" in complaint:
            self.encoding_format = "float"
        if re.search(r"response_format|json_schema|guided|grammar", complaint):
            self.takes_schema = False


def generate_body(
    request: Generate, *, model: str, dialect: Dialect, seeded: bool, extra: dict[str, Any]
) -> bytes:
    sampling, chat = request.sampling, not isinstance(request.prompt, str)
    body: dict[str, Any] = {
        "model": model,
        "messages" if chat else "prompt": request.prompt,
        "temperature": sampling.temperature,
        dialect.token_field if chat else "max_tokens": sampling.max_tokens,
    }
    if sampling.top_p != 1:
        body["top_p"] = sampling.top_p
    if sampling.stop:
        body["stop"] = sampling.stop
    if request.schema and dialect.takes_schema:
        schema = {"name": "answer", "strict": True, "schema": msgspec.Raw(request.schema.encode())}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if seeded:
        body["seed"] = seed_of(request)
    return msgspec.json.encode(body | extra)


def weigh_body(text: str, *, model: str, dialect: Dialect, extra: dict[str, Any]) -> bytes:
    body = {
        "model": model,
        "prompt": text,
        "echo": True,
        "logprobs": 1,
        "max_tokens": dialect.weigh_max_tokens,
        "temperature": 0,
    }
    return msgspec.json.encode(body | extra)


def embed_body(texts: Sequence[str], *, model: str, dialect: Dialect, extra: dict[str, Any]) -> bytes:
    body = {"model": model, "input": texts, "encoding_format": dialect.encoding_format}
    return msgspec.json.encode(body | extra)


def seed_of(request: Generate) -> int:
    """A seed that differs from repeat to repeat: CRC-32 of `seed:repeat`, as a positive int32."""
    return zlib.crc32(f"{request.sampling.seed}:{request.repeat}".encode()) & 0x7FFFFFFF


class Usage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


NO_USAGE = Usage()


class _Part(Struct):
    type: str = ""
    text: str | None = None


class _Message(Struct):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: list[msgspec.Raw] | None = None


class _ChatChoice(Struct):
    message: _Message | None = None
    finish_reason: str | None = None


class _Chat(Struct):
    choices: list[_ChatChoice]
    usage: Usage | None = None


class _Logprobs(Struct):
    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None
    text_offset: list[int] | None = None


class _Choice(Struct):
    text: str | None = None
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Completion(Struct):
    choices: list[_Choice]
    usage: Usage | None = None


class _Vector(Struct):
    embedding: str | list[float]
    index: int | None = None


class _Vectors(Struct):
    data: list[_Vector]
    usage: Usage | None = None


_chat = msgspec.json.Decoder(_Chat)
completions = msgspec.json.Decoder(_Completion)
_vectors = msgspec.json.Decoder(_Vectors)


def read_chat(data: bytes) -> Response:
    reply = _chat.decode(data)
    choice, usage = first(reply.choices), reply.usage or NO_USAGE
    status, text, reasoning, reason = _verdict(choice)
    return Response(
        status=status,
        text=text,
        reasoning=reasoning,
        reason=reason,
        tokens_in=usage.prompt_tokens,
        tokens_out=usage.completion_tokens,
    )


def _verdict(choice: _ChatChoice) -> tuple[Status, str, str, str]:
    """The status of an answer, its text, what was thought aloud, and why it is not ok."""
    message = choice.message
    if message is None:
        return "unparsed", "", "", "no message"
    content = message.content
    if isinstance(content, list):
        content = "".join(part.text or "" for part in content if part.type == "text")
    reasoning = message.reasoning_content or message.reasoning
    text, thought, closed = without_thought(content or "")
    thought = (reasoning if isinstance(reasoning, str) else "") or thought
    if message.refusal:
        return "refused", message.refusal, thought, "refusal"
    status = FINISHED.get(choice.finish_reason or "")
    if message.tool_calls or status is None:
        return "unparsed", text, thought, f"finish_reason {choice.finish_reason or 'missing'}"
    if status == "ok" and not closed:
        return "unparsed", text, thought, "the thinking never ended"
    if status == "ok" and content is None:
        return "unparsed", "", thought, "no content"
    return status, text, thought, "" if status == "ok" else choice.finish_reason or ""


def read_completion(data: bytes) -> Response:
    reply = completions.decode(data)
    choice, usage = first(reply.choices), reply.usage or NO_USAGE
    status = FINISHED.get(choice.finish_reason or "")
    reason = "" if status == "ok" else choice.finish_reason or ""
    if status is None or choice.text is None:
        status, reason = "unparsed", f"finish_reason {choice.finish_reason or 'missing'}"
    return Response(
        status=status,
        text=choice.text or "",
        reason=reason,
        tokens_in=usage.prompt_tokens,
        tokens_out=usage.completion_tokens,
    )


def first(choices: list[Any]) -> Any:
    if not choices:
        raise ValueError("the reply holds no choices")
    return choices[0]


def read_vectors(data: bytes, count: int) -> list[Response]:
    """One response for each text, in the order of the texts."""
    reply = _vectors.decode(data)
    if len(reply.data) != count:
        raise ValueError(f"{len(reply.data)} vectors for {count} texts")
    if all(item.index is not None for item in reply.data):
        reply.data.sort(key=lambda item: item.index or 0)
    total = (reply.usage or NO_USAGE).prompt_tokens
    responses = []
    for i, item in enumerate(reply.data):
        # The server counts a whole batch; an even share for each text keeps the sum right.
        tokens = None if total is None else total * (i + 1) // count - total * i // count
        vector = _vector(item.embedding)
        if math.isfinite(math.fsum(vector)):
            responses.append(Response(status="ok", vector=_little_endian(vector), tokens_in=tokens))
        else:
            responses.append(Response(status="unparsed", reason="the vector is not finite", tokens_in=tokens))
    return responses


def _vector(given: str | list[float]) -> array[float]:
    vector = array("f")
    if isinstance(given, str):
        vector.frombytes(base64.b64decode(given, validate=True))
        if sys.byteorder == "big":
            vector.byteswap()
    else:
        vector.extend(given)
    if not vector:
        raise ValueError("an empty vector")
    return vector


def _little_endian(vector: array[float]) -> bytes:
    if sys.byteorder == "big":
        vector.byteswap()
    return vector.tobytes()
