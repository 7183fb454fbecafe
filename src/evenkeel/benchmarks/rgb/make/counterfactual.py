"""Well-known facts with false twins: what a model knows against what its documents say.

A relation of the bank (capitals, authors, inventors) has its own document forms and its facts; a fact has
a true answer, a plausible false one, and notes that name neither. A false twin is the same document with
the false answer in every place of the true one.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any

from msgspec import Struct

from evenkeel.benchmarks.rgb.make.world import (
    Deck,
    Form,
    Value,
    folder,
    names_of,
    sentences,
    states,
    write,
)
from evenkeel.errors import UsageError
from evenkeel.files.jsonfile import read_json
from evenkeel.make.grammar import pick, shuffled

POSITIVES = 6
NEGATIVES = 12


class Fact(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    subject: str
    answer: str
    fake: str
    notes: tuple[str, ...]
    """True sentences about the subject, without the answer and without the false one."""
    more: dict[str, str] = {}
    """Further slots that the forms of the relation use."""


class Relation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    queries: tuple[str, ...]
    forms: tuple[Form, ...]
    """Documents that state the fact."""
    general: tuple[str, ...]
    """Sentences that go with any note."""
    facts: tuple[Fact, ...]


@cache
def relations_of(lang: str) -> dict[str, Relation]:
    """The relations of a language, by name."""
    paths = sorted((folder(lang) / "facts").glob("*.json"))
    return {path.stem: read_json(path, Relation) for path in paths}


def compose_facts(lang: str, key: str, size: int) -> list[dict[str, Any]]:
    """As many rows of a counterfactual set, in the published format; `key` is the random seed."""
    known = [(relation, fact) for relation in relations_of(lang).values() for fact in relation.facts]
    if size > len(known):
        raise UsageError(f"The bank holds {len(known)} facts in '{lang}'; {size} were asked for.")
    chosen = shuffled(known, random.Random(key))[:size]
    return [
        {"id": number} | _row(relation, fact, names_of(lang).gap, random.Random(f"{key}/{number}"))
        for number, (relation, fact) in enumerate(chosen)
    ]


def giveaways(name: str) -> list[str]:
    """What gives an answer away: all of it, or the last name where that is long enough to tell."""
    last = name.rpartition(" ")[2]
    return [name, last] if len(last) >= 5 else [name]


def _row(relation: Relation, fact: Fact, gap: str, rng: random.Random) -> dict[str, Any]:
    true, false = _twins(relation, fact, gap, rng)
    return {
        "query": write(pick(relation.queries, rng), _slots(fact), rng),
        "answer": fact.answer,
        "fakeanswer": fact.fake,
        "positive": true,
        "positive_wrong": false,
        "negative": _negatives(relation, fact, gap, rng),
    }


def _slots(fact: Fact, *, answer: str = "", note: str = "") -> dict[str, Value]:
    texts = {"subject": fact.subject, "answer": answer, "note": note, **fact.more}
    return {slot: Value((text,)) for slot, text in texts.items()}


def _twins(relation: Relation, fact: Fact, gap: str, rng: random.Random) -> tuple[list[str], list[str]]:
    """True documents and their false twins: the same draws, once with each answer."""
    forms = shuffled(relation.forms, rng)
    # No note stands in two documents; the forms that cannot do without one come first.
    wanting = [place for need in ("{note}", "?{note}") for place, form in enumerate(forms) if need in form]
    notes = dict(zip(wanting, shuffled(fact.notes, rng), strict=False))
    general = Deck(relation.general, rng)
    true: list[str] = []
    false: list[str] = []
    for place, form in enumerate(forms):
        kept = [text for text in form if place in notes or text != "?{note}"]
        whole, draws = (*kept, f"?{general.draw()}"), rng.getrandbits(64)
        note = notes.get(place, "")
        one, other = (
            gap.join(sentences(whole, _slots(fact, answer=answer, note=note), random.Random(draws)))
            for answer in (fact.answer, fact.fake)
        )
        if not states(one, giveaways(fact.fake)) and not states(other, giveaways(fact.answer)):
            true.append(one)
            false.append(other)
    return true[:POSITIVES], false[:POSITIVES]


def _negatives(relation: Relation, fact: Fact, gap: str, rng: random.Random) -> list[str]:
    """What is told about the subject besides the answer, and about its siblings in the relation."""
    forbidden = giveaways(fact.answer) + giveaways(fact.fake)
    general = Deck(relation.general, rng)
    own = [_aside(fact, note, general, gap, rng) for note in fact.notes]
    found = [text for text in own if not states(text, forbidden)]
    siblings = Deck([other for other in relation.facts if other is not fact], rng)
    forms = Deck(relation.forms, rng)
    while len(found) < NEGATIVES:
        other = siblings.draw()
        note = pick(other.notes, rng)
        if rng.random() < 0.7:
            slots = _slots(other, answer=other.answer, note=note)
            text = gap.join(sentences((*forms.draw(), f"?{general.draw()}"), slots, rng))
        else:
            text = _aside(other, note, general, gap, rng)
        if text not in found and not states(text, forbidden):
            found.append(text)
    return shuffled(found, rng)


def _aside(fact: Fact, note: str, general: Deck[str], gap: str, rng: random.Random) -> str:
    """A note with one or two general sentences after it."""
    return gap.join(sentences((note, general.draw(), f"?{general.draw()}"), _slots(fact), rng))
