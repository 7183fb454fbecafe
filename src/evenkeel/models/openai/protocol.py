"""The OpenAI protocol as pure functions: a request to the bytes sent, the bytes received to a response.

A reply that does not have the expected shape raises `msgspec.DecodeError` or `ValueError`.
"""

from __future__ import annotations

import base64
import re
import sys
import zlib
from array import array
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct

from evenkeel.models import vectors
from evenkeel.models.reasoning import split_reasoning
from evenkeel.run.answers import BEFORE_TEXT, ending
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

TEXT_PARTS = ("text", "output_text")

MOST_TOKENS = 10_000_000
"""A count above this is none: no context is so long, and one such number would use up any budget."""

MISPLACED = "the server does not tell which vector is whose"

T = TypeVar("T")


class Dialect:
    """In what this server's protocol differs from the common one; learnt from its complaints."""

    def __init__(self, token_field: str) -> None:
        self.token_field = token_field
        self.logprobs_max_tokens = 0
        self.encoding_format = "base64"
        self.takes_schema = True

    def learn(self, complaint: str) -> None:
        """Take in what a refusal says. Each field changes once, so nothing is asked in circles."""
        if "max_completion_tokens" in complaint:
            self.token_field = "max_completion_tokens"
        if re.search(r"max_(new_)?tokens", complaint):
            self.logprobs_max_tokens = 1
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


def logprobs_body(text: str, *, model: str, dialect: Dialect, extra: dict[str, Any]) -> bytes:
    body = {
        "model": model,
        "prompt": text,
        "echo": True,
        "logprobs": 1,
        "max_tokens": dialect.logprobs_max_tokens,
        "temperature": 0,
    }
    return msgspec.json.encode(body | extra)


def embed_body(texts: Sequence[str], *, model: str, dialect: Dialect, extra: dict[str, Any]) -> bytes:
    body = {"model": model, "input": texts, "encoding_format": dialect.encoding_format}
    return msgspec.json.encode(body | extra)


def seed_of(request: Generate) -> int:
    """A seed that differs from repeat to repeat: CRC-32 of `seed:repeat`, as a positive int32."""
    return zlib.crc32(f"{request.sampling.seed}:{request.repeat}".encode()) & 0x7FFFFFFF


NO_USAGE = msgspec.Raw(b"null")


class Usage(Struct):
    """How many tokens a server says that it read and wrote. Not every number there is a count."""

    prompt_tokens: Any = None
    completion_tokens: Any = None


class _Message(Struct):
    content: Any = None
    refusal: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    tool_calls: Any = None


class _ChatChoice(Struct):
    message: _Message | None = None
    finish_reason: Any = None


class _Chat(Struct):
    choices: list[_ChatChoice]
    usage: msgspec.Raw = NO_USAGE


class _Logprobs(Struct):
    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None


class _Choice(Struct):
    text: str | None = None
    finish_reason: Any = None
    logprobs: _Logprobs | None = None


class _Completion(Struct):
    choices: list[_Choice]
    usage: msgspec.Raw = NO_USAGE


class _Vector(Struct):
    embedding: Any = None
    index: Any = None


class _Vectors(Struct):
    data: list[_Vector]
    usage: msgspec.Raw = NO_USAGE


_chat = msgspec.json.Decoder(_Chat)
_completions = msgspec.json.Decoder(_Completion)
_vectors = msgspec.json.Decoder(_Vectors)


