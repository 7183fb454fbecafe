"""Replies of the OpenAI protocol as pure functions: the bytes received to a response.

A reply that does not have the expected shape raises `msgspec.DecodeError`, `RecursionError` or `ValueError`.
"""

from __future__ import annotations

import base64
import struct
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from sealegs.models.reasoning import split_reasoning
from sealegs.models.vectors import vector_problem
from sealegs.text.answers import BEFORE_TEXT, IN_REASONING, ending
from sealegs.types import Response, Status

CHAT, COMPLETIONS, EMBEDDINGS, RERANK = "chat/completions", "completions", "embeddings", "rerank"

FINISH_STATUS: dict[str, Status] = {
    "stop": "ok",
    "eos_token": "ok",  # Text Generation Inference
    "stop_sequence": "ok",
    "end_turn": "ok",
    "length": "truncated",
    "max_tokens": "truncated",
    "content_filter": "refused",
}

TEXT_PARTS = ("text", "output_text")
THINKING_PARTS = ("thinking", "reasoning", "thought")
PART_FIELDS = ("text", "thinking", "summary", "content")
MOST_PARTS = 1000
"""Parts of a message that are looked at."""
DEEPEST_REPLY_LEVELS = 4
"""Lists and objects inside each other in which thinking is looked for."""

LARGEST_SCORE = 1e30
LONGEST_NAME = 200
MAX_COUNT = 10_000_000
"""A larger count of tokens is wrong: no context is so long, and it would use up any budget."""

MISPLACED = "which result belongs to which text is not clear (--model-arg embed_batch=1 asks for each alone)"

V = TypeVar("V", "_Vector", "_RankedDocument")
S = TypeVar("S", bound="_ReplySource")
C = TypeVar("C", "_ChatChoice", "_CompletionChoice")


NO_USAGE = msgspec.Raw(b"null")


class _ReplyUsage(Struct):
    """How many tokens a server claims to have read and written. Not every number there is a count."""

    prompt_tokens: Any = None
    completion_tokens: Any = None
    total_tokens: Any = None
    """With tokens of thinking that are in no other number, where a server counts so."""
    completion_tokens_details: Any = None


class _ChatMessage(Struct):
    content: Any = None
    refusal: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    thinking: Any = None
    reasoning_details: Any = None
    tool_calls: Any = None


class _ChatChoice(Struct):
    message: _ChatMessage | None = None
    finish_reason: Any = None
    index: Any = None


class _ReplySource(Struct):
    """What every reply may say of itself."""

    model: Any = None
    system_fingerprint: Any = None
    provider: Any = None
    """Of a router such as OpenRouter: who answered."""
    error: Any = None
    usage: msgspec.Raw = NO_USAGE


class _Chat(_ReplySource):
    choices: list[_ChatChoice] | None = None


class _CompletionLogprobs(Struct):
    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None


class _CompletionChoice(Struct):
    text: str | None = None
    finish_reason: Any = None
    logprobs: _CompletionLogprobs | None = None
    index: Any = None


class _CompletionReply(_ReplySource):
    choices: list[_CompletionChoice] | None = None


class _Vector(Struct):
    embedding: Any = None
    index: Any = None


class _RankedDocument(Struct):
    index: Any = None
    relevance_score: Any = None
    score: Any = None
    """Its name in Text Embeddings Inference."""


class _Scores(_ReplySource, kw_only=True):
    results: list[_RankedDocument]


class _Vectors(_ReplySource):
    data: list[_Vector] | None = None


_chat = msgspec.json.Decoder(_Chat)
_usages = msgspec.json.Decoder(_ReplyUsage)
_completions = msgspec.json.Decoder(_CompletionReply)
_vectors = msgspec.json.Decoder(_Vectors)
_scores = msgspec.json.Decoder(_Scores | list[_RankedDocument])


def _checked(reply: S) -> S:
    """A reply that is not an error, whatever else it holds."""
    if reply.error:
        message = reply.error.get("message") if isinstance(reply.error, dict) else reply.error
        raise ValueError(f"the reply is an error: {message}")
    return reply


def _first(choices: list[C] | None) -> C:
    """The choice of index 0, wherever it is in the list."""
    if not choices:
        raise ValueError("the reply holds no choices")
    if choices[0].index == 0:
        return choices[0]
    return next((choice for choice in choices if choice.index == 0), choices[0])


class Version(NamedTuple):
    """The model that answered, and the version of its server, as a reply names them."""

    model: str
    fingerprint: str


def _version(reply: _ReplySource) -> Version:
    fingerprint, provider = _name(reply.system_fingerprint), _name(reply.provider)
    return Version(_name(reply.model), f"{fingerprint} from {provider}".strip() if provider else fingerprint)


