"""Questions of two parts, for information integration: two questions joined by a model into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from evenkeel.benchmarks.rgb.files import Lang
from evenkeel.benchmarks.rgb.make.documents.asking import Asking, Author
from evenkeel.benchmarks.rgb.make.documents.evidence import LEAST, Item, negatives
from evenkeel.benchmarks.rgb.make.documents.nearest import Nearest
from evenkeel.benchmarks.rgb.make.documents.questions import read
from evenkeel.benchmarks.rgb.make.documents.telling import alike, states, tells
from evenkeel.text.bm25 import lexical_candidates

STEP = "questions of two parts"
LOOKED_AT = 20
"""Partners that are tried for a question, by likeness, before any other."""


Couple: TypeAlias = tuple[Item, Item]
Draft: TypeAlias = tuple[str, Couple]
"""A joined question, and the two it is of."""


class Pair(NamedTuple):
    query: str
    parts: Couple
    negative: list[str]


class Joined(Struct, frozen=True):
    question: str


def join(items: Sequence[Item], nearest: Nearest, author: Author) -> Asking[list[Pair]]:
    """Pairs of questions about different passages, each question in one pair at the most."""
    couples = partners(items, author.lang)
    places = [{"FIRST": one.question.query, "SECOND": other.question.query} for one, other in couples]
    written = yield from author.ask(Joined, STEP, author.wording.join, places)
    drafts: list[Draft] = []
    for couple, draft in zip(couples, written, strict=True):
        if draft is None:
            continue
        query = " ".join(draft.question.split())
        if fault := _fault(query, couple):
            author.tally.drop(STEP, fault)
        else:
            drafts.append((query, couple))
    drafts = yield from _read_back(drafts, author)
    ranked = yield from nearest.of([query for query, _ in drafts])
    pairs = []
    for (query, couple), near in zip(drafts, ranked, strict=True):
        negative = negatives(near, query, [item.question.answer for item in couple])
        if len(negative) < LEAST:
            author.tally.drop(STEP, "too few near passages without the answers")
        else:
            author.tally.keep(STEP)
            pairs.append(Pair(query, couple, negative))
    return pairs


def partners(items: Sequence[Item], lang: Lang) -> list[Couple]:
    """Each question with the likest one that is still free and keeps its answer to itself."""
    texts = [f"{item.question.query} {item.positive[0]}" for item in items]
    ranked = lexical_candidates(texts, range(len(texts)), LOOKED_AT, lang=lang) if texts else []
    free = dict.fromkeys(range(len(items)))
    couples = []
    for place, candidates in enumerate(ranked):
        if place not in free:
            continue
        del free[place]
        order = dict.fromkeys([*(found.document for found in candidates), *free])
        for other in order:
            if other in free and apart(items[place], items[other]):
                del free[other]
                couples.append((items[place], items[other]))
                break
    return couples


def apart(one: Item, other: Item) -> bool:
    """Whether neither question nor its documents give the other's answer."""
    return not any(
        tells(text, answerer.question.answer)
        for answerer, teller in ((one, other), (other, one))
        for text in (teller.question.query, *teller.positive)
    )


def _fault(query: str, couple: Couple) -> str:
    if not query:
        return "empty"
    if any(tells(query, item.question.answer) for item in couple):
        return "the question gives an answer away"
    if any(alike(query, item.question.query) for item in couple):
        return "one part only"
    return ""


def _read_back(drafts: Sequence[Draft], author: Author) -> Asking[list[Draft]]:
    """Those for which the model, given both passages, finds both answers."""
    asked = [(query, "\n\n".join(item.positive[0] for item in couple)) for query, couple in drafts]
    readings = yield from read(STEP, asked, author)
    kept = []
    for draft, reading in zip(drafts, readings, strict=True):
        if reading is None:
            continue
        if all(states(reading, item.question.answer) for item in draft[1]):
            kept.append(draft)
        else:
            author.tally.drop(STEP, "the passages, read again, do not give both answers")
    return kept
