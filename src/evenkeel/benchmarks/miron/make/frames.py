"""Frames of MIRON examples: sentences of the bank that break off before the answer, and tables of facts.

A frame is a template of `evenkeel.make.grammar`. Its slots and its fixed words decide the answer, so no typo
may fall on them; all its other words are free, except the last one before the answer.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

from evenkeel.files.package_data import data_path, read_json, read_text
from evenkeel.make.grammar import Values, capitalised, pick, seeded, segments, shuffled

VERSION = 1
"""Goes up whenever the code or a bank changes the examples of a seed."""
NEW_WORD_ATTEMPTS = 200

T = TypeVar("T")
Span: TypeAlias = tuple[int, int]

_WORD = re.compile(r"[^\W\d_]{2,}")


class Draft(NamedTuple):
    """An example before it has a number in a set."""

    kind: str
    prefix: str
    target: str
    free: tuple[Span, ...]
    """The words of the prefix on which a typo may fall."""
    about: str
    """What a set does not use twice: the pseudo-word, the fact."""


Kinds: TypeAlias = Mapping[str, Iterator[Draft]]
"""For each kind of example a stream of drafts, in the order in which a set takes them."""


def draft(kind: str, frame: str, values: Values, target: str, about: str = "") -> Draft:
    """A frame filled in. The answer begins a new word, so it gets a space in front."""
    prefix = ""
    free: list[Span] = []
    for text, is_free in segments(frame, values):
        if is_free:
            free += [(len(prefix) + word.start(), len(prefix) + word.end()) for word in _WORD.finditer(text)]
        prefix += text
    last_word = prefix.rfind(" ") + 1
    return Draft(
        kind, capitalised(prefix), f" {target}", tuple(span for span in free if span[1] <= last_word), about
    )


def rng_for(lang: str, seed: int, part: str) -> random.Random:
    """The random numbers of one part of a set."""
    return seeded("evenkeel-miron", VERSION, lang, seed, part)


def read_bank(lang: str, name: str, type: type[T]) -> T:
    return read_json(__package__, "bank", lang, f"{name}.json", type=type)


@cache
def real_words(lang: str) -> frozenset[str]:
    """What a pseudo-word must not be."""
    return frozenset(read_text(__package__, "bank", lang, "words.txt").split())


def unused(words: Iterator[str], used: set[str]) -> str:
    """A word that the set does not have yet; only a set of many thousands runs out of them."""
    attempts = (word for word in islice(words, NEW_WORD_ATTEMPTS) if word not in used)
    word = next(attempts, None) or next(words)
    used.add(word)
    return word


# --- facts ------------------------------------------------------------------------------------------


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    """Which field of a fact is asked for, and how."""

    kind: str
    answer: str
    frames: tuple[str, ...]


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    """Facts of one sort: values by field with questions about them, or whole sentences with their answers."""

    name: str
    fields: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()
    facts: tuple[tuple[str, ...], ...] = ()
    sentences: tuple[tuple[str, str], ...] = ()
    leads: tuple[str, ...] = ()
    """How a sentence may begin, where the common beginnings do not fit."""


class Wording(NamedTuple):
    """One way to ask for one fact."""

    kind: str
    frame: str
    values: Mapping[str, str]
    target: str
    leads: Sequence[str]


def fact_tables(lang: str) -> list[Table]:
    paths = sorted(data_path(__package__, "bank", lang, "facts").glob("*.json"))
    return [table for path in paths for table in read_bank(lang, f"facts/{path.stem}", tuple[Table, ...])]


def wordings(table: Table) -> Iterator[list[Wording]]:
    """For each fact of a table all the ways to ask for it."""
    for sentence, answer in table.sentences:
        yield [Wording(table.name, sentence, {}, answer, table.leads)]
    for fact in table.facts:
        values = dict(zip(table.fields, fact, strict=True))
        yield [
            Wording(question.kind, frame, values, values[question.answer], table.leads)
            for question in table.questions
            for frame in question.frames
        ]


def facts(lang: str, seed: int) -> Iterator[Draft]:
    """Every fact once, the kinds mixed evenly; then every fact again in another wording, while it has one."""
    rng = rng_for(lang, seed, "facts")
    common_leads = read_bank(lang, "leads", tuple[str, ...])
    by_fact = [shuffled(ways, rng) for table in fact_tables(lang) for ways in wordings(table)]
    for turn in range(max(map(len, by_fact))):
        drafts = []
        for number in shuffled(range(len(by_fact)), rng):
            if turn < len(by_fact[number]):
                wording = by_fact[number][turn]
                lead = pick(wording.leads or common_leads, rng)
                frame = f"{lead} {wording.frame}".lstrip()
                drafts.append(draft(wording.kind, frame, wording.values, wording.target, f"fact {number}"))
        yield from _evenly_mixed(drafts)


def _evenly_mixed(drafts: Sequence[Draft]) -> list[Draft]:
    """In an order in which every kind has its share of any beginning."""
    sizes = Counter(draft.kind for draft in drafts)
    seen: Counter[str] = Counter()
    ranks = []
    for number, draft in enumerate(drafts):
        ranks.append(((seen[draft.kind] + 0.5) / sizes[draft.kind], number))
        seen[draft.kind] += 1
    return [drafts[number] for _, number in sorted(ranks)]
