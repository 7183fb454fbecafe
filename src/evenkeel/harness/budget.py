"""Limits on a run: how many requests or dollars language models may cost before it stops."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct

from evenkeel.harness.ledger import ROUNDING, Ledger
from evenkeel.harness.limits import Limits, Price
from evenkeel.harness.model import Meter
from evenkeel.journal.writer import Usage
from evenkeel.page.grid import Displayed, Grid, Overview
from evenkeel.text.token_estimate import estimate_tokens
from evenkeel.types import Embed, Generate, LogLikelihood, Rank, Request, Response, StringLikelihood

FREE = (Embed, Rank)
NOTHING, ONE_TRY = Usage(), Usage(1)


class Plan(Displayed, Struct, frozen=True):
    """What a run would ask, by kind: requests, tokens read (estimated), tokens written (at most)."""

    requests: dict[str, int]
    tokens_in: dict[str, int]
    tokens_out: dict[str, int]
    usd: float | None = None
    """What that costs at most, where prices are known; embedding and ranking are not counted."""
    local: bool = False
    """Whether all models run on this machine, so that nothing is paid."""
    prices: tuple[str, ...] = ()
    """The prices that were used: known ones with their date or file, or those given."""
    unpriced: tuple[str, ...] = ()
    """Models whose price is not known, so that no cost can be named."""
    keys: tuple[str, ...] = ()
    """Which environment variable's key would be sent to which host."""

    def overview(self) -> Overview:
        """A row for each kind of request, and what it costs."""
        rows = [
            (kind, [f"{count:,}", f"{self.tokens_in.get(kind, 0):,}", f"≤ {written:,}" if written else "–"])
            for kind, count in self.requests.items()
            for written in [self.tokens_out.get(kind, 0)]
        ]
        grid = Grid("", "kind", ["requests", "tokens in", "tokens out"], rows, left=1)  # type: ignore[arg-type]
        if not rows:
            cost = ["Asks no model: costs nothing."]
        elif self.usd is not None:
            reading = ("embed", "rank", "loglikelihood", "stringlikelihood")
            unknown = [
                kind for kind in self.requests if kind not in reading and not self.tokens_out.get(kind)
            ]
            without = ", without what judges and writers of summaries write" if unknown else ""
            cost = [f"The cost is at most about ${self.usd:,.2f}{without}."]
        elif self.unpriced:
            cost = [f"Cost unknown: no prices given for {', '.join(self.unpriced)} (price-in, price-out)."]
        else:
            cost = ["Runs locally: free."] if self.local else []
        cost += [f"Dollars per million tokens: {line}." for line in self.prices]
        cost += [f"Key: {key}." for key in self.keys]
        estimated = ["Tokens are estimated; every answer is counted at its full length."] if rows else []
        return Overview("What a run would ask", cost, [grid] if rows else [], estimated)


