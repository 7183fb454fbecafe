"""Triplets confirmed by a second judge, or by a person who orders them blind on a sheet; their agreement.

The sheet is a CSV file with a line for each triplet: the anchor, two documents in an order that does not show
which is the positive, and an empty column `more_alike` for `first`, `second` or `tie`.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from evenkeel import analysis as stats
from evenkeel.benchmarks.multiview.files import Pick, Triplet
from evenkeel.benchmarks.multiview.make.triplets import Dropped, order_blind, ordering_fault
from evenkeel.benchmarks.multiview.methods import Outcome
from evenkeel.errors import DataError
from evenkeel.files.tables import read_rows
from evenkeel.make.asking import Asking
from evenkeel.page.format import harmless

COLUMNS = ("id", "criterion", "description", "anchor", "first", "second", "more_alike")
ANSWERS = ("first", "second", "tie")
PERSON = "person"


class Verdicts(NamedTuple):
    """How a second judge or a person ordered triplets."""

    by: str
    outcomes: Sequence[Outcome | None]
    """For each triplet; None where the person left it open."""
    first: Sequence[tuple[bool, ...]]
    """For each triplet and order in which it was shown: whether the positive came first."""


class Validation(NamedTuple):
    """The triplets that were confirmed or left open, those that were not, and the agreement."""

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
        return f"{text}; {len(self.dropped)} dropped, {facts['open']} left open"


def by_judge(triplets: Sequence[Triplet], spec: str, name: str) -> Asking[Verdicts]:
    """A judge reads the documents whole, as methods under test do, and orders them in both orders."""
    outcomes = yield from order_blind(triplets, spec)
    return Verdicts(name, outcomes, [(True, False)] * len(triplets))


def validate(triplets: Sequence[Triplet], verdicts: Verdicts) -> Validation:
    """Keep what was confirmed in every order that was shown; drop the rest by its reason."""
    confirmed: list[Triplet] = []
    dropped: list[Dropped] = []
    for triplet, outcome in zip(triplets, verdicts.outcomes, strict=True):
        if outcome is None:
            confirmed.append(triplet)
        elif fault := ordering_fault(outcome):
            dropped.append(Dropped(triplet, f"validation_{fault}"))
        else:
            confirmed.append(replace(triplet, confirmed_by=verdicts.by))
    return Validation(confirmed, dropped, agreement(verdicts))


def agreement(verdicts: Verdicts) -> dict[str, Any]:
    """How far the builder and the validator agree, each figure with its interval.

    - `confirmed`: the share of triplets that were ordered as built in every order, of those answered so;
    - `kappa`: Cohen's κ = (p - e) / (1 - e) over all answers, with p the share that name the document which
      the builder calls positive, and e = Σ over first, second and tie of (share in which the builder's answer
      is it) · (share in which the validator's is). Its interval is that of p over triplets, e as observed.
    """
    whole: list[float] = []
    equal: list[float] = []
    groups: list[int] = []
    built: list[str] = []
    answered: list[str] = []
    for index, outcome in enumerate(verdicts.outcomes):
        if outcome is None:
            continue
        if not set(outcome.picks) & {None, "unparsed"}:
            whole.append(float(all(picked == "positive" for picked in outcome.picks)))
        for picked, first in zip(outcome.picks, verdicts.first[index], strict=True):
            if picked in ("positive", "negative", "tie"):
                groups.append(index)
                equal.append(float(picked == "positive"))
                built.append("first" if first else "second")
                answered.append(_position(picked, first=first))
    chance = sum(built.count(name) * answered.count(name) for name in ANSWERS) / max(1, len(built)) ** 2
    share = stats.interval_of(np.array(whole), np.arange(len(whole)), "share")
    equals = stats.interval_of(np.array(equal), np.array(groups, dtype=np.intp), "share")
    kappa = [None if x is None or chance == 1 else (x - chance) / (1 - chance) for x in equals[:3]]
    return {
        "by": verdicts.by,
        "confirmed": _figure(share[:3], share),
        "kappa": _figure(kappa, equals),
        "failed": sum(outcome is not None and None in outcome.picks for outcome in verdicts.outcomes),
        "open": sum(outcome is None for outcome in verdicts.outcomes),
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


def _position(picked: Pick | None, *, first: bool) -> str:
    """The answer by which a document was named: `first`, `second` or `tie`."""
    return "tie" if picked == "tie" else "first" if (picked == "positive") == first else "second"


# The sheet


def sheet(triplets: Sequence[Triplet]) -> bytes:
    """The triplets for a person to order, without a trace of what the builder thinks."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    for triplet in triplets:
        writer.writerow([sheet_id(triplet), *_cells(triplet), ""])
    return file.getvalue().encode("utf-8-sig")  # by the mark, spreadsheets know UTF-8


def _cells(triplet: Triplet) -> list[str]:
    """What is shown of a triplet: criterion, description, anchor and both documents."""
    pair = (triplet.positive, triplet.negative)
    texts = pair if positive_first(triplet) else pair[::-1]
    return [harmless(text) for text in (triplet.criterion, triplet.description, triplet.anchor, *texts)]


def sheet_id(triplet: Triplet) -> str:
    """A name for the triplet that is the same whichever document is the positive."""
    parts = [triplet.task, triplet.anchor, *sorted((triplet.positive, triplet.negative))]
    return _digest("sheet", *parts)[:16]


def positive_first(triplet: Triplet) -> bool:
    """Whether the positive comes first on the sheet: by a hash, so that no key is needed to read it back."""
    return (
        int(_digest("order", triplet.task, triplet.anchor, triplet.positive, triplet.negative), 16) % 2 == 0
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read_sheet(path: Path, triplets: Sequence[Triplet]) -> Verdicts:
    """What a person filled into a sheet; a row that is not of these triplets is an error."""
    known = {sheet_id(triplet): triplet for triplet in triplets}
    answers: dict[str, str] = {}
    for row in read_rows(path):
        name, answer = row.text("id").strip(), row.text("more_alike").strip().lower()
        if name not in known:
            raise row.error(f"'{name}' is not the id of one of these triplets: use the sheet made of them.")
        for column, text in zip(COLUMNS[3:6], _cells(known[name])[2:], strict=True):
            if row.text(column).split() != text.split():
                raise row.error(
                    f"'{column}' is not the text that the sheet had: leave all but more_alike as is."
                )
        if name in answers:
            raise row.error(f"the id '{name}' appears twice.")
        if answer and answer not in ANSWERS:
            raise row.error(f"more_alike is '{answer[:40]}'. Available: {', '.join(ANSWERS)}, or nothing.")
        answers[name] = answer
    if not any(answers.values()):
        raise DataError(path, "nothing is filled in: the column more_alike is empty in every row.")
    outcomes: list[Outcome | None] = []
    for triplet in triplets:
        answer = answers.get(sheet_id(triplet), "")
        choices: dict[str, Pick] = {"first": "positive", "second": "negative"}
        if not positive_first(triplet):
            choices = {"first": "negative", "second": "positive"}
        outcomes.append(Outcome((choices.get(answer, "tie"),), ("ok",)) if answer else None)
    return Verdicts(PERSON, outcomes, [(positive_first(triplet),) for triplet in triplets])
