"""Make the RGB starter set: questions with documents that do and do not answer them.

The sets `plain` and `int` are about an invented world. An event of the bank (an election, a prize) says
what is invented for it and how it is reported. One question is about one fact; of its negatives some report
other facts of the same family (same prize, other year), the rest say something else about the same fact and
never the answer. The set `fact` is about well-known facts, with false versions of its documents.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from sealegs.benchmarks.rgb.make.facts import Fact, Form, Relation, fact_row, relations_of
from sealegs.benchmarks.rgb.make.world import (
    Repeats,
    Slots,
    Value,
    World,
    names_of,
    read_folder,
    spellings,
    stated_slots,
    states,
    write,
    write_document,
)
from sealegs.errors import UsageError
from sealegs.make.grammar import pick, seeded, shuffled

VERSIONS = {"plain": 4, "int": 5, "fact": 6}
"""By kind of set: goes up whenever the code or a bank changes the texts of a seed."""

SIZES = {"plain": 100, "int": 50, "fact": 60}
POSITIVES = 6
POSITIVES_PER_PART = 4
POSITIVES_COMPARED = 3
"""For each fact of a comparison."""
LOOKALIKES = 6
ASIDES = 6
ATTEMPTS = 200


def compose(lang: str, kind: str, *, seed: int = 0, size: int | None = None) -> list[dict[str, Any]]:
    """The starter set of a seed, as rows of the published format.

    `kind` is `plain` (noise robustness and negative rejection), `int` (information integration: answers
    of two parts, and for each fact that they need a group of positives) or `fact` (counterfactual
    robustness: well-known facts, each true document with its false version).
    """
    size = SIZES[kind] if size is None else size
    key = f"rgb/{VERSIONS[kind]}/{seed}/{lang}/{kind}"
    return _fact_rows(lang, key, size) if kind == "fact" else _event_rows(lang, kind, key, size)


# --- invented events --------------------------------------------------------------------------------


class ComparedPart(Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked of one of the facts that are compared."""

    of: Literal["highest", "lowest"]
    answer: tuple[str, ...]


class ComparisonQuestion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question that only somebody who compares facts of different documents can answer."""

    by: str
    """The slot whose values are compared."""
    facts: int
    """How many are compared; the slots of the second and third begin with `other_` and `third_`."""
    answers: tuple[ComparedPart, ComparedPart]
    queries: tuple[str, ...]
    forms: tuple[Form, ...] = ()
    """Documents that state what is compared, besides the forms of the event that do."""

    @property
    def slots(self) -> set[str]:
        """What every document must state."""
        return {self.by} | stated_slots(text for part in self.answers for text in part.answer)


class Event(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind of news: what is invented for it, what is asked, and how it is reported."""

    local: bool
    """Whether its question names the town, so that it may be joined to another about the same town."""
    frame: dict[str, str]
    """What all facts of a family share, by slot."""
    fact: dict[str, str]
    """What is invented anew for every fact."""
    keys: tuple[str, ...]
    """The slots that, with the frame, distinguish one fact from another."""
    answer: tuple[str, ...]
    queries: tuple[str, ...]
    pairs: tuple[str, ...]
    """Questions for two facts at once; the slots of the second begin with `other_`."""
    comparisons: tuple[ComparisonQuestion, ...] = ()
    forms: tuple[Form, ...]
    """Documents that state the fact."""
    asides: tuple[Form, ...]
    """Documents about the same fact that do not state the answer."""


class Part(NamedTuple):
    """One thing asked for: the ways to write it, and the documents that state it."""

    answer: list[str]
    positive: list[str]


class QuestionDraft(NamedTuple):
    """A question before it is checked."""

    query: str
    parts: list[Part]
    negative: list[str]
    further: Sequence[list[str]] = ()
    """Groups of documents that the answer needs but that state no part of it."""


def events_of(lang: str) -> dict[str, Event]:
    """The events of a language, by name."""
    return read_folder(lang, "events", Event)


