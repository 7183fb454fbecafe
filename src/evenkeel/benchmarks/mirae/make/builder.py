"""Builds a MIRAE question set: from a seed, or from a user's questions, composed or written by a model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta, Struct

from evenkeel.benchmarks.mirae.files import LANGUAGES, TARGETS
from evenkeel.benchmarks.mirae.make import generator, lengths
from evenkeel.benchmarks.mirae.make.lengths import positions_of
from evenkeel.benchmarks.mirae.make.phrases import PADDINGS, Padding, generic_bank
from evenkeel.benchmarks.mirae.make.questions import UserQuestion, read_user_questions
from evenkeel.benchmarks.mirae.make.subject import topic_of
from evenkeel.errors import DataError, UsageError
from evenkeel.files.package_data import read_json
from evenkeel.make.asking import Draft, ask_until_usable
from evenkeel.make.builder import Built, parse_languages
from evenkeel.make.grammar import seeded
from evenkeel.models.registry import token_counter
from evenkeel.models.vectors import usable
from evenkeel.text.prompts import user_prompt
from evenkeel.text.token_estimate import APPROXIMATE
from evenkeel.types import Asking, Capability, Embed, Generate, Response, Sampling

LONGEST = 48
"""Tokens of a question: with more, level 2 (about 60) has no room for anything around it."""
TOLERANCE = 0.20
MIN_SIMILARITY = 0.75
"""The cosine from which a sentence of a level counts as the question, where it is not there literally."""
TRIES = 4
SCRIPTS = {"en": r"[A-Za-z]", "ko": r"[\uac00-\ud7a3]", "zh": r"[\u4e00-\u9fff]"}


class _Written(NamedTuple):
    """One question in one language at every level."""

    lang: str
    line: int
    padding: Padding
    texts: Sequence[str]
    positions: Sequence[lengths.Position | None]


class BuildOptions(Struct, frozen=True, kw_only=True):
    """Options of building a question set."""

    questions: Annotated[
        str | None,
        Meta(description="Your questions: .txt (one a line), .csv or .jsonl (a field 'question')."),
    ] = None
    lang: Annotated[str, Meta(description="The language of the questions.")] = "en"
    seed: Annotated[int, Meta(description="Another seed gives another set.")] = 0
    model: Annotated[str | None, Meta(description="Let this model write the levels, not the composer.")] = (
        None
    )
    padding: Annotated[
        Literal["neutral", "elaborate", "both"],
        Meta(
            description="What the composer puts around a question: neutral adds only length, elaborate adds "
            "demands, both writes two rows of each question."
        ),
    ] = "neutral"
    translate: Annotated[str, Meta(description="Add these languages, translated by the model: ko,zh.")] = ""
    embedder: Annotated[str, Meta(description="Judges whether a level still asks the question.")] = (
        "embedded-embedder"
    )
    tokenizer: Annotated[
        str | None, Meta(description="Count lengths as the model under test would: hf:ID.")
    ] = None
    on_bad: Annotated[
        Literal["stop", "skip"], Meta(description="At a row that cannot be used: stop, or leave it out.")
    ] = "stop"

    def __post_init__(self) -> None:
        if self.translate and not self.model:
            raise ValueError("--translate needs a --model that translates")
        if self.model and not self.questions:
            raise ValueError("--model writes levels for your --questions; a seed alone needs no model")
        if parse_languages(self.lang, LANGUAGES) != [self.lang]:
            raise ValueError("--lang takes one language; --translate adds others")
        parse_languages(self.translate, LANGUAGES)


class MiraeBuilder:
    """Builds one file for each language."""

    Options = BuildOptions
    folder = False
    roles: Mapping[str, frozenset[Capability]] = {
        "model": frozenset({"generate"}),
        "embedder": frozenset({"embed"}),
    }

    def __init__(self, options: BuildOptions) -> None:
        self.options = options
        self.helpers: Mapping[str, str] = (
            {"model": options.model, "embedder": options.embedder} if options.model else {}
        )
        self._counter = token_counter(options.tokenizer) if options.tokenizer else APPROXIMATE

    def build(self) -> Asking[Built]:
        options = self.options
        paddings = tuple(PADDINGS) if options.padding == "both" else (options.padding,)
        if options.questions is None:
            content = generator.compose(options.lang, options.seed, self._counter, paddings=paddings)
            return Built({LANGUAGES[options.lang]: _encode(content)}, notes=[], failures=[])
        questions, notes = self._read(Path(options.questions))
        by_lang = {options.lang: questions}
        failures: list[str] = []
        for lang in parse_languages(options.translate, LANGUAGES):
            by_lang[lang], faults = yield from self._translate(questions, lang)
            failures += faults
        if options.model:
            written: list[_Written] = []
            for lang, translated in by_lang.items():
                levels, faults = yield from self._write_levels(translated, lang)
                failures += faults
                written += [
                    _Written(lang, question.line, "elaborate", texts, positions_of(texts))
                    for question, texts in levels.items()
                ]
        else:
            written, faults = self._compose(by_lang, paddings)
            failures += faults
        files = {LANGUAGES[lang]: _encode(self._file(questions, written, lang)) for lang in by_lang}
        return Built(files, notes, failures)

    def _read(self, path: Path) -> tuple[list[UserQuestion], list[str]]:
        questions, problems = read_user_questions(path, count=self._counter.count, longest=LONGEST)
        listed = "\n  ".join(problems)
        if problems and self.options.on_bad == "stop":
            raise DataError(path, f"some rows cannot be used (--on-bad skip leaves them out):\n  {listed}")
        if not questions:
            raise DataError(path, "there is no question that can be used.")
        return questions, [f"{path}: left out\n  {listed}"] if problems else []

    def _file(
        self, questions: Sequence[UserQuestion], written: Sequence[_Written], lang: str
    ) -> dict[str, Any]:
        """The rows of one language. A question has the same number in every language."""
        numbers = {question.line: (number, question.domain) for number, question in enumerate(questions, 1)}
        rows = [
            generator.row(*numbers[each.line], each.padding, each.texts, each.positions, self._counter.count)
            for each in written
            if each.lang == lang
        ]
        made_by = {"generator": self.options.model or generator.GENERATOR, "seed": self.options.seed}
        return generator.question_file(
            rows, language=LANGUAGES[lang], asked=len(questions), counter=self._counter, made_by=made_by
        )

    def _compose(
        self, by_lang: Mapping[str, Sequence[UserQuestion]], paddings: Sequence[Padding]
    ) -> tuple[list[_Written], list[str]]:
        """Levels by the composer: one plan for a question in all its languages, about its own words."""
        questions = next(iter(by_lang.values()))
        texts = {lang: {each.line: each.text for each in of_lang} for lang, of_lang in by_lang.items()}
        key = (generator.GENERATOR, generator.VERSION, self.options.seed)
        lines = [question.line for question in questions]
        positions = lengths.balanced_positions(lines, seeded(*key, "positions"), len(TARGETS) - 1)
        written: list[_Written] = []
        failures: list[str] = []
        for padding, question in product(paddings, questions):
            of_question = {
                lang: by_line[question.line] for lang, by_line in texts.items() if question.line in by_line
            }
            # Few tokenizers count all languages alike, so that lengths by one of them are fitted one by one.
            together = (
                [list(of_question)] if self._counter is APPROXIMATE else [[lang] for lang in of_question]
            )
            for langs in together:
                try:
                    levels = self._composed(
                        {lang: of_question[lang] for lang in langs},
                        padding,
                        positions[question.line],
                        (*key, question.text),
                    )
                except UsageError as error:
                    failures.append(f"line {question.line}, {', '.join(langs)}: {error}")
                    continue
                written += [
                    _Written(lang, question.line, padding, texts_of_lang, levels.positions)
                    for lang, texts_of_lang in levels.texts.items()
                ]
        return written, failures

    def _composed(
        self,
        texts: Mapping[str, str],
        padding: Padding,
        positions: Sequence[lengths.Position],
        key: Sequence[object],
    ) -> lengths.Levels:
        """One question. A draw that misses the tolerance is drawn again."""
        banks = {lang: generic_bank(lang, topic_of(text, lang)) for lang, text in texts.items()}
        composer = lengths.Composer(texts, banks, self._counter.count)
        for attempt in range(1, TRIES):
            try:
                return composer.levels(padding, positions, seeded(*key, attempt), TARGETS)
            except UsageError:
                continue
        return composer.levels(padding, positions, seeded(*key, TRIES), TARGETS)

    def _write_levels(
        self, questions: Sequence[UserQuestion], lang: str
    ) -> Asking[tuple[dict[UserQuestion, list[str]], list[str]]]:
        """Levels 2 to 7 by the model, checked for their length and for the question in them."""
        parts = [(question, level) for question in questions for level in range(2, 8)]

        def attempt(pending: Sequence[tuple[UserQuestion, int]], number: int) -> Asking[list[Draft]]:
            responses = yield [self._rewrite(question, lang, level, number) for question, level in pending]
            pairs = [(q.text, response.text) for (q, _), response in zip(pending, responses, strict=True)]
            similarities = yield from _similarities(pairs)
            return [
                Draft(response.text.strip(), self._fault(response, TARGETS[level - 1], similarity))
                for (_, level), response, similarity in zip(pending, responses, similarities, strict=True)
            ]

        texts, faults = yield from ask_until_usable(parts, attempt, TRIES)
        failures = [f"line {q.line}, {lang}, level {level}: {why}" for (q, level), why in faults.items()]
        failed = {question for question, _ in faults}
        levels = {
            question: [question.text, *(texts[question, level] for level in range(2, 8))]
            for question in questions
            if question not in failed
        }
        return levels, failures

    def _rewrite(self, question: UserQuestion, lang: str, level: int, attempt: int) -> Generate:
        target = TARGETS[level - 1]
        # Chinese does without spaces, so its length is asked for in characters.
        unit, units = ("characters", question.text) if lang == "zh" else ("words", question.text.split())
        tokens_per_unit = self._counter.count(question.text) / max(1, len(units))
        prompt = user_prompt(
            _prompt("rewrite"),
            LANGUAGE=LANGUAGES[lang],
            LENGTH=f"{round(target / tokens_per_unit)} {unit}",
            TOKENS=str(target),
            QUESTION=question.text,
        )
        sampling = Sampling(temperature=0.7, max_tokens=2 * target + 64, seed=self.options.seed)
        return Generate(prompt=prompt, sampling=sampling, repeat=attempt)

    def _fault(self, response: Response, target: int, similarity: float) -> str:
        if response.status != "ok":
            return f"the model's answer ended as {response.status} {response.reason}".rstrip()
        tokens = self._counter.count(response.text)
        if abs(tokens - target) > TOLERANCE * target:
            return f"{tokens} tokens instead of about {target}"
        if similarity < MIN_SIMILARITY:
            return f"the question is not in it (the nearest sentence has a cosine of {similarity:.2f})"
        return ""

    def _translate(
        self, questions: Sequence[UserQuestion], lang: str
    ) -> Asking[tuple[list[UserQuestion], list[str]]]:
        """The questions in another language, checked for its script and for their length."""
        fault = f"no usable {LANGUAGES[lang]} in {TRIES} tries"

        def attempt(pending: Sequence[UserQuestion], number: int) -> Asking[list[Draft]]:
            sampling = Sampling(temperature=0.7 if number else 0.0, max_tokens=256, seed=self.options.seed)
            prompts = (
                user_prompt(_prompt("translate"), LANGUAGE=LANGUAGES[lang], QUESTION=question.text)
                for question in pending
            )
            drafts = []
            for response in (yield [Generate(prompt=p, sampling=sampling, repeat=number) for p in prompts]):
                text = " ".join(response.text.split())
                short = self._counter.count(text) <= LONGEST
                usable_text = response.status == "ok" and short and is_in_script(text, lang)
                drafts.append(Draft(text, "" if usable_text else fault))
            return drafts

        texts, faults = yield from ask_until_usable(questions, attempt, TRIES)
        failures = [f"line {question.line}, {lang}, translation: {why}" for question, why in faults.items()]
        return [q._replace(text=texts[q]) for q in questions if q in texts], failures


def _similarities(pairs: Sequence[tuple[str, str]]) -> Asking[list[float]]:
    """For each question and text: 1 where the question is in it, else its nearest sentence's cosine."""
    import numpy as np

    from evenkeel.benchmarks.mirae.scoring import unit

    split = [sentences(text) for _, text in pairs]
    texts = dict.fromkeys(s for (q, _), parts in zip(pairs, split, strict=True) for s in (q, *parts))
    responses = usable((yield [Embed(text=text) for text in texts]))
    vectors = {
        text: unit(np.frombuffer(response.vector, dtype="<f4")[None])[0]
        for text, response in zip(texts, responses, strict=True)
        if response.vector
    }
    similarities = []
    for (question, text), parts in zip(pairs, split, strict=True):
        candidates = [vectors[part] for part in parts if part in vectors]
        if question in text:
            similarities.append(1.0)
        elif candidates and question in vectors:
            similarities.append(float((np.stack(candidates) @ vectors[question]).max()))
        else:
            similarities.append(0.0)
    return similarities


def sentences(text: str) -> list[str]:
    """A text's sentences, by the marks that end them in any of the languages."""
    parts = re.split(r"(?<=[.!?])\s+|(?<=[。！？])|\n+", text)
    return [part.strip() for part in parts if part and part.strip()]


def is_in_script(text: str, lang: str) -> bool:
    """Whether most letters of a text are of a language's script."""
    letters = re.findall(r"[^\W\d_]", text)
    return len(re.findall(SCRIPTS[lang], text)) > len(letters) / 2


def _prompt(name: str) -> str:
    return read_json(__package__, "prompts.json", type=dict[str, str])[name]


def _encode(content: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(content), indent=1)
