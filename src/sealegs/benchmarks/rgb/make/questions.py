"""Questions that a model writes about passages, and what it reads in a passage as the answer to one.

Every step yields all its requests at once, checks what came back, and counts what it drops by reason.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple, TypeVar

from msgspec import Struct

from sealegs.benchmarks.rgb.check.lenient import lenient
from sealegs.benchmarks.rgb.data import Lang, language
from sealegs.benchmarks.rgb.make.passages import Passage, names_something, reveals, same_words, states
from sealegs.files.package_data import read_json
from sealegs.make import asking
from sealegs.make.asking import Asking, Fields, StepTally
from sealegs.make.grammar import shuffled
from sealegs.text import judge
from sealegs.text.answers import is_blank
from sealegs.text.judge import characters
from sealegs.text.prompts import user_prompt

T = TypeVar("T")

TRIES = 3
"""Where questions are dropped, further passages are asked about: at most so many for each question."""
LONGEST_ANSWER: dict[Lang, int] = {"en": 60, "zh": 20}
"""In characters."""
ASKED_QUESTION = characters(500, least=1)
ASKED_ANSWER = characters(200, least=1)
"""Far above LONGEST_ANSWER: a bound that cuts an answer must not make it short enough."""
ASKED_READING = characters(600)
"""With a sentence around the answer; it may be empty."""
SHORTEST_READING = 1 / 3
"""A reading that is only a part of the answer (Venn for Tobias Venn) has at least this share of it."""

SHOWN = 80
"""Characters of a reading that a note shows."""

QUESTIONS = "questions"
NOT_GIVEN = "read again, it does not give the answer"


class WriterPrompts(Struct, frozen=True, forbid_unknown_fields=True):
    """What the model is asked in one language."""

    question: str
    read: str
    rewrite: str
    styles: tuple[str, ...]
    """Ways to retell a passage, so that no two rewritings are alike."""
    false_answer: str
    passage_words: tuple[str, ...]
    """A question with one of these cannot be asked without its passage."""


class TextFields(Struct):
    """Texts that a model wrote, with single spaces."""

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            setattr(self, field, " ".join(getattr(self, field).split()))


class QuestionText(TextFields):
    question: Annotated[str, ASKED_QUESTION]
    answer: Annotated[str, ASKED_ANSWER]


class Reading(Struct):
    answer: Annotated[str, ASKED_READING]


class QuestionWithDocuments(NamedTuple):
    """A question with its documents: those that give its answer, and near ones that do not."""

    passage: Passage
    query: str
    answer: str
    positive: list[str]
    negative: Sequence[str] = ()


class Contradiction(NamedTuple):
    """A document in which the model reads another answer to a question than in the one it is about."""

    document: str
    source: str
    query: str
    reading: str
    answer: str

    def __str__(self) -> str:
        """What it says is shortened: it may be anything."""
        said = " ".join(self.reading.split())
        said = said if len(said) <= SHOWN else f"{said[:SHOWN]}…"
        source = "itself" if self.source == self.document else self.source
        return (
            f"{self.document} contradicts {source}, or seems to: asked "
            f"'{self.query}', the model reads '{said}' in it, not '{self.answer}'"
        )


class SetWriter:
    """The model that writes a set, asked in one language."""

    def __init__(self, lang: Lang) -> None:
        self.lang: Lang = lang
        self.prompts = read_json(__package__, "prompts.json", type=dict[str, WriterPrompts])[lang]
        self.tally = StepTally()
        self.contradictions: list[Contradiction] = []

    def ask(
        self,
        kind: type[Fields],
        step: str,
        template: str,
        slots: Sequence[tuple[T, Mapping[str, str]]],
        *,
        max_tokens: int = judge.MAX_TOKENS,
    ) -> Asking[list[tuple[T, Fields]]]:
        """Each item with what the model wrote for its slots; those without a readable answer are left out
        and counted under their status."""
        prompts = [(item, user_prompt(template, **values)) for item, values in slots]
        counts = self.tally[step]
        answers = yield from asking.ask(kind, prompts, counts, max_tokens=max_tokens)
        return [(item, verdict.value) for item, verdict in answers if verdict.value is not None]

    def read(self, step: str, texts: Sequence[tuple[T, str, str]]) -> Asking[list[tuple[T, str]]]:
        """For each item, query and text: what the model reads in the text as the answer."""
        slots = [(item, {"QUERY": query, "PASSAGE": text}) for item, query, text in texts]
        readings = yield from self.ask(Reading, step, self.prompts.read, slots)
        return [(item, reading.answer) for item, reading in readings]


# --- what a model reads in a passage ----------------------------------------------------------------


def gives(reading: str, answer: str, query: str) -> bool:
    """Whether a reading is the answer: it states it, or is a part of it, and does not say that none is there.

    "The passage does not say; it only names a cow, Agnes Rudgard" gives no answer, though the name is in it.
    """
    if same_words(reading, answer):
        return True  # "none" may be the answer
    if gives_none(reading, query):
        return False
    long_enough = len(reading.strip()) >= SHORTEST_READING * len(answer)
    return states(reading, answer) or (long_enough and states(answer, reading))


def reading_fault(reading: str, answer: str, query: str) -> str:
    """Why a passage with this reading does not give the answer; empty where it does."""
    return "" if gives(reading, answer, query) else NOT_GIVEN


def gives_none(reading: str, query: str) -> bool:
    """Whether a reading is blank or rejects the question, whatever it names besides."""
    return is_blank(reading) or lenient(reading, (), query=query).rejected


# --- plain questions --------------------------------------------------------------------------------


def write_questions(
    passages: Sequence[Passage], number: int, writer: SetWriter, seed: int
) -> Asking[list[QuestionWithDocuments]]:
    """As many questions as `number`, or as come of TRIES times as many passages."""
    remaining = shuffled(passages, random.Random(f"{seed}:passages"))[: TRIES * number]
    questions: list[QuestionWithDocuments] = []
    while remaining and len(questions) < number:
        missing = number - len(questions)
        portion, remaining = remaining[:missing], remaining[missing:]
        questions += yield from _write(portion, questions, writer)
    return questions


def _write(
    passages: Sequence[Passage], earlier: Sequence[QuestionWithDocuments], writer: SetWriter
) -> Asking[list[QuestionWithDocuments]]:
    """One question about each passage, if the model, given the passage, answers it as it did before."""
    slots = [(passage, {"PASSAGE": passage.text}) for passage in passages]
    drafts: list[QuestionWithDocuments] = []
    for passage, text in (yield from writer.ask(QuestionText, QUESTIONS, writer.prompts.question, slots)):
        draft = QuestionWithDocuments(passage, text.question, text.answer, [passage.text])
        if writer.tally.passes(QUESTIONS, question_fault(draft, [*earlier, *drafts], writer)):
            drafts.append(draft)
    texts = [(draft, draft.query, draft.passage.text) for draft in drafts]
    return [
        draft
        for draft, reading in (yield from writer.read(QUESTIONS, texts))
        if writer.tally.accept(QUESTIONS, reading_fault(reading, draft.answer, draft.query))
    ]


def question_fault(
    question: QuestionWithDocuments, earlier: Sequence[QuestionWithDocuments], writer: SetWriter
) -> str:
    """Why a question cannot be used; empty where it can."""
    query, answer, passage = question.query, question.answer, question.passage.text
    longest = LONGEST_ANSWER[writer.lang]
    if is_blank(query) or is_blank(answer):
        return "the question or the answer is empty"
    if len(answer) > longest:
        return f"the answer is longer than {longest} characters"
    if not states(passage, answer):
        return "the answer is not in the passage"
    if reveals(query, answer):
        return "the question gives the answer away"
    if any(phrase in query.lower() for phrase in writer.prompts.passage_words):
        return "the question refers to its passage"
    if language("", [query]) != writer.lang:
        return "the question is in another language"
    if not names_something(query, writer.lang):
        return "the question names nothing"
    if any(same_words(query, other.query) for other in earlier):
        return "asked before"
    return ""
