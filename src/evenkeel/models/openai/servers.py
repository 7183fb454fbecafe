"""Several servers that hold the same model: each request goes to the one with the most free capacity.

A server that fails is left out for a while and then sent a request again; what it failed to answer goes to
the others. Where none is left, all are tried as if there were one.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, TypeVar

from evenkeel.models.openai.retry import Call, Client, Fate, RequestFailed, Tries, fate_of, may_pass
from evenkeel.models.openai.transport import NO_CONNECTION, RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from evenkeel.models.openai.background import Relay
    from evenkeel.models.openai.endpoint import Endpoint
    from evenkeel.models.openai.retry import ServerHealth

R = TypeVar("R")

FAILURES = 3
"""In a row, of a server that can be reached, after which it is left out."""
PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""For which a server is left out: twice as long every time, up to the second."""


class Server:
    """One of the servers, for as long as the model is open."""

    def __init__(self, endpoint: Endpoint, health: ServerHealth) -> None:
        self.endpoint = endpoint
        self.health = health
        self._failures = 0
        self._pause = PAUSE_S
        self._out_until = 0.0

    @property
    def out(self) -> bool:
        """Whether it is left out now."""
        return time.monotonic() < self._out_until

    def answered(self) -> None:
        self.health.answered()
        self._failures, self._pause, self._out_until = 0, PAUSE_S, 0.0

    def failed(self, error: RequestError) -> bool:
        """Count a failure, and leave the server out if need be; True for the first time since an answer."""
        fate = fate_of(error)
        if fate is Fate.SLOW_DOWN or self.out:
            return False  # it is there, and its throttle knows; or it is known to be failing
        self._failures += 1
        useless = fate in (Fate.SUSPECT, Fate.END) or error.kind == NO_CONNECTION
        if not useless and self._failures < FAILURES:
            return False
        self._out_until = time.monotonic() + self._pause
        first = self._pause == PAUSE_S
        self._pause = min(2 * self._pause, LONGEST_PAUSE_S)
        return first


class Servers:
    """Sends calls to several servers, as `Client` does to one. It belongs to one event loop."""

    def __init__(
        self,
        servers: Sequence[Server],
        connect: Callable[[Server], Client],
        *,
        health: ServerHealth,
        relay: Relay,
    ) -> None:
        self._clients = {server: connect(server) for server in servers}
        self._health = health
        self._relay = relay
        self._waiting: deque[asyncio.Future[None]] = deque()
        for client in self._clients.values():
            client.throttle.on_room = self._wake

    async def __aenter__(self) -> Servers:
        for client in self._clients.values():
            await client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self._clients.values():
            await client.__aexit__(kind, error, trace)

    @property
    def under_way(self) -> int:
        return sum(client.under_way for client in self._clients.values())

    async def send(self, call: Call[R]) -> R:
        """The reply of any server, after as many tries as it takes; else as `Client.send`."""
        tries = Tries()
        failed: set[Server] = set()
        while True:
            server = await self._choose(failed)
            client = self._clients[server]
            tries.count += 1
            try:
                reply = await client.attempt(call, tries)
            except RequestError as error:
                failed.add(server)
                if fate_of(error) is Fate.FAIL:
                    raise RequestFailed(error, tries.count) from None
                if server.failed(error):
                    text = error.at(server.endpoint.shown).rstrip(".")
                    self._relay.note(f"{text}. It is left out, and tried again later.")
                if self._others(failed):
                    continue
                if fate_of(error) is Fate.END:
                    raise client.unreachable(error) from None
                if not may_pass(error):
                    raise RequestFailed(error, tries.count) from None
                await client.before_next(error, tries)
                failed.clear()
            else:
                server.answered()
                self._health.answered()
                return reply

    def _others(self, failed: set[Server]) -> list[Server]:
        return [server for server in self._clients if not server.out and server not in failed]

    async def _choose(self, failed: set[Server]) -> Server:
        """The server with the most room, of those that are there and have not failed this request."""
        while True:
            candidates = self._others(failed) or self._others(set()) or list(self._clients)
            server = max(candidates, key=lambda each: self._clients[each].throttle.room)
            if self._clients[server].throttle.room > 0:
                return server
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn

    def _wake(self) -> None:
        """Have as many look again as there is room for."""
        room = sum(max(0, client.throttle.room) for client in self._clients.values())
        while room > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                room -= 1
