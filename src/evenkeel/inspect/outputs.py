"""An output of Inspect's models as a response, by the rules that hold for every server.

It is read from JSON, as a log has it, so that a log is scored as the evaluation itself was.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from evenkeel.models.reasoning import split_reasoning
from evenkeel.text.answers import BEFORE_TEXT, ending
from evenkeel.types import Response, Status

STOP_STATUS: dict[str, Status] = {
    "stop": "ok",
    "max_tokens": "truncated",
    "model_length": "truncated",
    "content_filter": "refused",
}
Count = Annotated[int, Meta(ge=0, le=2**53)]


class Part(Struct):
    """One part of a message."""

    type: str = "text"
    text: str = ""
    reasoning: str = ""
    refusal: bool | None = None


class Message(Struct):
    content: str | list[Part] = ""
    tool_calls: list[Any] | None = None

    @property
    def parts(self) -> list[Part]:
        return [Part(text=self.content)] if isinstance(self.content, str) else self.content

    @property
    def text(self) -> str:
        """The text parts, as Inspect joins them."""
        return "\n".join(part.text for part in self.parts if part.type == "text")


class Choice(Struct):
    message: Message = msgspec.field(default_factory=Message)
    stop_reason: str = "unknown"


class Usage(Struct):
    input_tokens: Count = 0
    output_tokens: Count = 0
    input_tokens_cache_read: Count | None = None
    input_tokens_cache_write: Count | None = None

    @property
    def read(self) -> int:
        """Every token that was read: Inspect counts those in a cache apart."""
        return self.input_tokens + (self.input_tokens_cache_read or 0) + (self.input_tokens_cache_write or 0)


class Output(Struct):
    """What Evenkeel reads of a model's output."""

    choices: list[Choice] = []
    usage: Usage | None = None
    error: str | None = None


def response_of(output: Output, *, plain: bool) -> Response:
    """How a request ended. `plain` is the continuation of a text, which is taken to the letter."""
    if not output.choices:
        return Response(status="error", reason=output.error or "the model gave no output")
    choice = output.choices[0]
    status, text, reasoning, reason = _plain(choice) if plain else _chat(choice)
    return Response(
        status=status,
        text=text,
        reasoning=reasoning,
        reason=reason,
        tokens_in=output.usage.read if output.usage else None,
        tokens_out=output.usage.output_tokens if output.usage else None,
    )


def _chat(choice: Choice) -> tuple[Status, str, str, str]:
    message, status = choice.message, STOP_STATUS.get(choice.stop_reason)
    text, inline, closed = split_reasoning(message.text, cut=status == "truncated")
    blocks = [part.reasoning for part in message.parts if part.type == "reasoning"]
    reasoning = "\n".join(filter(None, (*blocks, inline)))
    if any(part.refusal for part in message.parts):
        return "refused", text, reasoning, "refusal"
    if message.tool_calls or status is None:
        return "unparsed", text, reasoning, f"stop_reason {choice.stop_reason}"
    if status == "refused":
        return status, text, reasoning, choice.stop_reason
    status, reason = ending(status, text, reasoning, closed=closed, cut=choice.stop_reason)
    return status, text, reasoning, reason


def _plain(choice: Choice) -> tuple[Status, str, str, str]:
    text, status = choice.message.text, STOP_STATUS.get(choice.stop_reason)
    if status is None:
        return "unparsed", text, "", f"stop_reason {choice.stop_reason}"
    if status == "truncated" and not text:
        return status, text, "", f"{choice.stop_reason} {BEFORE_TEXT}"
    return status, text, "", "" if status == "ok" else choice.stop_reason
