"""The documents of a question: those that hold its answer, and near ones that do not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from msgspec import Struct

from evenkeel.benchmarks.rgb.make.documents.asking import OF_PASSAGE, Asking, Author
from evenkeel.benchmarks.rgb.make.documents.nearest import Nearest
from evenkeel.benchmarks.rgb.make.documents.passages import length
from evenkeel.benchmarks.rgb.make.documents.questions import Question, read
from evenkeel.benchmarks.rgb.make.documents.telling import agree, alike, states, tells

POSITIVES = 5
NEGATIVES = 10
LEAST = 5
"""Negatives without which a question is dropped: a prompt has five documents, at noise 1 all of them."""
NEAR = 20
"""Only among so many of the nearest passages is a further one looked for that gives the answer too."""


class Item(NamedTuple):
    """A question with its documents."""

    question: Question
    positive: list[str]
    negative: list[str]


class Rewritten(Struct, frozen=True):
    text: str


def gather(questions: Sequence[Question], nearest: Nearest, author: Author) -> Asking[list[Item]]:
    """The documents of each question; one with too few negatives is dropped."""
    step = "questions with near passages"
    ranked = yield from nearest.of([question.query for question in questions])
    items: list[Item] = []
    candidates: list[list[str]] = []
    for question, near in zip(questions, ranked, strict=True):
        negative = negatives(near, question.query, [question.answer])
        if len(negative) < LEAST:
            author.tally.drop(step, "too few without the answer")
            continue
        author.tally.keep(step)
        passage = nearest.passages[question.place]
        items.append(Item(question, [passage], negative))
        others = [text for text in near[:NEAR] if text != passage and states(text, question.answer)]
        candidates.append(others[: POSITIVES - 1])
    yield from _add_further(items, candidates, author)
    yield from _add_rewritten(items, author)
    return items


def negatives(near: Sequence[str], query: str, answers: Sequence[str]) -> list[str]:
    """The nearest texts that give none of the answers away."""
    silent = (text for text in near if not any(tells(text, answer, query) for answer in answers))
    return list(islice(silent, NEGATIVES))


def _add_further(items: Sequence[Item], candidates: Sequence[Sequence[str]], author: Author) -> Asking[None]:
    """Add the passages from which the model reads the same answer: 1998 may be the year of something else."""
    step = "further passages with the answer"
    pairs = [(item, text) for item, texts in zip(items, candidates, strict=True) for text in texts]
    readings = yield from read(step, [(item.question.query, text) for item, text in pairs], author)
    for (item, text), reading in zip(pairs, readings, strict=True):
        if reading is None:
            continue
        if agree(reading, item.question.answer):
            author.tally.keep(step)
            item.positive.append(text)
        else:
            author.tally.drop(step, "about something else")


def _add_rewritten(items: Sequence[Item], author: Author) -> Asking[None]:
    """Have each passage told in other words until there are POSITIVES, each time in another manner."""
    step = "passages told in other words"
    wanted = [
        (item, manner)
        for item in items
        for manner in author.wording.manners[: POSITIVES - len(item.positive)]
    ]
    places = [
        {
            "MANNER": manner,
            "QUERY": item.question.query,
            "ANSWER": item.question.answer,
            "PASSAGE": item.positive[0],
        }
        for item, manner in wanted
    ]
    written = yield from author.ask(Rewritten, step, author.wording.rewrite, places, max_tokens=OF_PASSAGE)
    for (item, _), draft in zip(wanted, written, strict=True):
        if draft is None:
            continue
        text = " ".join(draft.text.split())
        if fault := _fault(text, item, author):
            author.tally.drop(step, fault)
        else:
            author.tally.keep(step)
            item.positive.append(text)


def _fault(text: str, item: Item, author: Author) -> str:
    if not states(text, item.question.answer):
        return "the answer was lost"
    if any(alike(text, other) for other in item.positive):
        return "in the same words"
    ratio = length(text, author.lang) / max(1, length(item.positive[0], author.lang))
    return "" if 1 / 3 <= ratio <= 3 else "much longer or shorter"
