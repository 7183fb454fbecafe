"""OpenAI's Responses interface: a chat request as its body, a response as a chat reply.

Requests are made and replies are read by the code of chats; this translates on the way, as `messages.py`
does for Anthropic's messages.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct

ONLY_HERE = re.compile(r"\bv1/responses\b|not a chat model|responses api", re.IGNORECASE)
"""In a refusal of a chat: that the model is asked by responses, as OpenAI says it of such models."""
LEAST_TOKENS = 16
"""Fewer `max_output_tokens` are refused."""
FINISH_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}


class _Item(Struct):
    type: str = ""
    content: Any = None
    summary: Any = None


class _ResponsesReply(Struct):
    output: list[_Item]
    status: Any = None
    incomplete_details: Any = None
    error: Any = None
    usage: Any = None
    model: Any = None


def response_body(chat: dict[str, Any]) -> dict[str, Any]:
    """The body from that of a chat request. Nothing is stored at the provider.

    A field that the interface does not have (`seed`) is sent and refused, so that its loss is noted.
    """
    body = dict(chat)
    body["input"] = body.pop("messages")
    tokens = body.pop("max_completion_tokens", None) or body.pop("max_tokens", None)
    if tokens is not None:
        body["max_output_tokens"] = max(LEAST_TOKENS, tokens)
    body.pop("max_tokens", None)
    if effort := body.pop("reasoning_effort", None):
        body["reasoning"] = {"effort": effort}
    if form := body.pop("response_format", None):
        body["text"] = {"format": {"type": form["type"], **form.get("json_schema", {})}}
    return {"store": False, **body}


def chat_reply(data: bytes) -> bytes:
    """A response as the reply to a chat request."""
    reply = msgspec.json.decode(data, type=_ResponsesReply)
    parts = [part for item in reply.output if item.type == "message" for part in _parts(item.content)]
    texts = [part.get("text") for part in parts if part.get("type") == "output_text"]
    refusals = [part.get("refusal") for part in parts if part.get("type") == "refusal"]
    thoughts = [each for item in reply.output if item.type == "reasoning" for each in _parts(item.summary)]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a part of the output holds no text")
    turn = {
        "content": "".join(map(str, texts)) if texts else None,
        "refusal": "".join(map(str, refusals)) or None,
        "reasoning": thoughts or None,
        "tool_calls": any(item.type.endswith("_call") for item in reply.output) or None,
    }
    choice = {"message": turn, "finish_reason": _finish_reason(reply)}
    return msgspec.json.encode(
        {"model": reply.model, "choices": [choice], "usage": _usage(reply.usage), "error": reply.error}
    )


def _parts(content: Any) -> list[dict[str, Any]]:
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _finish_reason(reply: _ResponsesReply) -> Any:
    """Why it ended, in the words of a chat's reply; what is not known there stays as it is."""
    if reply.status == "completed":
        return "stop"
    details = reply.incomplete_details
    reason = details.get("reason") if isinstance(details, dict) else None
    return FINISH_REASONS.get(reason, reason) if isinstance(reason, str) else reply.status


def _usage(usage: Any) -> dict[str, Any] | None:
    """The counts under the names of a chat's reply."""
    if not isinstance(usage, dict):
        return None
    return {
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
        "completion_tokens_details": usage.get("output_tokens_details"),
    }
