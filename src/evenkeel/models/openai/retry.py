"""What becomes of a request whose try failed, and when a server is given up.

| what came                                   | nothing was answered yet | later              |
| ------------------------------------------- | ------------------------ | ------------------ |
| 400, 413, 422, any 4xx that is not below    | fail the request         | fail the request   |
| 401, 402, 403, 404, 405, a redirect         | end the run              | fail the request   |
| 408, 409, 425, 500 and above                | try again                | try again          |
| 429, 503, 529                               | slow down, try again     | the same           |
| 429 with `insufficient_quota`               | end the run              | end the run        |
| a web page (HTML) with status 200           | end the run              | try again          |
| half a reply, broken JSON, more than 64 MiB | try again                | try again          |
| a reset, a timeout, no connection           | try again                | try again          |
| a certificate that is not trusted           | end the run              | end the run        |

A 400 or 422 that names a field which the server does not take is first followed by a request without it
(`dialect.py`). A request is tried again at most `retries` times, after the pause that the reply asks for and
a back-off, with several servers at another one first (`servers.py`); then it fails. A request that failed is
an error in the run and is asked again by the next start. At the start the run ends only when more requests
were refused, or failed, than are still under way; later when FAILURES_IN_A_ROW requests have failed and none
was answered.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from evenkeel.errors import ModelUnreachable
from evenkeel.models.openai.throttle import Throttle
from evenkeel.models.openai.transport import (
    CONNECT_S,
    NO_CONNECTION,
    NOT_SENT,
    PAGE,
    UNTRUSTED,
    RequestError,
    Transport,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from types import TracebackType

    from evenkeel.harness.model import Meter
    from evenkeel.models.openai.background import Relay
    from evenkeel.models.openai.dialect import Dialect
    from evenkeel.models.openai.endpoint import Endpoint

R = TypeVar("R")

THIS_REQUEST = frozenset({400, 413, 422})
"""Refusals of one request by a server that works."""
NOT_HERE = frozenset({301, 302, 303, 307, 308, 401, 402, 403, 404, 405})
"""About the address, the key or the model at first; later about one prompt, or one server of a router."""
RETRIED = frozenset({408, 409, 425, 429})
OVERLOADED = frozenset({429, 503, 529})

BACK_OFF_S, LONGEST_BACK_OFF_S = 0.5, 30.0
"""Of the first pause, and of the longest."""
NO_CONNECTION_S = 0.5
"""Between tries to connect: eight of them are time to start up, not to be dead."""
LONGEST_WAIT_S = 600.0
"""A longer pause that a server asks for is not waited for: a daily quota, say."""
SILENT_S = 30.0
"""Without any reply, after which a note says what is waited for."""
NOTE_S = 60.0
"""How long a kind of failure is not noted again."""
FAILURES_IN_A_ROW = 50


class Fate(Enum):
    """What becomes of a request after a try that failed."""

    RETRY = auto()
    FAIL = auto()
    END = auto()
    """Of this request and of the run."""


def fate_of(error: RequestError, *, answered: bool) -> Fate:
    """The table above; `answered` says in which column."""
    if error.kind == UNTRUSTED or (error.status == 429 and "insufficient_quota" in error.detail):
        return Fate.END
    if error.kind == PAGE:
        return Fate.RETRY if answered else Fate.END
    if error.status in NOT_HERE:
        return Fate.FAIL if answered else Fate.END
    if error.kind == NOT_SENT or (300 <= error.status < 500 and error.status not in RETRIED):
        return Fate.FAIL
    return Fate.RETRY


class RequestFailed(Exception):
    """A request that failed for good; the message is the response's reason."""

    def __init__(self, error: RequestError, tries: int, *, by_budget: bool = False) -> None:
        super().__init__(error.after(tries))
        self.error = error
        self.by_budget = by_budget
        """Whether a limit of the run allows no further try, which says nothing of the server."""


class Call(NamedTuple, Generic[R]):
    """One request: its path, its body in the dialect learnt so far, and how the reply is read."""

    path: str
    body: Callable[[], bytes]
    read: Callable[[bytes], R]
    paid: bool = True
    """Whether its tries count for the budget."""

    def encoded(self) -> bytes:
        try:
            return self.body()
        except UnicodeEncodeError:
            raise RequestFailed(half_a_character(), 1) from None