def _name(value: Any) -> str:
    return value[:LONGEST_NAME] if isinstance(value, str) else ""


def _token_counts(usage: msgspec.Raw) -> tuple[int | None, int | None]:
    """Tokens read and written, those included that are only in the total: thinking, at some servers."""
    counts = _usage(usage)
    read, written = _token_count(counts.prompt_tokens), _token_count(counts.completion_tokens)
    total = _token_count(counts.total_tokens)
    if read is None or written is None or total is None:
        return read, written
    return read, max(written, total - read)


def _usage(usage: msgspec.Raw) -> _ReplyUsage:
    """An answer is not lost for a broken count."""
    try:
        return _usages.decode(usage)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return _ReplyUsage()


def _has_hidden_reasoning(usage: msgspec.Raw) -> bool:
    """Whether tokens of thinking are counted that are not shown."""
    counts = _usage(usage)
    details = counts.completion_tokens_details
    if isinstance(details, dict) and _token_count(details.get("reasoning_tokens")):
        return True
    return _token_counts(usage)[1] != _token_count(counts.completion_tokens)


def _token_count(value: Any) -> int | None:
    """A number of tokens; None for what cannot be one."""
    whole = type(value) is int or (isinstance(value, float) and value.is_integer())
    return int(value) if whole and 0 <= value <= MAX_COUNT else None


def read_chat(data: bytes) -> Response:
    reply = _checked(_chat.decode(data))
    status, text, reasoning, reason = _chat_answer(_first(reply.choices))
    if reason.endswith(BEFORE_TEXT) and _has_hidden_reasoning(reply.usage):
        reason = f"{reason.removesuffix(BEFORE_TEXT)}{IN_REASONING}"
    return _response(reply, status, text, reason, reasoning)


def _response(reply: _ReplySource, status: Status, text: str, reason: str, reasoning: str = "") -> Response:
    """A response with what its reply says of itself."""
    tokens_in, tokens_out = _token_counts(reply.usage)
    version = _version(reply)
    return Response(
        status=status,
        text=text,
        reasoning=reasoning,
        reason=reason,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        model=version.model,
        fingerprint=version.fingerprint,
    )


def _chat_answer(choice: _ChatChoice) -> tuple[Status, str, str, str]:
    """The status of an answer, its text, its reasoning, and why it is not ok."""
    message = choice.message
    if message is None:
        raise ValueError("the first choice holds no message")
    content = _content(message.content)
    status, finish = _finish_status(choice.finish_reason)
    # Where servers put thinking, the most used first. OpenRouter fills two with the same.
    named = (message.reasoning_content, message.reasoning, message.thinking, message.reasoning_details)
    separate = next(filter(None, map(_thinking, named)), "") if any(named) else ""
    separate = separate or _thinking_parts(message.content)
    text, inline, closed = split_reasoning(content or "", cut=status == "truncated")
    reasoning = f"{separate}\n{inline}" if separate and inline else separate or inline
    if message.refusal:
        return "refused", str(message.refusal), reasoning, "refusal"
    if message.tool_calls or status is None:
        return "unparsed", text, reasoning, f"finish_reason {finish}"
    if status == "refused":
        return status, text, reasoning, finish
    status, reason = ending(status, text, reasoning, closed=closed, cut=finish)
    if status == "unparsed" and content is None:
        reason = "no content"
    return status, text, reasoning, reason


