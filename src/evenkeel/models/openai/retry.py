"""What becomes of a request whose try failed, and when a server is given up.

| what came                                                         | what becomes of the request  |
| ----------------------------------------------------------------- | ---------------------------- |
| 400, 413, 422 and any other 4xx                                   | it fails                     |
| 401, 402, 403, 404, 405, a redirect, a web page (HTML) with a 200 | it fails; server suspected   |
| 408, 409, 425, 500, any other 5xx, a status that is no answer     | tried again                  |
| half a reply, broken JSON, more than 64 MiB                       | tried again                  |
| a reset, a timeout, no connection                                 | tried again                  |
| 429, 503, 529                                                     | fewer at once, tried again   |
| 429 with `insufficient_quota`, a certificate that is not trusted  | it ends the run              |

A 400 or 422 that names a field which the server does not take is first followed by a request without it
(`dialect.py`). "Tried again" is at most `retries` times, after the pause that the reply asks for and a
back-off, with several servers at another one first (`servers.py`); then it fails, and the server is
suspected. A request that failed is an error in the run and is asked again by the next start.

A suspected server is given up, which ends the run: before its first answer when more requests have failed
than are still under way. So is, at any time, one of which FAILURES_IN_A_ROW requests failed, whatever the
reason, and none was answered. One of several servers that is suspected is left out instead, and its requests
go to another, as long as one answers.
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
    BROKEN,
    CONNECTION_LOST,
    NO_CONNECTION,
    NOT_SENT,
    PAGE,
    TIMEOUT,
    UNTRUSTED,
    RequestError,
    Transport,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from types import TracebackType

    from evenkeel.harness.model import TryCounter
    from evenkeel.models.openai.background import Relay
    from evenkeel.models.openai.dialect import Dialect
    from evenkeel.models.openai.endpoint import Endpoint

R = TypeVar("R")

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

    FAIL = auto()
    """It fails: the fault is its own, and the server works."""
    SUSPECT = auto()
    """It fails, and the server is suspected: the address, the key or the model may be wrong."""
    RETRY = auto()
    SLOW_DOWN = auto()
    """It is tried again, with fewer requests at once."""
    END = auto()
    """The run ends."""


FATES: dict[int | str, Fate] = {
    **dict.fromkeys((400, 413, 422, "4xx", NOT_SENT), Fate.FAIL),
    **dict.fromkeys((401, 402, 403, 404, 405, "3xx", PAGE), Fate.SUSPECT),
    **dict.fromkeys((408, 409, 425, 500, "5xx"), Fate.RETRY),
    **dict.fromkeys((BROKEN, CONNECTION_LOST, TIMEOUT, NO_CONNECTION), Fate.RETRY),
    **dict.fromkeys((429, 503, 529), Fate.SLOW_DOWN),
    **dict.fromkeys(("insufficient_quota", UNTRUSTED), Fate.END),
}
"""The table above, by the status of a reply, else by the kind of the failure."""


def fate_of(error: RequestError) -> Fate:
    cause: int | str = error.status or error.kind
    if error.status == 429 and "insufficient_quota" in error.detail:
        cause = "insufficient_quota"
    return FATES.get(cause) or FATES.get(f"{error.status // 100}xx", Fate.RETRY)


def may_pass(error: RequestError) -> bool:
    """Whether another try of the same request may succeed."""
    return fate_of(error) in (Fate.RETRY, Fate.SLOW_DOWN)


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
    priced: bool = True
    """Whether its tokens are paid for."""
    extra: bool = False
    """Whether no request was counted for its first try: it has many texts, or is a second call."""

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
        counter: TryCounter | None,
        concurrency: int,
        timeout: float,
        retries: int,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._dialect = dialect
        self._health = health
        self._relay = relay
        self._counter = counter
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
                if fate_of(error) is Fate.END:
                    raise self.unreachable(error) from None
                if not may_pass(error):
                    raise RequestFailed(error, tries.count) from None
                await self.before_next(error, tries)
            else:
                self._silence.cancel()
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
                if fate_of(error) is not Fate.FAIL:
                    raise
                self._dialect.learn(error, body)
                if (changed := call.encoded()) == body:
                    raise
                body = changed
                tries.count += 1

    async def _try(self, call: Call[R], body: bytes, tries: Tries) -> R:
        counter = self._counter
        if counter is not None and (call.extra or tries.error is not None):
            counter.count_try()
        throttle = self.throttle
        await throttle.enter()
        sent_at = self._clock()
        try:
            reply = await self.transport.send("POST", call.path, body)
            self._silence.cancel()
            throttle.count(refused=FATES.get(reply.status) is Fate.SLOW_DOWN)
            try:
                if reply.status != 200:
                    raise reply.failure()
                answer = reply.parse(call.read)
            except RequestError:
                if counter is not None and call.priced:
                    counter.add_used(*reply.used_tokens())
                raise
            throttle.succeeded()
            return answer
        except RequestError as error:
            if fate_of(error) is Fate.SLOW_DOWN and throttle.is_overloaded:
                throttle.overloaded(sent_at)
                if error.wait and error.wait <= LONGEST_WAIT_S:
                    throttle.pause(error.wait)
            raise
        finally:
            throttle.leave()

    def unreachable(self, error: RequestError) -> ModelUnreachable:
        hint = ""
        if error.kind == UNTRUSTED:
            hint = (
                " Nothing was sent to it. For an authority of your own, SSL_CERT_FILE names the file that "
                "holds its certificate."
            )
        return ModelUnreachable(f"{error.at(self._endpoint.shown).rstrip('.')}.{hint}")


def is_wrong_address(error: RequestError) -> bool:
    """Whether the address is wrong, and not a name in the request."""
    names_model = any(name in error.detail.lower() for name in ("model", "deployment"))
    elsewhere = 300 <= error.status < 400 or error.status in (404, 405)
    return error.kind == PAGE or (elsewhere and not names_model)


def pause_before(error: RequestError, tries: int) -> float:
    """Seconds before the next try: what the reply asks for, and an exponential back-off with full jitter, so
    that tries do not come back in step."""
    if error.kind == NO_CONNECTION:
        return NO_CONNECTION_S
    longest = min(LONGEST_BACK_OFF_S, BACK_OFF_S * 2.0 ** (tries - 1))
    return (error.wait or 0.0) + random.uniform(0, longest)


class ServerHealth:
    """How a server has answered so far, which decides when it is given up."""

    def __init__(self, server: str, hint: str = "") -> None:
        self.ever_answered = False
        self._server = server
        self._hint = hint
        """What is said where the address may be wrong."""
        self._failures: Counter[str] = Counter()  # by kind, since the last answer
        self._noted: dict[str, float] = {}

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

    def failed(self, failure: RequestFailed, *, under_way: int) -> None:
        """Count a request that failed for good; raise where no further call can succeed. At the start, the
        fastest replies may be the failures among many good ones: those `under_way` may still be answered."""
        suspected = fate_of(failure.error) is not Fate.FAIL
        if self.ever_answered and not suspected:
            return
        self._failures[failure.error.kind] += 1
        in_a_row = self._failures.total()
        dead = suspected and not self.ever_answered and in_a_row > under_way
        if dead or in_a_row >= FAILURES_IN_A_ROW:
            kinds = ", ".join(f"{kind} ×{count:,}" for kind, count in self._failures.most_common())
            problem = "The last requests have all failed" if self.ever_answered else "No request was answered"
            last = f" ({kinds}). The last one" if in_a_row > 1 else ""
            text = f"{problem} at {self._server}{last}: {failure}"
            hint = self._hint if is_wrong_address(failure.error) else ""
            raise ModelUnreachable(f"{text.rstrip('.')}. {hint}" if hint else text)