class Budget:
    """Counts what a run has asked and lets requests through while the limits hold.

    What counts is every try, and the tokens of every reply, over all starts of the run: the journal keeps
    them. A request in flight is counted with what it may cost at most, so that a limit is not overrun by
    answers that are still on their way. Generation and log-likelihoods are counted, in any role; embedding
    and ranking, which cost next to nothing, are not. Backends read the stream in threads of their own, hence
    the lock. With `shared`, the limits of several processes together hold besides.
    """

    def __init__(
        self,
        limits: Limits,
        prices: Mapping[str, Price] | None = None,
        thinking: Mapping[str, int] | None = None,
        *,
        shared: Ledger | None = None,
    ) -> None:
        self.limits = limits
        self.exhausted = ""
        """The limit that held the last request back."""
        self._shared = shared
        self._prices = prices or {}
        self._thinking = thinking or {}
        """By role: tokens that a model may write beside its answer."""
        self._default_price = limits.price or Price(0.0, 0.0)
        self._usage: dict[str, Usage] = {}
        self._store: Callable[[str, Usage], None] = lambda role, usage: None
        self._counts_tokens = limits.max_usd is not None or shared is not None
        self._estimates: dict[int, Usage] = {}
        """Of the requests in flight, by their identity."""
        self._in_flight: dict[str, Usage] = {}
        """Their sum, by role."""
        self._lock = threading.Lock()

    def resume(self, usage: Mapping[str, Usage], store: Callable[[str, Usage], None]) -> None:
        """Count from what the run has asked before, by role; `store` is given the sum whenever it changes."""
        self._usage, self._store = dict(usage), store

    @property
    def requests(self) -> int:
        return sum(usage.requests for usage in self._usage.values())

    @property
    def usd(self) -> float:
        return sum(self._cost(role, usage) for role, usage in self._usage.items())

    def admit(self, requests: Iterable[Request]) -> Iterator[Request]:
        """Pass requests on until one would break a limit; `exhausted` then says which."""
        self.exhausted = ""
        for request in requests:
            if isinstance(request, FREE):
                yield request
                continue
            tokens = Usage(0, *estimate(request, self._thinking)) if self._counts_tokens else NOTHING
            with self._lock:
                if not self._reserve(request.role, tokens):
                    return
                if self._counts_tokens:
                    self._estimates[id(request)] = tokens
                    _add_to(self._in_flight, request.role, tokens)
            yield request

    def spend(self, request: Request, response: Response) -> None:
        """Settle a request: what it did cost takes the place of what it might have."""
        if isinstance(request, FREE):
            return
        with self._lock:
            estimated = self._estimates.pop(id(request), NOTHING)
            if estimated is not NOTHING:
                _add_to(self._in_flight, request.role, Usage(0, -estimated.tokens_in, -estimated.tokens_out))
            failed = response.status == "error"
            tokens_in = response.tokens_in or (0 if failed else estimated.tokens_in)
            tokens_out = response.tokens_out or 0
            if not tokens_out and estimated.tokens_out and not failed:
                tokens_out = min(estimated.tokens_out, estimate_tokens(response.text))
            self._add(request.role, Usage(0, tokens_in, tokens_out), reserved=estimated)

    def meter(self, role: str) -> Meter:
        """Counts what is sent and paid for beside the responses of a role."""
        return _RoleMeter(self, role)

    def may_retry(self, role: str) -> bool:
        """Count one more try of a request that is under way; False where a limit allows none."""
        with self._lock:
            return self._reserve(role, NOTHING)

    def add_used(self, role: str, tokens_in: int, tokens_out: int) -> None:
        """Count the tokens of a reply that gave no response."""
        with self._lock:
            self._add(role, Usage(0, tokens_in, tokens_out))

    def _reserve(self, role: str, tokens: Usage) -> bool:
        """Count a try, if neither the run's limits nor the shared ones forbid it."""
        refusal = self._broken_by(role, tokens)
        if not refusal and self._shared is not None:
            refusal = self._shared.reserve(self._cost(role, tokens))
        if refusal:
            self.exhausted = refusal
            return False
        self._count(role, ONE_TRY)
        return True

    def _add(self, role: str, usage: Usage, *, reserved: Usage | None = None) -> None:
        self._count(role, usage)
        if self._shared is not None:
            before = self._cost(role, reserved) if reserved else 0.0
            self._shared.settle(before, self._cost(role, usage))

    def _count(self, role: str, usage: Usage) -> None:
        _add_to(self._usage, role, usage)
        self._store(role, self._usage[role])

    def _cost(self, role: str, usage: Usage) -> float:
        return self._prices.get(role, self._default_price).usd(usage.tokens_in, usage.tokens_out)

    def _broken_by(self, role: str, tokens: Usage) -> str:
        """The run's own limit that one more try would break, with all that is in flight."""
        limits = self.limits
        if limits.max_requests is not None and self.requests >= limits.max_requests:
            return f"--max-requests {limits.max_requests}"
        if limits.max_usd is None:
            return ""
        usages = [*self._usage.items(), *self._in_flight.items(), (role, tokens)]
        usd = sum(self._cost(name, usage) for name, usage in usages)
        return f"--max-usd {limits.max_usd:g}" if usd > limits.max_usd + ROUNDING else ""


def _add_to(usages: dict[str, Usage], role: str, usage: Usage) -> None:
    usages[role] = usages.get(role, Usage()).plus(usage)


class _RoleMeter(NamedTuple):
    """A budget, for the model of one role."""

    budget: Budget
    role: str

    def may_retry(self) -> bool:
        return self.budget.may_retry(self.role)

    def used(self, tokens_in: int, tokens_out: int) -> None:
        self.budget.add_used(self.role, tokens_in, tokens_out)


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
