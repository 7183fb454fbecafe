"""Has a model translate questions and write their levels, and checks every text before it is used.

What can be checked without reading is: the length, the script, the question itself word for word, the words
that it shares with the question, and whether the order was copied. The rest takes a reader of the language:
the model itself, or another one, is asked what the text does. A text at fault is asked for again with what
was wrong, in other words each time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeVar

from msgspec import Struct

from evenkeel.benchmarks.mirae.files import LANGUAGES, TARGETS
from evenkeel.benchmarks.mirae.make.phrases import Padding
from evenkeel.benchmarks.mirae.make.questions import UserQuestion
from evenkeel.files.package_data import read_json
from evenkeel.make.asking import Draft, ask_until_usable
from evenkeel.text import judge
from evenkeel.text.answers import is_blank
from evenkeel.text.prompts import fill, user_prompt
from evenkeel.text.token_estimate import TokenCounter
from evenkeel.text.word_splitting import normalized
from evenkeel.types import Asking, Generate, Message, Response, Sampling

LONGEST = 48
"""Tokens of a question: with more, level 2 (about 60) has no room for anything around it."""
TOLERANCE = 0.20
MIN_OVERLAP = 0.5
"""The share of a question's words from which a text that has it in other words is read at all."""
COPIED = 8
"""Words in a row of the order that a message has by copying them."""
FAILED = "the request failed"
"""Nothing was wrong with a text, so there is nothing to tell the model."""
TRIES = 4
SCRIPTS = {"en": r"[A-Za-z]", "ko": r"[\uac00-\ud7a3]", "zh": r"[\u4e00-\u9fff]"}
KANA = r"[\u3040-\u30ff]"
WORD = r"[\u4e00-\u9fff]|[^\W_\u4e00-\u9fff]+"

Fields = TypeVar("Fields", bound=Struct)
Key = TypeVar("Key", bound=Hashable)


class LevelReading(Struct):
    """What a message does."""

    asks_the_question: bool
    answers_the_question: bool
    adds_demands: bool
    has_remarks: bool
    in_the_language: bool


class TranslationReading(Struct):
    """How a translation compares with its question."""

    asks_the_same: bool
    in_the_language: bool


class Level(NamedTuple):
    """A level of a question to be written."""

    question: UserQuestion
    number: int

    @property
    def target(self) -> int:
        return TARGETS[self.number - 1]


class Written(NamedTuple):
    """Levels by question, what failed, and how the question was confirmed in how many texts."""

    levels: dict[UserQuestion, list[str]]
    failures: list[str]
    confirmed: Counter[str]


