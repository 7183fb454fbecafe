"""Frames of MIRON examples: sentences of the bank that break off before the answer, and tables of facts.

A frame is a template of `sealegs.make.grammar`. Its slots and its fixed words decide the answer, so that no
typo falls on them, nor on the last word before the answer, where tokens could merge with it.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

from sealegs.files.package_data import data_path, read_json, read_text
from sealegs.make.grammar import Role, Values, capitalised, fill, seeded, segments, shuffled, slots

VERSIONS = {"en": 5, "ru": 7}
"""A language's goes up whenever the code or its bank changes the examples of a seed."""
NEW_WORD_ATTEMPTS = 200

T = TypeVar("T")
Span: TypeAlias = tuple[int, int]

_WORD = re.compile(r"[^\W\d_]{2,}")
_WITHOUT_YO = str.maketrans("ёЁ", "еЕ")


class ExampleDraft(NamedTuple):
    """An example before it has a number in a set."""

    kind: str
    prefix: str
    target: str
    free: tuple[Span, ...]
    """The words of the prefix that do not decide the answer."""
    about: str
    """What a set does not use twice: the pseudo-word, the fact."""
    accepted: tuple[str, ...] = ()
    """Further right continuations."""
    exact: bool = False
    """Whether every content word decides the answer, so that typos fall on function words only."""


Kinds: TypeAlias = Mapping[str, Iterator[ExampleDraft]]
"""For each kind of example a stream of drafts, in the order in which a set takes them."""


def draft(
    kind: str,
    frame: str,
    values: Values,
    target: str,
    about: str = "",
    *,
    accepted: Iterable[str] = (),
    exact: bool = False,
) -> ExampleDraft:
    """A frame filled in. The answer begins a new word, so it gets a space in front.

    A Russian answer may also be written with е for ё.
    """
    right = (target, *accepted)
    spellings = dict.fromkeys((*right, *(answer.translate(_WITHOUT_YO) for answer in right)))
    prefix = ""
    spans: dict[Role, list[Span]] = {"free": [], "fixed": [], "slot": []}
    for text, role in segments(frame, values):
        spans[role] += [
            (len(prefix) + word.start(), len(prefix) + word.end()) for word in _WORD.finditer(text)
        ]
        prefix += text
    last_word = prefix.rfind(" ") + 1
    return ExampleDraft(
        kind,
        capitalised(prefix),
        f" {target}",
        free=tuple(span for span in spans["free"] if span[1] <= last_word),
        about=about,
        accepted=tuple(f" {answer}" for answer in spellings if answer != target),
        exact=exact,
    )


def by_analogy(
    kind: str, frame: str, values: Values, target: str, about: str, accepted: Iterable[str] = ()
) -> ExampleDraft:
    """A frame filled in twice: whole with a real word (slots named `model_…`), then with a pseudo-word up to
    the form that follows from it."""
    example = frame.replace("{", "{model_")
    return draft(kind, f"{example} {{model_target}}. {frame}", values, target, about, accepted=accepted)


def rng_for(lang: str, seed: int, part: str) -> random.Random:
    """The random generator for one part of a data set; the same arguments give the same numbers."""
    return seeded("miron", VERSIONS[lang], lang, seed, part)


def read_bank(lang: str, name: str, type: type[T]) -> T:
    return read_json(__package__, "bank", lang, f"{name}.json", type=type)


@cache
def bank_words(lang: str, name: str) -> frozenset[str]:
    """A list of words of the bank."""
    return frozenset(read_text(__package__, "bank", lang, f"{name}.txt").split())


@cache
def pseudo_words(lang: str) -> Mapping[str, tuple[str, ...]]:
    """The pseudo-words of the bank by class. None has a form that is a word: `tools/miron_words.py`."""
    lines = (line.split(": ") for line in read_text(__package__, "bank", lang, "pseudo.txt").splitlines())
    return {name: tuple(words.split()) for name, words in lines}


def unused(words: Iterator[str], used: set[str]) -> str:
    """A word that the set does not have yet; only a set of many thousands runs out of them."""
    attempts = (word for word in islice(words, NEW_WORD_ATTEMPTS) if word not in used)
    word = next(attempts, None) or next(words)
    used.add(word)
    return word


