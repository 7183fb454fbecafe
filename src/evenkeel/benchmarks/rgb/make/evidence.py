"""The documents of a question: some that give its answer, some that do not, each read by the model.

A document counts only with what the model reads in it: one with the answer must give it, whoever wrote it,
and an irrelevant one must give no answer to the question, neither the right one nor another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from evenkeel.benchmarks.rgb.files import Lang
from evenkeel.benchmarks.rgb.make.passages import Nearest, length, reveals, same_words, states
from evenkeel.benchmarks.rgb.make.questions import (
    NOT_STATED,
    TRIES,
    Question,
    TextFields,
    Writer,
    gives_none,
    reading_fault,
)
from evenkeel.make.asking import Asking
from evenkeel.text.answers import is_blank

POSITIVES = 5
NEGATIVES = 10
LEAST = 5
"""Negatives without which a question is dropped: a prompt has five documents, at noise 1 all of them."""
NEAR = 20
"""Only among so many of the nearest passages are others with the answer looked for."""
PASSAGE_TOKENS = 1024
"""Of a rewritten passage, with room for a language that takes many."""

IRRELEVANT = "irrelevant documents"
OTHERS = "other passages with the answer"
REWRITTEN = "rewritten passages"
ANSWERS = "an answer can be read from it"


class PassageText(TextFields):
    text: str


def gather(questions: Sequence[Question], nearest: Nearest, writer: Writer) -> Asking[list[Question]]:
    """The questions with their documents; one with too few irrelevant ones is dropped."""
    rankings = nearest.of([question.query for question in questions])
    asked = [Asked(question.query, [question.answer]) for question in questions]
    gathered: list[Question] = []
    candidates: list[tuple[Question, str]] = []
    irrelevant = yield from read_irrelevant(asked, rankings, writer)
    for question, near, documents in zip(questions, rankings, irrelevant, strict=True):
        if writer.tally.accept("questions with irrelevant documents", documents.fault):
            gathered.append(question._replace(negative=documents.texts))
            others = (text for text in near[:NEAR] if text != question.passage.text)
            stating = (text for text in others if states(text, question.answer))
            candidates += [(gathered[-1], text) for text in islice(stating, POSITIVES - 1)]
    yield from _add_others(candidates, writer)
    yield from _add_rewritten(gathered, writer)
    return gathered


# --- irrelevant documents ---------------------------------------------------------------------------


class Asked(NamedTuple):
    """A query and the answers that an irrelevant document must not give."""

    query: str
    answers: Sequence[str]


class Irrelevant(NamedTuple):
    """The irrelevant documents of a query, and why they are too few; empty where they are not."""

    texts: list[str]
    fault: str


def read_irrelevant(
    asked: Sequence[Asked], rankings: Sequence[Iterable[str]], writer: Writer
) -> Asking[list[Irrelevant]]:
    """For each query the nearest texts that reveal none of its answers and in which the model reads none,
    not even another one: that would contradict the documents that have the right one.

    Where one is dropped the next is read: at most TRIES times as many as are needed.
    """
    waiting = [
        islice(_silent(item, near), TRIES * NEGATIVES) for item, near in zip(asked, rankings, strict=True)
    ]
    accepted: list[list[str]] = [[] for _ in asked]
    while True:
        batch = [
            ((index, text), item.query, text)
            for index, item in enumerate(asked)
            for text in islice(waiting[index], NEGATIVES - len(accepted[index]))
        ]
        if not batch:
            break
        for (index, text), reading in (yield from writer.read(IRRELEVANT, batch)):
            fault = "" if gives_none(reading, asked[index].query) else ANSWERS
            if writer.tally.accept(IRRELEVANT, fault):
                accepted[index].append(text)
    lack = f"fewer than {LEAST} passages in which no answer can be read"
    return [Irrelevant(texts, lack if len(texts) < LEAST else "") for texts in accepted]


def _silent(asked: Asked, near: Iterable[str]) -> Iterator[str]:
    """The nearest texts that reveal none of the answers."""
    return (text for text in near if not any(reveals(text, a, asked.query) for a in asked.answers))


# --- documents with the answer ----------------------------------------------------------------------


def _add_others(candidates: Sequence[tuple[Question, str]], writer: Writer) -> Asking[None]:
    """Add the passages in which the model reads the same answer: 1998 may be the year of something else."""
    texts = [((question, text), question.query, text) for question, text in candidates]
    for (question, text), reading in (yield from writer.read(OTHERS, texts)):
        if writer.tally.accept(OTHERS, reading_fault(reading, question.answer, question.query)):
            question.positive.append(text)


def _add_rewritten(questions: Sequence[Question], writer: Writer) -> Asking[None]:
    """Have each passage rewritten until there are POSITIVES, each time in another style, and read again."""
    slots = [
        (question, {"STYLE": style, "QUERY": question.query, "ANSWER": question.answer,
                    "PASSAGE": question.passage.text})
        for question in questions
        for style in writer.prompts.styles[: POSITIVES - len(question.positive)]
    ]  # fmt: skip
    versions: list[tuple[tuple[Question, str], str, str]] = []
    rewritten = writer.ask(PassageText, REWRITTEN, writer.prompts.rewrite, slots, max_tokens=PASSAGE_TOKENS)
    for question, version in (yield from rewritten):
        text, earlier = version.text, [text for (other, text), *_ in versions if other is question]
        fault = _stating_fault(text, question.answer)
        if not fault and any(same_words(text, other) for other in (*question.positive, *earlier)):
            fault = "in the same words"
        fault = fault or length_fault(text, question.passage.text, writer.lang)
        if writer.tally.passes(REWRITTEN, fault):
            versions.append(((question, text), question.query, text))
    for (question, text), reading in (yield from writer.read(REWRITTEN, versions)):
        if writer.tally.accept(REWRITTEN, reading_fault(reading, question.answer, question.query)):
            question.positive.append(text)


def _stating_fault(text: str, answer: str) -> str:
    if is_blank(text):
        return "empty"
    if not states(text, answer):
        return NOT_STATED if reveals(text, answer) else "the answer was lost"
    return ""


def length_fault(text: str, original: str, lang: Lang) -> str:
    """Whether a text is much longer or shorter than the one that it was made from."""
    ratio = length(text, lang) / max(1, length(original, lang))
    return "" if 1 / 3 <= ratio <= 3 else "much longer or shorter"
