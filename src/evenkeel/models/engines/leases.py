"""Work in small parts: which requests go to a worker together, and what happens to them where it is lost."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from msgspec import Struct

from evenkeel.types import Request

ROWS = 16
"""Requests of a lease, for models that do not say which they compute together."""
DIVISIBLE = 64
"""Rows of a portion that may be divided where there are fewer portions than workers."""
PARTS = 8
"""How many parts a lease is divided into that was lost twice."""


class Lease(Struct, frozen=True):
    """Requests that one worker answers."""

    requests: list[Request]
    losses: int = 0
    """How often the worker was lost that was answering them."""


def divide(requests: Sequence[Request], size: int) -> list[list[Request]]:
    return [list(requests[start : start + size]) for start in range(0, len(requests), size)]


def shared_out(portions: Sequence[list[Request]], workers: int) -> list[Lease]:
    """A lease for each portion that a model computes together; large ones are divided where workers would
    have nothing to do."""
    total = sum(map(len, portions))
    size = max(DIVISIBLE, ceil(total / workers)) if len(portions) < workers else max(total, 1)
    return [Lease(part) for portion in portions for part in divide(portion, size)]


def after_loss(lease: Lease) -> list[Lease]:
    """What becomes of a lease whose worker was lost: the same once more, for most losses are chance; then in
    parts, until the request that ends its worker is alone. Nothing where it is, and was lost again."""
    losses = lease.losses + 1
    if losses < 2:
        return [Lease(lease.requests, losses)]
    if len(lease.requests) == 1:
        return []
    return [Lease(part, 1) for part in divide(lease.requests, ceil(len(lease.requests) / PARTS))]
