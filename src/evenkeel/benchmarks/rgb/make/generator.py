"""Make the RGB starter set: questions about an invented world, with documents that do and do not answer.

An event of the bank (an election, a prize, a takeover) says what is drawn for it and how it is reported.
One question is about one fact; the look-alikes among its negatives report other facts of the same family
(same prize, other year), the rest tell something else about the same fact and never the answer. A seed
decides everything, so the same seed gives the same bytes on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from msgspec import Struct

from evenkeel.benchmarks.rgb.make.counterfactual import compose_facts
from evenkeel.benchmarks.rgb.make.world import (
    Deck,
    Form,
    Slots,
    Value,
    World,
    folder,
    names_of,
    sentences,
    spellings,
    states,
    write,
)
from evenkeel.errors import UsageError
from evenkeel.files.jsonfile import read_json
from evenkeel.make.grammar import pick, shuffled

GENERATOR = "evenkeel-rgb"
VERSION = 1
"""Goes up whenever the code or a bank changes the texts of a seed."""

SIZES = {"plain": 100, "int": 50, "fact": 60}
POSITIVES = 6
POSITIVES_PER_PART = 4
LOOKALIKES = 6
ASIDES = 6
ATTEMPTS = 200


class Event(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind of news: what is drawn for it, what is asked, and how it is told."""

    local: bool
    """Whether its question names the town, so that it may be joined to another about the same town."""
    frame: dict[str, str]
    """What all facts of a family share, by slot."""
    fact: dict[str, str]
    """What is drawn anew for every fact."""
    keys: tuple[str, ...]
    """The slots that, with the frame, tell one fact from another."""
    answer: tuple[str, ...]
    queries: tuple[str, ...]
    pairs: tuple[str, ...]
    """Questions for two facts at once; the slots of the second begin with `other_`."""
    forms: tuple[Form, ...]
    """Documents that tell the fact."""
    asides: tuple[Form, ...]
    """Documents about the same fact that do not tell the answer."""
    extras: tuple[str, ...]
    """Sentences that may close any document of the event."""


class Part(NamedTuple):
    """One thing asked for: the ways to write it, and the documents that say it."""

    answer: list[str]
    positive: list[str]


class Draft(NamedTuple):
    """A question before it is known to be sound."""

    query: str
    parts: list[Part]
    negative: list[str]


def compose(lang: str, kind: str, *, seed: int = 0, size: int | None = None) -> list[dict[str, Any]]:
    """The starter set of a seed, as rows of the published format.

    `kind` is `plain` (noise robustness and negative rejection), `int` (information integration: answers
    of two parts, one group of positives for each) or `fact` (counterfactual robustness: well-known facts,
    each true document with its false twin).
    """
    folder(lang)
    if kind not in SIZES:
        raise UsageError(f"There is no RGB set of the kind '{kind}'. Choose one of: {', '.join(SIZES)}.")
    wanted = SIZES[kind] if size is None else size
    if wanted < 1:
        raise UsageError(f"A set needs at least one question; {wanted} were asked for.")
    key = f"{GENERATOR}/{VERSION}/{seed}/{lang}/{kind}"
    if kind == "fact":
        return compose_facts(lang, key, wanted)
    return _plain_rows(lang, key, wanted) if kind == "plain" else _int_rows(lang, key, wanted)


@cache
def events_of(lang: str) -> dict[str, Event]:
    """The events of a language, by name."""
    paths = sorted((folder(lang) / "events").glob("*.json"))
    return {path.stem: read_json(path, Event) for path in paths}


def _plain_rows(lang: str, key: str, size: int) -> list[dict[str, Any]]:
    deck = Deck(list(events_of(lang).values()), random.Random(key))
    rows: list[dict[str, Any]] = []
    asked: set[str] = set()
    for number in range(size):
        world = World(names_of(lang), random.Random(f"{key}/{number}"))
        query, (part,), negative = _sound([deck.draw()], world, asked, parts=1)
        answer = [part.answer] if len(part.answer) > 1 else part.answer[0]
        rows.append(
            {"id": number, "query": query, "answer": answer, "positive": part.positive, "negative": negative}
        )
    return rows


def _int_rows(lang: str, key: str, size: int) -> list[dict[str, Any]]:
    """Two of three questions ask for two facts of a family, the third for two events of one town."""
    rng = random.Random(key)
    every = Deck(list(events_of(lang).values()), rng)
    local = Deck([event for event in events_of(lang).values() if event.local], rng)
    rows: list[dict[str, Any]] = []
    asked: set[str] = set()
    for number in range(size):
        world = World(names_of(lang), random.Random(f"{key}/{number}"))
        chosen = [local.draw(), local.draw()] if number % 3 == 2 else [every.draw()]
        query, (first, second), negative = _sound(chosen, world, asked, parts=2)
        rows.append(
            {
                "id": number,
                "query": query,
                "answer": [first.answer, second.answer],
                "answer1": first.answer,
                "answer2": second.answer,
                "positive": [first.positive, second.positive],
                "negative": negative,
            }
        )
    return rows


