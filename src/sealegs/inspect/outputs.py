"""An output of Inspect's models as a response, by the rules that hold for every server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sealegs.models.reasoning import split_reasoning
from sealegs.text.answers import BEFORE_TEXT, ending
from sealegs.types import Response, Status

if TYPE_CHECKING:
    from inspect_ai.model import ChatCompletionChoice, ModelOutput

STOP_STATUS: dict[str, Status] = {
    "stop": "ok",
    "max_tokens": "truncated",
    "model_length": "truncated",
    "content_filter": "refused",
}


def response_of(output: ModelOutput, *, plain: bool) -> Response:
    """How a request ended. `plain` is the continuation of a text, which is taken to the letter."""
    if not output.choices:
        return Response(status="error", reason=output.error or "the model gave no output")
    choice, usage = output.choices[0], output.usage
    status, text, reasoning, reason = _plain(choice) if plain else _chat(choice)
    # Inspect counts the tokens that are read from a cache, or written to one, apart.
    read = usage and (usage.input_tokens, usage.input_tokens_cache_read, usage.input_tokens_cache_write)
    return Response(
        status=status,
        text=text,
        reasoning=reasoning,
        reason=reason,
        tokens_in=sum(filter(None, read)) if read else None,
        tokens_out=usage.output_tokens if usage else None,
    )


def _chat(choice: ChatCompletionChoice) -> tuple[Status, str, str, str]:
    message, status = choice.message, STOP_STATUS.get(choice.stop_reason)
    text, inline, closed = split_reasoning(message.text, cut=status == "truncated")
    parts = [] if isinstance(message.content, str) else message.content
    blocks = [part.reasoning for part in parts if part.type == "reasoning"]
    reasoning = "\n".join(filter(None, (*blocks, inline)))
    if any(part.type == "text" and part.refusal for part in parts):
        return "refused", text, reasoning, "refusal"
    if message.tool_calls or status is None:
        return "unparsed", text, reasoning, f"stop_reason {choice.stop_reason}"
    if status == "refused":
        return status, text, reasoning, choice.stop_reason
    status, reason = ending(status, text, reasoning, closed=closed, cut=choice.stop_reason)
    return status, text, reasoning, reason


def _plain(choice: ChatCompletionChoice) -> tuple[Status, str, str, str]:
    text, status = choice.message.text, STOP_STATUS.get(choice.stop_reason)
    if status is None:
        return "unparsed", text, "", f"stop_reason {choice.stop_reason}"
    if status == "truncated" and not text:
        return status, text, "", f"{choice.stop_reason} {BEFORE_TEXT}"
    return status, text, "", "" if status == "ok" else choice.stop_reason
