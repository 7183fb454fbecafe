"""Draws that a seed decides for good: of `random.Random` only `random()` is promised to stay the same."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def pick(things: Sequence[T], rng: random.Random) -> T:
    """One of them."""
    return things[int(rng.random() * len(things))]


def between(low: int, high: int, rng: random.Random) -> int:
    """A whole number from `low` to `high`, both included."""
    return low + int(rng.random() * (high - low + 1))


def shuffled(things: Iterable[T], rng: random.Random) -> list[T]:
    """All of them, in another order."""
    keyed = [(rng.random(), place, thing) for place, thing in enumerate(things)]
    return [thing for _, _, thing in sorted(keyed, key=lambda item: item[:2])]
