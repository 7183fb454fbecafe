"""A criterion: what it means for documents to be alike, from the command line or a YAML file; its triplets.

arithmetic:
  description: Which operations lead from the numbers given to the answer.
  hints: [Two problems about cakes may differ, …]
  instruction: Represent the arithmetic of this problem
setting: Where the story takes place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from sealegs.benchmarks.multiview.data import ROLES, Triplet
from sealegs.errors import DataError, UsageError
from sealegs.files.jsonfile import convert
from sealegs.files.tables import read_text
from sealegs.files.yamlfile import read_entries
from sealegs.make.documents import Document
from sealegs.page.format import nouns

LONGEST_NAME = 60
SAFE_NAME = re.compile(r"\w(?:[\w.-]*\w)?")


class Criterion(Struct, frozen=True, forbid_unknown_fields=True):
    """What it means to be alike. The name becomes a part of file and task names."""

    name: str
    description: str
    hints: tuple[str, ...] = ()
    instruction: str = ""

    def __post_init__(self) -> None:
        if not SAFE_NAME.fullmatch(self.name) or "__" in self.name or len(self.name) > LONGEST_NAME:
            raise ValueError(
                f"'{self.name}' cannot be the name of a criterion: use letters, digits, '.', '-' and single "
                f"'_', at most {LONGEST_NAME}"
            )
        if not self.description.strip():
            raise ValueError(f"the criterion '{self.name}' has no description")


class Build(NamedTuple):
    """What decides the triplets of a criterion, beside its documents."""

    criterion: Criterion
    docset: str
    number: int
    seed: int = 0


class Dropped(NamedTuple):
    """A triplet that is not part of the set, and why."""

    triplet: Triplet
    reason: str


def dropped_words(dropped: Sequence[Dropped]) -> str:
    """`3 triplets dropped (2 ordered wrong, 1 low quality)`."""
    reasons = Counter(each.reason.replace("_", " ") for each in dropped)
    listed = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())
    return f"{nouns(len(dropped), 'triplets')} dropped{f' ({listed})' if listed else ''}"


class CriterionTriplets(NamedTuple):
    """What came of one criterion."""

    criterion: Criterion
    triplets: list[Triplet]
    counts: Mapping[str, Any]
    """How many documents and triplets were lost at each step."""
    notes: Sequence[str] = ()
    dropped: Sequence[Dropped] = ()
    failures: Sequence[str] = ()
    """What the same command, or another seed, may fix."""
    files: Mapping[str, bytes] = MappingProxyType({})
    """The schema and the annotations behind the triplets."""


def criterion(name: str | None, description: str | None) -> Criterion:
    """A criterion from values of the command line."""
    if not name or not description:
        raise UsageError(
            "a criterion needs a name and a description: --criterion NAME --description TEXT, "
            "or --criteria FILE with many."
        )
    try:
        return Criterion(name, description.strip())
    except ValueError as error:
        raise UsageError(f"{error}.") from None


def label_criteria(fields: Sequence[str], criteria: Sequence[Criterion]) -> list[Criterion]:
    """The criterion of each label field: the one that is given, that of its name, or one made of the name."""
    if len(fields) == len(criteria) == 1:
        return list(criteria)
    by_name = {each.name: each for each in criteria}
    if unused := [name for name in by_name if name not in fields]:
        raise UsageError(
            f"the criterion '{unused[0]}' is not one of the label fields. Available: {', '.join(fields)}."
        )
    chosen = [by_name.get(field) or _label_criterion(field) for field in fields]
    if len({each.name.casefold() for each in chosen}) < len(chosen):
        raise UsageError("--label-field: two of the fields would have the same task.")
    return chosen


def _label_criterion(field: str) -> Criterion:
    """The criterion of a label field that nobody has described."""
    name = re.sub(r"[^\w.-]+|_+", "_", field)[:LONGEST_NAME].strip("_.-")
    return criterion(name or None, f"Whether they have the same {field}.")


def read_criteria(path: Path) -> list[Criterion]:
    """All criteria of a YAML file, in its order."""
    entries = read_entries(path, read_text(path))
    if not entries:
        raise DataError(path, "expected criteria: a mapping from their names.")
    criteria: list[Criterion] = []
    for line, name, body in entries:
        fields = {"description": body} if isinstance(body, str) else body
        if not isinstance(fields, dict):
            raise DataError(path, "expected a criterion: a mapping with 'description'.", line=line)
        criteria.append(convert(path, {"name": name, **fields}, Criterion, line=line))
    return criteria


def portable_spec(spec: str | None) -> str | None:
    """A model's spec without arguments and paths of this machine: of an absolute path only the last part."""
    if not spec:
        return spec
    spec = spec.partition("?")[0]
    scheme, colon, name = spec.partition(":")
    return f"{scheme}{colon}{Path(name).name}" if Path(name).is_absolute() else spec


def readable(record: Any) -> bytes:
    """The content of a JSON file that people read."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


def task_name(docset: str, criterion: str) -> str:
    return f"{docset}__{criterion}"


def make_triplet(
    docset: str,
    criterion: Criterion,
    documents: tuple[Document, Document, Document],
    *,
    labels: Sequence[dict[str, str]] | None = None,
    hard_for: str = "",
) -> Triplet:
    """Anchor, positive and negative as a line of the triplet file."""
    anchor, positive, negative = documents
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
