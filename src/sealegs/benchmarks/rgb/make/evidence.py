"""The documents of a question: some that give its answer, some that do not, each read by the model.

A document counts only with what the model reads in it: one with the answer must give it, whoever wrote it,
and an irrelevant one must give no answer to the question, neither the right one nor another.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from sealegs.benchmarks.rgb.data import Lang
from sealegs.benchmarks.rgb.make.passages import Passage, length, ranked, repeats, reveals, states
from sealegs.benchmarks.rgb.make.questions import (
    Contradiction,
    QuestionWithDocuments,
    SetWriter,
    TextFields,
    gives,
    gives_none,
    reading_fault,
)
from sealegs.make.asking import Asking

POSITIVES = 5
NEGATIVES = 10
LEAST = 5
"""Negatives without which a question is dropped: a prompt has five documents, at noise 1 all of them."""
MUST_SAY: dict[Lang, int] = {"en": 3, "zh": 6}
"""Of a rewriting: words besides the answer, in Chinese characters."""
PASSAGE_TOKENS = 1024
"""Of a rewritten passage, with room for a language that takes many."""

IRRELEVANT = "irrelevant documents"
REWRITTEN = "rewritten passages"
ANSWERS = "an answer can be read from it"
SAME_WORDS = "it repeats the passage or another rewriting"


class PassageText(TextFields):
    text: str


def gather(
    questions: Sequence[QuestionWithDocuments], passages: Sequence[Passage], writer: SetWriter
) -> Asking[list[QuestionWithDocuments]]:
    """The questions with their documents; one with too few irrelevant ones is dropped."""
    asked = [Asked(question.query, [question.answer], question.passage.document) for question in questions]
    irrelevant = yield from read_irrelevant(asked, passages, writer)
    gathered = [
        question._replace(negative=texts)
        for question, texts in zip(questions, irrelevant, strict=True)
        if writer.tally.accept("questions with irrelevant documents", too_few(texts))
    ]
    yield from _add_rewritten(gathered, writer)
    return gathered


# --- irrelevant documents ---------------------------------------------------------------------------


class Asked(NamedTuple):
    """A query and the answers that an irrelevant document must not give."""

    query: str
    answers: Sequence[str]
    source: str = ""
    """The document that has the answer, where it is one: another answer elsewhere contradicts it."""


def read_irrelevant(
    asked: Sequence[Asked], passages: Sequence[Passage], writer: SetWriter
) -> Asking[list[list[str]]]:
    """For each query those of the nearest passages that reveal none of its answers and in which the model
    reads none, not even another one: that would contradict the documents that have the right one."""
    rankings = ranked([passage.text for passage in passages], [item.query for item in asked], writer.lang)
    texts = []
    for index, (item, ranking) in enumerate(zip(asked, rankings, strict=True)):
        near = (passages[number] for number in ranking)
        silent = (each for each in near if not any(reveals(each.text, a, item.query) for a in item.answers))
        texts += [((index, each), item.query, each.text) for each in islice(silent, NEGATIVES)]
    accepted: list[list[str]] = [[] for _ in asked]
    for (index, passage), reading in (yield from writer.read(IRRELEVANT, texts)):
        item = asked[index]
        fault = "" if gives_none(reading, item.query) else ANSWERS
        if writer.tally.accept(IRRELEVANT, fault):
            accepted[index].append(passage.text)
        elif item.source and not any(gives(reading, answer, item.query) for answer in item.answers):
            writer.contradictions.append(
                Contradiction(passage.document, item.source, item.query, reading, item.answers[0])
            )
    return accepted


def too_few(texts: Sequence[str]) -> str:
    return f"fewer than {LEAST} passages in which no answer can be read" if len(texts) < LEAST else ""


# --- documents with the answer ----------------------------------------------------------------------


def rewriting_fault(text: str, answer: str, others: Sequence[str], lang: Lang) -> str:
    """Why a rewriting cannot be used; empty where it can. Whether it gives the answer is read in it."""
    if not states(text, answer):
        return "the answer was lost"
    if any(repeats(text, other) for other in others):
        return SAME_WORDS
    said = length(text, lang) - length(answer, lang)
    return "it says hardly more than the answer" if said < MUST_SAY[lang] else ""


def _add_rewritten(questions: Sequence[QuestionWithDocuments], writer: SetWriter) -> Asking[None]:
    """Have each passage rewritten until there are POSITIVES, each time in another style, and read again."""
    slots = [
        (question, {"STYLE": style, "QUERY": question.query, "ANSWER": question.answer,
                    "PASSAGE": question.passage.text})
        for question in questions
        for style in writer.prompts.styles[: POSITIVES - len(question.positive)]
    ]  # fmt: skip
    versions: list[tuple[tuple[QuestionWithDocuments, str], str, str]] = []
    rewritten = writer.ask(PassageText, REWRITTEN, writer.prompts.rewrite, slots, max_tokens=PASSAGE_TOKENS)
    for question, version in (yield from rewritten):
        text, earlier = version.text, [text for (other, text), *_ in versions if other is question]
        fault = rewriting_fault(text, question.answer, [*question.positive, *earlier], writer.lang)
        if writer.tally.passes(REWRITTEN, fault):
            versions.append(((question, text), question.query, text))
    for (question, text), reading in (yield from writer.read(REWRITTEN, versions)):
        if writer.tally.accept(REWRITTEN, reading_fault(reading, question.answer, question.query)):
            question.positive.append(text)
