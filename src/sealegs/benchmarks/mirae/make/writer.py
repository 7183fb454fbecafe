"""Has a model translate and reword questions and write their levels, and checks every text before it is used.

A judge says whether a wording asks the same. Else checked is what can be seen without reading: the length,
the script, the question itself word for word, the words that it shares with the question. A text at fault is
asked for again with what was wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, NamedTuple

from msgspec import Struct

from sealegs.benchmarks.mirae.data import LANGUAGES, TARGETS
from sealegs.benchmarks.mirae.make.questions import UserQuestion
from sealegs.benchmarks.mirae.make.texts import Padding
from sealegs.files.package_data import read_json
from sealegs.make.asking import Draft, ask_until_usable
from sealegs.text import judge
from sealegs.text.answers import is_blank
from sealegs.text.prompts import fill, user_prompt
from sealegs.text.token_estimate import TokenCounter
from sealegs.text.word_splitting import normalized
from sealegs.types import Asking, Generate, Message, Response, Sampling

LONGEST_TOKENS = 56
"""Tokens of a question: with more, level 2 (about 60) has no room for anything around it."""
TOLERANCE = 0.20
MIN_OVERLAP = 0.5
"""The share of a question's words that a text has which asks it in other words."""
FAILED = "the request failed"
"""Nothing was wrong with a text, so there is nothing to tell the model."""
TRIES = 4
SCRIPTS = {"en": r"[A-Za-z]", "ko": r"[\uac00-\ud7a3]", "zh": r"[\u4e00-\u9fff]"}
KANA = r"[\u3040-\u30ff]"
WORD = r"[\u4e00-\u9fff]|[^\W_\u4e00-\u9fff]+"


class Level(NamedTuple):
    """A level of a question to be written."""

    question: UserQuestion
    number: int

    @property
    def target(self) -> int:
        return TARGETS[self.number - 1]


class Wording(NamedTuple):
    """A wording of a question to be written."""

    question: UserQuestion
    number: int
    """From 2 on: the person's own is the first."""


class SameQuestion(Struct):
    """Whether two texts ask the same, and what only one of them asks."""

    asks_the_same: bool
    difference: Annotated[str, judge.characters(200)] = ""


class Written(NamedTuple):
    """Levels by question, and what failed."""

    levels: dict[UserQuestion, list[str]]
    failures: list[str]


