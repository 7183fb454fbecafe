"""multiview's data: triplets, read and written, what a record holds, and results.

A triplet, a line of a data file and of `export/triplets.jsonl`; unknown fields are ignored, since files from
elsewhere often have more:

    {"task":"math__arithmetic","criterion":"arithmetic","description":"The calculation that solves it.",
     "anchor":"Ann has 3 boxes of 4 pens …","positive":"5 rows of 6 seats …","negative":"Ann has 3 pens …",
     "anchor_id":"math-001","positive_id":"math-120","negative_id":"math-077","quality":4,"hard_for":"bm25"}

The results of a run, `export/results.json`, in all and by task:

    {"methods":{"bm25":{"correct":31,"ties":2,"total":80,"accuracy":0.3875}},"tasks":{"math__arithmetic":{…}}}

The `triplets.json` of the public multiview project is read too (`public_format`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from sealegs.benchmarks.multiview import published
from sealegs.benchmarks.multiview.csts import is_pair, pair_fields
from sealegs.benchmarks.multiview.published import Pick
from sealegs.errors import DataError
from sealegs.files.datasets import DataFile
from sealegs.files.tables import Row, json_rows
from sealegs.harness.inputs import Inputs, RowText
from sealegs.types import Records, Tag

ROLES = ("anchor", "positive", "negative")
IDS = tuple(f"{role}_id" for role in ROLES)
NAMES = ("triplets.jsonl", "triplets.json")
PUBLISHED = (*ROLES, *IDS, "criterion", "quality", "task", "description", "hard_for")
"""The fields that every line of `export/triplets.jsonl` has; others are there where they are not empty."""


class Triplet(Inputs, frozen=True, kw_only=True, omit_defaults=True):
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
    """`bm25` where the negative was chosen because it reads like the anchor, so that the chance level of that
    method is not one half."""
    hints: tuple[str, ...] = ()
    instruction: str = ""
    """For embedders that take one; empty: made from the description."""
    anchor_summary: str = ""
    positive_summary: str = ""
    negative_summary: str = ""
    labels: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    """Labels by role and view: `{"anchor": {"arithmetic": "average", "setting": "bakery"}, …}`. They are
    known, or the categories that the judge gave the documents."""
    tags: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """By role: the tags that the judge gave the document."""
    built_by: str = ""
    """The spec of the model that chose and checked the triplet; empty where none did."""
    confirmed_by: str = ""
    """The spec of the second judge that agreed."""
    copies: Annotated[int, Meta(ge=1)] = 1
    """How often the triplet is in the data: copies are one triplet."""

    def row(self, tags: Mapping[str, Tag]) -> RowText:
        return RowText(self.anchor, self.positive, self.criterion)

    def targets(self) -> list[str]:
        return [self.positive]

    @property
    def documents(self) -> tuple[str, str, str]:
        return self.anchor, self.positive, self.negative

    @property
    def docset(self) -> str:
        return self.task.partition("__")[0]


class MultiviewDetail(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is stored of how the methods ordered one triplet, by the name of the method."""

    picks: dict[str, tuple[Pick | None, ...]]
    margins: dict[str, float] = {}
    scores: dict[str, tuple[float, float]] = {}
    """Of the positive and of the negative, by methods that score each."""


def read_triplets(*paths: Path) -> list[Triplet]:
    """All triplets of the files, each once; the first that cannot be used is an error that names its line.

    A triplet whose texts, task, description and instruction are those of an earlier one is a copy of it,
    which is counted. One that has an earlier one's positive as its negative and the reverse, under the same
    task and criterion, contradicts it.
    """
    triplets: dict[tuple[str, ...], Triplet] = {}
    rows: dict[tuple[str, ...], Row] = {}
    for path in paths:
        empty = True
        for row, triplet in _read(path):
            empty = False
            texts = _check_documents(row, triplet)
            view = (triplet.task, triplet.criterion)
            if other := rows.get((*view, texts[0], texts[2], texts[1])):
                where = other.place if other.file == path else f"{other.file}, {other.place}"
                raise row.error(
                    f"this triplet contradicts {where}: positive and negative are swapped, under the task "
                    f"'{triplet.task}'. Remove the one that is wrong."
                )
            rows.setdefault((*view, *texts), row)
            key = (*view, triplet.description, triplet.instruction, *texts)
            if first := triplets.get(key):
                triplet = replace(first, copies=first.copies + triplet.copies)
            triplets[key] = triplet
        if empty:
            raise DataError(path, "there is no triplet in this file.")
    return list(triplets.values())


