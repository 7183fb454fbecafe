"""Which models a server lists: `GET /models`, within bounds, whatever the server sends."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct

from sealegs.models.openai.background import iterate
from sealegs.models.openai.transport import Transport, TryFailed, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sealegs.models.openai.background import Outbox
    from sealegs.models.openai.endpoint import Endpoint

TIMEOUT_S = 10.0


class Listed(NamedTuple):
    """The models of a server, or why they are not known."""

    models: list[str]
    problem: str = ""


class _ListedModel(Struct):
    id: Any = None
    name: Any = None


class _Models(Struct):
    data: list[_ListedModel] | None = None
    models: list[_ListedModel] | None = None


_decoder = msgspec.json.Decoder(_Models | list[_ListedModel])


def list_models(endpoints: Mapping[str, Endpoint]) -> dict[str, Listed]:
    """The models of several servers, which are asked at the same time; by the names that the servers have."""
    replies: list[dict[str, Listed]] = list(iterate(partial(_ask_all, endpoints)))
    return replies[0]


async def _ask_all(endpoints: Mapping[str, Endpoint], outbox: Outbox[dict[str, Listed]]) -> None:
    replies = await asyncio.gather(*map(_ask, endpoints.values()))
    outbox.put(dict(zip(endpoints, replies, strict=True)))


async def _ask(endpoint: Endpoint) -> Listed:
    transport = Transport(endpoint, TIMEOUT_S)
    try:
        reply = await transport.send("GET", "models")
        if reply.status != 200:
            raise reply.failure()
        return Listed(reply.parse(read_models))
    except TryFailed as error:
        return Listed([], str(error).rstrip("."))
    finally:
        await transport.close()


def read_models(data: bytes) -> list[str]:
    """The names in a list of models, each once, in the order of the list; no other text."""
    reply = _decoder.decode(data)
    entries = reply if isinstance(reply, list) else reply.data if reply.data is not None else reply.models
    names = (entry.id if isinstance(entry.id, str) else entry.name for entry in entries or ())
    shown = (name for name in names if isinstance(name, str) and name and shorten(name) == name)
    return list(dict.fromkeys(shown))
