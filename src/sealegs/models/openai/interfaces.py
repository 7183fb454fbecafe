"""The interfaces by which a model is asked: those of one text, with their translations, and of many."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sealegs.models.openai import messages, responses
from sealegs.models.openai.protocol import (
    CHAT,
    COMPLETIONS,
    EMBEDDINGS,
    RERANK,
    read_chat,
    read_completion,
    read_scores,
    read_vectors,
)
from sealegs.models.openai.retry import Call
from sealegs.models.presets import Preset
from sealegs.types import Embed, Rank, Response

if TYPE_CHECKING:
    from sealegs.models.openai.dialect import Dialect

Batch: TypeAlias = list[Embed | Rank]
"""Texts to embed, or documents to rank for one query."""


class Interface(NamedTuple):
    """Texts to generate as one interface takes and answers them."""

    path: str
    read: Callable[[bytes], Response]
    """Its reply as a response."""
    body: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """The body of a chat request as the interface takes it, where that is another."""


CHATS = Interface(CHAT, read_chat)
TEXTS = Interface(COMPLETIONS, read_completion)
RESPONSES = Interface(
    "responses", lambda data: read_chat(responses.chat_reply(data)), responses.response_body
)


def interface_of(preset: Preset) -> Interface:
    """The one that a preset names; of any other server, that of chats until it says otherwise."""
    if preset.interface == "messages":
        body = partial(messages.message_body, max_temperature=preset.max_temperature)
        return Interface("messages", lambda data: read_chat(messages.chat_reply(data)), body)
    return RESPONSES if preset.interface == "responses" else CHATS


def batch_call(dialect: Dialect, batch: Batch) -> Call[list[Response]]:
    """The one call for many texts; no request was counted for it."""
    first, count = batch[0], len(batch)
    if isinstance(first, Rank):
        documents = [request.document for request in batch if isinstance(request, Rank)]
        path, read = RERANK, read_scores
        body = partial(dialect.rank_body, first.query, documents)
    else:
        texts = [request.text for request in batch if isinstance(request, Embed)]
        path, read = EMBEDDINGS, read_vectors
        body = partial(dialect.embed_body, texts)
    return Call(
        path,
        body,
        lambda data: read(data, count),
        priced=False,
        results=count,
        is_admitted=False,
    )
