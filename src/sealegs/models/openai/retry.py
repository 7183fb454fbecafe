"""The one loop of tries: send a call, decide what becomes of it, wait, send it again.

A request of a benchmark is answered by one call, or two (a log-likelihood); a call with many texts answers
many requests. A call is sent in one try, or several.

| what came                                                         | what becomes of the call      |
| ----------------------------------------------------------------- | ----------------------------- |
| 400, 413, 422 and any other 4xx                                   | it fails                      |
| 401, 402, 403, 404, 405, a redirect, a web page (HTML) with a 200 | it fails; the server's fault  |
| 408, 409, 425, 500, any other 5xx, a status that is no answer     | tried again                   |
| half a reply, broken JSON, more bytes than a reply may have        | tried again                   |
| a reset, a timeout, no connection                                 | tried again                   |
| 429, 503, 529                                                     | fewer at once, tried again    |
| 429 with `insufficient_quota`, a certificate that is not trusted  | it ends the run               |

A 400 or 422 that names a field which the server does not take is first followed by a try without it
(`dialect.py`). "Tried again" is at most `retries` times, after the pause that the reply asks for and a
back-off; then it fails by the server's fault. With several servers, whatever may be one server's fault,
the last line included, is first tried at the others, without a pause, unless all asked for one; these
tries count, and are made however few `retries` there are. Which server is left out for a while, and when
failures end the run, is decided in `servers.py`. The requests of a call that failed are errors in the run,
and are asked again by the next start.

The first try of a request was counted when the gate admitted it; any other is counted here, before it waits
for room at a server. One that is stopped before it is sent is given back here. Where the budget has none,
no pause is waited out: BudgetReached ends the stream once what was sent has been answered (`backend.py`).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from msgspec import Struct

from sealegs.models.openai.servers import Server, given_up
from sealegs.models.openai.transport import (
    BROKEN,
    CONNECTION_LOST,
    NO_CONNECTION,
    PAGE,
    TIMEOUT,
    UNTRUSTED,
    Transport,
    TryFailed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sealegs.harness.gate import RequestGate
    from sealegs.models.openai.background import Relay
    from sealegs.models.openai.dialect import Dialect
    from sealegs.models.openai.servers import ServerHealth

R = TypeVar("R")

BACK_OFF_S, LONGEST_BACK_OFF_S = 0.5, 30.0
"""Of the first pause, and of the longest."""
NO_CONNECTION_S = 0.5
"""Between tries to connect. Eight such tries give a server that starts up 4 s."""
SILENT_S = 30.0
"""Without any reply, after which a note says what is waited for."""
TIMER_S = 0.02
"""A timer may end so much too early."""
LOOK_S = 1.0
"""Between two looks, during a pause, whether the budget has a try left."""
LARGE_REPLIES = 16
"""That are in memory at a time, of those that are larger than LARGE_REPLY_BYTES."""
LONGEST_WAIT_S = 600.0
"""A longer pause that a server asks for is not waited for: a daily quota, say."""


class Fate(Enum):
    """What becomes of a call after a try that failed."""

    FAIL = auto()
    """It fails: the fault is its own, and the server works."""
    SERVER_AT_FAULT = auto()
    """It fails, and the server may be at fault: the address, the key or the model may be wrong."""
    RETRY = auto()
    SLOW_DOWN = auto()
    """It is tried again, with fewer tries at once."""
    END = auto()
    """The run ends."""


FATES: dict[int | str, Fate] = {
    **dict.fromkeys((400, 413, 422, "4xx"), Fate.FAIL),
    **dict.fromkeys((401, 402, 403, 404, 405, "3xx", PAGE), Fate.SERVER_AT_FAULT),
    **dict.fromkeys((408, 409, 425, 500, "5xx"), Fate.RETRY),
    **dict.fromkeys((BROKEN, CONNECTION_LOST, TIMEOUT, NO_CONNECTION), Fate.RETRY),
    **dict.fromkeys((429, 503, 529), Fate.SLOW_DOWN),
    **dict.fromkeys(("insufficient_quota", UNTRUSTED), Fate.END),
}
"""The table above, by the status of a reply, else by the kind of the failure."""


def fate_of(error: TryFailed) -> Fate:
    cause: int | str = error.status or error.kind
    if error.status == 429 and "insufficient_quota" in error.detail:
        cause = "insufficient_quota"
    return FATES.get(cause) or FATES.get(f"{error.status // 100}xx", Fate.RETRY)


def is_transient(error: TryFailed) -> bool:
    """Whether another try of the same call may succeed."""
    return fate_of(error) in (Fate.RETRY, Fate.SLOW_DOWN)


class CallFailed(Exception):
    """Why a call failed for good; the message is the reason of its responses."""

    def __init__(self, error: TryFailed, tries: int) -> None:
        super().__init__(error.after(tries))
        self.error = error


class Call(Struct, Generic[R], frozen=True):
    """What is sent: its path, its body in the dialect learnt so far, and how the reply is read."""

    path: str
    body: Callable[[], bytes]
    read: Callable[[bytes], R]
    priced: bool = True
    """Whether its tokens are paid for."""
    results: int = 0
    """Of a call with many texts: how many; its reply may be larger."""
    is_admitted: bool = True
    """Whether its request was admitted, and its first try counted with it; not that of a call with many
    texts, of a second call or of a probe."""


Action: TypeAlias = Callable[[], Awaitable[R]]
"""What is tried like a call, and counts as none: a batch that is looked at, say."""


class Client:
    """Sends calls to a server, or to several that hold the same model, as many at once and as often as it
    takes. It belongs to one event loop."""

    def __init__(
        self,
        servers: Sequence[Server],
        *,
        health: ServerHealth,
        dialect: Dialect,
        relay: Relay,
        gate: RequestGate,
        role: str,
        timeout: float,
        retries: int,
    ) -> None:
        self._servers = servers
        self._transports = {server: Transport(server.endpoint, timeout) for server in servers}
        self._silent = {server: _note_silence(server, relay, timeout) for server in servers}
        """Those that have not replied yet."""
        self._room_for_large = asyncio.Semaphore(LARGE_REPLIES)
        self._health = health
        self._dialect = dialect
        self._relay = relay
        self._gate = gate
        self.count_try = partial(gate.count_try, role)
        self.return_try = partial(gate.return_try, role)
        self.add_used = partial(gate.add_used, role)
        self._retries = retries
        self._sent = Counter[Server]()
        """Tries whose replies have not come yet."""
        self._slowed = 0
        """Calls that pause because a server is overloaded: one that refuses so is there."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        """Calls that wait for room at a server."""

    async def aclose(self) -> None:
        for server, transport in self._transports.items():
            self._end_silence(server)
            await transport.close()

    @property
    def open_calls(self) -> int:
        """Calls that may still be answered: they are being sent, or wait until a server has room for them."""
        return self._sent.total() + self._slowed + len(self._waiting)

    @property
    def transport(self) -> Transport:
        """Of the only server."""
        [transport] = self._transports.values()
        return transport

    async def send(self, what: Call[R] | Action[R]) -> R:
        """What a call is answered, or an action gives, after as many tries as it takes; else CallFailed, or
        ModelUnreachable."""
        call = what if isinstance(what, Call) else None
        is_counted, tries = call is not None and call.is_admitted, 0
        failed_at: set[Server] = set()
        while True:
            if call is not None and not is_counted:
                self.count_try(priced=call.priced)
            is_counted = False
            try:
                body = call.body() if call is not None else b""
                server = await self._turn(failed_at)
            except BaseException:
                if call is not None:
                    self.return_try()
                self._wake()  # the room that this call was woken for is the next one's
                raise
            tries += 1
            try:  # send
                result = await (self._post(what, server, body) if isinstance(what, Call) else what())
            except TryFailed as error:  # decide
                error.__traceback__ = error.__context__ = None  # whose frames would hold the reply
                fate = fate_of(error)
                if fate is Fate.FAIL:
                    if call is not None:
                        self._dialect.learn(error, body)
                    if call is None or call.body() == body:
                        raise CallFailed(error, tries) from None
                    continue
                failed_at.add(server)
                self._leave_out(server, error, fate)
                if self._is_for_others(error, failed_at, tries):
                    continue
                if fate is Fate.END:
                    raise given_up(error, server.shown) from None
                if not is_transient(error):
                    raise CallFailed(error, tries) from None
                await self._pause(server, error, tries, call)  # wait
                failed_at.clear()
            else:
                if self._silent:
                    self._end_silence(server)
                server.answered()
                self._health.answered()
                return result

    async def _turn(self, failed_at: set[Server]) -> Server:
        """The server of the next try, once it has room for it."""
        while self._room(server := self._best(failed_at)) <= 0:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        return server

    async def _post(self, call: Call[R], server: Server, body: bytes) -> R:
        """One try, or TryFailed."""
        throttle, sent_at = server.throttle, time.monotonic()
        self._sent[server] += 1
        try:
            reply = await self._transports[server].send(
                "POST", call.path, body, results=call.results, room=self._room_for_large
            )
            if self._silent:
                self._end_silence(server)
            throttle.count(refused=FATES.get(reply.status) is Fate.SLOW_DOWN)
            try:
                if reply.holds_room:
                    await self._relay.taken()  # each becomes a text only when the one before is stored
                if reply.status != 200:
                    raise reply.failure()
                answer = reply.parse(call.read)
            except TryFailed:
                if call.priced:
                    self.add_used(*reply.used_tokens())
                raise
            finally:
                if reply.holds_room:
                    self._room_for_large.release()
            throttle.succeeded()
            return answer
        except TryFailed as error:
            if fate_of(error) is Fate.SLOW_DOWN and throttle.is_overloaded:
                throttle.overloaded(sent_at)
                if error.wait and error.wait <= LONGEST_WAIT_S:
                    throttle.pause(error.wait)
                    asyncio.get_running_loop().call_later(error.wait + TIMER_S, self._wake)
            raise
        finally:
            self._sent[server] -= 1
            self._wake()

    def _end_silence(self, server: Server) -> None:
        if (note := self._silent.pop(server, None)) is not None:
            note.cancel()

    def _leave_out(self, server: Server, error: TryFailed, fate: Fate) -> None:
        """Leave one of several servers out, where that is better than to ask it again."""
        if len(self._servers) == 1 or fate is Fate.SLOW_DOWN:  # its throttle knows
            return
        at_once = fate in (Fate.SERVER_AT_FAULT, Fate.END) or error.kind == NO_CONNECTION
        if server.failed(leave_out_at_once=at_once):
            self._relay.note(f"{error.at(server.shown)}. It is left out, and tried again later.")

    async def _pause(self, server: Server, error: TryFailed, tries: int, call: Call[Any] | None) -> None:
        """Wait until a call is worth its next try; CallFailed or BudgetReached where there is to be none."""
        if (error.wait or 0.0) > LONGEST_WAIT_S:
            pause = f"it asks for a pause of {error.wait:,.0f} s, which is too long to wait for"
            error.detail = f"{error.detail}; {pause}" if error.detail else pause
            raise CallFailed(error, tries) from None
        if tries > self._retries:
            raise CallFailed(error, tries) from None
        if call is not None:
            self._gate.check_try()
        delay = pause_before(error, tries)
        if error.kind not in server.noted:
            server.noted.add(error.kind)
            again = f"Trying again ({tries} of {self._retries}), next in {delay:,.1f} s."
            self._relay.note(f"{error.at(server.shown)}. {again}")
        slowed = fate_of(error) is Fate.SLOW_DOWN
        self._relay.retrying(+1)
        self._slowed += slowed
        try:
            await self._sleep(delay, call)
        finally:
            self._slowed -= slowed
            self._relay.retrying(-1)

    async def _sleep(self, delay: float, call: Call[Any] | None) -> None:
        """For so long, or until the budget has no try left for the call: BudgetReached."""
        while delay > LOOK_S and call is not None:
            await asyncio.sleep(LOOK_S)
            self._gate.check_try()
            delay -= LOOK_S
        await asyncio.sleep(delay)

    # Which server is asked

    def _best(self, failed_at: set[Server]) -> Server:
        """The server with the most room, of those that are there and have not failed this call."""
        if len(self._servers) == 1:
            return self._servers[0]
        candidates = self._others(failed_at) or self._others(set()) or self._servers
        return max(candidates, key=self._room)

    def _is_for_others(self, error: TryFailed, failed_at: set[Server], tries: int) -> bool:
        """Whether a call that failed is tried at the others. Where all of them asked for a pause, it is first
        tried again where it was, after a back-off, if that may help."""
        others = self._others(failed_at)
        may_pass_here = is_transient(error) and not error.wait and tries <= self._retries
        return any(other.throttle.allowed for other in others) or bool(others and not may_pass_here)

    def _others(self, failed_at: set[Server]) -> list[Server]:
        return [server for server in self._servers if not server.is_left_out and server not in failed_at]

    def _room(self, server: Server) -> int:
        """How many more tries a server may be sent now."""
        return server.throttle.allowed - self._sent[server]

    def _wake(self) -> None:
        """Have as many calls look again as there is room for."""
        if not self._waiting:
            return
        room = sum(max(0, self._room(server)) for server in self._servers)
        while room > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                room -= 1


def _note_silence(server: Server, relay: Relay, timeout: float) -> asyncio.TimerHandle:
    """Say what is waited for, unless this is cancelled by a reply, whatever it says."""
    text = (
        f"{server.shown} has not answered anything for {SILENT_S:g} s; a try may take {timeout:g} s "
        "(--model-arg timeout=SECONDS)."
    )
    return asyncio.get_running_loop().call_later(SILENT_S, relay.note, text)


def pause_before(error: TryFailed, tries: int) -> float:
    """Seconds before the next try: what the reply asks for, and an exponential back-off with full jitter, so
    that tries do not come back in step."""
    if error.kind == NO_CONNECTION:
        return NO_CONNECTION_S
    longest = min(LONGEST_BACK_OFF_S, BACK_OFF_S * 2.0 ** (tries - 1))
    return (error.wait or 0.0) + random.uniform(0, longest)
