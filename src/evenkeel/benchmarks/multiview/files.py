"""The triplet file: JSON lines of an anchor, a document alike under the criterion, and one that is not.

    {"task": "math__arithmetic", "criterion": "arithmetic", "description": "…",
     "anchor": "…", "positive": "…", "negative": "…",
     "anchor_id": "math-001", "positive_id": "math-120", "negative_id": "math-077", …}

Fields that are not known here are passed over: files from elsewhere often carry more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from evenkeel.benchmarks.multiview.make.criteria import Criterion
from evenkeel.errors import DataError
from evenkeel.files.jsonfile import convert, json_lines
from evenkeel.make.documents import Document

ROLES = ("anchor", "positive", "negative")


class Triplet(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One triplet. Under the criterion the anchor is more alike to the positive than to the negative."""

    task: str
    """`docset__criterion`, as in `gsm8k__arithmetic`; figures are given for each task."""
    criterion: str
    description: str
    anchor: str
    positive: str
    negative: str
    anchor_id: str
    positive_id: str
    negative_id: str
    quality: int | None = None
    """The judge's rating from 1 (invalid) to 5 (ideal), where there was one."""
    hard_for: str = ""
    """`bm25` where the negative was chosen to look alike: the chance level of that method is not one half."""
    hints: tuple[str, ...] = ()
    instruction: str = ""
    """For embedders that take one; empty: made from the description."""
    anchor_summary: str = ""
    positive_summary: str = ""
    negative_summary: str = ""
    labels: dict[str, dict[str, str]] = {}
    """Known labels by role and view: `{"anchor": {"arithmetic": "average", "setting": "bakery"}, …}`."""

    @property
    def documents(self) -> tuple[str, str, str]:
        return self.anchor, self.positive, self.negative


def task_name(docset: str, criterion: str) -> str:
    return f"{docset}__{criterion}"


def make_triplet(
    docset: str,
    criterion: Criterion,
    chosen: tuple[Document, Document, Document],
    *,
    labels: Sequence[dict[str, str]] | None = None,
    hard_for: str = "",
) -> Triplet:
    """Anchor, positive and negative as a line of the triplet file."""
    anchor, positive, negative = chosen
    return Triplet(
        task=task_name(docset, criterion.name),
        criterion=criterion.name,
        description=criterion.description,
        anchor=anchor.text,
        positive=positive.text,
        negative=negative.text,
        anchor_id=anchor.id,
        positive_id=positive.id,
        negative_id=negative.id,
        hard_for=hard_for,
        hints=criterion.hints,
        instruction=criterion.instruction,
        labels=dict(zip(ROLES, labels, strict=True)) if labels else {},
    )


def read_triplets(path: Path) -> list[Triplet]:
    """All triplets of a file; the first that cannot be used is an error that names its line."""
    triplets = []
    for line, raw in json_lines(path):
        triplet: Triplet = convert(
            path, completed(raw, line) if isinstance(raw, dict) else raw, Triplet, line=line
        )
        for role in ROLES:
            if not getattr(triplet, role).strip():
                raise DataError(path, "the document is empty.", line=line, where=f"field '{role}'")
        triplets.append(triplet)
    if not triplets:
        raise DataError(path, "there is no triplet in this file.")
    return triplets


def completed(raw: dict[str, Any], line: int) -> dict[str, Any]:
    """With what a file of bare triplets may leave out: the criterion tells the task, the line the ids."""
    told = {"task": raw["criterion"], "description": raw["criterion"]} if "criterion" in raw else {}
    ids = {f"{role}_id": raw.get(f"{role}_id", f"{line}-{role}") for role in ROLES}
    numbered = {name: str(own) for name, own in ids.items() if isinstance(own, int)}
    return {**told, **ids, **raw, **numbered}


def encode_triplets(triplets: Iterable[Triplet]) -> bytes:
    """The content of a triplet file."""
    return b"".join(msgspec.json.encode(triplet) + b"\n" for triplet in triplets)
