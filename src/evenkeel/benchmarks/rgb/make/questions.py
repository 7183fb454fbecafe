"""Questions with short answers, written by a model about one passage each, and checked."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from evenkeel.benchmarks.rgb.files import Lang, language
from evenkeel.benchmarks.rgb.make.documents.asking import Asking, Author
from evenkeel.benchmarks.rgb.make.documents.passages import Passage
from evenkeel.benchmarks.rgb.make.documents.telling import agree, alike, states, tells

TRIES = 3
"""Where questions are dropped, further passages are asked about: so many for each question at the most."""
LONGEST: dict[Lang, int] = {"en": 60, "zh": 20}
"""Characters of a short answer."""
STEP = "questions"


class Question(NamedTuple):
    place: int
    """Of its passage."""
    query: str
    answer: str


class Written(Struct, frozen=True):
    question: str
    answer: str


class Reading(Struct, frozen=True):
    answer: str


def write_questions(
    passages: Sequence[Passage], wanted: int, author: Author, seed: int
) -> Asking[list[Question]]:
    """As many questions as wanted, or as come of TRIES times as many passages."""
    left = in_turn(passages, random.Random(f"{seed}:passages"))[: TRIES * wanted]
    kept: list[Question] = []
    while left and len(kept) < wanted:
        missing = wanted - len(kept)
        asked, left = left[:missing], left[missing:]
        drafts = yield from _drafts(passages, asked, kept, author)
        kept += yield from _read_back(passages, drafts, author)
    return kept


def in_turn(passages: Sequence[Passage], rng: random.Random) -> list[int]:
    """The places of the passages in a random order in which every document comes once before any twice."""
    order = sorted(range(len(passages)), key=lambda _: rng.random())
    seen: Counter[str] = Counter()
    turns = []
    for place in order:
        document = passages[place].document
        turns.append((seen[document], place))
        seen[document] += 1
    return [place for _, place in sorted(turns, key=lambda turn: turn[0])]


def _drafts(
    passages: Sequence[Passage], places: Sequence[int], before: Sequence[Question], author: Author
) -> Asking[list[Question]]:
    asked = [{"PASSAGE": passages[place].text} for place in places]
    written = yield from author.ask(Written, STEP, author.wording.question, asked)
    drafts: list[Question] = []
    for place, draft in zip(places, written, strict=True):
        if draft is None:
            continue
        question = Question(place, " ".join(draft.question.split()), " ".join(draft.answer.split()))
        if fault := fault_of(question, passages[place].text, [*before, *drafts], author):
            author.tally.drop(STEP, fault)
        else:
            drafts.append(question)
    return drafts


def fault_of(question: Question, passage: str, before: Sequence[Question], author: Author) -> str:
    """Why a question cannot be used; nothing where it can."""
    _, query, answer = question
    if not query or not answer:
        return "empty"
    if len(answer) > LONGEST[author.lang]:
        return "the answer is long"
    if not states(passage, answer):
        return "the answer is not in the passage"
    if tells(query, answer):
        return "the question gives the answer away"
    if any(phrase in query.lower() for phrase in author.wording.of_passage):
        return "the question speaks of its passage"
    if language("", [query]) != author.lang:
        return "the question is in another language"
    if any(alike(query, other.query) for other in before):
        return "asked before"
    return ""


def _read_back(
    passages: Sequence[Passage], drafts: Sequence[Question], author: Author
) -> Asking[list[Question]]:
    """The questions that the model, given the passage, answers as it did when it wrote them."""
    readings = yield from read(STEP, [(draft.query, passages[draft.place].text) for draft in drafts], author)
    kept = []
    for draft, reading in zip(drafts, readings, strict=True):
        if reading is None:
            continue
        if agree(reading, draft.answer):
            author.tally.keep(STEP)
            kept.append(draft)
        else:
            author.tally.drop(STEP, "the passage, read again, gives another answer")
    return kept


def read(step: str, asked: Sequence[tuple[str, str]], author: Author) -> Asking[list[str | None]]:
    """What the model reads in a text as the answer to a question, for each pair of them."""
    places = [{"QUERY": query, "PASSAGE": text} for query, text in asked]
    readings = yield from author.ask(Reading, step, author.wording.read, places)
    return [None if reading is None else reading.answer for reading in readings]
