"""Questions that a model writes about passages: plain ones, two-part ones, and ones with a false answer.

Every step yields all its requests at once, checks what came back, and counts what it drops by reason.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

from evenkeel.benchmarks.rgb.files import Lang, language
from evenkeel.benchmarks.rgb.make.passages import (
    Nearest,
    Passage,
    agree,
    false_version,
    is_false_version,
    length,
    reveals,
    same_kind,
    same_words,
    states,
)
from evenkeel.files.package_data import read_json
from evenkeel.make import asking
from evenkeel.make.asking import Asking, Fields, Tally
from evenkeel.make.grammar import shuffled
from evenkeel.text import judge
from evenkeel.text.bm25 import bm25_candidates
from evenkeel.text.prompts import user_prompt

T = TypeVar("T")

TRIES = 3
"""Where questions are dropped, further passages are asked about: at most so many for each question."""
LONGEST_ANSWER: dict[Lang, int] = {"en": 60, "zh": 20}
"""In characters."""
POSITIVES = 5
NEGATIVES = 10
LEAST = 5
"""Negatives without which a question is dropped: a prompt has five documents, at noise 1 all of them."""
NEAR = 20
"""Only among so many of the nearest passages are others with the answer looked for."""
PARTNERS = 20
"""Partners that are tried for a question, by similarity, before any other."""
PASSAGE_TOKENS = 1024
"""Of a rewritten passage, with room for a language that takes many."""

QUESTIONS = "questions"
TWO_PARTS = "two-part questions"
FALSE_ANSWERS = "false answers"
FALSE_VERSIONS = "false versions of documents"


class Prompts(Struct, frozen=True, forbid_unknown_fields=True):
    """What the model is asked in one language."""

    question: str
    read: str
    rewrite: str
    styles: tuple[str, ...]
    """Ways to retell a passage, so that no two rewritings are alike."""
    join: str
    false_answer: str
    false_version: str
    passage_words: tuple[str, ...]
    """A question with one of these cannot be asked without its passage."""


class _Texts(Struct):
    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            setattr(self, field, " ".join(getattr(self, field).split()))


class QuestionText(_Texts):
    question: str
    answer: str


class JoinedText(_Texts):
    question: str


class FalseAnswer(_Texts):
    false_answer: str


class PassageText(_Texts):
    text: str


class Reading(Struct):
    answer: str


class Question(NamedTuple):
    """A question with its documents: those that give its answer, and near ones that do not."""

    passage: Passage
    query: str
    answer: str
    positive: list[str]
    negative: Sequence[str] = ()


Couple: TypeAlias = tuple[Question, Question]


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

    question: Question
    false_answer: str
    positive: list[str]
    wrong: list[str]
    negative: list[str]

    @property
    def answers(self) -> tuple[str, str, str]:
        """The true answer, the false one, and the query."""
        return self.question.answer, self.false_answer, self.question.query


class Writer:
    """The model that writes a set, asked in one language."""

    def __init__(self, lang: Lang) -> None:
        self.lang: Lang = lang
        self.prompts = read_json(__package__, "prompts.json", type=dict[str, Prompts])[lang]
        self.tally = Tally()

    def ask(
        self,
        kind: type[Fields],
        step: str,
        template: str,
        slots: Sequence[tuple[T, Mapping[str, str]]],
        *,
        max_tokens: int = judge.MAX_TOKENS,
    ) -> Asking[list[tuple[T, Fields]]]:
        """Each item with what the model wrote for its slots; those without a readable answer are left out."""
        prompts = [(item, user_prompt(template, **values)) for item, values in slots]
        answers = yield from asking.ask(kind, prompts, self.tally[step], max_tokens=max_tokens)
        return [(item, verdict.value) for item, verdict in answers if verdict.value is not None]

    def read(self, step: str, texts: Sequence[tuple[T, str, str]]) -> Asking[list[tuple[T, str]]]:
        """For each item, query and text: what the model reads in the text as the answer."""
        slots = [(item, {"QUERY": query, "PASSAGE": text}) for item, query, text in texts]
        readings = yield from self.ask(Reading, step, self.prompts.read, slots)
        return [(item, reading.answer) for item, reading in readings]


# --- plain questions --------------------------------------------------------------------------------


def write_questions(
    passages: Sequence[Passage], number: int, writer: Writer, seed: int
) -> Asking[list[Question]]:
    """As many questions as `number`, or as come of TRIES times as many passages."""
    remaining = in_turn(passages, random.Random(f"{seed}:passages"))[: TRIES * number]
    questions: list[Question] = []
    while remaining and len(questions) < number:
        missing = number - len(questions)
        portion, remaining = remaining[:missing], remaining[missing:]
        questions += yield from _write(portion, questions, writer)
    return questions


def in_turn(passages: Sequence[Passage], rng: random.Random) -> list[Passage]:
    """The passages in a random order in which every document comes once before any comes twice."""
    turns: Counter[str] = Counter()

    def turn(passage: Passage) -> int:
        turns[passage.document] += 1
        return turns[passage.document]

    return sorted(shuffled(passages, rng), key=turn)


def _write(
    passages: Sequence[Passage], earlier: Sequence[Question], writer: Writer
) -> Asking[list[Question]]:
    """One question about each passage, if the model, given the passage, answers it as it did before."""
    slots = [(passage, {"PASSAGE": passage.text}) for passage in passages]
    drafts: list[Question] = []
    for passage, text in (yield from writer.ask(QuestionText, QUESTIONS, writer.prompts.question, slots)):
        draft = Question(passage, text.question, text.answer, [passage.text])
        if writer.tally.passes(QUESTIONS, question_fault(draft, [*earlier, *drafts], writer)):
            drafts.append(draft)
    texts = [(draft, draft.query, draft.passage.text) for draft in drafts]
    readings = yield from writer.read(QUESTIONS, texts)
    fault = "the passage, read again, gives another answer"
    return [
        draft
        for draft, reading in readings
        if writer.tally.accept(QUESTIONS, "" if agree(reading, draft.answer) else fault)
    ]


def question_fault(question: Question, earlier: Sequence[Question], writer: Writer) -> str:
    """Why a question cannot be used; empty where it can."""
    query, answer = question.query, question.answer
    if not query or not answer:
        return "empty"
    if len(answer) > LONGEST_ANSWER[writer.lang]:
        return "the answer is long"
    if not states(question.passage.text, answer):
        return "the answer is not in the passage"
    if reveals(query, answer):
        return "the question gives the answer away"
    if any(phrase in query.lower() for phrase in writer.prompts.passage_words):
        return "the question refers to its passage"
    if language("", [query]) != writer.lang:
        return "the question is in another language"
    if any(same_words(query, other.query) for other in earlier):
        return "asked before"
    return ""


# --- their documents --------------------------------------------------------------------------------


def gather(questions: Sequence[Question], nearest: Nearest, writer: Writer) -> Asking[list[Question]]:
    """The questions with their documents; one with too few negatives is dropped."""
    rankings = yield from nearest.of([question.query for question in questions])
    gathered: list[Question] = []
    candidates: list[tuple[Question, str]] = []
    for question, near in zip(questions, rankings, strict=True):
        negative = negatives(near, question.query, [question.answer])
        fault = "" if len(negative) >= LEAST else "too few without the answer"
        if writer.tally.accept("questions with near passages", fault):
            gathered.append(question._replace(negative=negative))
            others = (text for text in near[:NEAR] if text != question.passage.text)
            stating = (text for text in others if states(text, question.answer))
            candidates += [(gathered[-1], text) for text in islice(stating, POSITIVES - 1)]
    yield from _add_others(candidates, writer)
    yield from _add_rewritten(gathered, writer)
    return gathered


def negatives(near: Sequence[str], query: str, answers: Sequence[str]) -> list[str]:
    """The nearest texts that reveal none of the answers."""
    silent = (text for text in near if not any(reveals(text, answer, query) for answer in answers))
    return list(islice(silent, NEGATIVES))


def _add_others(candidates: Sequence[tuple[Question, str]], writer: Writer) -> Asking[None]:
    """Add the passages in which the model reads the same answer: 1998 may be the year of something else."""
    step = "other passages with the answer"
    texts = [((question, text), question.query, text) for question, text in candidates]
    for (question, text), reading in (yield from writer.read(step, texts)):
        fault = "" if agree(reading, question.answer) else "about something else"
        if writer.tally.accept(step, fault):
            question.positive.append(text)


def _add_rewritten(questions: Sequence[Question], writer: Writer) -> Asking[None]:
    """Have each passage rewritten until there are POSITIVES, each time in another style."""
    step = "rewritten passages"
    slots = [
        (question, {"STYLE": style, "QUERY": question.query, "ANSWER": question.answer,
                    "PASSAGE": question.passage.text})
        for question in questions
        for style in writer.prompts.styles[: POSITIVES - len(question.positive)]
    ]  # fmt: skip
    texts = yield from writer.ask(PassageText, step, writer.prompts.rewrite, slots, max_tokens=PASSAGE_TOKENS)
    for question, rewritten in texts:
        if writer.tally.accept(step, _rewriting_fault(rewritten.text, question, writer.lang)):
            question.positive.append(rewritten.text)


def _rewriting_fault(text: str, question: Question, lang: Lang) -> str:
    if not states(text, question.answer):
        return "the answer was lost"
    if any(same_words(text, other) for other in question.positive):
        return "in the same words"
    ratio = length(text, lang) / max(1, length(question.passage.text, lang))
    return "" if 1 / 3 <= ratio <= 3 else "much longer or shorter"


# --- two-part questions -----------------------------------------------------------------------------


def join(questions: Sequence[Question], nearest: Nearest, writer: Writer) -> Asking[list[TwoPart]]:
    """Pairs of questions about different passages, joined into one; each question is in at most one."""
    slots = [
        ((first, second), {"FIRST": first.query, "SECOND": second.query})
        for first, second in partners(questions, writer.lang)
    ]
    drafts = [
        TwoPart(text.question, couple)
        for couple, text in (yield from writer.ask(JoinedText, TWO_PARTS, writer.prompts.join, slots))
        if writer.tally.passes(TWO_PARTS, _join_fault(text.question, couple))
    ]
    passages = ["\n\n".join(part.passage.text for part in draft.parts) for draft in drafts]
    texts = [(draft, draft.query, passage) for draft, passage in zip(drafts, passages, strict=True)]
    fault = "the passages, read again, do not give both answers"
    confirmed = [
        draft
        for draft, reading in (yield from writer.read(TWO_PARTS, texts))
        if writer.tally.passes(TWO_PARTS, "" if all(states(reading, a) for a in draft.answers) else fault)
    ]
    rankings = yield from nearest.of([draft.query for draft in confirmed])
    joined = []
    for draft, near in zip(confirmed, rankings, strict=True):
        negative = negatives(near, draft.query, draft.answers)
        fault = "" if len(negative) >= LEAST else "too few near passages without the answers"
        if writer.tally.accept(TWO_PARTS, fault):
            joined.append(draft._replace(negative=negative))
    return joined


def partners(questions: Sequence[Question], lang: Lang) -> list[Couple]:
    """Each question with the likest one that is free, where neither gives the other's answer away."""
    texts = [f"{question.query} {question.passage.text}" for question in questions]
    rankings = bm25_candidates(texts, range(len(texts)), PARTNERS, lang=lang) if texts else []
    free = dict.fromkeys(range(len(questions)))
    couples = []
    for index, candidates in enumerate(rankings):
        if index not in free:
            continue
        del free[index]
        for other in dict.fromkeys([*(candidate.document for candidate in candidates), *free]):
            if other in free and independent(questions[index], questions[other]):
                del free[other]
                couples.append((questions[index], questions[other]))
                break
    return couples