def _read(path: Path) -> Iterator[tuple[Row, Triplet]]:
    from sealegs.benchmarks.multiview.public_format import public_fields, public_view

    view: dict[str, str] = {}
    rows = list(json_rows(path))
    pairs = bool(rows) and is_pair(rows[0])
    for row, of_pair in pair_fields(rows) if pairs else ((row, row.fields) for row in rows):
        fields = of_pair
        if row.line is None and not pairs:  # the list of the public project
            view = view or public_view(path)
            fields = public_fields(row, view)
        fields = _with_defaults(fields, row.name)
        try:
            yield row, msgspec.convert(fields, Triplet)
        except msgspec.ValidationError as error:
            raise row.invalid(error, fields) from None


def triplet_files(data: Iterable[DataFile]) -> list[Path]:
    """The files that hold triplets: of a folder `triplets.jsonl`, or `triplets.json`, where it is there.

    A folder that `sealegs build` or the public project wrote has further files.
    """
    folders: defaultdict[Path | None, list[Path]] = defaultdict(list)
    for file in data:
        folders[file.folder].append(file.path)
    paths: list[Path] = []
    for folder, files in folders.items():
        named = [path for name in NAMES for path in files if folder and path.name == name]
        paths += named[:1] or files
    return paths


def _check_documents(row: Row, triplet: Triplet) -> tuple[str, str, str]:
    """The three texts without differences of white space; one that is empty or there twice is an error."""
    anchor, positive, negative = (" ".join(text.split()) for text in triplet.documents)
    texts = dict(zip(ROLES, (anchor, positive, negative), strict=True))
    for role, text in texts.items():
        if not text:
            raise row.error(f"the document in the field '{role}' is empty.")
    for one, other in (("anchor", "positive"), ("anchor", "negative"), ("positive", "negative")):
        if texts[one] == texts[other]:
            raise row.error(f"{one} and {other} are the same document: a triplet takes three.")
    return anchor, positive, negative


def _with_defaults(raw: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A file may leave out task and description, which the criterion then names, and ids, which the line
    (`name`) numbers; an id may be a number."""
    names = {"task": raw["criterion"], "description": raw["criterion"]} if "criterion" in raw else {}
    ids = {field: raw.get(field, f"{name}-{role}") for field, role in zip(IDS, ROLES, strict=True)}
    numbers = {field: str(value) for field, value in ids.items() if type(value) is int}
    return {**names, **ids, **raw, **numbers}


def about_triplets(triplets: Iterable[Triplet]) -> dict[str, Any]:
    """What a run's spec says of its triplets: who built and confirmed them, and how many were copies."""
    triplets = list(triplets)
    copies = sum(triplet.copies - 1 for triplet in triplets)
    facts: dict[str, Any] = {"copies": copies} if copies else {}
    for field in ("built_by", "confirmed_by"):
        counts = Counter(spec for triplet in triplets if (spec := getattr(triplet, field)))
        facts |= {field: dict(counts)} if counts else {}
    return facts


def model_name(spec: str) -> str:
    """What two specs of one model have in common: the name without scheme, arguments, folder and case."""
    name = spec.partition("?")[0].rstrip("/")
    return name.partition(":")[2].rpartition("/")[2].casefold() or name.casefold()


def encode_triplets(triplets: Iterable[Triplet]) -> bytes:
    """The content of a triplet file."""
    return b"".join(msgspec.json.encode(triplet) + b"\n" for triplet in triplets)


def published_triplets(records: Records[Triplet, MultiviewDetail]) -> Iterator[bytes]:
    """The lines of `export/triplets.jsonl`: all that a method reads, so that a run of them gives the same."""
    for record in records():
        triplet = record.sample.inputs
        fields = {name: getattr(triplet, name) for name in PUBLISHED} | msgspec.to_builtins(triplet)
        yield msgspec.json.encode(fields) + b"\n"


def published_results(records: Records[Triplet, MultiviewDetail], methods: Sequence[str]) -> Iterator[bytes]:
    """`export/results.json`: correct, ties, total and accuracy for every method, by task and in all.

    Triplets are counted, those that were answered in all orders: one of which a judge is right in one order
    only is half correct.
    """
    tasks: defaultdict[str, defaultdict[str, list[Sequence[Pick | None]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for record in records():
        for method, picks in record.score.detail.picks.items():
            if None not in picks:
                tasks[record.sample.inputs.task][method].append(picks)
    content = {
        "methods": {
            m: published.result([p for by_method in tasks.values() for p in by_method[m]]) for m in methods
        },
        "tasks": {
            task: {method: published.result(by_method[method]) for method in methods}
            for task, by_method in tasks.items()
        },
    }
    yield msgspec.json.format(msgspec.json.encode(content), indent=2)