class PromptWriter:
    """A model that writes."""

    def __init__(self, counter: TokenCounter, *, seed: int) -> None:
        self._counter = counter
        self._seed = seed

    # Levels

    def write_levels(self, questions: Sequence[UserQuestion], lang: str, padding: Padding) -> Asking[Written]:
        """Levels 2 to 7 of each question; a question of which one cannot be written has none."""

        def attempt(pending: Mapping[Level, str], number: int) -> Asking[list[Draft]]:
            orders = [
                self._order(level, lang, padding) + _again(fault, number) for level, fault in pending.items()
            ]
            responses = yield [
                self._request(order, 2 * level.target + 64, number, temperature=0.7)
                for level, order in zip(pending, orders, strict=True)
            ]
            return [
                Draft(response.text.strip(), self._fault(level, lang, padding, response))
                for level, response in zip(pending, responses, strict=True)
            ]

        parts = [Level(question, number) for question in questions for number in range(2, 8)]
        texts, faults = yield from ask_until_usable(parts, attempt, TRIES)
        failed = {level.question for level in faults}
        return Written(
            {
                question: [question.text, *(texts[Level(question, number)] for number in range(2, 8))]
                for question in questions
                if question not in failed
            },
            [
                f"line {question.line}, {lang}, level {number}, {padding}: {fault}"
                for (question, number), fault in faults.items()
            ],
        )

    def _order(self, level: Level, lang: str, padding: Padding) -> str:
        question = level.question.text
        # Chinese does without spaces, so its length is asked for in characters.
        unit, units = ("characters", question) if lang == "zh" else ("words", question.split())
        tokens_per_unit = self._counter.count(question) / max(1, len(units))
        return fill(
            _prompt(padding),
            LANGUAGE=LANGUAGES[lang],
            LENGTH=f"{round(level.target / tokens_per_unit)} {unit}",
            TOKENS=str(level.target),
            QUESTION=question,
        )

    def _request(self, order: str, max_tokens: int, number: int, *, temperature: float) -> Generate:
        sampling = Sampling(temperature=temperature, max_tokens=max_tokens, seed=self._seed)
        return Generate(prompt=(Message("user", order),), sampling=sampling, repeat=number)

    def _fault(self, level: Level, lang: str, padding: Padding, response: Response) -> str:
        """What is wrong with a level."""
        text, question = response.text, level.question.text
        if fault := _ending_fault(response):
            return fault
        if not is_in_script(text, lang):
            return f"it is not in {LANGUAGES[lang]}"
        if not has_question(text, question):
            if padding == "neutral":
                return "the question is not in it word for word"
            if overlap(text, question) < MIN_OVERLAP:
                return "the question is not in it"
        tokens = self._counter.count(text)
        if (excess := tokens - level.target) and abs(excess) > TOLERANCE * level.target:
            change = f"{abs(excess)} too {'many' if excess > 0 else 'few'}"
            return f"it has {tokens} tokens instead of about {level.target}, {change}"
        return ""

    # Translations

    def translate(
        self, questions: Sequence[UserQuestion], lang: str
    ) -> Asking[tuple[list[UserQuestion], list[str]]]:
        """The questions in another language."""

        def attempt(pending: Mapping[UserQuestion, str], number: int) -> Asking[list[Draft]]:
            orders = [
                fill(_prompt("translate"), LANGUAGE=LANGUAGES[lang], QUESTION=question.text)
                + _again(fault, number)
                for question, fault in pending.items()
            ]
            responses = yield [
                self._request(order, 256, number, temperature=0.7 if number else 0.0) for order in orders
            ]
            texts = [" ".join(response.text.split()) for response in responses]
            return [
                Draft(text, self._translation_fault(question, lang, text, response))
                for question, text, response in zip(pending, texts, responses, strict=True)
            ]

        texts, faults = yield from ask_until_usable(questions, attempt, TRIES)
        failures = [f"line {question.line}, {lang}, translation: {why}" for question, why in faults.items()]
        # What is expected was given in the language of the file.
        return [q._replace(text=texts[q], expected=()) for q in questions if q in texts], failures

    # Wordings

    def paraphrase(
        self, questions: Sequence[UserQuestion], lang: str, count: int, judge_role: str
    ) -> Asking[tuple[list[UserQuestion], list[str]]]:
        """Each question in its own words, the first wording, and in as many others as the judge lets pass."""
        ways = _prompt("ways").split("|")
        known = {question.line: {_squeezed(question.text)} for question in questions}

        def attempt(pending: Mapping[Wording, str], number: int) -> Asking[list[Draft]]:
            responses = yield [
                self._request(
                    fill(
                        _prompt("paraphrase"), LANGUAGE=LANGUAGES[lang], QUESTION=wording.question.text,
                        WAY=ways[(wording.number - 2) % len(ways)],
                    )
                    + _again(fault, number),
                    256, number + TRIES * wording.number, temperature=0.7,
                )
                for wording, fault in pending.items()
            ]  # fmt: skip
            texts = [" ".join(response.text.split()) for response in responses]
            faults = []
            for wording, text, response in zip(pending, texts, responses, strict=True):
                fault = self._translation_fault(wording.question, lang, text, response)
                if not fault and _squeezed(text) in known[wording.question.line]:
                    fault = "it is a wording that there is already"
                if not fault:
                    known[wording.question.line].add(_squeezed(text))
                faults.append(fault)
            judged = yield from _changes(
                [(w.question.text, t) for w, t, f in zip(pending, texts, faults, strict=True) if not f],
                judge_role,
            )
            changes = iter(judged)
            return [Draft(text, fault or next(changes)) for text, fault in zip(texts, faults, strict=True)]

        wanted = [Wording(question, number) for question in questions for number in range(2, count + 2)]
        texts, faults = yield from ask_until_usable(wanted, attempt, TRIES)
        worded = []
        for question in questions:
            worded.append(question._replace(wording=1))
            worded += [
                question._replace(text=text, wording=wording.number)
                for wording, text in texts.items()
                if wording.question == question
            ]
        failures = [f"line {w.question.line}, {lang}, wording {w.number}: {why}" for w, why in faults.items()]
        return sorted(worded, key=lambda each: (each.line, each.wording)), failures

    def _translation_fault(self, question: UserQuestion, lang: str, text: str, response: Response) -> str:
        if fault := _ending_fault(response):
            return fault
        if _squeezed(text) == _squeezed(question.text):
            return "it is the question as it was"
        if not is_in_script(text, lang):
            return f"it is not in {LANGUAGES[lang]}"
        tokens = self._counter.count(text)
        if tokens > LONGEST_TOKENS:
            return f"it has {tokens} tokens, {tokens - LONGEST_TOKENS} too many"
        return ""


