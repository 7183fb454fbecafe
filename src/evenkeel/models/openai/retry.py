"""What is tried again and when: retries of a request, the pace under overload, and when to give a server up.

The number of requests at once adapts under a ceiling as TCP's window does: it is halved when the server
answers that it is overloaded (429, 503, 529), and climbs back by a fixed step for every round of requests
that succeeded. A few such answers among many good ones are no overload: then only the requests that were
refused wait.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from evenkeel.errors import ModelUnreachable
from evenkeel.models.openai.transport import RequestError, Transport

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from evenkeel.models.openai.background import Relay
    from evenkeel.models.openai.endpoint import Endpoint
    from evenkeel.models.openai.protocol import Dialect

R = TypeVar("R")

OVERLOADED = frozenset({429, 503, 529})
POINTLESS = frozenset({401, 402, 404})
POINTLESS_AT_START = frozenset({301, 302, 303, 307, 308, 403, 405})
"""About the address or the key at first; later about one prompt (moderation) or one server of several."""
THIS_REQUEST = frozenset({400, 413, 422})
"""Refusals of one request by a server that works."""

BACK_OFF_S = 0.25
OVERLOAD_BACK_OFF_S = 1.0
"""For a server that is overloaded and does not say for how long; eight tries outlast a minute."""
LONGEST_BACK_OFF_S = 60.0
LONGEST_WAIT_S = 600.0
"""A longer pause that a server asks for is not waited for: a daily quota, say."""
LONGEST_WAIT_UNPROVEN_S = 2.0
"""Between tries of a server that has never answered: whoever started the run is still there to see it."""
SILENT_S = 30.0
"""Without any reply, after which a note says what is waited for."""

OVERLOAD_SHARE = 0.1
"""Of the latest replies, those that refuse for overload: a server that refuses no more is not overloaded."""
LATEST = 64
"""Replies that the share is taken of; not more than are under way at once."""
DOUBTFUL_RETRIES = 2

CLIMB_ROUNDS = 16
"""Rounds of successful requests in which the limit climbs from nothing to the ceiling."""

NO_CONTACT_S = 4.0
"""How long a server that has not answered may refuse connections: time to start up, not to be dead."""
NO_ANSWER_S = 60.0
"""How long it may fail otherwise before nothing is tried again."""
FOREIGN_AT_START = 3
"""Replies without JSON after which a server that has given no other does not speak the protocol."""
FAILURES_AT_START = 8
REFUSALS_AT_START = 100
FAILURES_IN_A_ROW = 50
NOTE_S, LONGEST_NOTE_S = 5.0, 300.0
"""How long a kind of failure is not noted again: twice as long every time, up to the second."""


class RequestFailed(Exception):
    """A request that failed for good; the message is the response's reason."""

    def __init__(self, error: RequestError, tries: int) -> None:
        super().__init__(error.after(tries))
        self.error = error


class Call(NamedTuple, Generic[R]):
    """One request: its path, its body in the dialect learnt so far, and how the reply is read."""

    path: str
    body: Callable[[], bytes]
    read: Callable[[bytes], R]

    def encoded(self) -> bytes:
        try:
            return self.body()
        except UnicodeEncodeError:
            error = RequestError("not sent", "the text holds half a character, which JSON cannot")
            raise RequestFailed(error, 1) from None


@dataclass
class Tries:
    """Of one request: how many, and how many failed in a way that is worth few further tries."""

    count: int = 1
    doubtful: int = 0


class Sender(Protocol):
    """Sends calls to one server, or to several."""

    async def send(self, call: Call[R]) -> R: ...


