"""Well-known facts with false answers, for counterfactual robustness, and the documents of each.

A relation (capitals, authors) says what is asked and how documents state it. Some of its facts are written
out with notes of their own; the others are rows of a table, in English and Chinese side by side.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import cycle, islice
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from sealegs.benchmarks.rgb.make.world import (
    Repeats,
    Slots,
    Table,
    Value,
    names_of,
    read_folder,
    read_tables,
    states,
    write,
    write_document,
)
from sealegs.files.package_data import read_json
from sealegs.make.grammar import fill, pick, shuffled

POSITIVES = 6
NEGATIVES = 12
ATTEMPTS = 200
"""Other facts that are tried for irrelevant documents."""
STEM = 3
LAST_NAME = 5
"""Letters from which the last name of a person is enough."""
NOTES = 4
"""Those of its relation that a fact of a table gets, in turns."""
NEAR = 4
"""The false answer of a fact in a table is at most so many rows away from it."""

Form: TypeAlias = tuple[str, ...]
"""The sentences of one kind of document."""


class Fact(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A true answer and plausible false ones."""

    subject: str
    answer: str
    fake: str = ""
    """The false answer; empty where the seed chooses one of `fakes`."""
    fakes: tuple[str, ...] = ()
    spellings: dict[str, tuple[str, ...]] = {}
    """Of the true answer and the false ones: further right ways to write them."""
    notes: tuple[str, ...]
    """Sentences about the subject, without the answer and without the false one."""
    more: dict[str, str] = {}
    """Further slots that the forms of the relation use."""


class AnswerKnowledge(Struct, frozen=True, forbid_unknown_fields=True):
    """What is known about answers beside the facts themselves."""

    accepted: dict[str, tuple[str, ...]]
    """By answer: other names and spellings that are right too."""
    false: dict[str, dict[str, str]]
    """By relation and subject: a false answer that somebody might believe."""

    def spellings(self, answer: str, *, people: bool) -> tuple[str, ...]:
        """Further right ways to write an answer: those listed, without accents, a mountain without its
        `Mount` or 山, people by their last name where it is long enough to tell."""
        plain = "".join(c for c in unicodedata.normalize("NFD", answer) if not unicodedata.combining(c))
        found = [*self.accepted.get(answer, ()), plain, answer.removeprefix("Mount ")]
        found.append(re.sub(r"\. (?=[A-Z]\.)", ".", answer))
        stem = re.sub(r"(?:火山|[山峰河江])$", "", answer)
        found += [stem] if len(stem) >= STEM else []
        for name in (answer, plain) if people else ():
            last = re.split(r"[ ·]", name)[-1]
            found += [last] if len(last) >= (LAST_NAME if last.isascii() else 2) else []
        return tuple(dict.fromkeys(text for text in found if text != answer))


