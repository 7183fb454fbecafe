"""Check: a judge rates each triplet and orders it blind; what it rates low or gets wrong is discarded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from evenkeel.benchmarks.multiview.files import ROLES, Triplet
from evenkeel.benchmarks.multiview.make.annotate import Asking
from evenkeel.benchmarks.multiview.make.criteria import Criterion
from evenkeel.benchmarks.multiview.make.wording import prompts, question, shortened
from evenkeel.benchmarks.multiview.methods import Method
from evenkeel.benchmarks.multiview.ordering import Outcome, by_verdicts
from evenkeel.run import judge


class Rating(Struct, frozen=True):
    """From 1 (invalid) to 5 (ideal)."""

    quality: Literal[1, 2, 3, 4, 5]


def rate(
    triplets: Sequence[Triplet],
    criterion: Criterion,
    *,
    role: str,
    least: int,
    discarded: Counter[str],
) -> Asking[list[Triplet]]:
    """The triplets that the judge rates `least` or better, each with its rating."""
    asked = [
        question(
            prompts().rate,
            criterion,
            **{name.upper(): shortened(text) for name, text in zip(ROLES, triplet.documents, strict=True)},
        )
        for triplet in triplets
    ]
    verdicts = yield from judge.ask(Rating, asked, role=role)
    kept = []
    for triplet, verdict in zip(triplets, verdicts, strict=True):
        if verdict.value is None:
            discarded[f"rating_{verdict.status}"] += 1
        elif verdict.value.quality < least:
            discarded[f"quality_{verdict.value.quality}"] += 1
        else:
            kept.append(replace(triplet, quality=verdict.value.quality))
    return kept


def order_blind(triplets: Sequence[Triplet], *, spec: str, discarded: Counter[str]) -> Asking[list[Triplet]]:
    """The triplets that the judge orders right in both orders, not told which document is which."""
    read = [
        replace(
            triplet, **{name: shortened(text) for name, text in zip(ROLES, triplet.documents, strict=True)}
        )
        for triplet in triplets
    ]
    outcomes = yield from by_verdicts(Method(f"judge:{spec}", "judge", spec=spec), read)
    kept = []
    for triplet, outcome in zip(triplets, outcomes, strict=True):
        if fault := fault_of(outcome):
            discarded[fault] += 1
        else:
            kept.append(triplet)
    return kept


def fault_of(outcome: Outcome) -> str:
    """Why a triplet was not ordered right in both orders; empty where it was."""
    if all(pick == "positive" for pick in outcome.picks):
        return ""
    if "negative" in outcome.picks:
        return "ordered_wrong"
    if "tie" in outcome.picks:
        return "ordered_tie"
    return f"ordering_{next(status for status in outcome.statuses if status != 'ok')}"
