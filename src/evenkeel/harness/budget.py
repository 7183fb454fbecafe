"""Limits on a run: how many requests, tokens or dollars language models may cost before it stops."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from math import ceil
from typing import Annotated, NamedTuple, TypeAlias

from msgspec import Meta, Struct

from evenkeel.harness.ledger import BILLIONTH, Cost, Ledger
from evenkeel.harness.model import Meter
from evenkeel.options import parse
from evenkeel.page.grid import Displayed, Grid, Overview
from evenkeel.text.token_estimate import estimate_tokens
from evenkeel.types import Embed, Entail, Generate, LogLikelihood, Rank, Request, Response, StringLikelihood

FREE = (Embed, Rank, Entail)
WAIT_SECONDS = 0.2
"""Before a request is tried again that others' requests keep from being sent."""
Count: TypeAlias = Annotated[int, Meta(ge=1)]


class Price(NamedTuple):
    """What a model's tokens cost, in dollars per million."""

    input: float
    output: float
    source: str = ""
    """Where that is written: the date of a table, or a file."""

    def usd(self, tokens_in: int, tokens_out: int) -> float:
        return (tokens_in * self.input + tokens_out * self.output) / 1e6


class Limits(Struct, frozen=True, kw_only=True):
    """What a person is willing to spend; None is no limit."""

    max_requests: Annotated[Count | None, Meta(description="Stop after this many requests.")] = None
    max_tokens_total: Annotated[
        Count | None, Meta(description="Stop before this many tokens, in and out.")
    ] = None
    max_usd: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Stop before this many dollars, by known prices or those given."),
    ] = None
    price_in: Annotated[
        float, Meta(ge=0, description="Dollars per million tokens read, in place of known prices.")
    ] = 0.0
    price_out: Annotated[
        float, Meta(ge=0, description="Dollars per million tokens written, in place of known prices.")
    ] = 0.0

    @property
    def price(self) -> Price | None:
        """The price that was given; it is that of every model."""
        return Price(self.price_in, self.price_out) if self.price_in or self.price_out else None

    @classmethod
    def of(cls, *values: float | None) -> Limits:
        """The limits of a call, checked; they come in the order of the fields, and a price of None is 0."""
        known = {
            k: value for k, value in zip(cls.__struct_fields__, values, strict=True) if value is not None
        }
        return parse(cls, known, of="the run")


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
    """The known prices that were used, each with its date or its file; none where they were given."""
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
            cost = [f"At most about ${self.usd:,.2f}."]
            cost += [f"Dollars per million tokens: {line}." for line in self.prices]
        elif self.unpriced:
            cost = [f"The price of {', '.join(self.unpriced)} is not known: give price_in and price_out."]
        else:
            cost = ["Its models run on this machine: nothing is paid."] if self.local else []
        return Overview("What a run would ask, estimated", cost, [grid] if rows else [])