class Writer:
    """A model that writes, and one that reads: the same, unless `reader` names another role."""

    def __init__(self, counter: TokenCounter, *, seed: int, reader: str = "model") -> None:
        self._counter = counter
        self._seed = seed
        self._reader = reader

    # Levels

    def write_levels(self, questions: Sequence[UserQuestion], lang: str, padding: Padding) -> Asking[Written]:
        """Levels 2 to 7 of each question; a question of which one cannot be written has none."""
        parts = [Level(question, number) for question in questions for number in range(2, 8)]
        confirmed: dict[Level, str] = {}
        text_faults: dict[Level, str] = {}

        def attempt(pending: Mapping[Level, str], number: int) -> Asking[list[Draft]]:
            text_faults.update(_of_texts(pending))
            orders = [
                self._order(level, lang, padding) + _again(text_faults.get(level, ""), number)
                for level in pending
            ]
            responses = yield [
                self._request(level, order, number) for level, order in zip(pending, orders, strict=True)
            ]
            faults = {
                level: self._fault(level, lang, padding, order, response)
                for level, order, response in zip(pending, orders, responses, strict=True)
            }
            texts = {level: response.text.strip() for level, response in zip(pending, responses, strict=True)}
            sound = [level for level, fault in faults.items() if not fault]
            readings = yield from self._read(
                LevelReading, "read_level", lang, [(level.question.text, texts[level]) for level in sound]
            )
            for level, reading in zip(sound, readings, strict=True):
                faults[level] = reading_fault(reading, lang, padding)
                literal = has_question(texts[level], level.question.text)
                confirmed[level] = "literal" if literal else "read"
            return [Draft(texts[level], fault) for level, fault in faults.items()]

        texts, faults = yield from ask_until_usable(parts, attempt, TRIES)
        failed = {level.question for level in faults}
        usable = [question for question in questions if question not in failed]
        return Written(
            {q: [q.text, *(texts[Level(q, number)] for number in range(2, 8))] for q in usable},
            [
                f"line {q.line}, {lang}, level {number}, {padding}: {fault}"
                for (q, number), fault in faults.items()
            ],
            Counter(how for level, how in confirmed.items() if level.question not in failed),
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

    def _request(self, level: Level, order: str, number: int) -> Generate:
        sampling = Sampling(temperature=0.7, max_tokens=2 * level.target + 64, seed=self._seed)
        return Generate(prompt=(Message("user", order),), sampling=sampling, repeat=number)

    def _fault(self, level: Level, lang: str, padding: Padding, order: str, response: Response) -> str:
        """What is wrong with a level, as far as nobody has to read it."""
        text, question = response.text, level.question.text
        if fault := _ending_fault(response):
            return fault
        if not is_in_script(text, lang):
            return f"it is not in {LANGUAGES[lang]}"
        if repeats(text, order, but=question):
            return "it repeats the order instead of carrying it out"
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
        """The questions in another language, checked and compared with the original by the reader."""
        taken: dict[str, UserQuestion] = {}
        text_faults: dict[UserQuestion, str] = {}

        def attempt(pending: Mapping[UserQuestion, str], number: int) -> Asking[list[Draft]]:
            text_faults.update(_of_texts(pending))
            sampling = Sampling(temperature=0.7 if number else 0.0, max_tokens=256, seed=self._seed)
            orders = [
                fill(_prompt("translate"), LANGUAGE=LANGUAGES[lang], QUESTION=question.text)
                + _again(text_faults.get(question, ""), number)
                for question in pending
            ]
            responses = yield [
                Generate(prompt=(Message("user", order),), sampling=sampling, repeat=number)
                for order in orders
            ]
            texts = [" ".join(response.text.split()) for response in responses]
            faults = {
                question: self._translation_fault(question, lang, order, text, response)
                for question, order, text, response in zip(pending, orders, texts, responses, strict=True)
            }
            drafts = dict(zip(pending, texts, strict=True))
            sound = [question for question, fault in faults.items() if not fault]
            readings = yield from self._read(
                TranslationReading, "read_translation", lang, [(q.text, drafts[q]) for q in sound]
            )
            for question, (reading, reason) in zip(sound, readings, strict=True):
                if reading is None:
                    faults[question] = reason
                elif not reading.in_the_language:
                    faults[question] = f"it is not in {LANGUAGES[lang]}, says the reader"
                elif not reading.asks_the_same:
                    faults[question] = "it does not ask the same, says the reader"
                elif (other := taken.setdefault(_squeezed(drafts[question]), question)) != question:
                    faults[question] = f"it is the same as the translation of line {other.line}"
            return [Draft(drafts[question], fault) for question, fault in faults.items()]

        texts, faults = yield from ask_until_usable(questions, attempt, TRIES)
        failures = [f"line {question.line}, {lang}, translation: {why}" for question, why in faults.items()]
        return [q._replace(text=texts[q]) for q in questions if q in texts], failures

    def _translation_fault(
        self, question: UserQuestion, lang: str, order: str, text: str, response: Response
    ) -> str:
        if fault := _ending_fault(response):
            return fault
        if _squeezed(text) == _squeezed(question.text):
            return "it is the question as it was"
        if not is_in_script(text, lang):
            return f"it is not in {LANGUAGES[lang]}"
        if repeats(text, order, but=question.text):
            return "it repeats the order instead of carrying it out"
        tokens = self._counter.count(text)
        if tokens > LONGEST:
            return f"it has {tokens} tokens, {tokens - LONGEST} too many"
        return ""

    # Reading

    def _read(
        self, kind: type[Fields], prompt: str, lang: str, pairs: Sequence[tuple[str, str]]
    ) -> Asking[list[tuple[Fields | None, str]]]:
        """What the reader finds in each message for a question; nothing, and why, where that is unknown."""
        if not pairs:
            return []
        prompts = [
            user_prompt(_prompt(prompt), LANGUAGE=LANGUAGES[lang], QUESTION=question, MESSAGE=message)
            for question, message in pairs
        ]
        verdicts = yield from judge.ask(kind, prompts, role=self._reader)
        return [
            (verdict.value, "" if verdict.value else f"the reader gave no verdict ({verdict.status})")
            for verdict in verdicts
        ]


def reading_fault(reading: tuple[LevelReading | None, str], lang: str, padding: Padding) -> str:
    """What is wrong with a level by its reading. A question that is only quoted in it is not asked."""
    found, reason = reading
    if found is None:
        return reason
    checks = {
        f"it is not in {LANGUAGES[lang]}": not found.in_the_language,
        "it does not ask the question": not found.asks_the_question,
        "it answers the question": found.answers_the_question,
        "it asks for more than the question": padding == "neutral" and found.adds_demands,
        "it has a title, a remark or rules beside the message": found.has_remarks,
    }
    return next((f"{fault}, says the reader" for fault, applies in checks.items() if applies), "")


def _of_texts(faults: Mapping[Key, str]) -> dict[Key, str]:
    """The faults that a text had: not those of requests that failed, nor of the first attempt."""
    return {item: fault for item, fault in faults.items() if fault and not fault.startswith(FAILED)}


def _again(fault: str, number: int) -> str:
    """What follows an order where a text was at fault: firmer each time, so that no prompt is repeated."""
    if not fault:
        return ""
    return fill(_prompt(f"again_{number}"), FAULT=fault, ATTEMPT=str(number + 1), TRIES=str(TRIES))


def _ending_fault(response: Response) -> str:
    if response.status == "truncated":
        return "it was cut off: it is too long"
    if response.status == "error":
        return f"{FAILED}: {response.reason}"
    if response.status != "ok":
        return f"there is no text: {response.status} {response.reason}".rstrip()
    return "it is empty" if is_blank(response.text) else ""


# What can be seen without reading


def has_question(text: str, question: str) -> bool:
    """Whether a question is in a text word for word, whatever its spaces, case and punctuation."""
    letters, words = _squeezed(question), _words(text)
    if not letters:
        return question in text
    borders = {0, *accumulate(map(len, words))}
    starts = (match.start() for match in re.finditer(f"(?={re.escape(letters)})", "".join(words)))
    return any({start, start + len(letters)} <= borders for start in starts)


def overlap(text: str, question: str) -> float:
    """The share of a question's terms that a text has."""
    terms = set(_terms(question))
    return len(terms & set(_terms(text))) / len(terms) if terms else 0.0


def repeats(text: str, order: str, *, but: str) -> bool:
    """Whether a text has a run of words of an order, other than those of the question in it."""
    return bool(set(_runs(order.replace(but, "\n\n"))) & set(_runs(text)))


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
        elif word not in read_json("evenkeel.text", "stop_words.json", type=list[str]):
            yield word


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    for line in text.split("\n"):
        words = re.findall(r"\w+", line.casefold())
        yield from (tuple(words[at : at + COPIED]) for at in range(len(words) - COPIED + 1))


def _prompt(name: str) -> str:
    return read_json(__package__, "prompts.json", type=dict[str, str])[name]
