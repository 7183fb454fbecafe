"""Well-known facts with false answers, for counterfactual robustness, and the documents of each.

A relation (capitals, authors) says what is asked and how documents state it. Some of its facts are written
out with notes of their own; the others are rows of a table, in English and Chinese side by side.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from itertools import cycle, islice
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from evenkeel.benchmarks.rgb.make.world import (
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
from evenkeel.make.grammar import fill, pick, shuffled

POSITIVES = 6
NEGATIVES = 12
ATTEMPTS = 200
"""Other facts that are tried for irrelevant documents."""
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
    notes: tuple[str, ...]
    """Sentences about the subject, without the answer and without the false one."""
    more: dict[str, str] = {}
    """Further slots that the forms of the relation use."""


class Relation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts of one sort (capitals, authors, inventors) and the documents that state them."""

    queries: tuple[str, ...]
    forms: tuple[Form, ...]
    """Documents that state the fact."""
    general: tuple[str, ...]
    """Sentences that go with any note."""
    notes: tuple[str, ...] = ()
    """Templates of notes, for the facts of the table."""
    facts: tuple[Fact, ...]


@cache
def relations_of(lang: str) -> dict[str, Relation]:
    """The relations of a language, by name, with the facts of their tables."""
    relations = read_folder(lang, "facts", Relation)
    for name, table in read_tables().items():
        if relation := relations.get(name):
            facts = (*relation.facts, *_listed(relation, lang, table))
            relations[name] = msgspec.structs.replace(relation, facts=facts)
    return relations


def _listed(relation: Relation, lang: str, table: Table) -> Iterator[Fact]:
    """The facts of a table in one language. The answers that are near one in its group are its false ones."""
    for group in table.values():
        pairs = [row.pair(lang) for row in group if row.pair(lang).answer]
        for index, (subject, answer) in enumerate(pairs):
            near = (pair.answer for pair in pairs[max(0, index - NEAR) : index + NEAR + 1])
            fakes = tuple(other for other in near if not _alike(other, answer))
            notes = tuple(fill(note, {"subject": subject}) for note in relation.notes)
            yield Fact(subject=subject, answer=answer, fakes=fakes, notes=notes)


def _alike(answer: str, other: str) -> bool:
    """Whether one answer gives the other away: it is in it, or both are people of one last name."""
    return states(other, _giveaways(answer)) or states(answer, _giveaways(other))


def fact_row(relation: Relation, fact: Fact, lang: str, rng: random.Random) -> dict[str, Any]:
    """A question about a fact with a false answer, and its documents."""
    gap = names_of(lang).gap
    true, false = _versions(relation, fact, gap, rng)
    return {
        "query": write(pick(relation.queries, rng), _fact_slots(fact), rng),
        "answer": fact.answer,
        "fakeanswer": fact.fake,
        "positive": true,
        "positive_wrong": false,
        "negative": _fact_negatives(relation, fact, gap, rng),
    }


def _fact_slots(fact: Fact, *, answer: str = "", note: str = "") -> Slots:
    """The slots of a fact; of one in a table of deeds (discovered penicillin), the subject is the deed."""
    texts = {"subject": fact.subject, "deed": fact.subject, "answer": answer, "note": note, **fact.more}
    return {slot: Value((text,)) for slot, text in texts.items()}


def _giveaways(name: str) -> list[str]:
    """What gives an answer away: all of it, or the last name where that is long enough to tell."""
    last = name.rpartition(" ")[2]
    return [name, last] if len(last) >= 5 else [name]


def _versions(relation: Relation, fact: Fact, gap: str, rng: random.Random) -> tuple[list[str], list[str]]:
    """True documents and their false versions: the same draws, once with each answer."""
    forms = shuffled(relation.forms, rng)
    # No note is used in two documents; the forms that cannot do without one come first.
    needing = [index for need in ("{note}", "?{note}") for index, form in enumerate(forms) if need in form]
    notes = dict(zip(needing, shuffled(fact.notes, rng), strict=False))
    general = cycle(shuffled(relation.general, rng))
    versions: list[tuple[str, str]] = []
    for index, form in enumerate(forms):
        templates = [text for text in form if index in notes or text != "?{note}"]
        templates.append(f"?{next(general)}")
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
        if not states(true, _giveaways(fact.fake)) and not states(false, _giveaways(fact.answer)):
            versions.append((true, false))
    return [true for true, _ in versions[:POSITIVES]], [false for _, false in versions[:POSITIVES]]


def _fact_negatives(relation: Relation, fact: Fact, gap: str, rng: random.Random) -> list[str]:
    """Documents about the subject without the answer, and about other subjects of the relation."""
    forbidden = _giveaways(fact.answer) + _giveaways(fact.fake)
    general = cycle(shuffled(relation.general, rng))
    asides = [_fact_aside(fact, note, general, gap, rng) for note in fact.notes]
    negatives = [text for text in asides if not states(text, forbidden)]
    others = cycle(shuffled([other for other in relation.facts if other.subject != fact.subject], rng))
    forms = cycle(shuffled(relation.forms, rng))
    for other in islice(others, ATTEMPTS):
        if len(negatives) == NEGATIVES:
            break
        note = pick(other.notes, rng)
        if rng.random() < 0.7:
            slots = _fact_slots(other, answer=other.answer, note=note)
            text = write_document((*next(forms), f"?{next(general)}"), slots, gap, rng)
        else:
            text = _fact_aside(other, note, general, gap, rng)
        if text not in negatives and not states(text, forbidden):
            negatives.append(text)
    return shuffled(negatives, rng)


def _fact_aside(fact: Fact, note: str, general: Iterator[str], gap: str, rng: random.Random) -> str:
    """A note with one or two general sentences after it."""
    return write_document((note, next(general), f"?{next(general)}"), _fact_slots(fact), gap, rng)