class Client:
    """Sends calls to a server, as many at once and as often as it takes. It belongs to one event loop."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        dialect: Dialect,
        health: ServerHealth,
        relay: Relay,
        concurrency: int,
        timeout: float,
        retries: int,
    ) -> None:
        self._endpoint = endpoint
        self._dialect = dialect
        self._health = health
        self._relay = relay
        self._retries = retries
        self._timeout = timeout
        self._clock = asyncio.get_running_loop().time
        self.throttle = Throttle(concurrency)
        self._transport = Transport(endpoint, timeout)

    async def __aenter__(self) -> Client:
        self._silence = asyncio.get_running_loop().call_later(SILENT_S, self._note_silence)
        return self

    def _note_silence(self) -> None:
        self._relay.note(
            f"{self._endpoint.shown} has not answered anything for {SILENT_S:g} s; a try may take "
            f"{self._timeout:g} s (--model-arg timeout=SECONDS)."
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._silence.cancel()
        await self._transport.close()

    async def send(self, call: Call[R]) -> R:
        """The reply, after as many tries as it takes; else RequestFailed, or ModelUnreachable at once."""
        tries = Tries()
        while True:
            try:
                reply = await self.attempt(call)
            except RequestError as error:
                if self._health.is_pointless(error, under_way=self.throttle.active):
                    raise self.unreachable(error) from error
                await self.before_next(error, tries, self._health)
            else:
                self._health.answered()
                return reply

    async def before_next(self, error: RequestError, tries: Tries, health: ServerHealth) -> None:
        """Wait until a request that has failed is worth its next try; RequestFailed where there is none."""
        tries.doubtful += not error.transient
        delay = self._delay(error, tries.count if error.transient else tries.doubtful, health)
        if delay is None:
            raise RequestFailed(error, tries.count) from None
        await self._wait(delay, error, tries.count)
        tries.count += 1

    async def attempt(self, call: Call[R]) -> R:
        """One try, or RequestError. A refusal that teaches the dialect something is followed by another."""
        body = call.encoded()
        while True:
            try:
                return await self._try(call, body)
            except RequestError as error:
                if error.status not in THIS_REQUEST:
                    raise
                self._dialect.learn(error.detail, body)
                if (changed := call.encoded()) == body:
                    raise
                body = changed

    async def contact(self) -> None:
        """RequestError where nothing answers at the address; whatever it answers is enough."""
        await self._transport.get("models")

    async def _try(self, call: Call[R], body: bytes) -> R:
        throttle = self.throttle
        await throttle.enter()
        sent_at = self._clock()
        try:
            reply = await self._transport.post(call.path, body)
            self._silence.cancel()
            throttle.count(refused=reply.status in OVERLOADED)
            if reply.status == 200:
                answer = reply.parse(call.read)
                throttle.succeeded()
                return answer
        finally:
            throttle.leave()
        status, wait, detail = reply.status, reply.wait, reply.message()
        if wait and wait > LONGEST_WAIT_S:
            detail = f"{detail}; it asks for a pause of {wait:,.0f} s, which is too long to wait for"
            if self._health.ever_answered and not throttle.is_overloaded:
                wait = None  # others are answered all the while
        if status in OVERLOADED and throttle.is_overloaded:
            throttle.overloaded(sent_at)
            if wait and wait <= LONGEST_WAIT_S:
                throttle.pause(wait)
        foreign = reply.is_page and status < 500
        raise RequestError(f"HTTP {status}", detail, status=status, wait=wait, foreign=foreign)

    def unreachable(self, error: RequestError) -> ModelUnreachable:
        if error.untrusted:
            return ModelUnreachable(
                f"{self._endpoint.shown} is not trusted: {error.detail}. Nothing was sent to it. For an "
                "authority of your own, SSL_CERT_FILE names the file that holds its certificate."
            )
        hint = self._endpoint.hint() if error.no_such_api else ""
        if error.foreign:
            hint = hint or "Is this the address of an OpenAI-compatible API?"
        what = "does not answer as an OpenAI-compatible API does" if hint else "refuses the requests"
        return ModelUnreachable(f"{self._endpoint.shown} {what}. {error}{f'. {hint}' if hint else ''}")

    def _delay(self, error: RequestError, tries: int, health: ServerHealth) -> float | None:
        """Seconds to wait before the next try; None where there is to be none."""
        wait = error.wait or 0.0
        at_start = error.status in POINTLESS_AT_START and not health.ever_answered
        doubtful = min(self._retries, DOUBTFUL_RETRIES) if error.doubtful or at_start else 0
        if tries > (self._retries if error.transient else doubtful):
            return None
        if wait > LONGEST_WAIT_S:
            if not self.throttle.active or tries > DOUBTFUL_RETRIES:
                return None
            wait = 0.0  # others are under way, and will show whether the server means it
        if not health.is_worth_a_try(error, self._clock()):
            return None
        if error.no_contact:  # evenly, so that the tries last as long as a server is given to start
            return min(NO_CONTACT_S / self._retries, NO_CONTACT_S / 4)
        if error.status in OVERLOADED:
            return wait + back_off(tries, overload=error.wait is None)
        delay = back_off(tries)
        return wait + (delay if health.ever_answered else min(delay, LONGEST_WAIT_UNPROVEN_S))

    async def _wait(self, delay: float, error: RequestError, tries: int) -> None:
        if self._health.is_worth_a_note(error, self._clock()):
            again = f"Trying again ({tries} of {self._retries}), next in {delay:,.1f} s."
            self._relay.note(f"{error.at(self._endpoint.shown).rstrip('.')}. {again}")
        self._relay.retrying(+1)
        try:
            await asyncio.sleep(delay)
        finally:
            self._relay.retrying(-1)


def back_off(tries: int, *, overload: bool = False) -> float:
    """Seconds before the next try: exponential with full jitter, so that tries do not come back in step."""
    first = OVERLOAD_BACK_OFF_S if overload else BACK_OFF_S
    return random.uniform(0, min(LONGEST_BACK_OFF_S, first * 2.0 ** (tries - 1)))


class Throttle:
    """Limits how many tries run at once. It belongs to one event loop."""

    def __init__(self, ceiling: int) -> None:
        self.limit = float(ceiling)
        self._ceiling = ceiling
        self._step = max(1.0, ceiling / CLIMB_ROUNDS)
        self.active = 0
        """Tries that are under way."""
        self._replies = 0
        self._refused = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.on_room: Callable[[], object] = object
        """Called where another request may be sent, for those who wait elsewhere."""
        self._last_cut = -math.inf
        self._pause: asyncio.TimerHandle | None = None

    @property
    def room(self) -> int:
        """How many more requests may be sent now."""
        return int(self.limit) - self.active if self._pause is None else 0

    async def enter(self) -> None:
        """Wait until one more request may be sent."""
        while self._pause is not None or self.active >= int(self.limit):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        self.active += 1

    def leave(self) -> None:
        self.active -= 1
        self._wake()

    @property
    def is_overloaded(self) -> bool:
        return self._refused > OVERLOAD_SHARE

    def count(self, *, refused: bool) -> None:
        """Take a reply into the share of the latest ones that refuse for overload."""
        self._replies += 1
        self._refused += (refused - self._refused) / min(self._replies, self.limit, LATEST)

    def succeeded(self) -> None:
        if self.limit < self._ceiling:
            self.limit = min(self._ceiling, self.limit + self._step / self.limit)

    def overloaded(self, sent_at: float) -> None:
        """Halve the limit, unless this request was sent before the last cut and so under the old limit."""
        if sent_at > self._last_cut:
            self.limit = max(1.0, self.limit / 2)
            self._last_cut = asyncio.get_running_loop().time()

    def pause(self, seconds: float) -> None:
        """Send nothing new for that long, or for as long as a pause that lasts longer."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        if self._pause is not None:
            if self._pause.when() >= until:
                return
            self._pause.cancel()
        self._pause = loop.call_at(until, self._resume)

    def _resume(self) -> None:
        self._pause = None
        self._wake()

    def _wake(self) -> None:
        self.on_room()
        if not self._waiting or self._pause is not None:
            return
        room = int(self.limit) - self.active
        while room > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                room -= 1