def independent(first: Question, second: Question) -> bool:
    """Whether neither question nor its documents give the other's answer."""
    return not any(
        reveals(text, question.answer)
        for question, other in ((first, second), (second, first))
        for text in (other.query, *other.positive)
    )


def _join_fault(query: str, couple: Couple) -> str:
    if not query:
        return "empty"
    if any(reveals(query, part.answer) for part in couple):
        return "the question gives an answer away"
    if any(same_words(query, part.query) for part in couple):
        return "one part only"
    return ""


# --- false answers ----------------------------------------------------------------------------------


def falsify(questions: Sequence[Question], writer: Writer) -> Asking[list[Counterfactual]]:
    """Each question with a false answer and the documents that could be made to give it."""
    slots = [(question, {"QUERY": question.query, "ANSWER": question.answer}) for question in questions]
    texts = yield from writer.ask(FalseAnswer, FALSE_ANSWERS, writer.prompts.false_answer, slots)
    facts: list[Counterfactual] = []
    for question, text in texts:
        false = text.false_answer
        if writer.tally.accept(FALSE_ANSWERS, false_answer_fault(false, question)):
            negative = [document for document in question.negative if not reveals(document, false)]
            facts.append(Counterfactual(question, false, [], [], negative))
    yield from _add_false_versions(facts, writer)
    return [fact for fact in facts if fact.positive]