def _content(content: Any) -> str | None:
    """A message's text, also where it comes in parts; None where there is none."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict) and part.get("type") in TEXT_PARTS]
        return "".join(text for part in parts if isinstance(text := part.get("text"), str))
    if content is None or isinstance(content, str):
        return content
    raise ValueError("the content is not text")


def _thinking_parts(content: Any) -> str:
    """The thinking among the parts of a message, as Mistral and Anthropic send it."""
    if not isinstance(content, list):
        return ""
    parts = [part for part in content if isinstance(part, dict) and part.get("type") in THINKING_PARTS]
    return _thinking(parts)


def _thinking(value: Any, depth: int = 0) -> str:
    """The text of thinking: a string, or one inside parts; what is encrypted has none."""
    if isinstance(value, str):
        return value
    if depth >= DEEPEST_REPLY_LEVELS:
        return ""
    if isinstance(value, list):
        separator = "" if depth else "\n"  # the parts of one thought are one text
        return separator.join(filter(None, (_thinking(part, depth + 1) for part in value[:MOST_PARTS])))
    if isinstance(value, dict):
        return next(filter(None, (_thinking(value.get(name), depth + 1) for name in PART_FIELDS)), "")
    return ""


def _finish_status(reason: Any) -> tuple[Status | None, str]:
    """The status that a finish reason means, and its name."""
    name = reason if isinstance(reason, str) and reason else "missing"
    return FINISH_STATUS.get(name), name


class Completion(NamedTuple):
    """The choice of a reply from /completions, and what the reply says of itself."""

    choice: _CompletionChoice
    tokens_in: int | None
    tokens_out: int | None
    version: Version


def completion(data: bytes) -> Completion:
    reply = _checked(_completions.decode(data))
    return Completion(_first(reply.choices), *_token_counts(reply.usage), _version(reply))


def read_completion(data: bytes) -> Response:
    """The continuation of a plain text. Whether an empty one is an answer is for the benchmark to decide."""
    reply = _checked(_completions.decode(data))
    choice = _first(reply.choices)
    status, finish = _finish_status(choice.finish_reason)
    reason = "" if status == "ok" else finish
    if status is None:
        status, reason = "unparsed", f"finish_reason {finish}"
    elif status == "truncated" and not choice.text:
        reason = f"{finish} {BEFORE_TEXT}"
    elif status == "ok" and choice.text is None:
        status, reason = "unparsed", "no text"
    return _response(reply, status, choice.text or "", reason)


def read_vectors(data: bytes, count: int) -> list[Response]:
    """One response for each text, in the order of the texts.

    The order is that of `index` where it numbers the vectors from 0, and that of the reply where there is no
    `index` at all. Anything else may attach a vector to another text: then all of them are `unparsed`.
    """
    reply = _checked(_vectors.decode(data))
    total = _token_counts(reply.usage)[0]
    # The server counts a whole batch; an even share for each text keeps the sum right.
    tokens = [None if total is None else total * (i + 1) // count - total * i // count for i in range(count)]
    vectors, problem = _in_order(reply.data or [], count)
    if problem:
        return [Response(status="unparsed", reason=problem, tokens_in=share) for share in tokens]
    version = _version(reply)
    return [
        _vector_response(item.embedding, share, version) for item, share in zip(vectors, tokens, strict=True)
    ]


def read_scores(data: bytes, count: int) -> list[Response]:
    """One response for each document of a reply from /rerank, in the order of the documents.

    Servers give the scores best first: a reply to several documents without `index` has no known order.
    """
    reply = _scores.decode(data)
    items = reply.results if isinstance(reply, _Scores) else reply
    scores, problem = _in_order(items, count, needs_index=True)
    if problem:
        return [Response(status="unparsed", reason=problem)] * count
    version = _version(reply) if isinstance(reply, _Scores) else Version("", "")
    return [_score_response(item, version) for item in scores]


def _score_response(item: _RankedDocument, version: Version) -> Response:
    score = item.score if item.relevance_score is None else item.relevance_score
    if type(score) not in (int, float):
        return Response(status="unparsed", reason="the score is not a number")
    if not -LARGEST_SCORE <= score <= LARGEST_SCORE:  # nor is infinity, or what is not a number
        return Response(status="unparsed", reason="the score is out of range")
    return Response(status="ok", rank=float(score), model=version.model, fingerprint=version.fingerprint)


def _in_order(items: list[V], count: int, *, needs_index: bool = False) -> tuple[list[V], str]:
    """The items of a reply in the order of the texts that they belong to; else why that is not clear."""
    indexes = [item.index for item in items]
    if not items:
        raise ValueError("the reply holds no results")
    if len(items) != count:
        return items, f"{MISPLACED}: {len(items)} for {count}"
    if count > 1 and (needs_index or indexes != [None] * count):
        if {type(index) for index in indexes} != {int} or sorted(indexes) != list(range(count)):
            return items, f"{MISPLACED}: its 'index' does not run from 0 to {count - 1}"
        places = dict(zip(indexes, items, strict=True))
        return [places[number] for number in range(count)], ""
    return items, ""


def _vector_response(embedding: Any, tokens: int | None, version: Version) -> Response:
    try:
        vector = _float32(embedding)
        problem = vector_problem(vector)
    except (ValueError, TypeError, OverflowError) as error:
        problem = f"not a vector: {error}"
    if problem:
        return Response(status="unparsed", reason=problem, tokens_in=tokens)
    return Response(
        status="ok", vector=vector, tokens_in=tokens, model=version.model, fingerprint=version.fingerprint
    )


def _float32(embedding: Any) -> bytes:
    """A vector as little-endian float32."""
    if isinstance(embedding, str):
        return base64.b64decode(embedding, validate=True)
    if not isinstance(embedding, list) or not set(map(type, embedding)) <= {float, int}:
        raise TypeError("neither a list of numbers nor base64")
    return struct.pack(f"<{len(embedding)}f", *embedding)
