"""Anthropic's messages: a chat request as a message's parameters, a message as a chat reply.

Requests are made and replies are read by the code of the OpenAI protocol; this translates on the way, for
requests one by one and in batches, so that a record is the same whichever way it was asked.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

DROPPED = ("n", "stream", "seed", "response_format", "logprobs")
"""Fields of a chat request that a message does not have."""
FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The HTTP status of each type of error."""
INPUT_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class _Block(Struct):
    type: str = ""
    text: Any = ""
    thinking: Any = ""


class _MessagesReply(Struct):
    content: list[_Block]
    stop_reason: Any = None
    usage: Any = None
    model: Any = None


def message_body(chat: dict[str, Any], *, max_temperature: float | None = None) -> dict[str, Any]:
    """The parameters of a message from the body of a chat request: the system prompt apart, `max_tokens`
    under its own name. A temperature is lowered to the highest there is; beside thinking none is taken."""
    body = {name: value for name, value in chat.items() if name not in DROPPED}
    turns = body.pop("messages")
    system = "\n\n".join(turn["content"] for turn in turns if turn["role"] in ("system", "developer"))
    messages = [turn for turn in turns if turn["role"] not in ("system", "developer")]
    tokens = body.pop("max_completion_tokens", None)
    body.setdefault("max_tokens", tokens)
    stop = body.pop("stop", None) or []
    stop = [text for text in ([stop] if isinstance(stop, str) else stop) if text.strip()]
    thinking = body.get("thinking")
    if isinstance(thinking, dict) and thinking.get("type") in ("enabled", "adaptive"):
        body.pop("temperature", None)
    elif max_temperature is not None and "temperature" in body:
        body["temperature"] = min(body["temperature"], max_temperature)
    return {
        **body,
        **({"system": system} if system else {}),
        **({"stop_sequences": stop} if stop else {}),
        "messages": messages,
    }


def chat_reply(message: bytes) -> bytes:
    """A message as the reply to a chat request."""
    reply = msgspec.json.decode(message, type=_MessagesReply)
    texts = [block.text for block in reply.content if block.type == "text"]
    thoughts = [block.thinking for block in reply.content if block.type == "thinking"]
    if not all(isinstance(text, str) for text in (*texts, *thoughts)):
        raise ValueError("a block of the content holds no text")
    turn: dict[str, Any] = {"content": "".join(texts)}
    if any(thoughts):
        turn["reasoning_content"] = "\n".join(filter(None, thoughts))
    if any(block.type == "tool_use" for block in reply.content):
        turn["tool_calls"] = True
    reason = reply.stop_reason
    finish = FINISH_REASONS.get(reason, reason) if isinstance(reason, str) else reason
    choice = {"message": turn, "finish_reason": finish}
    body = {"model": reply.model, "choices": [choice], "usage": _usage(reply.usage)}
    return msgspec.json.encode(body)


def _usage(usage: Any) -> dict[str, Any] | None:
    """The counts under the names of the OpenAI protocol. Tokens that were cached were read as well."""
    if not isinstance(usage, dict):
        return None
    read = [count for name in INPUT_TOKENS if type(count := usage.get(name)) is int]
    return {"prompt_tokens": sum(read) if read else None, "completion_tokens": usage.get("output_tokens")}