def false_answer_fault(false: str, question: Question) -> str:
    """Why a false answer cannot be used; empty where it can."""
    if not false:
        return "empty"
    if agree(false, question.answer) or reveals(false, question.answer):
        return "not false"
    if not same_kind(question.answer, false):
        return "of another kind than the true one"
    if any(reveals(text, false) for text in (question.query, question.passage.text)):
        return "in the question or its passage"
    return ""


def _add_false_versions(facts: Sequence[Counterfactual], writer: Writer) -> Asking[None]:
    """Add the false version of each document: by replacing the answer, or, if that fails, by the model."""
    versions: dict[tuple[int, str], str | None] = {}
    for index, fact in enumerate(facts):
        for text in fact.question.positive:
            fault = "the document gives the false answer too" if reveals(text, fact.false_answer) else ""
            if writer.tally.passes(FALSE_VERSIONS, fault):
                versions[index, text] = false_version(text, *fact.answers)
    slots = [
        ((index, text), {"ANSWER": facts[index].question.answer, "FALSE": facts[index].false_answer,
                         "PASSAGE": text})
        for (index, text), version in versions.items()
        if version is None
    ]  # fmt: skip
    texts = yield from writer.ask(
        PassageText, FALSE_VERSIONS, writer.prompts.false_version, slots, max_tokens=PASSAGE_TOKENS
    )
    for (index, text), rewritten in texts:
        correct = is_false_version(rewritten.text, *facts[index].answers)
        if writer.tally.passes(FALSE_VERSIONS, "" if correct else "still true, or not false as asked"):
            versions[index, text] = rewritten.text
    for (index, text), version in versions.items():
        if version is not None:
            writer.tally.accept(FALSE_VERSIONS)
            facts[index].positive.append(text)
            facts[index].wrong.append(version)
