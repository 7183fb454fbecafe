"""Questions made from others: two joined into one, and ones with a false answer and false documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple, TypeAlias

from sealegs.benchmarks.rgb.data import Lang
from sealegs.benchmarks.rgb.make.evidence import Asked, read_irrelevant, too_few
from sealegs.benchmarks.rgb.make.passages import Passage, false_version, may_be_same, ranked, reveals
from sealegs.benchmarks.rgb.make.questions import (
    ASKED_ANSWER,
    QuestionWithDocuments,
    SetWriter,
    TextFields,
    gives,
    reading_fault,
)
from sealegs.benchmarks.rgb.make.world import names_of
from sealegs.make.asking import Asking
from sealegs.text.answers import is_blank

TWO_PARTS = "two-part questions"
FALSE_ANSWERS = "false answers"
FALSE_VERSIONS = "false versions of documents"
COUNTERFACTUAL = "counterfactual questions"

Couple: TypeAlias = tuple[QuestionWithDocuments, QuestionWithDocuments]


class FalseAnswer(TextFields):
    false_answer: Annotated[str, ASKED_ANSWER]


class TwoPart(NamedTuple):
    """Two questions joined into one, for information integration."""

    query: str
    parts: Couple
    negative: Sequence[str] = ()

    @property
    def answers(self) -> list[str]:
        return [part.answer for part in self.parts]


class Counterfactual(NamedTuple):
    """A question with a false answer and, for each positive, the version of it that gives the false one."""

    question: QuestionWithDocuments
    false_answer: str
    positive: list[str]
    wrong: list[str]
    negative: list[str]

    @property
    def answers(self) -> tuple[str, str, str]:
        """The true answer, the false one, and the query."""
        return self.question.answer, self.false_answer, self.question.query


# --- two-part questions -----------------------------------------------------------------------------


def join(
    questions: Sequence[QuestionWithDocuments], passages: Sequence[Passage], writer: SetWriter
) -> Asking[list[TwoPart]]:
    """Pairs of questions about different passages, joined into one; each question is in at most one."""
    couples = partners(questions, writer.lang)
    for _ in range(len(questions) - 2 * len(couples)):
        writer.tally.passes(TWO_PARTS, "no other question to join it with")
    names = names_of(writer.lang)
    drafts = [TwoPart(names.joined(first.query, second.query), (first, second)) for first, second in couples]
    asked = [Asked(draft.query, draft.answers) for draft in drafts]
    irrelevant = yield from read_irrelevant(asked, passages, writer)
    return [
        draft._replace(negative=texts)
        for draft, texts in zip(drafts, irrelevant, strict=True)
        if writer.tally.accept(TWO_PARTS, too_few(texts))
    ]


def partners(questions: Sequence[QuestionWithDocuments], lang: Lang) -> list[Couple]:
    """Each question with the nearest one that is free, where neither gives the other's answer away."""
    texts = [f"{question.query} {question.passage.text}" for question in questions]
    free = dict.fromkeys(range(len(questions)))
    couples = []
    for index, ranking in enumerate(ranked(texts, texts, lang) if texts else ()):
        if index not in free:
            continue
        del free[index]
        for other in ranking:
            if other in free and independent(questions[index], questions[other]):
                del free[other]
                couples.append((questions[index], questions[other]))
                break
    return couples


def independent(first: QuestionWithDocuments, second: QuestionWithDocuments) -> bool:
    """Whether neither question nor its documents give the other's answer."""
    return not any(
        reveals(text, question.answer)
        for question, other in ((first, second), (second, first))
        for text in (other.query, *other.positive)
    )


# --- false answers ----------------------------------------------------------------------------------


def falsify(questions: Sequence[QuestionWithDocuments], writer: SetWriter) -> Asking[list[Counterfactual]]:
    """Each question with a false answer and the documents that could be made to give it."""
    slots = [(question, {"QUERY": question.query, "ANSWER": question.answer}) for question in questions]
    texts = yield from writer.ask(FalseAnswer, FALSE_ANSWERS, writer.prompts.false_answer, slots)
    facts: list[Counterfactual] = []
    for question, text in texts:
        false = text.false_answer
        negative = [document for document in question.negative if not reveals(document, false)]
        fault = false_answer_fault(false, question) or too_few(negative)
        if writer.tally.accept(FALSE_ANSWERS, fault):
            facts.append(Counterfactual(question, false, [], [], negative))
    yield from _add_false_versions(facts, writer)
    fault = "none of its documents has a false version"
    return [fact for fact in facts if writer.tally.accept(COUNTERFACTUAL, "" if fact.wrong else fault)]


def false_answer_fault(false: str, question: QuestionWithDocuments) -> str:
    """Why a false answer cannot be used; empty where it can."""
    if is_blank(false):
        return "empty"
    if may_be_same(false, question.answer) or reveals(false, question.answer):
        return "not false"
    if any(reveals(text, false) for text in (question.query, question.passage.text)):
        return "in the question or its passage"
    return ""


def _add_false_versions(facts: Sequence[Counterfactual], writer: SetWriter) -> Asking[None]:
    """Add the false version of each document, with the answer replaced, if the model reads the false one in
    it."""
    texts: list[tuple[tuple[Counterfactual, str, str], str, str]] = []
    for fact in facts:
        for text in fact.question.positive:
            version = false_version(text, *fact.answers)
            fault = "the answer cannot be replaced in it" if version is None else ""
            if reveals(text, fact.false_answer):
                fault = "the document gives the false answer too"
            if writer.tally.passes(FALSE_VERSIONS, fault):
                texts.append(((fact, text, version or ""), fact.question.query, version or ""))
    for (fact, text, version), reading in (yield from writer.read(FALSE_VERSIONS, texts)):
        if writer.tally.accept(FALSE_VERSIONS, _false_reading_fault(reading, fact)):
            fact.positive.append(text)
            fact.wrong.append(version)


def _false_reading_fault(reading: str, fact: Counterfactual) -> str:
    true, false, query = fact.answers
    if reveals(reading, true, query) or gives(reading, true, query):
        return "read again, it gives the true answer"
    return reading_fault(reading, false, query)
