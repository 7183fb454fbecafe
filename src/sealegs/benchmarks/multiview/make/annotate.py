"""Reflect and annotate: a judge writes a schema for a criterion, then describes every document by it.

Of a document that is longer than a prompt may show, the judge reads the beginning; the build counts such
documents. In a list of many documents it is shown less of each, beside its summary.

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

from sealegs.benchmarks.multiview.make.criteria import Criterion
from sealegs.files.package_data import read_json
from sealegs.make.asking import Asking, ask
from sealegs.make.documents import Document
from sealegs.make.grammar import shuffled
from sealegs.text.judge import characters, items
from sealegs.text.prompts import fill, user_prompt
from sealegs.types import Message, Status

REFLECT_TRIES = 3
"""Samples of documents that a judge is shown, one after the other, until it writes a schema."""
REFLECT_TOKENS = 2_048
REFLECT_SAMPLE = 20
"""Documents in such a sample."""
DOCUMENT_CHARACTERS = 8_000
"""Of a document that the judge reads alone or in a triplet."""
LIST_CHARACTERS = 1_000
"""Of a document in a list."""
LONGEST_NAME = 80
LONGEST_NOTE = 600
"""Characters of a summary or a description that a judge wrote."""
LONGEST_PART = 300
"""Characters that are asked for to describe a category or a tag."""
MOST_CATEGORIES, MOST_TAGS = 12, 20
"""As the prompt asks for. A schema with more is used as it is."""


def template(name: str) -> str:
    return read_json(__package__, "prompts.json", type=dict[str, str])[name]


def criterion_prompt(name: str, criterion: Criterion, **slots: str) -> tuple[Message, ...]:
    """The prompt of this name, about a criterion."""
    head = fill(template("criterion"), NAME=criterion.name, DESCRIPTION=criterion.description)
    lines = [head, *(f"- {hint}" for hint in criterion.hints)]
    return user_prompt(template(name), CRITERION="\n".join(lines), **slots)


def shorten(text: str, longest: int = DOCUMENT_CHARACTERS) -> str:
    """The beginning of a text that is too long."""
    return text if len(text) <= longest else f"{text[:longest].rstrip()} […]"


def in_one_line(text: str, longest: int = LONGEST_NOTE) -> str:
    """A text among others: line breaks inside it could pass for its end."""
    return shorten(" ".join(text.split()), longest)


def cut_note(documents: Sequence[Document]) -> list[str]:
    """A warning of what the judge does not read."""
    long = sum(len(document.text) > DOCUMENT_CHARACTERS for document in documents)
    text = f"{long:,} of {len(documents):,} documents are longer than {DOCUMENT_CHARACTERS:,} characters"
    return [f"warning: {text}, of which the judge reads the beginning"] if long else []


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


class Annotated(NamedTuple):
    """A document with its annotation."""

    document: Document
    annotation: Annotation

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
    rng: random.Random,
    counts: Counter[str],
) -> Asking[Schema | None]:
    """A schema from a sample of the documents; from another sample, where no schema can be read."""
    for _ in range(REFLECT_TRIES):
        shown = shuffled(documents, rng)[:REFLECT_SAMPLE]
        listed = "\n".join(
            f"{number}. {in_one_line(document.text, LIST_CHARACTERS)}"
            for number, document in enumerate(shown, 1)
        )
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
    documents: Sequence[Document], criterion: Criterion, schema: Schema, *, role: str, counts: Counter[str]
) -> Asking[list[Annotation]]:
    """The judge's annotation of each document, in order."""
    slots = {
        "CATEGORIES": _list(schema.categories),
        "TAGS": _list(schema.tags),
        "GUIDANCE": schema.guidance,
    }
    names = {
        "category": [part.name for part in schema.categories],
        "tags": [part.name for part in schema.tags],
    }
    annotations: list[Annotation] = []
    prompts = [
        (d.id, criterion_prompt("annotate", criterion, **slots, TEXT=shorten(d.text))) for d in documents
    ]
    choices = [names] * len(prompts)
    for name, verdict in (yield from ask(Description, prompts, counts, choices=choices, role=role)):
        annotation = Annotation(name, status=verdict.status)
        if verdict.value is not None:
            annotation = conform(verdict.value, schema, name, counts)
        annotations.append(annotation)
    counts["annotated"] += sum(annotation.status == "ok" for annotation in annotations)
    return annotations


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
