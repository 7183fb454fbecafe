"""The table that every benchmark prints: ways of doing the same thing, with their ratio to the first."""

from __future__ import annotations

from typing import TypeAlias

Row: TypeAlias = tuple[str, float, float]
"""A way, its seconds, and its rate (per second)."""


def show(title: str, rows: list[Row]) -> None:
    width = max(len(name) for name, _, _ in rows)
    print(f"\n{title}")
    print(f"{'':{width}}  {'seconds':>9}  {'per second':>11}  {'ratio':>6}")
    for name, seconds, rate in rows:
        print(f"{name:{width}}  {seconds:9.2f}  {rate:11,.0f}  {seconds / rows[0][1]:6.2f}")