def decoded(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    try:
        return decoder.decode(data)
    except RecursionError:
        raise ValueError("the reply is nested too deeply") from None


def completion(data: bytes) -> tuple[_Choice, int | None, int | None]:
    """The first choice of a reply from /completions, and how many tokens were read and written."""
    reply = decoded(_completions, data)
    return first(reply.choices), *_counts(reply.usage)


def _counts(usage: msgspec.Raw) -> tuple[int | None, int | None]:
    try:
        told = msgspec.json.decode(usage, type=Usage)
    except (
        msgspec.DecodeError,
        ValueError,
        RecursionError,
    ):  # an answer is not lost for what is said of its length
        return None, None
    return _count(told.prompt_tokens), _count(told.completion_tokens)


def _count(given: Any) -> int | None:
    """A number of tokens; None for what cannot be one."""
    whole = type(given) is int or (isinstance(given, float) and given.is_integer())
    return int(given) if whole and 0 <= given <= MOST_TOKENS else None


def read_chat(data: bytes) -> Response:
    reply = decoded(_chat, data)
    choice, (tokens_in, tokens_out) = first(reply.choices), _counts(reply.usage)
    status, text, reasoning, reason = _verdict(choice)
    return Response(
        status=status,
        text=text,
        reasoning=reasoning,
        reason=reason,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
    )


def _verdict(choice: _ChatChoice) -> tuple[Status, str, str, str]:
    """The status of an answer, its text, what was thought aloud, and why it is not ok."""
    message = choice.message
    if message is None:
        return "unparsed", "", "", "no message"
    content = _content(message.content)
    status, finish = _finished(choice.finish_reason)
    reasoning = message.reasoning_content or message.reasoning
    text, thought, closed = split_reasoning(content or "", cut=status == "truncated")
    thought = "\n".join(filter(None, (reasoning if isinstance(reasoning, str) else "", thought)))
    if message.refusal:
        return "refused", str(message.refusal), thought, "refusal"
    if message.tool_calls or status is None:
        return "unparsed", text, thought, f"finish_reason {finish}"
    if status == "refused":
        return status, text, thought, finish
    status, reason = ending(status, text, thought, closed=closed, cut=finish)
    if status == "unparsed" and content is None:
        reason = "no content" if message.content is None else "the content is not text"
    return status, text, thought, reason


def _content(given: Any) -> str | None:
    """A message's text, also where it comes in parts; None where there is none."""
    if isinstance(given, list):
        parts = [part for part in given if isinstance(part, dict) and part.get("type") in TEXT_PARTS]
        return "".join(text for part in parts if isinstance(text := part.get("text"), str))
    return given if isinstance(given, str) else None


def _finished(reason: Any) -> tuple[Status | None, str]:
    """The status that a finish reason stands for, and its name."""
    name = reason if isinstance(reason, str) and reason else "missing"
    return FINISHED.get(name), name


def read_completion(data: bytes) -> Response:
    """What continues a plain text. Whether an empty continuation is an answer is for the benchmark to say."""
    choice, tokens_in, tokens_out = completion(data)
    status, finish = _finished(choice.finish_reason)
    reason = "" if status == "ok" else finish
    if status is None:
        status, reason = "unparsed", f"finish_reason {finish}"
    elif status == "truncated" and not choice.text:
        reason = f"{finish} {BEFORE_TEXT}"
    elif status == "ok" and choice.text is None:
        status, reason = "unparsed", "no text"
    return Response(
        status=status,
        text=choice.text or "",
        reason=reason,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
    )


def first(choices: list[Any]) -> Any:
    if not choices:
        raise ValueError("the reply holds no choices")
    return choices[0]


def read_vectors(data: bytes, count: int) -> list[Response]:
    """One response for each text, in the order of the texts.

    The order is that of `index` where it numbers the vectors from 0, and that of the reply where there is no
    `index` at all. Anything else may attach a vector to another text: then all of them are `unparsed`.
    """
    reply = decoded(_vectors, data)
    total = _counts(reply.usage)[0]
    # The server counts a whole batch; an even share for each text keeps the sum right.
    tokens = [None if total is None else total * (i + 1) // count - total * i // count for i in range(count)]
    found, why = _in_order(reply.data, count)
    if why:
        return [Response(status="unparsed", reason=why, tokens_in=part) for part in tokens]
    return [_embedded(item.embedding, part) for item, part in zip(found, tokens, strict=True)]


def _in_order(given: list[_Vector], count: int) -> tuple[list[_Vector], str]:
    """The vectors in the order of the texts, or why that order is not known."""
    if len(given) != count:
        return [], f"{MISPLACED}: {len(given)} for {count}"
    indexes = [item.index for item in given]
    if count == 1 or indexes == [None] * count:
        return given, ""
    if {type(index) for index in indexes} != {int} or sorted(indexes) != list(range(count)):
        return [], f"{MISPLACED}: its 'index' does not run from 0 to {count - 1}"
    return sorted(given, key=lambda item: int(item.index)), ""


def _embedded(given: Any, tokens: int | None) -> Response:
    try:
        vector = _vector(given)
    except (ValueError, TypeError, OverflowError) as error:
        return Response(status="unparsed", reason=f"not a vector: {error}", tokens_in=tokens)
    if why := vectors.vector_problem(vector):
        return Response(status="unparsed", reason=why, tokens_in=tokens)
    return Response(status="ok", vector=vector, tokens_in=tokens)


def _vector(given: Any) -> bytes:
    """A vector as little-endian float32."""
    if isinstance(given, str):
        return base64.b64decode(given, validate=True)
    if not isinstance(given, list) or not set(map(type, given)) <= {float, int}:
        raise TypeError("neither a list of numbers nor base64")
    vector = array("f", given)
    if sys.byteorder == "big":
        vector.byteswap()
    return vector.tobytes()
