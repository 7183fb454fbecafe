"""What went wrong with a try, and how a server has done so far: when to try again, when to give it up."""

from __future__ import annotations

from collections import Counter
from http import HTTPStatus

from evenkeel.errors import ModelUnreachable

NO_CONTACT_S = 4.0
"""How long a server in doubt may refuse connections: time to start up, not to be dead."""
NO_ANSWER_S = 60.0
"""How long a server in doubt may fail otherwise before nothing is tried again."""
FOREIGN_AT_START = 3
"""Replies without JSON after which a server that has given no other does not speak the protocol."""
FAILURES_AT_START = 8
REFUSALS_AT_START = 100
FAILURES_IN_A_ROW = 50
TELL_S, LONGEST_TELL_S = 5.0, 300.0
"""How long a kind of failure is not told again: twice as long every time, up to the second."""

OVERLOADED = frozenset({429, 503, 529})
TRANSIENT = frozenset({408, 409, 425, 429})
POINTLESS = frozenset({401, 402, 404})
POINTLESS_AT_START = frozenset({301, 302, 303, 307, 308, 403, 405})
"""About the address or the key at first; later about one prompt (moderation) or one server of several."""
NO_SUCH_API = frozenset({301, 302, 303, 307, 308, 404, 405})
THIS_REQUEST = frozenset({400, 413, 422})
"""Refusals of one request by a server that is well."""


class Trouble(Exception):
    """Why a try came to nothing."""

    def __init__(
        self,
        kind: str,
        said: str = "",
        *,
        status: int = 0,
        wait: float | None = None,
        foreign: bool = False,
        final: bool = False,
    ) -> None:
        super().__init__(f"{kind}: {said}" if said else kind)
        self.kind = kind
        self.said = said
        self.status = status
        self.wait = wait
        self.foreign = foreign
        """Not in the protocol at all: a web page, say."""
        self.no_contact = False
        self.transient = not final and (status in TRANSIENT or status >= 500 or status < 300)

    def after(self, tries: int) -> str:
        """For a response's reason: `HTTP 500 after 9 tries: the server is on fire`."""
        times = f" after {tries} tries" if tries > 1 else ""
        return f"{self.kind}{times}: {self.said}" if self.said else f"{self.kind}{times}"

    def at(self, server: str) -> str:
        """For a person: `http://… answered 500 Internal Server Error: the server is on fire`."""
        if self.status and self.status != 200:
            try:
                what = f" answered {self.status} {HTTPStatus(self.status).phrase}"
            except ValueError:  # a number of the server's own, such as 529
                what = f" answered {self.status}"
        else:
            what = f": {self.kind}"
        return f"{server}{what}: {self.said}" if self.said else f"{server}{what}"

    @property
    def no_such_api(self) -> bool:
        """Whether the address is to blame, and not a name in the request."""
        return self.foreign or (self.status in NO_SUCH_API and "model" not in self.said.lower())


class Failed(Exception):
    """A request that failed for good; the message is the response's reason."""

    def __init__(self, trouble: Trouble, tries: int) -> None:
        super().__init__(trouble.after(tries))
        self.trouble = trouble


class Standing:
    """How a server has done so far, from which it is told when to give it up."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._ever_answered = False
        self._kinds: Counter[str] = Counter()  # of failures since the last answer
        self._last = ""
        self._in_a_row = 0
        self._foreign = 0
        self._doubted_at: float | None = None
        self._told: dict[str, tuple[float, float]] = {}

    @property
    def in_doubt(self) -> bool:
        return not self._ever_answered

    def still_hopeful(self, trouble: Trouble, now: float) -> bool:
        """Whether a server that has not answered (for long) is worth another try.

        The time counts from its first trouble, not from each request's, so that few requests at once
        learn of a dead server as soon as many.
        """
        if (self._ever_answered and self._in_a_row < FAILURES_AT_START) or trouble.status in OVERLOADED:
            return True
        if self._doubted_at is None:
            self._doubted_at = now
        return now - self._doubted_at < (NO_CONTACT_S if trouble.no_contact else NO_ANSWER_S)

    def worth_telling(self, trouble: Trouble, now: float) -> bool:
        """Whether a failure is worth a line: the first of its kind at once, later ones ever more seldom."""
        due, pause = self._told.get(trouble.kind, (now, TELL_S))
        if now < due:
            return False
        self._told[trouble.kind] = now + pause, min(2 * pause, LONGEST_TELL_S)
        return True

    def answered(self) -> None:
        self._ever_answered = True
        self._doubted_at = None
        if self._kinds:
            self._kinds.clear()
            self._in_a_row = 0

    def failed(self, failure: Failed) -> None:
        """Take note of a request that failed for good; raise where no further call has a prospect."""
        trouble = failure.trouble
        self._kinds[trouble.kind] += 1
        self._last = str(failure)
        if trouble.status not in THIS_REQUEST:
            self._in_a_row += 1
        # Refusals of single requests are no sign of a dead server, unless it refuses everything.
        refused = self._kinds.total() - self._in_a_row
        if not self._ever_answered and (self._in_a_row >= FAILURES_AT_START or refused >= REFUSALS_AT_START):
            self._give_up("The server has answered none of the requests")
        if self._in_a_row >= FAILURES_IN_A_ROW:
            self._give_up(f"The last {FAILURES_IN_A_ROW} requests have failed")

    def ended(self) -> None:
        """A short stream of which nothing came through: nothing was learnt but that the server is away."""
        if not self._ever_answered and self._in_a_row:
            self._give_up("The server has answered none of the requests")

    def pointless(self, trouble: Trouble) -> bool:
        """Whether a refusal holds for every further request."""
        if self.in_doubt and trouble.foreign and trouble.transient:
            self._foreign += 1
            return self._foreign >= FOREIGN_AT_START
        if trouble.status in POINTLESS_AT_START:
            return self.in_doubt
        return trouble.status in POINTLESS or _is_quota(trouble)

    def _give_up(self, what: str) -> None:
        kinds = ", ".join(f"{kind} ({count} times)" for kind, count in self._kinds.most_common())
        raise ModelUnreachable(f"{what} at {self._server}: {kinds}. The last one: {self._last}")


def _is_quota(trouble: Trouble) -> bool:
    return trouble.status == 429 and "insufficient_quota" in trouble.said
