"""The phrase banks that MIRAE prompts are composed from: what is in them, and how they are read.

A language is a folder `bank/<code>/` of six files: `connectives.json`, shared by all topics;
`factual.json`, `analytical.json`, `opinion.json` and `creative.json`, ten questions each with their
material; and `generic.json`, material with the slot `{topic}` that fits any question. The banks are
parallel: the same place in the files of two languages says the same thing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias, get_args

from msgspec import Struct

from evenkeel.errors import UsageError
from evenkeel.files.package_data import data_path, read_json
from evenkeel.make.grammar import fill

Domain: TypeAlias = Literal["FACTUAL", "ANALYTICAL", "OPINION", "CREATIVE"]
DOMAINS: tuple[Domain, ...] = get_args(Domain)
Kind: TypeAlias = Literal[
    "situation", "purpose", "background", "aspect", "consideration", "constraint", "form"
]
KINDS: tuple[Kind, ...] = get_args(Kind)
Padding: TypeAlias = Literal["neutral", "elaborate"]
PADDINGS: dict[Padding, tuple[Kind, ...]] = {
    "neutral": ("situation", "background"),
    "elaborate": ("purpose", "aspect", "consideration", "constraint", "form"),
}
"""What surrounds the question, beside the sentence that says who asks.

`neutral` adds no wish, so that the ideal answer stays the same; `elaborate` adds demands: further aspects of
the question, doubts, limits and wishes.
"""
Paragraphs: TypeAlias = tuple[tuple[str, ...], ...]


class Material(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person who asks may say about one topic: per kind, paragraphs of sentences.

    Any subset of the sentences, in any order of the paragraphs, must read well and hold together.
    """

    askers: tuple[str, ...]
    """Who is asking. Alternatives: one is used for all levels of a question."""
    situation: Paragraphs
    purpose: Paragraphs
    background: Paragraphs
    aspect: Paragraphs
    consideration: Paragraphs
    constraint: Paragraphs
    form: Paragraphs


class Topic(Material, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question of the starter set, with its material."""

    id: int
    domain: Domain
    topic: str
    """A noun phrase that fits after "about"."""
    question: str
    answer: tuple[str, ...] = ()
    """Words of the right answer that the material must not give away (checked by a test)."""


class Connectives(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The phrases that every topic of a language shares, as templates with the slot `{topic}`."""

    name: str
    """The language as the published files write it."""
    gap: str
    """What separates two sentences: a space, or nothing in Chinese."""
    subject: str
    """What a user's question is about, in the slot `{topic}`."""
    openings: dict[Kind, tuple[str, ...]]
    """Whole sentences that open a kind's first paragraph."""
    further: dict[Kind, tuple[str, ...]]
    """Whole sentences that open its later paragraphs."""
    links: dict[Kind, tuple[str, ...]]
    """Words before a sentence that is not the first of its paragraph, with their comma."""
    asks: tuple[str, ...]
    """Whole sentences that lead to the question; they must fit a question and a request alike."""


class Sentence(NamedTuple):
    """One sentence of the material (or two that belong together), by its place in the banks."""

    source: int
    """0 for the material of the topic, 1 for the generic material."""
    kind: Kind
    paragraph: int
    """-1 for the askers."""
    position: int


class Phrase(NamedTuple):
    """One connective, by its place in the banks."""

    deck: Literal["openings", "further", "links", "asks"]
    kind: Kind | None
    number: int


Piece: TypeAlias = Sentence | Phrase
"""A part of a text without its language: what it says in each language is in the banks."""


class Bank(Struct, frozen=True, dict=True):
    """What the levels of one question in one language are made of."""

    connectives: Connectives
    topic: str
    materials: tuple[Material, ...]
    """The topic's own, where it has any, and the generic one. `Sentence.source` is their index."""

    @cached_property
    def texts(self) -> dict[Piece, str]:
        """What every piece says."""
        slots = topic_slots(self.topic)
        texts: dict[Piece, str] = {}
        for source, material in enumerate(self.materials):
            texts |= {
                Sentence(source, "situation", -1, at): filled(text, slots)
                for at, text in enumerate(material.askers)
            }
            texts |= {
                Sentence(source, kind, paragraph, at): filled(text, slots)
                for kind in KINDS
                for paragraph, sentences in enumerate(getattr(material, kind))
                for at, text in enumerate(sentences)
            }
        shared = self.connectives
        for deck in ("openings", "further", "links"):
            texts |= {
                Phrase(deck, kind, number): filled(text, slots)
                for kind, phrases in getattr(shared, deck).items()
                for number, text in enumerate(phrases)
            }
        return texts | {Phrase("asks", None, at): text for at, text in enumerate(shared.asks)}


# --- the slot {topic} --------------------------------------------------------------------------------

PARTICLES = {"은": "는", "이": "가", "을": "를", "과": "와", "으로": "로", "이라": "라", "이나": "나"}
"""Korean particles after a consonant, and as they are after a vowel."""
# How digits and Latin letters are read in Korean: those whose reading ends in a consonant.
_CLOSED = frozenset("013678lmnrLMNR")
_CLOSED_BUT_L = _CLOSED - frozenset("178lrLR")  # "으로" becomes "로" after ㄹ, too


def topic_slots(topic: str) -> Callable[[str], str]:
    """What is written in `{topic}`, and in `{topic.은}` with the form of the Korean particle that fits."""

    def value(slot: str) -> str:
        _, _, particle = slot.partition(".")
        return topic + (_particle(topic, particle) if particle else "")

    return value


def _particle(word: str, particle: str) -> str:
    last = next((letter for letter in reversed(word) if letter.isalnum()), "")
    if "가" <= last <= "힣":
        final = (ord(last) - ord("가")) % 28
        closed = final not in (0, 8) if particle == "으로" else final != 0
    else:
        closed = last in (_CLOSED_BUT_L if particle == "으로" else _CLOSED)
    return particle if closed else PARTICLES[particle]


def filled(template: str, slots: Callable[[str], str]) -> str:
    if "{" not in template:
        return template
    text = fill(template, slots)
    return text[0].upper() + text[1:] if template.startswith("{") else text


# --- reading -----------------------------------------------------------------------------------------


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
    """The bank of a question that has no material of its own."""
    shared = connectives(language)
    return Bank(shared, shared.subject, (generic(language),))


def generic(language: str) -> Material:
    """Material that fits any question."""
    return read_json(__package__, "bank", language, "generic.json", type=Material)
