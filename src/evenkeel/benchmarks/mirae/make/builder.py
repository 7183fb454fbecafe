"""Make a MIRAE question set: from a seed, or from own questions, composed or written by a model."""

from __future__ import annotations

import random
import re
from collections.abc import Generator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta, Struct

from evenkeel.benchmarks.mirae.files import LANGUAGES, TARGETS
from evenkeel.benchmarks.mirae.make import generator as compose
from evenkeel.benchmarks.mirae.make.phrases import Bank, generic_bank
from evenkeel.benchmarks.mirae.make.questions import OwnQuestion, read_own
from evenkeel.errors import DataError, UsageError
from evenkeel.models.vectors import usable
from evenkeel.run.benchmark import Built
from evenkeel.run.registry import token_counter
from evenkeel.text.token_estimate import APPROXIMATE
from evenkeel.types import Capability, Embed, Generate, Message, Request, Response, Sampling

LONGEST = 48
"""Tokens of a question: with more, level 2 (about 60) has no room for anything around it."""
TOLERANCE = 0.20
KEPT = 0.75
"""The cosine from which a sentence of a level counts as the question, where it is not there to the letter."""
TRIES = 4

Asking: TypeAlias = Generator[Sequence[Request], Sequence[Response], Any]


class BuildOptions(Struct, frozen=True, kw_only=True):
    """What can be set about building a question set."""

    questions: Annotated[
        str | None,
        Meta(description="Your questions: .txt (one a line), .csv or .jsonl (a field 'question')."),
    ] = None
    lang: Annotated[str, Meta(description="The language of the questions.")] = "en"
    seed: Annotated[int, Meta(description="Another seed gives another set.")] = 0
    model: Annotated[str | None, Meta(description="Let this model write the levels, not the composer.")] = (
        None
    )
    translate: Annotated[str, Meta(description="Add these languages, translated by the model: ko,zh.")] = ""
    embedder: Annotated[str, Meta(description="Judges whether a level still asks the question.")] = (
        "embedded-embedder"
    )
    tokenizer: Annotated[
        str | None, Meta(description="Count lengths as the model under test would: hf:ID.")
    ] = None
    on_bad: Annotated[
        Literal["stop", "skip"], Meta(description="At a row that cannot be used: stop, or go on without it.")
    ] = "stop"

    def __post_init__(self) -> None:
        if self.translate and not self.model:
            raise ValueError("--translate needs a --model that translates")
        if self.model and not self.questions:
            raise ValueError("--model writes levels for your own --questions; a seed alone needs none")
        for lang in (self.lang, *self.languages):
            if lang not in LANGUAGES:
                raise ValueError(f"there is no language '{lang}'; there is: {', '.join(LANGUAGES)}")

    @property
    def languages(self) -> list[str]:
        """The languages to translate to."""
        return [lang.strip() for lang in self.translate.split(",") if lang.strip()]


class Failure(NamedTuple):
    """A question that the model did not write well, however often it was asked."""

    question: OwnQuestion
    lang: str
    level: int
    why: str

    def __str__(self) -> str:
        what = f"level {self.level}" if self.level > 1 else "translation"
        return f"line {self.question.line}, {self.lang}, {what}: {self.why}"