def _sound(events: Sequence[Event], world: World, asked: set[str], *, parts: int) -> Draft:
    """The first draft that gives nothing away and has not been asked yet."""
    for _ in range(ATTEMPTS):
        if parts == 1:
            draft = _one_fact(events[0], world)
        elif len(events) == 2 and events[0] is not events[1]:
            draft = _two_events(events[0], events[1], world)
        else:
            draft = _two_facts(events[0], world)
        if draft.query not in asked and is_sound(draft.query, draft.parts, draft.negative):
            asked.add(draft.query)
            return draft
    raise UsageError(f"No sound question in {ATTEMPTS} attempts: this set is too large for the word bank.")


def is_sound(query: str, parts: Sequence[Part], negative: Sequence[str]) -> bool:
    """Every part stands in its own positives and nowhere else; no document stands there twice."""
    texts = [text for part in parts for text in part.positive] + list(negative)
    if len(set(texts)) < len(texts):
        return False
    for part in parts:
        others = [text for other in parts if other is not part for text in other.positive]
        if not all(states(text, part.answer) for text in part.positive):
            return False
        if any(states(text, part.answer) for text in (query, *others, *negative)):
            return False
    return True


# --- one draft --------------------------------------------------------------------------------------


class Family:
    """Facts of one event that share a frame, and the documents written about them."""

    def __init__(self, event: Event, world: World, size: int, town: Value | None = None) -> None:
        self.event = event
        self.world = world
        self.frame: dict[str, Value] = {}
        for slot, spec in event.frame.items():
            self.frame[slot] = town if town and slot == "town" else world.value(spec, self.frame)
        self.facts: list[Slots] = []
        for number in range(size):
            self.facts.append(self._fact(number))
        self.forms = Deck(event.forms, world.rng)
        self.asides = Deck(event.asides, world.rng)
        self.extras = Deck(event.extras, world.rng)

    def _fact(self, number: int) -> Slots:
        """A new fact; where facts have several keys it shares one of them with the first, by turns."""
        keys = self.event.keys
        shared: Mapping[str, Value] = {}
        if self.facts and len(keys) > 1:
            key = keys[number % len(keys)]
            shared = {key: self.facts[0][key]}
        known = [[fact[key] for key in keys] for fact in self.facts]
        while True:
            fact: dict[str, Value] = {**self.frame}
            for slot, spec in self.event.fact.items():
                fact[slot] = shared[slot] if slot in shared else self.world.value(spec, fact)
            if [fact[key] for key in keys] not in known:
                return fact

    def answer(self, fact: Slots) -> list[str]:
        found = [text for template in self.event.answer for text in spellings(template, fact)]
        return list(dict.fromkeys(found))

    def query(self, fact: Slots) -> str:
        return write(pick(self.event.queries, self.world.rng), fact, self.world.rng)

    def part(self, fact: Slots, count: int) -> Part:
        return Part(self.answer(fact), [self._document(self.forms.draw(), fact) for _ in range(count)])

    def lookalikes(self, facts: Sequence[Slots]) -> list[str]:
        return [self._document(self.forms.draw(), fact) for fact in facts]

    def aside(self, fact: Slots) -> str:
        return self._document(self.asides.draw(), fact)

    def _document(self, form: Form, fact: Slots) -> str:
        """A form filled in, with none, one or two closing sentences."""
        rng = self.world.rng
        luck = rng.random()
        closing = [self.extras.draw() for _ in range((luck < 0.5) + (luck < 0.15))]
        return self.world.names.gap.join(sentences((*form, *closing), fact, rng))


def _one_fact(event: Event, world: World) -> Draft:
    family = Family(event, world, 1 + LOOKALIKES)
    fact, *others = family.facts
    part = family.part(fact, POSITIVES)
    negative = family.lookalikes(others) + [family.aside(fact) for _ in range(ASIDES)]
    return Draft(family.query(fact), [part], shuffled(negative, world.rng))


def _two_facts(event: Event, world: World) -> Draft:
    """Two facts of one family: the same prize in two years."""
    family = Family(event, world, 2 + LOOKALIKES)
    first, second, *others = family.facts
    slots = {**first, **{f"other_{slot}": value for slot, value in second.items()}}
    query = write(pick(event.pairs, world.rng), slots, world.rng)
    parts = [family.part(fact, POSITIVES_PER_PART) for fact in (first, second)]
    asides = [family.aside((first, second)[turn % 2]) for turn in range(ASIDES)]
    return Draft(query, parts, shuffled(family.lookalikes(others) + asides, world.rng))


def _two_events(one: Event, other: Event, world: World) -> Draft:
    """Two events in one town."""
    first = Family(one, world, 1 + LOOKALIKES // 2)
    second = Family(other, world, 1 + LOOKALIKES // 2, town=first.frame["town"])
    queries = [family.query(family.facts[0]).rstrip("?？") for family in (first, second)]
    end = "？" if world.names.gap == "" else "?"
    joined = world.names.join.format(first=queries[0], second=queries[1][:1].lower() + queries[1][1:])
    negative: list[str] = []
    for family in (first, second):
        negative += family.lookalikes(family.facts[1:])
        negative += [family.aside(family.facts[0]) for _ in range(ASIDES // 2)]
    parts = [family.part(family.facts[0], POSITIVES_PER_PART) for family in (first, second)]
    return Draft(joined + end, parts, shuffled(negative, world.rng))