def _again(fault: str, number: int) -> str:
    """What follows an order where a text was at fault."""
    if not fault or fault.startswith(FAILED):
        return ""
    return fill(_prompt("again"), FAULT=fault, ATTEMPT=str(number + 1), TRIES=str(TRIES))


def _ending_fault(response: Response) -> str:
    if response.status == "truncated":
        return "it was cut off: it is too long"
    if response.status == "error":
        return f"{FAILED}: {response.reason}"
    if response.status != "ok":
        return f"there is no text: {response.status} {response.reason}".rstrip()
    return "it is empty" if is_blank(response.text) else ""


# Checks


def _changes(pairs: Sequence[tuple[str, str]], role: str) -> Asking[list[str]]:
    """For each question with a wording of it, what the judge finds changed; nothing where they ask alike."""
    prompts = [user_prompt(_prompt("same_question"), FIRST=first, SECOND=second) for first, second in pairs]
    verdicts = yield from judge.ask(SameQuestion, prompts, role=role)
    return [
        f"{FAILED}: the judge's verdict is {status} ({reason})"
        if verdict is None
        else ""
        if verdict.asks_the_same
        else f"it does not ask the same: {' '.join(verdict.difference.split()) or 'says the judge'}"
        for verdict, status, reason in verdicts
    ]


def has_question(text: str, question: str) -> bool:
    """Whether a question is in a text word for word, whatever its spaces, case and punctuation."""
    return _squeezed(question) in _squeezed(text)


def overlap(text: str, question: str) -> float:
    """The share of a question's terms that a text has."""
    terms = set(_terms(question))
    return len(terms & set(_terms(text))) / len(terms) if terms else 0.0


def is_in_script(text: str, lang: str) -> bool:
    """Whether most letters of a text are of a language's script; Chinese has next to no kana."""
    letters = re.findall(r"[^\W\d_]", text)
    foreign = len(re.findall(KANA, text)) if lang == "zh" else 0
    return len(re.findall(SCRIPTS[lang], text)) > len(letters) / 2 and foreign <= len(letters) / 20


def _words(text: str) -> list[str]:
    """Words without punctuation; of Chinese, which does without spaces, every character."""
    return re.findall(WORD, normalized("NFKC", text).casefold())


def _squeezed(text: str) -> str:
    return "".join(_words(text))


def _terms(text: str) -> Iterator[str]:
    """Words; of Korean and Chinese pairs of characters, which neither particles nor missing spaces change."""
    for word in re.findall(r"\w+", normalized("NFKC", text).casefold()):
        if re.search(rf"{SCRIPTS['ko']}|{SCRIPTS['zh']}", word) and len(word) > 1:
            yield from (word[at : at + 2] for at in range(len(word) - 1))
        elif len(word) > 3:  # not a function word
            yield word


def _prompt(name: str) -> str:
    return read_json(__package__, "prompts.json", type=dict[str, str])[name]