class Budget:
    """Counts what was spent and lets requests through while the limits hold.

    A request in flight is counted with what it may cost at most, so that a limit is not overrun by
    answers that are still on their way. Generation and log-likelihoods are counted, in any role;
    embedding and ranking, which cost next to nothing, are not. Backends read the stream in threads of their
    own, hence the lock. With `shared`, the limits of several processes together hold besides.
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
        self._shared = shared
        self._others = False
        """Whether only the requests of other processes held the last one back."""
        self._prices = prices or {}
        self._thinking = thinking or {}
        """By role: tokens that a model may write beside its answer."""
        self._usual_price = limits.price or Price(0.0, 0.0)
        self.usd = 0.0
        self._flying_usd = 0.0
        self.requests = 0
        self.tokens_in = 0
        self.tokens_out = 0
        self.exhausted = ""
        self._counts_tokens = (
            limits.max_tokens_total is not None or limits.max_usd is not None or shared is not None
        )
        self._in_flight: dict[int, tuple[int, int]] = {}
        self._flying_in = 0
        self._flying_out = 0
        self._lock = threading.Lock()

    def admit(self, requests: Iterable[Request]) -> Iterator[Request]:
        """Pass requests on until one would break a limit; `exhausted` then says which."""
        self.exhausted = ""
        for request in requests:
            if isinstance(request, FREE):
                yield request
                continue
            cost = estimate(request, self._thinking) if self._counts_tokens else (0, 0)
            with self._lock:
                self.exhausted = self._broken_by(request.role, *cost) or self._reserve(request.role, *cost)
                if self.exhausted:
                    return
                self.requests += 1
                if self._counts_tokens:
                    self._in_flight[id(request)] = cost
                    self._flying_in += cost[0]
                    self._flying_out += cost[1]
                    self._flying_usd += self._cost(request.role, *cost)
            yield request

    def spend(self, request: Request, response: Response) -> None:
        """Settle a request: what it really cost takes the place of what it might have."""
        if isinstance(request, FREE):
            return
        with self._lock:
            foreseen_in, foreseen_out = self._in_flight.pop(id(request), (0, 0))
            self._flying_in -= foreseen_in
            self._flying_out -= foreseen_out
            self._flying_usd -= self._cost(request.role, foreseen_in, foreseen_out)
            failed = response.status == "error"
            tokens_in = response.tokens_in or (0 if failed else foreseen_in)
            tokens_out = response.tokens_out or 0
            if not tokens_out and foreseen_out and not failed:
                tokens_out = min(foreseen_out, estimate_tokens(response.text))
            self.tokens_in += tokens_in
            self.tokens_out += tokens_out
            self.usd += self._cost(request.role, tokens_in, tokens_out)
            if self._shared is not None:
                reserved = self._shared_cost(request.role, foreseen_in, foreseen_out)
                self._shared.settle(reserved, self._shared_cost(request.role, tokens_in, tokens_out))

    def meter(self, role: str) -> Meter:
        """Counts what is sent and paid for beside the responses of a role."""
        return _RoleMeter(self, role)

    def may_retry(self, role: str) -> bool:
        """Count one more try of a request that is under way; False where a limit allows none."""
        with self._lock:
            if self._broken_by(role, 0, 0):
                return False
            self.requests += 1
            return True

    def add_used(self, role: str, tokens_in: int, tokens_out: int) -> None:
        """Count the tokens of a reply that gave no response."""
        with self._lock:
            self.tokens_in += tokens_in
            self.tokens_out += tokens_out
            self.usd += self._cost(role, tokens_in, tokens_out)
            if self._shared is not None:
                self._shared.settle(Cost(0, 0), self._shared_cost(role, tokens_in, tokens_out))

    def wait_for_others(self) -> bool:
        """Wait a moment where only other processes' requests, still on their way, held the last one back."""
        if self._others:
            time.sleep(WAIT_SECONDS)
        return self._others

    def _reserve(self, role: str, tokens_in: int, tokens_out: int) -> str:
        """The limit of the shared budget that a request would break; it is reserved where there is none."""
        self._others = False
        if self._shared is None:
            return ""
        refusal, self._others = self._shared.reserve(self._shared_cost(role, tokens_in, tokens_out))
        return refusal

    def _shared_cost(self, role: str, tokens_in: int, tokens_out: int) -> Cost:
        """In whole billionths of a dollar; a part of one counts as one."""
        usd = self._cost(role, tokens_in, tokens_out)
        return Cost(ceil(round(usd * BILLIONTH, 3)), tokens_in + tokens_out)

    def _cost(self, role: str, tokens_in: int, tokens_out: int) -> float:
        return self._prices.get(role, self._usual_price).usd(tokens_in, tokens_out)

    def _broken_by(self, role: str, tokens_in: int, tokens_out: int) -> str:
        limits = self.limits
        if limits.max_requests is not None and self.requests >= limits.max_requests:
            return f"--max-requests {limits.max_requests}"
        total_in = self.tokens_in + self._flying_in + tokens_in
        total_out = self.tokens_out + self._flying_out + tokens_out
        if limits.max_tokens_total is not None and total_in + total_out > limits.max_tokens_total:
            return f"--max-tokens-total {limits.max_tokens_total}"
        usd = self.usd + self._flying_usd + self._cost(role, tokens_in, tokens_out)
        if limits.max_usd is not None and usd > limits.max_usd:
            return f"--max-usd {limits.max_usd:g}"
        return ""


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
            sampling = request.sampling
            most = sampling.max_tokens
            if sampling.length_of:
                most = 2 * estimate_tokens(sampling.length_of) + sampling.beyond
            thought = (thinking or {}).get(request.role, 0) if not isinstance(prompt, str) else 0
            return sum(map(estimate_tokens, texts)), min(most, sampling.max_tokens) + thought
        case LogLikelihood() | StringLikelihood():
            return estimate_tokens(request.prefix + request.continuation), 0
        case Embed():
            return estimate_tokens(request.text), 0
        case Rank():
            return estimate_tokens(request.query + request.document), 0
        case Entail():
            return estimate_tokens(request.premise + request.hypothesis), 0
