"""Reflect and annotate: a judge writes a schema for a criterion, then describes every document by it.

A document that is longer than a prompt may show is read whole all the same: in parts, each described by the
schema, and the descriptions together are described again. In place of such a document, the judge is shown
later what was noted of its parts. In a list of many documents it is shown excerpts beside a summary.

What a judge writes is untrusted text: it is shortened, counts only where the schema has the same name, and
never decides where anything is written.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated as Bounded
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from evenkeel.benchmarks.multiview.make.criteria import Criterion
from evenkeel.files.package_data import read_json
from evenkeel.make.asking import Asking, ask
from evenkeel.make.documents import Document
from evenkeel.make.grammar import shuffled
from evenkeel.text.judge import characters, items
from evenkeel.text.prompts import fill, user_prompt
from evenkeel.types import Message, Status

REFLECT_TRIES = 3
"""Samples of documents that a judge is shown, one after the other, until it writes a schema."""
REFLECT_TOKENS = 2_048
PORTION = 5_000
"""Documents annotated at a time: enough to keep a server busy, few enough for memory."""
LONGEST_NAME = 80
LONGEST_NOTE = 600
"""Characters of a summary or a description that a judge wrote."""
LONGEST_PART = 300
"""Characters that are asked for to describe a category or a tag."""
MOST_CATEGORIES, MOST_TAGS = 12, 20
"""As the prompt asks for. A schema with more is used as it is."""
GAP = " […] "
"""Between the excerpts of a document."""
EXCERPTS = 3


def template(name: str) -> str:
    return read_json(__package__, "prompts.json", type=dict[str, str])[name]


def criterion_prompt(name: str, criterion: Criterion, **slots: str) -> tuple[Message, ...]:
    """The prompt of this name, about a criterion."""
    head = fill(template("criterion"), NAME=criterion.name, DESCRIPTION=criterion.description)
    lines = [head, *(f"- {hint}" for hint in criterion.hints)]
    return user_prompt(template(name), CRITERION="\n".join(lines), **slots)


def shorten(text: str, longest: int = LONGEST_NOTE) -> str:
    """A text that a judge wrote, not too long."""
    return text if len(text) <= longest else f"{text[:longest].rstrip()} […]"


def in_one_line(text: str, longest: int = LONGEST_NOTE) -> str:
    """A text among others: line breaks inside it could pass for its end."""
    return shorten(" ".join(text.split()), longest)


def excerpts(text: str, longest: int) -> str:
    """A document among many, in one line: whole, or as pieces from its beginning, its middle and its end."""
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    size = max(1, (longest - (EXCERPTS - 1) * len(GAP)) // EXCERPTS)
    pieces = []
    for number in range(EXCERPTS):
        start = (len(line) - size) * number // (EXCERPTS - 1)
        piece = line[start : start + size]
        # Words that are cut are left out, where there are others.
        if start and line[start - 1] != " ":
            piece = piece.partition(" ")[2] or piece
        if start + size < len(line) and line[start + size] != " ":
            piece = piece.rpartition(" ")[0] or piece
        pieces.append(piece.strip())
    return GAP.join(pieces)


def split_in_parts(text: str, longest: int) -> list[str]:
    """A document in parts of at most so many characters, cut between paragraphs, sentences or words."""
    parts = []
    start = 0
    while len(text) - start > longest:
        window = text[start : start + longest]
        half = longest // 2
        ends = (window.rfind(mark, half) + len(mark) for mark in ("\n\n", "\n", ". ", " "))
        end = next((end for end in ends if end > half), longest)
        parts.append(window[:end])
        start += end
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


# The judge reads the names, fields and docstrings of the structs that it fills in.


class Named(Struct, frozen=True):
    """A category or a tag."""

    name: Bounded[str, characters(LONGEST_NAME, least=1)]
    description: Bounded[str, characters(LONGEST_PART)] = ""


class Schema(Struct, frozen=True):
    """How documents are described under a criterion."""

    categories: Bounded[tuple[Named, ...], items(MOST_CATEGORIES, least=1)] = ()
    tags: Bounded[tuple[Named, ...], items(MOST_TAGS, least=1)] = ()
    guidance: Bounded[str, characters(LONGEST_NOTE)] = ""

    def __post_init__(self) -> None:
        if not any(part.name.strip() for part in (*self.categories, *self.tags)):
            raise ValueError("there are neither categories nor tags in it")


class Description(Struct, frozen=True):
    """How a document stands to the criterion."""

    category: str = ""
    tags: tuple[str, ...] = ()
    summary: Bounded[str, characters(LONGEST_NOTE, least=1)] = ""

    def __post_init__(self) -> None:
        if not self.summary.strip():
            raise ValueError("the summary is empty")


class Annotation(Struct, frozen=True):
    """A line of `annotations.jsonl`; only one with the status `ok` has a category, tags and a summary."""

    id: str
    category: str = ""
    tags: tuple[str, ...] = ()
    summary: str = ""
    status: Status = "ok"
    parts: int = 1
    """In how many parts the judge read the document."""
    notes: str = ""
    """What was noted of the parts, which is shown to the judge in place of a document that is too long."""


class Annotated(NamedTuple):
    """A document with its annotation."""

    document: Document
    annotation: Annotation

    @property
    def shown(self) -> str:
        """What the judge is shown of the document alone: all of it, or the notes on all of its parts."""
        return self.annotation.notes or self.document.text

    def traits(self, schema: Schema) -> tuple[str, ...]:
        """What documents are compared by: their tags; their category, under a schema without tags."""
        if schema.tags:
            return self.annotation.tags
        return (self.annotation.category,) if self.annotation.category else ()


def reflect(
    documents: Sequence[Document],
    criterion: Criterion,
    *,
    role: str,
    sample: int,
    longest: int,
    rng: random.Random,
    counts: Counter[str],
) -> Asking[Schema | None]:
    """A schema from a sample of the documents; from another sample, where no schema can be read."""
    for _ in range(REFLECT_TRIES):
        shown = shuffled(documents, rng)[:sample]
        listed = "\n".join(f"{number}. {excerpts(d.text, longest)}" for number, d in enumerate(shown, 1))
        prompt = criterion_prompt("reflect", criterion, DOCUMENTS=listed)
        answers = yield from ask(Schema, [(criterion, prompt)], counts, role=role, max_tokens=REFLECT_TOKENS)
        ((_, verdict),) = answers
        counts["asked"] += 1
        if verdict.value is not None:
            schema = tidy(verdict.value)
            counts.update(categories=len(schema.categories), tags=len(schema.tags))
            return schema
        if verdict.status == "error":  # the next build asks the same again
            break
    return None


def tidy(schema: Schema) -> Schema:
    """The schema with short names, each once."""
    return Schema(_distinct(schema.categories), _distinct(schema.tags), in_one_line(schema.guidance))


def _distinct(parts: Iterable[Named]) -> tuple[Named, ...]:
    distinct: dict[str, Named] = {}
    for part in parts:
        name = in_one_line(part.name, LONGEST_NAME)
        if name:
            distinct.setdefault(name.casefold(), Named(name, in_one_line(part.description)))
    return tuple(distinct.values())


def annotate(
    documents: Sequence[Document],
    criterion: Criterion,
    schema: Schema,
    *,
    role: str,
    longest: int,
    counts: Counter[str],
) -> Asking[list[Annotation]]:
    """The judge's annotation of each document, in order."""
    annotations: list[Annotation] = []
    for start in range(0, len(documents), PORTION):
        portion = [(d.id, d.text) for d in documents[start : start + PORTION]]
        annotations += yield from _describe(portion, criterion, schema, role, longest, counts)
    counts["annotated"] += sum(annotation.status == "ok" for annotation in annotations)
    return annotations