# --- facts ------------------------------------------------------------------------------------------

Value: TypeAlias = str | tuple[str, ...]
"""A value of a fact; of several the first is shown and asked for, and the others are accepted too."""


class FieldQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    """Which field of a fact is asked for, and how."""

    kind: str
    answer: str
    frames: tuple[str, ...]
    accepted: tuple[str, ...] = ()
    """Templates of further right answers, over the fields of the fact."""


class FactTable(Struct, frozen=True, forbid_unknown_fields=True):
    """Facts of one sort: values by field with questions about them, or whole sentences with their answers."""

    name: str
    source: str
    """Where the facts can be looked up."""
    fields: tuple[str, ...] = ()
    questions: tuple[FieldQuestion, ...] = ()
    facts: tuple[tuple[Value, ...], ...] = ()
    """Where a value is empty, the questions with that field are not asked."""
    sentences: tuple[tuple[str, Value], ...] = ()


class Wording(NamedTuple):
    """One way to ask for one fact."""

    kind: str
    frame: str
    values: Mapping[str, str]
    target: str
    accepted: tuple[str, ...]


def fact_tables(lang: str) -> list[FactTable]:
    paths = sorted(data_path(__package__, "bank", lang, "facts").glob("*.json"))
    return [table for path in paths for table in read_bank(lang, f"facts/{path.stem}", tuple[FactTable, ...])]


def wordings(table: FactTable) -> Iterator[list[Wording]]:
    """For each fact of a table all the ways to ask for it."""
    for sentence, value in table.sentences:
        target, *accepted = answers(value)
        yield [Wording(table.name, sentence, {}, target, tuple(accepted))]
    for fact in table.facts:
        row = dict(zip(table.fields, fact, strict=True))
        values = {field: answers(value)[0] for field, value in row.items()}
        yield [
            Wording(question.kind, frame, values, values[question.answer], _accepted(question, row, values))
            for question in table.questions
            for frame in question.frames
            if values[question.answer] and all(values[slot] for slot in slots(frame))
        ]


def answers(value: Value) -> tuple[str, ...]:
    """All right answers: the target, then the others."""
    return (value,) if isinstance(value, str) else value


def _accepted(
    question: FieldQuestion, row: Mapping[str, Value], values: Mapping[str, str]
) -> tuple[str, ...]:
    """The other values of the answer, and the filled templates of which no slot is empty."""
    templates = (template for template in question.accepted if all(values[slot] for slot in slots(template)))
    return (*answers(row[question.answer])[1:], *(fill(template, values) for template in templates))


@cache
def _all_facts(lang: str) -> list[list[Wording]]:
    return [ways for table in fact_tables(lang) for ways in wordings(table)]


def facts(lang: str, seed: int) -> Iterator[ExampleDraft]:
    """Every fact once, the kinds mixed evenly; then every fact again in another wording, while it has one."""
    rng = rng_for(lang, seed, "facts")
    by_fact = [shuffled(ways, rng) for ways in _all_facts(lang)]
    for turn in range(max(map(len, by_fact))):
        numbers = [number for number, ways in enumerate(by_fact) if turn < len(ways)]
        kinds = {number: by_fact[number][turn].kind for number in numbers}
        for number in evenly_mixed(kinds, rng):
            kind, frame, values, target, accepted = by_fact[number][turn]
            about = f"fact {number}"
            yield draft(kind, frame, values, target, about, accepted=accepted, exact=not values)


def evenly_mixed(kinds: Mapping[int, str], rng: random.Random) -> list[int]:
    """Shuffle the numbers so that however early you stop, each kind has its share."""
    sizes = Counter(kinds.values())
    seen = {kind: rng.random() for kind in sizes}  # else small kinds would always come in the middle
    ranks = []
    for number in shuffled(kinds, rng):
        ranks.append((seen[kinds[number]] / sizes[kinds[number]], number))
        seen[kinds[number]] += 1
    return [number for _, number in sorted(ranks)]
