"""The phrase banks that MIRAE prompts are composed from: what is in them, and how they are read.

A language is a folder `bank/<code>/` of six files: `connectives.json`, shared by all topics;
`factual.json`, `analytical.json`, `opinion.json` and `creative.json`, ten questions each with their
material; and `generic.json`, material for any other question.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, get_args

from msgspec import Struct

from evenkeel.errors import UsageError
from evenkeel.files.package_data import data_path, read_json

Domain: TypeAlias = Literal["FACTUAL", "ANALYTICAL", "OPINION", "CREATIVE"]
DOMAINS: tuple[Domain, ...] = get_args(Domain)
Kind: TypeAlias = Literal["situation", "purpose", "background", "consideration", "constraint", "form"]
KINDS: tuple[Kind, ...] = get_args(Kind)
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
    """A question of the starter set, with its material."""

    id: int
    domain: Domain
    question: str
    answer: tuple[str, ...] = ()
    """Words of the right answer that the material must not give away (checked by a test)."""


class Connectives(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The phrases that every topic of a language shares, as templates with the slot `{topic}`."""

    name: str
    """The language as the published files write it."""
    gap: str
    """What separates two sentences: a space, or nothing in Chinese."""
    openings: dict[Kind, tuple[str, ...]]
    """Whole sentences that open a kind's first paragraph."""
    further: dict[Kind, tuple[str, ...]]
    """Whole sentences that open its later paragraphs."""
    links: dict[Kind, tuple[str, ...]]
    """Words before a sentence that is not the first of its paragraph, with their comma."""
    asks: tuple[str, ...]
    """Whole sentences that lead to the question; they must fit a question and a request alike."""


class Bank(NamedTuple):
    """What the levels of one question in one language are made of."""

    connectives: Connectives
    material: Material


def languages() -> list[str]:
    """The codes of the languages that have a bank."""
    return sorted(folder.name for folder in data_path(__package__, "bank").iterdir() if folder.is_dir())


def connectives(language: str) -> Connectives:
    if language not in languages():
        raise UsageError(f"MIRAE has no phrase bank in '{language}'. Available: {', '.join(languages())}.")
    return read_json(__package__, "bank", language, "connectives.json", type=Connectives)


def topics(language: str) -> list[Topic]:
    """The questions of the starter set, in the order of their ids."""
    by_domain = [
        read_json(__package__, "bank", language, f"{domain.lower()}.json", type=tuple[Topic, ...])
        for domain in DOMAINS
    ]
    return sorted((topic for group in by_domain for topic in group), key=lambda topic: topic.id)


def generic_bank(language: str) -> Bank:
    """Material that fits any question."""
    shared = connectives(language)
    return Bank(shared, read_json(__package__, "bank", language, "generic.json", type=Material))
