"""multiview's published formula (https://github.com/sarahlc888/multiview): picks of the positive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

Pick: TypeAlias = Literal["positive", "negative", "tie"]


def accuracy(pick: Pick | None) -> int:
    """Of one triplet: 1 where the positive is picked, else 0. A tie is not correct."""
    return int(pick == "positive")


def result(triplets: Sequence[Sequence[Pick | None]]) -> dict[str, float | None]:
    """The published results of a method, of the triplets that were answered in all orders: accuracy =
    correct / total. A triplet counts by the mean over its orders, which is ours (`added.accuracy`)."""
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
