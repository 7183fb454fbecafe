"""multiview's published formula (https://github.com/sarahlc888/multiview): picks of the positive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

Pick: TypeAlias = Literal["positive", "negative", "tie"]


def accuracy(picks: Sequence[Pick | None]) -> float | None:
    """Of one triplet: picks of the positive / picks. A tie is not correct.

    It is 1 or 0, and of a judge, which is asked in two orders, ½ where it is right in one of them. A triplet
    that was not answered in every order has no value: a failure or an answer that cannot be read is neither
    right nor wrong, and one order alone shows a judge's bias to a position.
    """
    return None if None in picks else picks.count("positive") / len(picks)


def result(triplets: Sequence[Sequence[Pick | None]]) -> dict[str, float | None]:
    """The published results of a method, of the triplets that were answered in all orders: accuracy =
    correct / total. Triplets are counted: one of which a judge is right in one order only is half correct."""
    correct, ties = (
        sum(picks.count(kind) / len(picks) for picks in triplets) for kind in ("positive", "tie")
    )
    return {
        "correct": _number(correct),
        "ties": _number(ties),
        "total": len(triplets),
        "accuracy": correct / len(triplets) if triplets else None,
    }


def _number(count: float) -> float:
    """A whole number without a decimal point."""
    return int(count) if count == int(count) else count
