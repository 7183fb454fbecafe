"""How many requests are under way at once, and how long to wait before another try.

The number of requests adapts under a ceiling as TCP's window does: it is halved when the server says
that it is overloaded, and climbs back by a fixed step for every round of requests that went well.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import deque
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

CLIMB_ROUNDS = 16
"""Rounds of successful requests in which the limit climbs from nothing to the ceiling."""
BACK_OFF_S = 0.25
OVERLOAD_BACK_OFF_S = 1.0
"""For a server that is overloaded and does not say for how long; eight tries outlast a minute."""
LONGEST_BACK_OFF_S = 60.0


class Throttle:
    """The gate that every try passes. It belongs to one event loop."""

    def __init__(self, ceiling: int) -> None:
        self.limit = float(ceiling)
        self._ceiling = ceiling
        self._step = max(1.0, ceiling / CLIMB_ROUNDS)
        self._active = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._last_cut = -math.inf
        self._pause: asyncio.TimerHandle | None = None

    async def enter(self) -> None:
        """Wait until one more request may be sent."""
        while self._pause is not None or self._active >= int(self.limit):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        self._active += 1

    def leave(self) -> None:
        self._active -= 1
        self._wake()

    def succeeded(self) -> None:
        if self.limit < self._ceiling:
            self.limit = min(self._ceiling, self.limit + self._step / self.limit)

    def overloaded(self, sent_at: float) -> None:
        """Halve the limit, unless this request was sent before the last cut and so knew nothing of it."""
        if sent_at > self._last_cut:
            self.limit = max(1.0, self.limit / 2)
            self._last_cut = asyncio.get_running_loop().time()

    def pause(self, seconds: float) -> None:
        """Send nothing new for that long; a pause that already lasts longer stands."""
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
        if not self._waiting or self._pause is not None:
            return
        room = int(self.limit) - self._active
        while room > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                room -= 1


def back_off(tries: int, *, overload: bool = False) -> float:
    """Seconds before the next try: exponential with full jitter, so that tries do not come back in step."""
    first = OVERLOAD_BACK_OFF_S if overload else BACK_OFF_S
    return random.uniform(0, min(LONGEST_BACK_OFF_S, first * 2.0 ** (tries - 1)))


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """The wait that a reply asks for, in seconds: `retry-after-ms`, or Retry-After as a number or a date."""
    wait = _number(headers.get("retry-after-ms"))
    if wait is not None:
        return wait / 1000
    given = headers.get("Retry-After")
    wait = _number(given)
    if wait is not None or given is None:
        return wait
    try:
        moment = parsedate_to_datetime(given)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, IndexError, OverflowError):  # a date such as no calendar has
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None