def _describe(
    texts: Sequence[tuple[str, str]],
    criterion: Criterion,
    schema: Schema,
    role: str,
    longest: int,
    counts: Counter[str],
) -> Asking[list[Annotation]]:
    """The annotation of each text, given with the id of its document.

    The notes on the parts of a text are described like a text, in parts again if they are too long. They are
    at most half as long as the text, so that this comes to an end.
    """
    slots = {
        "CATEGORIES": _list(schema.categories),
        "TAGS": _list(schema.tags),
        "GUIDANCE": schema.guidance,
    }
    split = [split_in_parts(text, longest) for _, text in texts]
    prompts = []
    for index, parts in enumerate(split):
        counts["parts"] += len(parts) if len(parts) > 1 else 0
        for number, part in enumerate(parts, 1):
            if len(parts) > 1:
                part = fill(template("part"), NUMBER=str(number), COUNT=str(len(parts)), TEXT=part)
            prompts.append((index, criterion_prompt("annotate", criterion, **slots, TEXT=part)))
    described: list[list[Annotation]] = [[] for _ in texts]
    names = {
        "category": [part.name for part in schema.categories],
        "tags": [part.name for part in schema.tags],
    }
    choices = [names] * len(prompts)
    for index, verdict in (yield from ask(Description, prompts, counts, choices=choices, role=role)):
        name = texts[index][0]
        annotation = Annotation(name, status=verdict.status)
        if verdict.value is not None:
            annotation = conform(verdict.value, schema, name, counts)
        described[index].append(annotation)
    annotations = [_failed(of_parts) or of_parts[0] for of_parts in described]
    in_parts = [i for i, of_parts in enumerate(described) if len(of_parts) > 1 and not _failed(of_parts)]
    if in_parts:
        notes = {index: _notes(described[index], longest // 4) for index in in_parts}
        listed = [(texts[index][0], text) for index, text in notes.items()]
        merged = yield from _describe(listed, criterion, schema, role, longest, counts)
        for index, annotation in zip(in_parts, merged, strict=True):
            text = annotation.notes or notes[index]
            annotations[index] = replace(annotation, parts=len(described[index]), notes=text)
    return annotations


def _failed(of_parts: Sequence[Annotation]) -> Annotation | None:
    """The first part that could not be described: without it the document was not read whole."""
    return next((annotation for annotation in of_parts if annotation.status != "ok"), None)


def _notes(of_parts: Sequence[Annotation], longest: int) -> str:
    """What was noted of the parts of a document, a line each."""
    lines = [
        fill(
            template("part_line"),
            NUMBER=str(number),
            CATEGORY=part.category or "none",
            TAGS=", ".join(part.tags) or "none",
            SUMMARY=part.summary,
        )
        for number, part in enumerate(of_parts, 1)
    ]
    text = "\n".join(shorten(line, longest - len(GAP)) for line in lines)
    return fill(template("parts"), COUNT=str(len(of_parts)), PARTS=text)


def _list(parts: Iterable[Named]) -> str:
    lines = [f"- {part.name}: {part.description}" if part.description else f"- {part.name}" for part in parts]
    return "\n".join(lines) or template("none")


def conform(description: Description, schema: Schema, document: str, counts: Counter[str]) -> Annotation:
    """A description as far as it uses the schema's names: others are dropped and counted."""
    categories = {part.name.casefold(): part.name for part in schema.categories}
    tags = {part.name.casefold(): part.name for part in schema.tags}
    category = _key(description.category)
    keys = list(dict.fromkeys(filter(None, map(_key, description.tags))))
    counts["unknown_categories"] += bool(category) and category not in categories
    counts["unknown_tags"] += sum(key not in tags for key in keys)
    return Annotation(
        document,
        categories.get(category, ""),
        tuple(tags[key] for key in keys if key in tags),
        in_one_line(description.summary),
    )


def _key(name: str) -> str:
    return in_one_line(name, LONGEST_NAME).casefold()