class MiraeBuilder:
    """Makes the files of a question set, one a language."""

    Options = BuildOptions
    folder = False

    def __init__(self, options: BuildOptions) -> None:
        self.options = options
        self._counter = token_counter(options.tokenizer) if options.tokenizer else APPROXIMATE
        self.helpers: Mapping[str, str] = (
            {"model": options.model, "embedder": options.embedder} if options.model else {}
        )
        self.roles: Mapping[str, frozenset[Capability]] = {
            "model": frozenset({"generate"}),
            "embedder": frozenset({"embed"}),
        }

    def build(self) -> Generator[Sequence[Request], Sequence[Response], Built]:
        options = self.options
        if options.questions is None:
            made = compose.compose(options.lang, options.seed, self._counter)
            return Built({LANGUAGES[options.lang]: _encoded(made)}, notes=[], failures=[])
        questions, notes = self._read(Path(options.questions))
        files: dict[str, bytes] = {}
        failures: list[Failure] = []
        for lang in (options.lang, *options.languages):
            asked = questions
            if lang != options.lang:
                asked, failed = yield from self._translated(questions, lang)
                failures += failed
            levels, failed = yield from self._levels(asked, lang)
            failures += failed
            files[LANGUAGES[lang]] = _encoded(self._file(asked, levels, lang))
        return Built(files, notes, [str(failure) for failure in failures])

    def _read(self, path: Path) -> tuple[list[OwnQuestion], list[str]]:
        questions, problems = read_own(path, count=self._counter.count, longest=LONGEST)
        listed = "\n  ".join(map(str, problems))
        if problems and self.options.on_bad == "stop":
            raise DataError(
                path, f"some rows cannot be used (--on-bad skip goes on without them):\n  {listed}"
            )
        if not questions:
            raise DataError(path, "there is no question that can be used.")
        return questions, [f"{path}: left out\n  {listed}"] if problems else []

    def _levels(self, questions: Sequence[OwnQuestion], lang: str) -> Asking:
        """The texts of all levels for each question's line, and what failed."""
        if self.options.model:
            return (yield from self._written(questions, lang))
        bank = generic_bank(lang)
        composed = {question: self._composed(question, bank) for question in questions}
        failures = [Failure(q, lang, 2, why) for q, why in composed.items() if isinstance(why, str)]
        return {q.line: texts for q, texts in composed.items() if not isinstance(texts, str)}, failures

    def _composed(self, question: OwnQuestion, bank: Bank) -> list[str] | str:
        """Levels by the composer, or why there are none.

        One draw in two thousand does not come within the tolerance: it is drawn again.
        """
        seed = f"{compose.GENERATOR}/{compose.VERSION}/{self.options.seed}/{question.text}"
        for attempt in range(TRIES):
            rng = random.Random(f"{seed}/{attempt}")
            try:
                return compose.compose_levels(question.text, bank, rng, TARGETS, self._counter.count)
            except UsageError as error:
                failure = str(error)
        return failure

    def _written(self, questions: Sequence[OwnQuestion], lang: str) -> Asking:
        """Levels 2 to 7 from the model: asked together, checked, and asked again where the check fails."""
        open_: dict[tuple[int, int], str] = {(q.line, level): "" for q in questions for level in range(2, 8)}
        by_line = {question.line: question for question in questions}
        done: dict[tuple[int, int], str] = {}
        for attempt in range(TRIES):
            places = list(open_)
            responses = yield [
                self._rewrite(by_line[line], lang, TARGETS[level - 1], attempt) for line, level in places
            ]
            likeness = yield from _likeness(
                [(by_line[line].text, r.text) for (line, _), r in zip(places, responses, strict=True)]
            )
            for place, response, alike in zip(places, responses, likeness, strict=True):
                fault = self._fault(response, TARGETS[place[1] - 1], alike)
                if fault:
                    open_[place] = fault
                else:
                    done[place] = response.text.strip()
                    del open_[place]
            if not open_:
                break
        failures = [Failure(by_line[line], lang, level, why) for (line, level), why in open_.items()]
        failed = {failure.question.line for failure in failures}
        texts = {
            q.line: [q.text, *(done[q.line, level] for level in range(2, 8))]
            for q in questions
            if q.line not in failed
        }
        return texts, failures

    def _fault(self, response: Response, target: int, alike: float) -> str:
        if response.status != "ok":
            return f"the model's answer ended as {response.status} {response.reason}".rstrip()
        tokens = self._counter.count(response.text)
        if abs(tokens - target) > TOLERANCE * target:
            return f"{tokens} tokens instead of about {target}"
        if alike < KEPT:
            return f"the question is not in it (the nearest sentence has a cosine of {alike:.2f})"
        return ""

    def _rewrite(self, question: OwnQuestion, lang: str, target: int, attempt: int) -> Generate:
        # Chinese does without spaces, so its length is told in characters.
        pieces = question.text if lang == "zh" else question.text.split()
        pace = self._counter.count(question.text) / max(1, len(pieces))
        length = f"{round(target / pace)} {'characters' if lang == 'zh' else 'words'}"
        text = prompt("rewrite").format(
            language=LANGUAGES[lang], length=length, tokens=target, question=question.text
        )
        sampling = Sampling(temperature=0.7, max_tokens=2 * target + 64, seed=self.options.seed)
        return Generate(prompt=(Message("user", text),), sampling=sampling, repeat=attempt)

    def _translated(self, questions: Sequence[OwnQuestion], lang: str) -> Asking:
        """The questions in another language; what is no text in its script is asked again, then given up."""
        open_ = list(questions)
        done: dict[int, str] = {}
        for attempt in range(TRIES):
            responses = yield [
                Generate(
                    prompt=(
                        Message(
                            "user", prompt("translate").format(language=LANGUAGES[lang], question=q.text)
                        ),
                    ),
                    sampling=Sampling(
                        temperature=0.7 if attempt else 0.0, max_tokens=256, seed=self.options.seed
                    ),
                    repeat=attempt,
                )
                for q in open_
            ]
            for question, response in zip(open_, responses, strict=True):
                text = " ".join(response.text.split())
                if response.status == "ok" and is_in(text, lang) and self._counter.count(text) <= LONGEST:
                    done[question.line] = text
            open_ = [question for question in questions if question.line not in done]
            if not open_:
                break
        failures = [Failure(q, lang, 1, f"no usable {LANGUAGES[lang]} in {TRIES} tries") for q in open_]
        return [q._replace(text=done[q.line]) for q in questions if q.line in done], failures

    def _file(
        self, questions: Sequence[OwnQuestion], levels: Mapping[int, Sequence[str]], lang: str
    ) -> dict[str, Any]:
        rows = [
            compose.row(number, question.domain, levels[question.line], self._counter.count)
            for number, question in enumerate(questions, 1)
            if question.line in levels
        ]
        made_by = {"generator": self.options.model or compose.GENERATOR, "seed": self.options.seed}
        return compose.question_file(
            rows, language=LANGUAGES[lang], asked=len(questions), counter=self._counter, made_by=made_by
        )


