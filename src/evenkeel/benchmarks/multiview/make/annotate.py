"""Reflect and annotate: a judge writes a schema for a criterion, then describes every document by it.

What a judge writes is text from elsewhere: it is kept short, taken only where it is one of the names that the
schema has, and never decides where anything is written.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

from evenkeel.benchmarks.multiview.make.criteria import Criterion
from evenkeel.benchmarks.multiview.make.wording import LISTED, in_a_line, prompts, question, shortened
from evenkeel.make.documents import Document
from evenkeel.make.grammar import shuffled
from evenkeel.run import judge
from evenkeel.types import Request, Response, Status

REFLECT_TRIES = 3
"""Samples of documents that a judge is shown before it is given up on."""
REFLECT_TOKENS = 2_048
PORTION = 5_000
"""Documents annotated at a time: enough to keep a server busy, few enough for memory."""
LONGEST_NAME = 80

T = TypeVar("T")
Asking: TypeAlias = Generator[Sequence[Request], Sequence[Response], T]


class Named(Struct, frozen=True):
    """A category or a tag."""

    name: str
    description: str = ""


class Schema(Struct, frozen=True):
    """How documents are described under a criterion."""

    categories: tuple[Named, ...] = ()
    tags: tuple[Named, ...] = ()
    guidance: str = ""

    def __post_init__(self) -> None:
        if not any(part.name.strip() for part in (*self.categories, *self.tags)):
            raise ValueError("there are neither categories nor tags in it")


class Description(Struct, frozen=True):
    """How a document stands to the criterion."""

    category: str = ""
    tags: tuple[str, ...] = ()
    summary: str = ""

    def __post_init__(self) -> None:
        if not self.summary.strip():
            raise ValueError("the summary is empty")


class Annotation(Struct, frozen=True):
    """A line of `annotations.jsonl`; only one whose status is `ok` says anything."""

    id: str
    category: str = ""
    tags: tuple[str, ...] = ()
    summary: str = ""
    status: Status = "ok"


class Noted(NamedTuple):
    """A document and what the judge noted of it."""

    document: Document
    annotation: Annotation

    def traits(self, schema: Schema) -> tuple[str, ...]:
        """What documents are compared by: their tags; their category, under a schema that has no tags."""
        if schema.tags:
            return self.annotation.tags
        return (self.annotation.category,) if self.annotation.category else ()


def reflect(
    documents: Sequence[Document],
    criterion: Criterion,
    *,
    role: str,
    sample: int,
    rng: random.Random,
    counts: Counter[str],
) -> Asking[Schema | None]:
    """A schema from a sample of the documents; from another sample, where the answer is none."""
    for _ in range(REFLECT_TRIES):
        shown = shuffled(documents, rng)[:sample]
        listed = "\n".join(f"{number}. {in_a_line(d.text)}" for number, d in enumerate(shown, 1))
        asked = question(prompts().reflect, criterion, DOCUMENTS=listed)
        (verdict,) = yield from judge.ask(Schema, [asked], role=role, max_tokens=REFLECT_TOKENS)
        counts["asked"] += 1
        if verdict.value is not None:
            schema = tidied(verdict.value)
            counts.update(categories=len(schema.categories), tags=len(schema.tags))
            return schema
        counts[verdict.status] += 1
        if verdict.status == "error":  # the next run asks the same again
            break
    return None


def tidied(schema: Schema) -> Schema:
    """The schema with short names, each there once."""
    return Schema(
        _distinct(schema.categories), _distinct(schema.tags), in_a_line(schema.guidance, longest=LISTED)
    )


def _distinct(parts: Iterable[Named]) -> tuple[Named, ...]:
    found: dict[str, Named] = {}
    for part in parts:
        named = Named(in_a_line(part.name, LONGEST_NAME), in_a_line(part.description))
        if named.name:
            found.setdefault(named.name.casefold(), named)
    return tuple(found.values())


def annotate(
    documents: Sequence[Document], criterion: Criterion, schema: Schema, *, role: str, counts: Counter[str]
) -> Asking[list[Annotation]]:
    """What the judge notes of each document, in order."""
    places = {
        "CATEGORIES": _listed(schema.categories),
        "TAGS": _listed(schema.tags),
        "GUIDANCE": schema.guidance,
    }
    annotations: list[Annotation] = []
    for start in range(0, len(documents), PORTION):
        portion = documents[start : start + PORTION]
        asked = [
            question(prompts().annotate, criterion, **places, TEXT=shortened(document.text))
            for document in portion
        ]
        verdicts = yield from judge.ask(Description, asked, role=role)
        for document, verdict in zip(portion, verdicts, strict=True):
            counts["annotated" if verdict.value else verdict.status] += 1
            annotations.append(
                within(schema, document.id, verdict.value, counts)
                if verdict.value
                else Annotation(document.id, status=verdict.status)
            )
    return annotations


def _listed(parts: Iterable[Named]) -> str:
    lines = [f"- {part.name}: {part.description}" if part.description else f"- {part.name}" for part in parts]
    return "\n".join(lines) or prompts().none


def within(schema: Schema, document: str, said: Description, counts: Counter[str]) -> Annotation:
    """What was said, as far as the schema has it: other names are dropped and counted."""
    categories = {part.name.casefold(): part.name for part in schema.categories}
    tags = {part.name.casefold(): part.name for part in schema.tags}
    category = _key(said.category)
    named = list(dict.fromkeys(filter(None, map(_key, said.tags))))
    counts["unknown_categories"] += bool(category) and category not in categories
    counts["unknown_tags"] += sum(tag not in tags for tag in named)
    return Annotation(
        document,
        categories.get(category, ""),
        tuple(tags[tag] for tag in named if tag in tags),
        in_a_line(said.summary),
    )


def _key(name: str) -> str:
    return in_a_line(name, LONGEST_NAME).casefold()
