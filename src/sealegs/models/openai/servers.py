"""A server of a model: how it has answered so far, and what that decides: how many tries it is sent at
once, and whether it is asked at all.

One of several servers that fails is left out for a while and then sent a request again: at once where it
cannot be reached or refuses everything, else after FAILURES_LEFT_OUT failures in a row. What it failed to
answer goes to the others; where none is left, all are tried as if there were one.

A model is given up, which ends the run, with all its servers. Before its first answer: when more calls have
failed by a server's fault than may still be answered, or FAILURES_IN_A_ROW for any reason. After it: when
FAILURES_IN_A_ROW calls failed by a server's fault and none was answered in between.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from typing import TYPE_CHECKING

from sealegs.errors import ModelUnreachable
from sealegs.models.openai.transport import NO_CONNECTION, PAGE, UNTRUSTED, TryFailed

if TYPE_CHECKING:
    from sealegs.models.openai.endpoint import Endpoint

FAILURES_IN_A_ROW = 50
FAILURES_LEFT_OUT = 3
PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""For which a server is left out: twice as long every time, up to the second."""
OVERLOAD_SHARE = 0.1
"""Of the latest replies, those that refuse for overload: a server that refuses no more is not overloaded."""
LATEST = 64
"""Replies that the share is taken of; not more than are under way at once."""
CLIMB_ROUNDS = 16
"""Rounds of successful tries in which the limit climbs from nothing to the ceiling."""


class ServerHealth:
    """How all servers of a model have answered, which decides when it is given up."""

    def __init__(self, server: str, hint: str = "") -> None:
        self.ever_answered = False
        self._server = server
        self._hint = hint
        """What is said where the address may be wrong."""
        self._failures: Counter[str] = Counter()  # by kind, since the last answer

    def answered(self) -> None:
        self.ever_answered = True
        if self._failures:
            self._failures.clear()

    def failed(self, error: TryFailed, reason: str, *, server_at_fault: bool, open_calls: int) -> None:
        """Count a call that failed for good; raise where no further one can succeed. At the start, the
        fastest replies may be the failures among many good ones: open calls may still be answered."""
        if self.ever_answered and not server_at_fault:
            return
        self._failures[error.kind] += 1
        in_a_row = self._failures.total()
        dead = server_at_fault and not self.ever_answered and in_a_row > open_calls
        if dead or in_a_row >= FAILURES_IN_A_ROW:
            kinds = ", ".join(f"{kind} ×{count:,}" for kind, count in self._failures.most_common())
            problem = "The last requests have all failed" if self.ever_answered else "No request was answered"
            last = f" ({kinds}). The last one" if in_a_row > 1 else ""
            text = f"{problem} at {self._server}{last}: {reason}"
            hint = self._hint if is_wrong_address(error) else ""
            if error.kind == NO_CONNECTION and not self.ever_answered:
                hint = f"Is the server running at {self._server}? Start it, or give its address: --base-url."
            raise ModelUnreachable(f"{text.rstrip('.')}. {hint}".rstrip())


def given_up(error: TryFailed, server: str) -> ModelUnreachable:
    """That a failure ends the run by itself."""
    hint = ""
    if error.kind == UNTRUSTED:
        hint = (
            " Nothing was sent to it. For an authority of your own, SSL_CERT_FILE names the file that "
            "holds its certificate."
        )
    return ModelUnreachable(f"{error.at(server)}.{hint}")


def is_wrong_address(error: TryFailed) -> bool:
    """Whether the address is wrong, and not a name in the request."""
    names_model = any(name in error.detail.lower() for name in ("model", "deployment"))
    elsewhere = 300 <= error.status < 400 or error.status in (404, 405)
    return error.kind == PAGE or (elsewhere and not names_model)


class Throttle:
    """How many tries a server is sent at once by each stream of requests.

    The number adapts under a ceiling as TCP's window does: it is halved when the server answers that it is
    overloaded, and climbs back by a fixed step for every round of tries that succeeded. A few such answers
    among many good ones are no overload: then only the calls that were refused wait. At fewer than ten at
    once, one is more than a few.
    """

    def __init__(self, ceiling: int) -> None:
        self.limit = float(ceiling)
        self._ceiling = ceiling
        self._step = max(1.0, ceiling / CLIMB_ROUNDS)
        self._replies = 0
        self._refused = 0.0
        self._last_cut = self._paused_until = -math.inf

    @property
    def allowed(self) -> int:
        """How many tries may be under way now."""
        return int(self.limit) if time.monotonic() >= self._paused_until else 0

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
        """Halve the limit, unless this try was sent before the last cut and so under the old limit."""
        if sent_at > self._last_cut:
            self.limit = max(1.0, self.limit / 2)
            self._last_cut = time.monotonic()

    def pause(self, seconds: float) -> None:
        """Send nothing new for that long, or for as long as a pause that lasts longer."""
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)


class Server:
    """One of the servers of a model, for as long as the model is open."""

    def __init__(self, endpoint: Endpoint, concurrency: int) -> None:
        self.endpoint = endpoint
        self.shown = endpoint.shown
        self.throttle = Throttle(concurrency)
        self._failures = 0
        self._pause = PAUSE_S
        self._out_until = 0.0
        self.noted: set[str] = set()
        """Kinds of failures that were noted: each is worth one line."""

    @property
    def is_left_out(self) -> bool:
        return self._out_until > 0 and time.monotonic() < self._out_until

    def answered(self) -> None:
        self._failures, self._pause, self._out_until = 0, PAUSE_S, 0.0

    def failed(self, *, leave_out_at_once: bool) -> bool:
        """Count a failure, and leave the server out if need be; True for the first time since an answer."""
        if self.is_left_out:
            return False
        self._failures += 1
        if not leave_out_at_once and self._failures < FAILURES_LEFT_OUT:
            return False
        self._out_until = time.monotonic() + self._pause
        first = self._pause == PAUSE_S
        self._pause = min(2 * self._pause, LONGEST_PAUSE_S)
        return first