class ServerHealth:
    """How a server has answered so far, which decides when it is given up."""

    def __init__(self, server: str) -> None:
        self.ever_answered = False
        self._server = server
        self._failures: Counter[str] = Counter()  # by kind, since the last answer
        self._last_failure = ""
        self._in_a_row = 0
        self._foreign = 0
        self._refused = 0
        self._failing_since: float | None = None
        self._notes: dict[str, tuple[float, float]] = {}

    def is_worth_a_try(self, error: RequestError, now: float) -> bool:
        """Whether a server that has not answered (for long) is worth another try.

        The time counts from its first failure, not from each request's, so that few requests at once
        find a dead server as soon as many.
        """
        if (self.ever_answered and self._in_a_row < FAILURES_AT_START) or error.status in OVERLOADED:
            return True
        if self._failing_since is None:
            self._failing_since = now
        return now - self._failing_since < (NO_CONTACT_S if error.no_contact else NO_ANSWER_S)

    def is_worth_a_note(self, error: RequestError, now: float) -> bool:
        """Whether a failure is worth a line: the first of its kind at once, later ones ever more seldom."""
        due, pause = self._notes.get(error.kind, (now, NOTE_S))
        if now < due:
            return False
        self._notes[error.kind] = now + pause, min(2 * pause, LONGEST_NOTE_S)
        return True

    def is_pointless(self, error: RequestError, *, under_way: int = 0) -> bool:
        """Whether a refusal holds for every further request.

        At the start, the fastest replies may be the failures among many good ones: as long as more requests
        are `under_way` than were refused, one of those may be answered.
        """
        if not self.ever_answered and error.foreign and error.transient:
            self._foreign += 1
            return self._foreign >= FOREIGN_AT_START and self._foreign > under_way
        if error.status in POINTLESS_AT_START:
            self._refused += not self.ever_answered
            return not self.ever_answered and self._refused > under_way
        spent = error.status == 429 and "insufficient_quota" in error.detail
        return error.status in POINTLESS or spent or error.untrusted

    def answered(self) -> None:
        self.ever_answered = True
        self._failing_since = None
        if self._failures:
            self._failures.clear()
            self._in_a_row = 0

    def failed(self, failure: RequestFailed) -> None:
        """Count a request that failed for good; raise where no further call can succeed."""
        self._failures[failure.error.kind] += 1
        self._last_failure = str(failure)
        if failure.error.status not in THIS_REQUEST:
            self._in_a_row += 1
        # Refusals of single requests are no sign of a dead server, unless it refuses everything.
        refused = self._failures.total() - self._in_a_row
        if not self.ever_answered and (self._in_a_row >= FAILURES_AT_START or refused >= REFUSALS_AT_START):
            self._give_up("The server has answered none of the requests")
        if self._in_a_row >= FAILURES_IN_A_ROW:
            self._give_up(f"The last {FAILURES_IN_A_ROW} requests have failed")

    def ended(self) -> None:
        """Raise after a short stream of which every request failed: the server is not there."""
        if not self.ever_answered and self._in_a_row:
            self._give_up("The server has answered none of the requests")

    def _give_up(self, problem: str) -> None:
        kinds = ", ".join(f"{kind} ×{count:,}" for kind, count in self._failures.most_common())
        raise ModelUnreachable(f"{problem} at {self._server}: {kinds}. The last one: {self._last_failure}")
