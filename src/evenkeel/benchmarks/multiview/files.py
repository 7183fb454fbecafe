"""The triplet file, read and written: JSON lines of an anchor, a document alike under the criterion, and one
that is not.

    {"task": "math__arithmetic", "criterion": "arithmetic", "description": "…",
     "anchor": "…", "positive": "…", "negative": "…",
     "anchor_id": "math-001", "positive_id": "math-120", "negative_id": "math-077", …}

Unknown fields are ignored: files from elsewhere often have more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from evenkeel.errors import DataError
from evenkeel.files.jsonfile import convert, json_lines
from evenkeel.types import Records

Pick: TypeAlias = Literal["positive", "negative", "tie", "unparsed"]

ROLES = ("anchor", "positive", "negative")
IDS = tuple(f"{role}_id" for role in ROLES)
PUBLISHED = (*ROLES, *IDS, "criterion", "quality", "task", "description", "hard_for")
"""The fields of an exported triplet. Without the last three the file, read again, would make other tasks,
prompts and notes."""


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

    @property
    def docset(self) -> str:
        return self.task.partition("__")[0]


class MultiviewDetail(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is stored of how the methods ordered one triplet, by the name of the method."""

    picks: dict[str, tuple[Pick | None, ...]]
    orders: dict[str, tuple[Pick | None, ...]] = {}
    margins: dict[str, float] = {}
    x: float | None = None
    """Where the anchor lies on the two principal components of the documents' embeddings."""
    y: float | None = None
    views: dict[str, str] = {}
    """The anchor's known labels, by view."""


def read_triplets(path: Path) -> list[Triplet]:
    """All triplets of a file; the first that cannot be used is an error that names its line."""
    triplets = []
    for line, raw in json_lines(path):
        fields = _with_defaults(raw, line) if isinstance(raw, dict) else raw
        triplet: Triplet = convert(path, fields, Triplet, line=line)
        for role, text in zip(ROLES, triplet.documents, strict=True):
            if not text.strip():
                raise DataError(path, "the document is empty.", line=line, where=f"field '{role}'")
        triplets.append(triplet)
    if not triplets:
        raise DataError(path, "there is no triplet in this file.")
    return triplets


def _with_defaults(raw: dict[str, Any], line: int) -> dict[str, Any]:
    """A file may leave out task and description, which the criterion then names, and ids, which the line
    numbers; an id may be a number."""
    names = {"task": raw["criterion"], "description": raw["criterion"]} if "criterion" in raw else {}
    ids = {name: raw.get(name, f"{line}-{role}") for name, role in zip(IDS, ROLES, strict=True)}
    numbers = {name: str(value) for name, value in ids.items() if isinstance(value, int)}
    return {**names, **ids, **raw, **numbers}


def encode_triplets(triplets: Iterable[Triplet]) -> bytes:
    """The content of a triplet file."""
    return b"".join(msgspec.json.encode(triplet) + b"\n" for triplet in triplets)


def published_triplets(records: Records[Triplet, MultiviewDetail]) -> Iterator[bytes]:
    """The lines of `export/triplets.jsonl`."""
    for record in records():
        fields = {name: getattr(record.sample.inputs, name) for name in PUBLISHED}
        yield msgspec.json.encode(fields) + b"\n"


def published_results(records: Records[Triplet, MultiviewDetail], methods: Sequence[str]) -> Iterator[bytes]:
    """`export/results.json`: correct, ties, total and accuracy for every method, by task and in all.

    As in the summary, a triplet counts where it was answered in all orders.
    """
    picks: defaultdict[str, defaultdict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for record in records():
        for method, picked in record.score.detail.picks.items():
            for scope in ("all", record.sample.inputs.task):
                picks[scope][method].update(pick for pick in picked if pick and None not in picked)
    results = {
        scope: {method: _result(by_method[method]) for method in methods}
        for scope, by_method in picks.items()
    }
    content = {"methods": results.pop("all", {}), "tasks": results}
    yield msgspec.json.format(msgspec.json.encode(content), indent=2)


def _result(picks: Counter[str]) -> dict[str, float | None]:
    total = picks.total()
    return {
        "correct": picks["positive"],
        "ties": picks["tie"],
        "unparsed": picks["unparsed"],
        "total": total,
        "accuracy": picks["positive"] / total if total else None,
    }
