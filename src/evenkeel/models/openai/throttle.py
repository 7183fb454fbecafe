"""How many requests a server is sent at once.

The number adapts under a ceiling as TCP's window does: it is halved when the server answers that it is
overloaded, and climbs back by a fixed step for every round of requests that succeeded. A few such answers
among many good ones are no overload: then only the requests that were refused wait.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

OVERLOAD_SHARE = 0.1
"""Of the latest replies, those that refuse for overload: a server that refuses no more is not overloaded."""
LATEST = 64
"""Replies that the share is taken of; not more than are under way at once."""
CLIMB_ROUNDS = 16
"""Rounds of successful requests in which the limit climbs from nothing to the ceiling."""


class Throttle:
    """Limits how many tries run at once. It belongs to one event loop."""

    def __init__(
        self, ceiling: int, on_room: Callable[[], object] = object, *, limit: float = math.inf
    ) -> None:
        self.limit = min(limit, float(ceiling))
        self._ceiling = ceiling
        self._step = max(1.0, ceiling / CLIMB_ROUNDS)
        self.active = 0
        """Tries that are under way."""
        self._replies = 0
        self._refused = 0.0
        self._on_room = on_room
        """Called where another request may be sent."""
        self._last_cut = -math.inf
        self._pause: asyncio.TimerHandle | None = None

    @property
    def room(self) -> int:
        """How many more requests may be sent now."""
        return int(self.limit) - self.active if self._pause is None else 0

    def enter(self) -> None:
        self.active += 1

    def leave(self) -> None:
        self.active -= 1
        self._on_room()

    @property
    def is_overloaded(self) -> bool:
        return self._refused > OVERLOAD_SHARE

    def count(self, *, refused: bool) -> None:
        """Take a reply into the share of the latest ones that refuse for overload."""
        self._replies += 1
        self._refused += (refused - self._refused) / min(self._replies, self.limit, LATEST)

    @property
    def is_cut(self) -> bool:
        return self.limit < self._ceiling

    def succeeded(self) -> None:
        if self.is_cut:
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
        self._on_room()
