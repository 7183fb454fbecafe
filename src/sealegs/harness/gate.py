"""The gate before every model: it counts tries and dollars before they are spent, and keeps the limits.

A request is admitted with one try, and with the most that it may cost set aside; its answer replaces that by
what it did cost. A try that was not sent when the run was stopped is given back; models that compute here
read ahead, and a batch counts for the start that reads it. Every other try (a retry, a second call, a call
with many texts, a probe) is counted before it is sent. All of it counts over all starts of a run: the journal
keeps the sums, those set aside included, so that what was under way when a process was killed counts as
spent.

Where money that others have set aside may still become free, a request waits. So does one whose further try
finds none: what it may cost is set aside, but a reply that was paid for and is no answer used up money of
others. It is admitted anew (`dispatcher.py`). Where none can become free, the run ends with BudgetReached.
Runs of one process may share limits: each has a gate of its own, behind which is a `shared` one. All of them
may be used from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import astuple

from sealegs.errors import BudgetReached
from sealegs.harness.limits import ROUNDING, Limits, Price, Refused
from sealegs.journal.database import JournalUsage
from sealegs.text.token_estimate import estimate_tokens
from sealegs.types import Embed, Generate, LogLikelihood, Rank, Request, Response, StringLikelihood

UNPRICED = (Embed, Rank)
"""Kinds of requests whose tokens cost next to nothing and are not counted. Nor is a request to a model that
computes here; calls to a server are."""
NOTHING = JournalUsage()
WAIT_S = 0.5
"""Between two looks whether money has become free: a wait without end cannot be interrupted everywhere."""


class MoneySetAside(BudgetReached):
    """A further try would need money that is set aside for others, and may become free."""


class Ticket(Struct, frozen=True):
    """A request that was admitted."""

    role: str
    tokens: tuple[int, int] | None
    """What it may read and write at most, which is set aside; None where its tokens are not counted."""
    usd: float = 0.0
    """What that costs."""


class RequestGate:
    """Admits requests while the limits hold."""

    def __init__(
        self,
        limits: Limits | None = None,
        prices: Mapping[str, Price] | None = None,
        thinking: Mapping[str, int] | None = None,
        *,
        shared: RequestGate | None = None,
        owner: str = "",
    ) -> None:
        self.limits = limits = limits or Limits()
        self.requests = 0
        self.usd = 0.0
        """Spent, over all starts."""
        self.reserved_usd = 0.0
        """Set aside for what is under way."""
        self._owner = owner
        """Whose limits they are, where they are not those of one run: `the suite`."""
        self._prices = prices or {}
        self._default_price = limits.price or Price(0.0, 0.0)
        self._thinking = thinking or {}
        """By role: tokens that a model may write beside its answer."""
        self._shared = shared
        self._counts_money = limits.max_usd is not None or shared is not None
        self._earlier: Mapping[str, JournalUsage] = {}
        self._usage: dict[str, JournalUsage] = {}
        """By role: what all starts have used, and set aside."""
        self._store: Callable[[str, JournalUsage], None] = lambda role, usage: None
        self._lock: threading.Lock = shared._lock if shared else threading.Lock()
        self._freed: threading.Condition = shared._freed if shared else threading.Condition(self._lock)
        """Notified when money that was set aside may be free."""

    def resume(
        self, usage: Mapping[str, JournalUsage], store: Callable[[str, JournalUsage], None] | None = None
    ) -> None:
        """Count from what earlier starts used, by role, here and in shared limits. Called again, it replaces
        what was counted before. `store` is given each sum whenever it changes."""
        with self._lock:
            if store is not None:
                self._store = store
            for sign, earlier in (+1, usage), (-1, self._earlier):
                for role, used in earlier.items():
                    requests, tokens_in, tokens_out = (sign * amount for amount in astuple(used))
                    usd = self._cost(role, tokens_in, tokens_out)
                    self._count(role, requests, tokens_in, tokens_out, usd)
            self._earlier = dict(usage)
            for role, used in self._usage.items():  # and what was tried out before there was a journal
                self._store(role, used)

    def admit(self, request: Request, *, wait: bool) -> Ticket | None:
        """Count a request, and set aside what it may cost; None where that is not possible now.

        With `wait`, it is waited for what others have set aside; where no one has, BudgetReached.
        """
        if isinstance(request, UNPRICED):
            return Ticket(request.role, None)
        role, tokens, usd = request.role, (0, 0), 0.0
        if self._counts_money:
            tokens = estimate(request, self._thinking)
            usd = self._cost(role, *tokens)
        with self._lock:
            while refused := self._refusal(usd):
                if not wait:
                    return None
                if not refused.is_transient:
                    raise self._reached(refused, usd)
                self._freed.wait(WAIT_S)
            self._count(role, 1, *tokens, 0.0, usd)
        return Ticket(role, tokens, usd)

    def check_try(self) -> None:
        """Raise BudgetReached where no further try can be counted, however long one waits."""
        with self._lock:
            if (refused := self._refusal(0.0)) and not refused.is_transient:
                raise self._reached(refused)

    def count_try(self, role: str, *, priced: bool = True) -> None:
        """Count one more try before it is sent, or raise BudgetReached; MoneySetAside where it is paid for,
        and money may become free."""
        with self._lock:
            if (refused := self._refusal(0.0)) and (priced or not refused.is_transient):
                raise self._reached(refused)
            self._count(role, 1)

    def return_try(self, role: str) -> None:
        """Count a try less: it was stopped before it was sent."""
        with self._lock:
            self._count(role, -1)

    def add_used(self, role: str, tokens_in: int, tokens_out: int = 0) -> None:
        """Count the tokens of a reply that was paid for and gave no response."""
        with self._lock:
            self._count(role, 0, tokens_in, tokens_out, self._cost(role, tokens_in, tokens_out))

    def settle(self, ticket: Ticket, response: Response | None) -> None:
        """Replace what was set aside by what a response did cost. None: it was stopped before it ended."""
        role, reserved = ticket.role, ticket.tokens
        if reserved is None:
            return
        read, written = _used(reserved, response) if response is not None else (0, 0)
        usd = self._cost(role, read, written)
        with self._lock:
            self._count(role, 0, read - reserved[0], written - reserved[1], usd, -ticket.usd)
            if ticket.usd:
                self._freed.notify_all()

    def _refusal(self, usd: float) -> Refused | None:
        """The limit that a try would break, with what it may cost at most."""
        limits, owner = self.limits, self._owner
        if limits.max_requests is not None and self.requests >= limits.max_requests:
            count = f"{owner}'s budget of {limits.max_requests:,} requests"
            return Refused(count if owner else f"--max-requests {limits.max_requests}", is_transient=False)
        if limits.max_usd is not None and self.usd + self.reserved_usd + usd > limits.max_usd + ROUNDING:
            limit = f"{owner}'s budget of ${limits.max_usd:g}" if owner else f"--max-usd {limits.max_usd:g}"
            affordable = self.usd + usd <= limits.max_usd + ROUNDING
            return Refused(limit, is_transient=affordable and self.reserved_usd > ROUNDING)
        return self._shared._refusal(usd) if self._shared is not None else None

    def _count(
        self,
        role: str,
        tries: int,
        tokens_in: int = 0,
        tokens_out: int = 0,
        usd: float = 0.0,
        reserved_usd: float = 0.0,
    ) -> None:
        """Add to what a role has used, here and in shared limits."""
        used = self._usage.get(role, NOTHING)
        self._usage[role] = used = JournalUsage(
            used.requests + tries, used.tokens_in + tokens_in, used.tokens_out + tokens_out
        )
        self._store(role, used)
        gate: RequestGate | None = self
        while gate is not None:
            gate.requests += tries
            gate.usd += usd
            if reserved_usd:
                gate.reserved_usd = max(0.0, gate.reserved_usd + reserved_usd)
            gate = gate._shared

    def _cost(self, role: str, tokens_in: int, tokens_out: int) -> float:
        return self._prices.get(role, self._default_price).usd(tokens_in, tokens_out)

    def _reached(self, refused: Refused, usd: float = 0.0) -> BudgetReached:
        spent = f", ${self.usd:.4f}" if self.usd else ""
        requests = f"{self.requests:,} request{'s' if self.requests != 1 else ''}"
        next_one = f"; the next may cost up to ${usd:.4f}" if usd and "$" in f"{refused.limit}{spent}" else ""
        return (MoneySetAside if refused.is_transient else BudgetReached)(
            f"stopped at {refused.limit}. Over all starts that its journal has, the run has sent "
            f"{requests}{spent}{next_one}: raise the limit, or leave it out, to resume."
        )


NO_LIMITS = RequestGate()
"""Of a model that is asked without a run."""


def _used(reserved: tuple[int, int], response: Response) -> tuple[int, int]:
    """The tokens of a response: those that it reports, else an estimate, if it is an answer."""
    tokens_in, tokens_out = response.tokens_in or 0, response.tokens_out or 0
    if response.status != "error":
        tokens_in = tokens_in or reserved[0]
        tokens_out = tokens_out or (reserved[1] and min(reserved[1], estimate_tokens(response.text)))
    return tokens_in, tokens_out


def estimate(request: Request, thinking: Mapping[str, int] | None = None) -> tuple[int, int]:
    """An estimate of the tokens that a request reads, and the most it may write; with what a model may think,
    by role."""
    match request:
        case Generate():
            prompt = request.prompt
            texts = [prompt] if isinstance(prompt, str) else [message.content for message in prompt]
            thought = (thinking or {}).get(request.role, 0) if not isinstance(prompt, str) else 0
            return sum(map(estimate_tokens, texts)), request.sampling.max_tokens + thought
        case LogLikelihood() | StringLikelihood():
            return estimate_tokens(request.prefix + request.continuation), 0
        case Embed():
            return estimate_tokens(request.text), 0
        case Rank():
            return estimate_tokens(request.query + request.document), 0
