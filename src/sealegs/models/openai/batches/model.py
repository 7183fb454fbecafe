"""A model asked by batches: requests go in as files, and their answers are those that a live model gives.

A chat request is written by the live model's dialect and its reply is read by the same code, so that a run's
records do not depend on the way. Other requests (embeddings, plain texts) are passed on to the live model.
"""

from __future__ import annotations

import weakref
from collections.abc import Generator, Iterable, Iterator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

from sealegs.harness.gate import NO_LIMITS, RequestGate
from sealegs.harness.progress import Progress
from sealegs.journal.journal import make_key, model_digest
from sealegs.models.openai.backend import OpenAI
from sealegs.models.openai.background import Outbox, Relay, iterate
from sealegs.models.openai.batches.session import Answer, BatchAccess, BatchSession, poll_limit
from sealegs.models.openai.retry import Client
from sealegs.models.openai.servers import Server, ServerHealth
from sealegs.types import Capability, Generate, Request

ID_LENGTH = 32
"""Characters of a `custom_id`: the beginning of the journal's key, so that any process finds it again."""


class BatchModel:
    """Answers chat requests by batches, anything else by the live model."""

    def __init__(self, live: OpenAI, access: BatchAccess, folder: Path, *, wait: bool = True) -> None:
        self._live = live
        self.addresses = live.addresses
        self.capabilities: frozenset[Capability] = live.capabilities
        self._access = access
        self._folder = folder
        self._wait = wait
        self._digest = model_digest(live.identity())
        poll_limit()  # a wrong one is an error before anything is asked
        self._health = ServerHealth(access.endpoint.shown)
        self._progress = Progress()
        self._gate, self._role = NO_LIMITS, ""
        self._streams: weakref.WeakSet[Generator[Any, None, None]] = weakref.WeakSet()

    def identity(self) -> dict[str, Any]:
        return self._live.identity()

    def probe(self, needs: frozenset[Capability]) -> None:
        self._live.probe(needs)

    def notes(self) -> list[str]:
        return self._live.notes()

    def refused(self) -> list[str]:
        return self._access.dialect.refused()

    def watch(self, progress: Progress) -> None:
        self._progress = progress
        self._live.watch(progress)

    def count_with(self, gate: RequestGate, role: str) -> None:
        self._gate, self._role = gate, role
        self._live.count_with(gate, role)

    def close(self) -> None:
        for stream in list(self._streams):
            stream.close()
        self._live.close()

    def answer(self, requests: Iterable[Request]) -> Iterator[Answer]:
        """Read the whole stream first, so that no request is handed in that the budget has no room for."""
        self._live.probe(frozenset({"generate"}))  # that there is a key
        chats: dict[str, list[Generate]] = {}
        others: list[Request] = []
        for request in requests:
            if isinstance(request, Generate) and not isinstance(request.prompt, str):
                name = make_key(self._digest, request).hex()[:ID_LENGTH]
                chats.setdefault(name, []).append(request)
            else:
                others.append(request)
        if others:
            yield from self._live.answer(others)
        if chats:
            stream = iterate(partial(self._answer_all, chats))
            self._streams.add(stream)
            yield from stream

    async def _answer_all(self, chats: dict[str, list[Generate]], outbox: Outbox[Answer]) -> None:
        access, relay = self._access, Relay(outbox, self._progress)
        client = Client(
            [Server(access.endpoint, concurrency=1)],
            health=self._health,
            dialect=access.dialect,
            relay=relay,
            gate=self._gate,
            role=self._role,
            timeout=access.timeout,
            retries=access.retries,
        )
        async with aclosing(client):
            session = BatchSession(
                access=access,
                client=client,
                pending=chats,
                outbox=outbox,
                folder=self._folder,
                wait=self._wait,
                relay=relay,
                health=self._health,
            )
            await session.run()