class Relation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts of one sort (capitals, authors, inventors) and the documents that state them."""

    people: bool = False
    """Whether the answers are people."""
    queries: tuple[str, ...]
    forms: tuple[Form, ...]
    """Documents that state the fact."""
    general: tuple[str, ...] = ()
    """Sentences that go with any note; none where the notes are whole documents."""
    notes: tuple[str, ...] = ()
    """Templates of notes, for the facts of the table."""
    facts: tuple[Fact, ...]


@cache
def relations_of(lang: str) -> dict[str, Relation]:
    """The relations of a language, by name, with the facts of their tables."""
    relations = read_folder(lang, "facts", Relation)
    answers = answers_of(lang)
    tables = read_tables()
    for name, relation in relations.items():
        facts = (*relation.facts, *_listed(relation, lang, tables.get(name, {})))
        false = answers.false.get(name, {})
        facts = tuple(_completed(fact, false, answers, people=relation.people) for fact in facts)
        relations[name] = msgspec.structs.replace(relation, facts=facts)
    return relations


def answers_of(lang: str) -> AnswerKnowledge:
    return read_json(__package__, "bank", lang, "answers.json", type=AnswerKnowledge)


def _completed(fact: Fact, false: Mapping[str, str], answers: AnswerKnowledge, *, people: bool) -> Fact:
    fake = false.get(fact.subject, fact.fake)
    named = (fact.answer, *([fake] if fake else fact.fakes))
    spellings = {answer: answers.spellings(answer, people=people) for answer in named}
    return msgspec.structs.replace(fact, fake=fake, spellings=spellings)


def _listed(relation: Relation, lang: str, table: Table) -> Iterator[Fact]:
    """The facts of a table in one language. The answers that are near one in its group are its false ones."""
    turns = cycle(relation.notes)
    for group in table.values():
        pairs = [pair for row in group for pair in [row[:2] if lang == "en" else row[2:]] if pair[1]]
        for index, (subject, answer) in enumerate(pairs):
            near = (other for _, other in pairs[max(0, index - NEAR) : index + NEAR + 1])
            fakes = tuple(other for other in near if not _alike(other, answer))
            notes = tuple(fill(note, {"subject": subject}) for note in islice(turns, NOTES))
            yield Fact(subject=subject, answer=answer, fakes=fakes, notes=notes)


def _alike(answer: str, other: str) -> bool:
    """Whether one answer gives the other away: it is in it, or both are people of one last name."""
    return states(other, _giveaways(answer)) or states(answer, _giveaways(other))


def fact_row(
    relation: Relation, fact: Fact, lang: str, rng: random.Random, repeats: Repeats
) -> dict[str, Any]:
    """A question about a fact with a false answer, and its documents."""
    writing = Writing(names_of(lang).gap, rng, repeats)
    true, false = _versions(relation, fact, writing)
    return {
        "query": write(pick(relation.queries, rng), _fact_slots(fact), rng),
        "answer": _stored(_all_spellings(fact, fact.answer)),
        "fakeanswer": _stored(_all_spellings(fact, fact.fake)),
        "positive": true,
        "positive_wrong": false,
        "negative": _fact_negatives(relation, fact, writing),
    }


class Writing(NamedTuple):
    """What documents of a set are written with."""

    gap: str
    rng: random.Random
    repeats: Repeats


def _all_spellings(fact: Fact, answer: str) -> list[str]:
    return [answer, *fact.spellings.get(answer, ())]


def _stored(spellings: Sequence[str]) -> str | list[list[str]]:
    """An answer as the published format has it: a text, or one part with its alternatives."""
    return spellings[0] if len(spellings) == 1 else [list(spellings)]


def _fact_slots(fact: Fact, *, answer: str = "", note: str = "") -> Slots:
    """The slots of a fact; of one in a table of deeds (discovered penicillin), the subject is the deed."""
    texts = {"subject": fact.subject, "deed": fact.subject, "answer": answer, "note": note, **fact.more}
    return {slot: Value((text,)) for slot, text in texts.items()}


def _giveaways(*names: str) -> list[str]:
    """What gives an answer away: all of a name, or the last name where that is long enough to tell."""
    lasts = (name.rpartition(" ")[2] for name in names)
    return [*names, *(last for last in lasts if len(last) >= LAST_NAME)]


def _versions(relation: Relation, fact: Fact, writing: Writing) -> tuple[list[str], list[str]]:
    """True documents and their false versions: the same draws, once with each answer."""
    gap, rng, repeats = writing
    # No note is used in two documents; the forms that cannot do without one are the first to have one.
    forms = repeats.deck(relation.forms, rng)
    noted = [index for index, form in enumerate(forms) if any("{note}" in text for text in form)]
    noted.sort(key=lambda index: not _needs_note(forms[index]))
    notes = dict(zip(noted, shuffled(fact.notes, rng), strict=False))
    true_names, false_names = (_giveaways(*_all_spellings(fact, text)) for text in (fact.answer, fact.fake))
    versions: list[tuple[str, str]] = []
    for index, form in enumerate(forms):
        if len(versions) == POSITIVES:
            break
        if index not in notes and _needs_note(form):
            continue
        templates = repeats.choose(text for text in form if index in notes or "{note}" not in text)
        draws = rng.getrandbits(64)
        true, false = (
            write_document(
                templates,
                _fact_slots(fact, answer=answer, note=notes.get(index, "")),
                gap,
                random.Random(draws),
            )
            for answer in (fact.answer, fact.fake)
        )
        if not states(true, false_names) and not states(false, true_names):
            versions.append((true, false))
    return [true for true, _ in versions], [false for _, false in versions]


def _needs_note(form: Form) -> bool:
    return any("{note}" in text and not text.startswith("?") for text in form)


def _fact_negatives(relation: Relation, fact: Fact, writing: Writing) -> list[str]:
    """Documents about the subject without the answer, and about other subjects of the relation."""
    gap, rng, repeats = writing
    forbidden = _giveaways(*_all_spellings(fact, fact.answer), *_all_spellings(fact, fact.fake))
    general = cycle(text for (text,) in repeats.deck([(text,) for text in relation.general], rng))
    asides = [_fact_aside(fact, note, general, writing) for note in fact.notes]
    negatives = [text for text in asides if not states(text, forbidden)]
    others = cycle(shuffled([other for other in relation.facts if other.subject != fact.subject], rng))
    forms = cycle(repeats.deck(relation.forms, rng))
    for other in islice(others, ATTEMPTS):
        if len(negatives) == NEGATIVES:
            break
        note = pick(other.notes, rng)
        if rng.random() < 0.7:
            slots = _fact_slots(other, answer=other.answer, note=note)
            text = write_document(repeats.choose(next(forms)), slots, gap, rng)
        else:
            text = _fact_aside(other, note, general, writing)
        if text not in negatives and not states(text, forbidden):
            negatives.append(text)
    return shuffled(negatives, rng)


def _fact_aside(fact: Fact, note: str, general: Iterator[str], writing: Writing) -> str:
    """A note, with one or two general sentences after it where the relation has any."""
    further = list(islice(general, 2))
    form = writing.repeats.choose((note, *further[:1], *(f"?{text}" for text in further[1:])))
    return write_document(form, _fact_slots(fact), writing.gap, writing.rng)
