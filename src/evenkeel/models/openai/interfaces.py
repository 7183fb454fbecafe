"""The interfaces by which a model is asked for an answer to a chat: where each is, and its translation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from evenkeel.models.openai import messages, responses
from evenkeel.models.openai.protocol import CHAT
from evenkeel.models.presets import Preset


class Interface(NamedTuple):
    """Chats as one interface takes and answers them."""

    path: str
    body: Callable[[dict[str, Any]], dict[str, Any]] = dict
    """The body of a chat request as the interface takes it."""
    reply: Callable[[bytes], bytes] = bytes
    """Its reply as one to a chat."""


CHATS = Interface(CHAT)
RESPONSES = Interface("responses", responses.response_body, responses.chat_reply)


def interface_of(preset: Preset | None) -> Interface:
    """The one that a preset names; of any other server, that of chats until it says otherwise."""
    if preset is not None and preset.interface == "messages":
        body = partial(messages.message_body, max_temperature=preset.max_temperature)
        return Interface("messages", body, messages.chat_reply)
    return RESPONSES if preset is not None and preset.interface == "responses" else CHATS
