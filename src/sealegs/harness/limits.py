"""What a person is willing to spend on a run, and what a model costs."""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

from msgspec import Meta, Struct

from sealegs.options import parse

Count: TypeAlias = Annotated[int, Meta(ge=1)]
ROUNDING = 1e-9
"""Dollars that the sum of many costs may be off."""


class Price(NamedTuple):
    """What a model's tokens cost, in dollars per million."""

    input: float
    output: float
    source: str = ""
    """Where that is written: the date of a table, or a file."""

    def usd(self, tokens_in: int, tokens_out: int) -> float:
        return (tokens_in * self.input + tokens_out * self.output) / 1e6


class Refused(NamedTuple):
    """Why a request may not be sent."""

    limit: str
    is_transient: bool
    """Whether others have money set aside that may become free."""


class Limits(Struct, frozen=True, kw_only=True):
    """What a person is willing to spend; None is no limit."""

    max_requests: Annotated[
        Count | None,
        Meta(
            description="Stop after this many calls to servers, retries, probes and embeddings included; of "
            "a local model, texts and log-likelihoods."
        ),
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
        limits = zip(cls.__struct_fields__, values, strict=True)
        return parse(cls, {name: limit for name, limit in limits if limit is not None}, of="the run")