def half_a_character() -> RequestError:
    return RequestError(NOT_SENT, "the text holds half a character, which JSON cannot")


@dataclass
class Tries:
    """Of one request: how many were sent, and why the last one failed."""

    count: int = 0
    error: RequestError | None = None


class Sender(Protocol):
    """Sends calls to one server, or to several."""

    @property
    def under_way(self) -> int:
        """Tries that are under way."""

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
        meter: Meter | None,
        concurrency: int,
        timeout: float,
        retries: int,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._dialect = dialect
        self._health = health
        self._relay = relay
        self._meter = meter
        self._retries = retries
        self._timeout = timeout
        self._clock = asyncio.get_running_loop().time
        self.throttle = Throttle(concurrency)
        self.transport = Transport(endpoint, timeout, headers)

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
        await self.transport.close()

    @property
    def under_way(self) -> int:
        return self.throttle.active

    async def send(self, call: Call[R]) -> R:
        """The reply to a call; else as `insist`."""
        tries = Tries()
        return await self.insist(lambda: self.attempt(call, tries), tries)

    async def insist(self, action: Callable[[], Awaitable[R]], tries: Tries | None = None) -> R:
        """What an action gives after as many tries as it takes; else RequestFailed, or ModelUnreachable."""
        tries = tries or Tries()
        while True:
            try:
                tries.count += 1
                result = await action()
            except RequestError as error:
                fate = self._health.fate(error, under_way=self.under_way)
                if fate is Fate.END:
                    raise self.unreachable(error) from error
                if fate is Fate.FAIL:
                    raise RequestFailed(error, tries.count) from None
                await self.before_next(error, tries)
            else:
                self._health.answered()
                return result

    async def before_next(self, error: RequestError, tries: Tries) -> None:
        """Wait until a request is worth its next try; RequestFailed where there is to be none."""
        if (error.wait or 0.0) > LONGEST_WAIT_S:
            error.detail += f"; it asks for a pause of {error.wait:,.0f} s, which is too long to wait for"
            raise RequestFailed(error, tries.count) from None
        if tries.count > self._retries:
            raise RequestFailed(error, tries.count) from None
        delay = pause_before(error, tries.count)
        if self._health.is_worth_a_note(error, self._clock()):
            again = f"Trying again ({tries.count} of {self._retries}), next in {delay:,.1f} s."
            self._relay.note(f"{error.at(self._endpoint.shown).rstrip('.')}. {again}")
        self._relay.retrying(+1)
        try:
            await asyncio.sleep(delay)
        finally:
            self._relay.retrying(-1)

    async def attempt(self, call: Call[R], tries: Tries) -> R:
        """One try, or RequestError. A refusal that teaches the dialect something is followed by another."""
        body = call.encoded()
        while True:
            try:
                return await self._try(call, body, tries)
            except RequestError as error:
                tries.error = error
                if error.status not in THIS_REQUEST:
                    raise
                self._dialect.learn(error, body)
                if (changed := call.encoded()) == body:
                    raise
                body = changed
                tries.count += 1

    async def contact(self) -> None:
        """RequestError where nothing answers at the address; whatever it answers is enough."""
        try:
            async with asyncio.timeout(CONNECT_S):
                await self.transport.send("GET", "models")
        except TimeoutError:
            raise RequestError(NO_CONNECTION) from None

    async def _try(self, call: Call[R], body: bytes, tries: Tries) -> R:
        meter = self._meter if call.paid else None
        if tries.error is not None and meter is not None and not meter.may_retry():
            raise RequestFailed(tries.error, tries.count - 1, by_budget=True)
        throttle = self.throttle
        await throttle.enter()
        sent_at = self._clock()
        try:
            reply = await self.transport.send("POST", call.path, body)
            self._silence.cancel()
            throttle.count(refused=reply.status in OVERLOADED)
            try:
                if reply.status != 200:
                    raise reply.failure()
                answer = reply.parse(call.read)
            except RequestError:
                if meter is not None:
                    meter.used(*reply.used_tokens())
                raise
            throttle.succeeded()
            return answer
        except RequestError as error:
            if error.status in OVERLOADED and throttle.is_overloaded:
                throttle.overloaded(sent_at)
                if error.wait and error.wait <= LONGEST_WAIT_S:
                    throttle.pause(error.wait)
            raise
        finally:
            throttle.leave()

    def unreachable(self, error: RequestError) -> ModelUnreachable:
        if error.kind == UNTRUSTED:
            return ModelUnreachable(
                f"{self._endpoint.shown} is not trusted: {error.detail}. Nothing was sent to it. For an "
                "authority of your own, SSL_CERT_FILE names the file that holds its certificate."
            )
        hint = self._endpoint.hint() if is_no_api(error) else ""
        if error.kind == PAGE:
            hint = hint or "Is this the address of an OpenAI-compatible API?"
        what = "does not answer as an OpenAI-compatible API does" if hint else "refuses the requests"
        return ModelUnreachable(f"{self._endpoint.shown} {what}. {error}{f'. {hint}' if hint else ''}")


