"""Triplets confirmed by a second judge, which orders them blind, and how far it agrees with the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from evenkeel import analysis as stats
from evenkeel.benchmarks.multiview.files import Triplet
from evenkeel.benchmarks.multiview.make.triplets import Dropped, order_blind, ordering_fault
from evenkeel.benchmarks.multiview.methods import Outcome
from evenkeel.make.asking import Asking


class Validation(NamedTuple):
    """The triplets that were confirmed, those that were not, and the agreement."""

    triplets: list[Triplet]
    dropped: list[Dropped]
    agreement: dict[str, Any]

    @property
    def note(self) -> str:
        facts = self.agreement
        confirmed, kappa = facts["confirmed"], facts["kappa"]
        share = _shown(confirmed, 100, "%")
        text = f"validated by {facts['by']}: {share} of {confirmed['n']} triplets confirmed"
        text += f"; kappa {_shown(kappa)}" if kappa["value"] is not None else ""
        return f"{text}; {len(self.dropped)} dropped"


def validate(triplets: Sequence[Triplet], spec: str, name: str) -> Asking[Validation]:
    """Keep what a second judge orders as built in both orders; drop the rest by its reason.

    It reads the documents whole, as methods under test do.
    """
    outcomes = yield from order_blind(triplets, spec)
    confirmed: list[Triplet] = []
    dropped: list[Dropped] = []
    for triplet, outcome in zip(triplets, outcomes, strict=True):
        if fault := ordering_fault(outcome):
            dropped.append(Dropped(triplet, f"validation_{fault}"))
        else:
            confirmed.append(replace(triplet, confirmed_by=name))
    return Validation(confirmed, dropped, {"by": name, **agreement(outcomes)})


def agreement(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """How far both judges agree over the triplets answered in both orders, each figure with its interval.

    - `confirmed`: the share of triplets that were ordered as built in both orders;
    - `kappa`: Cohen's κ = (p - e) / (1 - e) over the answers, with p the share that name the builder's
      positive, and e = (1 - ties) / 2, since that comes first in one half of them. Its interval is that of p
      over triplets, e as observed.
    """
    answered = [outcome.picks for outcome in outcomes if None not in outcome.picks]
    answers = [pick for picks in answered for pick in picks]
    chance = (1 - answers.count("tie") / len(answers)) / 2 if answers else 1.0
    whole = np.array([set(picks) == {"positive"} for picks in answered], dtype=float)
    equal = np.array([pick == "positive" for pick in answers], dtype=float)
    share = stats.interval_of(whole, np.arange(len(whole)), "share")
    equals = stats.interval_of(equal, np.arange(len(answers)) // 2, "share")
    kappa = [None if x is None or chance == 1 else (x - chance) / (1 - chance) for x in equals[:3]]
    return {
        "confirmed": _figure(share[:3], share),
        "kappa": _figure(kappa, equals),
        "failed": len(outcomes) - len(answered),
    }


def _figure(values: Sequence[float | None], interval: stats.Interval) -> dict[str, Any]:
    value, low, high = values
    return {"value": value, "low": low, "high": high, "n": interval.n, "method": interval.method}


def _shown(figure: Mapping[str, Any], factor: int = 1, unit: str = "") -> str:
    value, low, high = (figure[name] for name in ("value", "low", "high"))
    digits = 0 if unit else 2
    if value is None:
        return "none"
    text = f"{factor * value:.{digits}f}{unit and f' {unit}'}"
    return text if low is None else f"{text} [{factor * low:.{digits}f}, {factor * high:.{digits}f}]"