def _likeness(pairs: Sequence[tuple[str, str]]) -> Asking:
    """For each question and text: 1 where the question stands there, else its nearest sentence's cosine."""
    import numpy as np

    from evenkeel.benchmarks.mirae.scoring import unit

    split = [sentences(text) for _, text in pairs]
    wanted = dict.fromkeys(s for (q, _), parts in zip(pairs, split, strict=True) for s in (q, *parts))
    responses = usable((yield [Embed(text=text) for text in wanted]))
    vectors = {
        text: unit(np.frombuffer(response.vector, dtype="<f4")[None])[0]
        for text, response in zip(wanted, responses, strict=True)
        if response.vector
    }
    result = []
    for (question, text), parts in zip(pairs, split, strict=True):
        known = [vectors[part] for part in parts if part in vectors]
        if question in text:
            result.append(1.0)
        elif known and question in vectors:
            result.append(float((np.stack(known) @ vectors[question]).max()))
        else:
            result.append(0.0)
    return result


def sentences(text: str) -> list[str]:
    """A text's sentences, by the marks that end them in any of the languages."""
    parts = re.split(r"(?<=[.!?])\s+|(?<=[。！？])|\n+", text)
    return [part.strip() for part in parts if part and part.strip()]


SCRIPTS = {"en": r"[A-Za-z]", "ko": r"[\uac00-\ud7a3]", "zh": r"[\u4e00-\u9fff]"}


def is_in(text: str, lang: str) -> bool:
    """Whether most letters of a text are of a language's script."""
    letters = re.findall(r"[^\W\d_]", text)
    return len(re.findall(SCRIPTS[lang], text)) > len(letters) / 2


@cache
def prompt(name: str) -> str:
    return (
        resources.files("evenkeel.benchmarks.mirae.make")
        .joinpath("prompts", f"{name}.txt")
        .read_text("utf-8")
    )


def _encoded(content: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(content), indent=1)
