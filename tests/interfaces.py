"""Anthropic's Messages and OpenAI's Responses interface as a server has them, from documented examples.

They are written apart from the client: a request that has a field which the documentation does not name is
refused, as the providers do, and a reply has every field of the example there.
"""

from __future__ import annotations

from typing import Any

MESSAGES_FIELDS = {
    "model", "messages", "max_tokens", "system", "temperature", "top_p", "top_k", "stop_sequences",
    "thinking", "output_config", "metadata", "stream",
}  # fmt: skip
RESPONSES_FIELDS = {
    "model", "input", "instructions", "max_output_tokens", "temperature", "top_p", "reasoning", "text",
    "store", "metadata", "stream",
}  # fmt: skip
ONLY_RESPONSES = "This model is only supported in v1/responses and not in v1/chat/completions."


def messages_problem(body: dict[str, Any]) -> str:
    """Why a request for a message is refused."""
    if unknown := sorted(set(body) - MESSAGES_FIELDS):
        return f"{unknown[0]}: Extra inputs are not permitted"
    if type(body.get("max_tokens")) is not int:
        return "max_tokens: Field required"
    if not 0 <= body.get("temperature", 0) <= 1:
        return "temperature: range: 0..1"
    roles = {turn["role"] for turn in body["messages"]}
    return "" if roles <= {"user", "assistant"} else f"messages: Unexpected role {sorted(roles)}"


def responses_problem(body: dict[str, Any]) -> str:
    """Why a request for a response is refused."""
    if unknown := sorted(set(body) - RESPONSES_FIELDS):
        return f"Unknown parameter: '{unknown[0]}'."
    if body.get("max_output_tokens", 16) < 16:
        return "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16."
    form = body.get("text", {}).get("format", {"type": "text"})
    if form["type"] == "json_schema" and not {"name", "schema"} <= set(form):
        return "Missing required parameter: 'text.format.name'."
    return ""


def chat_of(body: dict[str, Any]) -> dict[str, Any]:
    """What the loopback server answers, from a request of either interface."""
    turns = body.get("messages") or body["input"]
    system = body.get("system") or body.get("instructions")
    first = [{"role": "system", "content": system}] if system else []
    tokens = body.get("max_tokens") or body.get("max_output_tokens")
    return {"model": body["model"], "messages": [*first, *turns], "max_tokens": tokens}


def message_of(reply: dict[str, Any]) -> dict[str, Any]:
    """The example of Anthropic's documentation, with the text of a chat's reply."""
    [choice], usage = reply["choices"], reply["usage"]
    reasons = {"stop": "end_turn", "length": "max_tokens"}
    return {
        "id": "msg_013Zva2CMHLNnXjNJJKqJ2EF", "type": "message", "role": "assistant", "model": "loop",
        "content": [{"type": "text", "text": choice["message"]["content"]}],
        "stop_reason": reasons[choice["finish_reason"]], "stop_sequence": None,
        "usage": {
            "input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"],
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "service_tier": "standard",
        },
    }  # fmt: skip


def response_of(reply: dict[str, Any], body: dict[str, Any], *, temperature: float | None) -> dict[str, Any]:
    """The example of OpenAI's documentation, with the text of a chat's reply. It states the sampling."""
    [choice] = reply["choices"]
    cut = choice["finish_reason"] == "length"
    content = {"type": "output_text", "text": choice["message"]["content"], "annotations": []}
    return {
        "id": "resp_67ccd2bed1ec8190b14f964abc054267", "object": "response", "created_at": 1741476542,
        "status": "incomplete" if cut else "completed", "error": None, "instructions": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "max_output_tokens": body.get("max_output_tokens"), "model": "loop",
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {
                "type": "message", "id": "msg_67ccd2bf17f0819081ff3bb2cf6508e6", "status": "completed",
                "role": "assistant", "content": [content],
            },
        ],
        "parallel_tool_calls": True, "previous_response_id": None, "store": False,
        "reasoning": {"effort": body.get("reasoning", {}).get("effort"), "summary": None},
        "temperature": body.get("temperature") if temperature is None else temperature, "top_p": 1.0,
        "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "truncation": "disabled",
        "usage": {
            "input_tokens": 36, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 87,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 123,
        },
        "user": None, "metadata": {},
    }  # fmt: skip
