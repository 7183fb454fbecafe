"""The phrase banks that MIRAE prompts are composed from: what is in them, and how they are read.

A language is a folder `bank/<code>/` of six files: `connectives.json`, shared by all topics;
`factual.json`, `analytical.json`, `opinion.json` and `creative.json`, ten questions each with material
of their own; and `generic.json`, material for any other question.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from evenkeel.errors import DataError, UsageError
from evenkeel.files.jsonfile import read_json

DOMAINS = ("FACTUAL", "ANALYTICAL", "OPINION", "CREATIVE")
BANK = Path(__file__).with_name("bank")
BANK_FILES = ("connectives.json", "generic.json", *(f"{domain.lower()}.json" for domain in DOMAINS))

Kind: TypeAlias = Literal["situation", "purpose", "background", "consideration", "constraint", "form"]
KINDS: tuple[Kind, ...] = ("situation", "purpose", "background", "consideration", "constraint", "form")
Paragraphs: TypeAlias = tuple[tuple[str, ...], ...]


class Material(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person who asks may say about one topic: per kind, paragraphs of sentences.

    Any subset of the sentences, in any order of the paragraphs, must read well and hold together.
    """

    topic: str
    """A noun phrase that fits after "about"."""
    askers: tuple[str, ...]
    """Who is asking. Alternatives: one is used for all levels of a question."""
    situation: Paragraphs
    purpose: Paragraphs
    background: Paragraphs
    consideration: Paragraphs
    constraint: Paragraphs
    form: Paragraphs


class Topic(Material, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question of the starter set, with material of its own."""

    id: int
    domain: Literal["FACTUAL", "ANALYTICAL", "OPINION", "CREATIVE"]
    question: str
    answer: tuple[str, ...] = ()
    """Words of the right answer that the material must not give away (checked by a test)."""


class Connectives(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The phrases that every topic of a language shares. `{topic}` stands for the topic's name."""

    name: str
    """The language as the published files write it."""
    gap: str
    """What stands between two sentences: a space, or nothing in Chinese."""
    openings: dict[Kind, tuple[str, ...]]
    """Whole sentences that open a kind's first paragraph."""
    further: dict[Kind, tuple[str, ...]]
    """Whole sentences that open its later paragraphs."""
    links: dict[Kind, tuple[str, ...]]
    """Words before a sentence that is not the first of its paragraph, with their comma."""
    asks: tuple[str, ...]
    """Whole sentences that lead to the question; they must fit a question and a request alike."""


class Bank(NamedTuple):
    """All that levels are made of, for one topic in one language."""

    connectives: Connectives
    material: Material


def languages() -> list[str]:
    """The languages that have a whole bank, as their codes."""
    return sorted(
        folder.name for folder in BANK.iterdir() if all((folder / name).is_file() for name in BANK_FILES)
    )


def _folder(language: str) -> Path:
    if language not in languages():
        raise UsageError(
            f"MIRAE has no phrase bank for the language '{language}'. It has: {', '.join(languages())}."
        )
    return BANK / language


@cache
def connectives(language: str) -> Connectives:
    found: Connectives = read_json(_folder(language) / "connectives.json", Connectives)
    return found


@cache
def topics(language: str) -> tuple[Topic, ...]:
    """The questions of the starter set, in the order of their ids."""
    found: list[Topic] = []
    for domain in DOMAINS:
        path = _folder(language) / f"{domain.lower()}.json"
        of_domain = read_json(path, tuple[Topic, ...])
        stray = [topic.id for topic in of_domain if topic.domain != domain]
        if stray:
            raise DataError(path, f"question {stray[0]} is not {domain}")
        found += of_domain
    return tuple(sorted(found, key=lambda topic: topic.id))


def generic_bank(language: str) -> Bank:
    """Material that fits any question, for questions of a person's own."""
    return Bank(connectives(language), read_json(_folder(language) / "generic.json", Material))
