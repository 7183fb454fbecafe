"""Triplets confirmed by a second judge, which orders them blind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from evenkeel import analysis as stats
from evenkeel.benchmarks.multiview.files import Triplet
from evenkeel.benchmarks.multiview.make.triplets import Dropped, order_blind, ordering_fault
from evenkeel.make.asking import Asking


class Validation(NamedTuple):
    """The triplets that were confirmed, those that were not, and the agreement."""

    triplets: list[Triplet]
    dropped: list[Dropped]
    agreement: dict[str, Any]

    @property
    def note(self) -> str:
        facts = self.agreement["confirmed"]
        share = "none" if facts["value"] is None else f"{facts['value']:.0%}"
        limits = "" if facts["low"] is None else f" [{100 * facts['low']:.0f}, {100 * facts['high']:.0f}]"
        return (
            f"validated by {self.agreement['by']}: {share}{limits} of {facts['n']} triplets confirmed; "
            f"{len(self.dropped)} dropped"
        )


def validate(triplets: Sequence[Triplet], spec: str, name: str) -> Asking[Validation]:
    """Keep what a second judge orders as built in both orders; drop the rest by its reason.

    It reads the documents whole, as methods under test do. `confirmed` is the share of triplets that it
    orders as built, of those that it answered in both orders.
    """
    outcomes = yield from order_blind(triplets, spec)
    confirmed: list[Triplet] = []
    dropped: list[Dropped] = []
    for triplet, outcome in zip(triplets, outcomes, strict=True):
        if fault := ordering_fault(outcome):
            dropped.append(Dropped(triplet, f"validation_{fault}"))
        else:
            confirmed.append(replace(triplet, confirmed_by=name))
    answered = [outcome.picks for outcome in outcomes if None not in outcome.picks]
    equal = np.array([set(picks) == {"positive"} for picks in answered], dtype=float)
    share = stats.interval_of(equal, np.arange(len(equal)), "share")
    figure = {name: getattr(share, name) for name in ("value", "low", "high", "n", "method")}
    agreement = {"by": name, "confirmed": figure, "failed": len(outcomes) - len(answered)}
    return Validation(confirmed, dropped, agreement)
