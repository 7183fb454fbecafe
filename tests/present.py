"""What may be absent, where a test knows that it is there."""

from __future__ import annotations

from typing import Protocol, TypeVar

Value = TypeVar("Value")


class Interval(Protocol):
    """A figure, a difference, a test: whatever may have limits."""

    @property
    def low(self) -> float | None: ...

    @property
    def high(self) -> float | None: ...


def present(value: Value | None) -> Value:
    assert value is not None
    return value


def limits(interval: Interval) -> tuple[float, float]:
    return present(interval.low), present(interval.high)


def holds(interval: Interval, truth: float) -> bool:
    """Whether the truth is between the limits, but for rounding."""
    low, high = limits(interval)
    return low - 1e-9 <= truth <= high + 1e-9