def _event_rows(lang: str, kind: str, key: str, size: int) -> list[dict[str, Any]]:
    """The rows of `plain` or `int`.

    In `int` every second question compares facts; of the others two of three ask for two facts of a family
    and the third for two events of one town.
    """
    events = list(events_of(lang).values())
    rng = seeded(key)
    every = cycle(shuffled(events, rng))
    local = cycle(shuffled([event for event in events if event.local], rng))
    compared = cycle(
        shuffled([(event, comparison) for event in events for comparison in event.comparisons], rng)
    )
    rows: list[dict[str, Any]] = []
    queries: set[str] = set()
    repeats = Repeats()
    for number in range(size):
        world = World(names_of(lang), seeded(key, number), repeats)
        draw: Callable[[], QuestionDraft]
        if kind == "plain":
            draw = partial(_one_fact, next(every), world)
        elif number % 2:
            draw = partial(_compared_facts, *next(compared), world)
        elif number % 6 == 4:
            draw = partial(_two_events, next(local), next(local), world)
        else:
            draw = partial(_two_facts, next(every), world)
        draft = _usable_draft(draw, queries)
        queries.add(draft.query)
        rows.append({"id": number, "query": draft.query, **_parts(draft), "negative": draft.negative})
    return rows


def _parts(draft: QuestionDraft) -> dict[str, Any]:
    """The answers and positives of a row, in the published format."""
    if len(draft.parts) == 1:
        ((answer, positive),) = draft.parts
        return {"answer": [answer] if len(answer) > 1 else answer[0], "positive": positive}
    first, second = draft.parts
    return {
        "answer": [first.answer, second.answer],
        "answer1": first.answer,
        "answer2": second.answer,
        "positive": [first.positive, second.positive, *draft.further],
    }


def _usable_draft(draw: Callable[[], QuestionDraft], queries: set[str]) -> QuestionDraft:
    """The first draft that gives nothing away and is not yet among the queries."""
    for _ in range(ATTEMPTS):
        draft = draw()
        if draft.query not in queries and _is_usable(draft):
            return draft
    raise UsageError(f"No usable question in {ATTEMPTS} attempts: this set is too large for the word bank.")


def _is_usable(draft: QuestionDraft) -> bool:
    """Whether every part is stated in its positives and nowhere else, and no document appears twice."""
    groups = [*(part.positive for part in draft.parts), *draft.further]
    texts = [text for group in groups for text in group] + draft.negative
    if len(set(texts)) < len(texts):
        return False
    for part in draft.parts:
        others = [text for group in groups if group is not part.positive for text in group]
        if not all(states(text, part.answer) for text in part.positive):
            return False
        if any(states(text, part.answer) for text in (draft.query, *others, *draft.negative)):
            return False
    return True


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
        self.forms = cycle(world.repeats.deck(event.forms, world.rng))
        self.asides = cycle(world.repeats.deck(event.asides, world.rng))

    def _fact(self, number: int) -> Slots:
        """A new fact; where facts have several keys it shares one of them with the first, by turns."""
        keys = self.event.keys
        shared: Mapping[str, Value] = {}
        if self.facts and len(keys) > 1:
            key = keys[number % len(keys)]
            shared = {key: self.facts[0][key]}
        taken = [[fact[key] for key in keys] for fact in self.facts]
        while True:
            fact: dict[str, Value] = {**self.frame}
            for slot, spec in self.event.fact.items():
                fact[slot] = shared[slot] if slot in shared else self.world.value(spec, fact)
            if [fact[key] for key in keys] not in taken:
                return fact

    def query(self, fact: Slots) -> str:
        return write(pick(self.event.queries, self.world.rng), fact, self.world.rng)

    def part(self, fact: Slots, count: int) -> Part:
        return Part(answer_of(fact, self.event.answer), self.reports([fact] * count))

    def reports(self, facts: Sequence[Slots], forms: Iterator[Sequence[str]] | None = None) -> list[str]:
        """For each fact a document that states it, in the forms of the event unless others are given."""
        return [self._document(next(forms or self.forms), fact) for fact in facts]

    def aside(self, fact: Slots) -> str:
        return self._document(next(self.asides), fact)

    def _document(self, form: Sequence[str], fact: Slots) -> str:
        world = self.world
        return write_document(world.repeats.choose(form), fact, world.names.gap, world.rng)


def answer_of(fact: Slots, templates: Iterable[str]) -> list[str]:
    """Every right way to write an answer, each once."""
    return list(dict.fromkeys(text for template in templates for text in spellings(template, fact)))


def _one_fact(event: Event, world: World) -> QuestionDraft:
    family = Family(event, world, 1 + LOOKALIKES)
    fact, *others = family.facts
    part = family.part(fact, POSITIVES)
    negative = family.reports(others) + [family.aside(fact) for _ in range(ASIDES)]
    return QuestionDraft(family.query(fact), [part], shuffled(negative, world.rng))