def is_no_api(error: RequestError) -> bool:
    """Whether the address is wrong, and not a name in the request."""
    names_model = any(name in error.detail.lower() for name in ("model", "deployment"))
    moved = 300 <= error.status < 400 or error.status in (404, 405)
    return error.kind == PAGE or (moved and not names_model)


def pause_before(error: RequestError, tries: int) -> float:
    """Seconds before the next try: what the reply asks for, and an exponential back-off with full jitter, so
    that tries do not come back in step."""
    if error.kind == NO_CONNECTION:
        return NO_CONNECTION_S
    longest = min(LONGEST_BACK_OFF_S, BACK_OFF_S * 2.0 ** (tries - 1))
    return (error.wait or 0.0) + random.uniform(0, longest)


class ServerHealth:
    """How a server has answered so far, which decides when it is given up."""

    def __init__(self, server: str) -> None:
        self.ever_answered = False
        self._server = server
        self._failures: Counter[str] = Counter()  # by kind, since the last answer
        self._last_failure: RequestFailed | None = None
        self._in_a_row = 0
        self._refused = 0
        self._noted: dict[str, float] = {}

    def fate(self, error: RequestError, *, under_way: int = 0) -> Fate:
        """What becomes of a request. At the start, the fastest replies may be the failures among many good
        ones: as long as more requests are `under_way` than were refused, one of those may be answered."""
        fate = fate_of(error, answered=self.ever_answered)
        if fate is Fate.END and fate_of(error, answered=True) is not Fate.END:
            self._refused += 1
            return fate if self._refused > under_way else Fate.RETRY
        return fate

    def is_worth_a_note(self, error: RequestError, now: float) -> bool:
        """Whether a failure is worth a line: the first of its kind at once, later ones seldom."""
        if now < self._noted.get(error.kind, -math.inf) + NOTE_S:
            return False
        self._noted[error.kind] = now
        return True

    def answered(self) -> None:
        self.ever_answered = True
        if self._failures:
            self._failures.clear()
            self._in_a_row = 0

    def failed(self, failure: RequestFailed, *, under_way: int) -> None:
        """Count a request that failed for good; raise where no further call can succeed."""
        self._failures[failure.error.kind] += 1
        self._last_failure = failure
        refused = fate_of(failure.error, answered=False) is Fate.FAIL
        if refused and self.ever_answered:
            return  # a refusal of one request is no sign of a dead server
        self._in_a_row += 1
        dead = not self.ever_answered and not refused and self._in_a_row > under_way
        if dead or self._in_a_row >= FAILURES_IN_A_ROW:
            self._give_up()

    def ended(self) -> None:
        """Raise after a short stream of which every request failed: the server is not there."""
        last = self._last_failure
        if last is None or self.ever_answered:
            return
        if fate_of(last.error, answered=False) is not Fate.FAIL:
            self._give_up()

    def _give_up(self) -> None:
        kinds = ", ".join(f"{kind} ×{count:,}" for kind, count in self._failures.most_common())
        problem = "The last requests have all failed" if self.ever_answered else "No request was answered"
        raise ModelUnreachable(f"{problem} at {self._server} ({kinds}). The last one: {self._last_failure}")
