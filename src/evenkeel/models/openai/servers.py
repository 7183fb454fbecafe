"""A server of a model: how it has answered so far, and what that decides.

One of several servers that fails is left out for a while and then sent a request again: at once where it
cannot be reached or refuses everything, else after FAILURES_LEFT_OUT failures in a row. What it failed to
answer goes to the others; where none is left, all are tried as if there were one.

A server, or all of them together, is given up, which ends the run: before its first answer when more requests
have failed than are still under way, unless the fault was theirs; and at any time when FAILURES_IN_A_ROW
requests failed and none was answered.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from typing import TYPE_CHECKING

from evenkeel.errors import ModelUnreachable
from evenkeel.models.openai.throttle import Throttle
from evenkeel.models.openai.transport import NO_CONNECTION, PAGE, RequestError, Transport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evenkeel.models.openai.background import Relay
    from evenkeel.models.openai.endpoint import Endpoint

FAILURES_IN_A_ROW = 50
FAILURES_LEFT_OUT = 3
PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""For which a server is left out: twice as long every time, up to the second."""
SILENT_S = 30.0
"""Without any reply, after which a note says what is waited for."""
NOTE_S = 60.0
"""How long a kind of failure is not noted again."""


class ServerHealth:
    """How a server, or all servers of a model, have answered, which decides when they are given up."""

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

    def failed(
        self, error: RequestError, reason: str, *, suspected: bool, under_way: int, requests: int = 1
    ) -> None:
        """Count requests that failed for good; raise where no further call can succeed. At the start, the
        fastest replies may be the failures among many good ones: those `under_way` may still be answered."""
        if self.ever_answered and not suspected:
            return
        self._failures[error.kind] += requests
        in_a_row = self._failures.total()
        dead = suspected and not self.ever_answered and in_a_row > under_way
        if dead or in_a_row >= FAILURES_IN_A_ROW:
            kinds = ", ".join(f"{kind} ×{count:,}" for kind, count in self._failures.most_common())
            problem = "The last requests have all failed" if self.ever_answered else "No request was answered"
            last = f" ({kinds}). The last one" if in_a_row > 1 else ""
            text = f"{problem} at {self._server}{last}: {reason}"
            hint = self._hint if is_wrong_address(error) else ""
            if error.kind == NO_CONNECTION and not self.ever_answered:
                hint = f"Is the server running at {self._server}? Start it, or give its address: --base-url."
            raise ModelUnreachable(f"{text.rstrip('.')}. {hint}" if hint else text)


def is_wrong_address(error: RequestError) -> bool:
    """Whether the address is wrong, and not a name in the request."""
    names_model = any(name in error.detail.lower() for name in ("model", "deployment"))
    elsewhere = 300 <= error.status < 400 or error.status in (404, 405)
    return error.kind == PAGE or (elsewhere and not names_model)


class Server:
    """One of the servers of a model, for as long as the model is open."""

    def __init__(self, endpoint: Endpoint, health: ServerHealth) -> None:
        self.endpoint = endpoint
        self.health = health
        self._failures = 0
        self._pause = PAUSE_S
        self._out_until = 0.0

    @property
    def out(self) -> bool:
        """Whether it is left out now."""
        return self._out_until > 0 and time.monotonic() < self._out_until

    def answered(self) -> None:
        self.health.answered()
        self._failures, self._pause, self._out_until = 0, PAUSE_S, 0.0

    def failed(self, *, useless: bool) -> bool:
        """Count a failure, and leave the server out if need be; True for the first time since an answer."""
        if self.out:
            return False
        self._failures += 1
        if not useless and self._failures < FAILURES_LEFT_OUT:
            return False
        self._out_until = time.monotonic() + self._pause
        first = self._pause == PAUSE_S
        self._pause = min(2 * self._pause, LONGEST_PAUSE_S)
        return first


class Connection:
    """A server as one event loop reaches it, with as many requests at once as it takes."""

    def __init__(
        self,
        server: Server,
        relay: Relay,
        concurrency: int,
        timeout: float,
        headers: Mapping[str, str] | None,
        on_room: Callable[[], None],
    ) -> None:
        self.server = server
        self.shown = server.endpoint.shown
        self.throttle = Throttle(concurrency, on_room)
        self.transport = Transport(server.endpoint, timeout, headers)
        text = (
            f"{self.shown} has not answered anything for {SILENT_S:g} s; a try may take {timeout:g} s "
            "(--model-arg timeout=SECONDS)."
        )
        self._silence = asyncio.get_running_loop().call_later(SILENT_S, relay.note, text)

    def heard(self) -> None:
        """A reply has come, whatever it says."""
        self._silence.cancel()

    def answered(self) -> None:
        self.heard()
        self.server.answered()

    async def close(self) -> None:
        self._silence.cancel()
        await self.transport.close()