def _two_facts(event: Event, world: World) -> QuestionDraft:
    """Two facts of one family: the same prize in two years."""
    family = Family(event, world, 2 + LOOKALIKES)
    first, second, *others = family.facts
    query = write(pick(event.pairs, world.rng), _numbered([first, second]), world.rng)
    parts = [family.part(fact, POSITIVES_PER_PART) for fact in (first, second)]
    asides = [family.aside((first, second)[turn % 2]) for turn in range(ASIDES)]
    return QuestionDraft(query, parts, shuffled(family.reports(others) + asides, world.rng))


def _numbered(facts: Sequence[Slots]) -> Slots:
    """The slots of several facts: those of the second begin with `other_`, of the third with `third_`."""
    prefixes = ("", "other_", "third_")
    return {
        f"{prefix}{slot}": value
        for prefix, fact in zip(prefixes, facts, strict=False)
        for slot, value in fact.items()
    }


def _compared_facts(event: Event, comparison: ComparisonQuestion, world: World) -> QuestionDraft:
    """Two or three facts of one family, each in documents of its own: a part of the answer belongs to the one
    with the highest value, the other part to the one with the lowest."""
    by = comparison.by
    while True:
        family = Family(event, world, comparison.facts + LOOKALIKES)
        asked, others = family.facts[: comparison.facts], family.facts[comparison.facts :]
        if len({fact[by].size for fact in asked}) == len(asked):
            break
    usable = [form for form in event.forms if comparison.slots <= stated_slots(form)]
    forms = cycle(world.repeats.deck([*usable, *comparison.forms], world.rng))
    ranked = sorted(asked, key=lambda fact: fact[by].size)
    lowest, *between, highest = (
        (fact, family.reports([fact] * POSITIVES_COMPARED, forms)) for fact in ranked
    )
    parts = []
    for part in comparison.answers:
        fact, documents = highest if part.of == "highest" else lowest
        parts.append(Part(answer_of(fact, part.answer), documents))
    query = write(pick(comparison.queries, world.rng), _numbered(asked), world.rng)
    asides = [family.aside(asked[turn % len(asked)]) for turn in range(ASIDES)]
    negative = shuffled(family.reports(others) + asides, world.rng)
    return QuestionDraft(query, parts, negative, [documents for _, documents in between])


def _two_events(one: Event, other: Event, world: World) -> QuestionDraft:
    """Two events in one town."""
    first = Family(one, world, 1 + LOOKALIKES // 2)
    second = Family(other, world, 1 + LOOKALIKES // 2, town=first.frame["town"])
    query = world.names.joined(first.query(first.facts[0]), second.query(second.facts[0]))
    negative: list[str] = []
    for family in (first, second):
        negative += family.reports(family.facts[1:])
        negative += [family.aside(family.facts[0]) for _ in range(ASIDES // 2)]
    parts = [family.part(family.facts[0], POSITIVES_PER_PART) for family in (first, second)]
    return QuestionDraft(query, parts, shuffled(negative, world.rng))


# --- well-known facts -------------------------------------------------------------------------------


def _fact_rows(lang: str, key: str, size: int) -> list[dict[str, Any]]:
    facts = _dealt(relations_of(lang).values(), seeded(key))
    if size > len(facts):
        raise UsageError(f"There are {len(facts)} facts in '{lang}', not {size}: ask for fewer.")
    rows = []
    repeats = Repeats()
    for number, (relation, fact) in enumerate(facts[:size]):
        rng = seeded(key, number)
        fact = msgspec.structs.replace(fact, fake=fact.fake or pick(fact.fakes, rng))
        rows.append({"id": number, **fact_row(relation, fact, lang, rng, repeats)})
    return rows


def _dealt(relations: Iterable[Relation], rng: random.Random) -> list[tuple[Relation, Fact]]:
    """All facts, one of each relation after another. Those whose false answer was written for them come
    first: it is more plausible than that of a neighbour in a table."""
    dealt: list[tuple[int, Relation, Fact]] = []
    for relation in shuffled(relations, rng):
        ranked = sorted(shuffled(relation.facts, rng), key=lambda fact: not fact.fake)
        dealt += [(turn, relation, fact) for turn, fact in enumerate(ranked)]
    dealt.sort(key=lambda item: (not item[2].fake, item[0]))
    return [(relation, fact) for _, relation, fact in dealt]
