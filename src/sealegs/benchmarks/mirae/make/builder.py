"""Builds a MIRAE question set: from a seed, or from a user's questions, composed or written by a model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from sealegs.benchmarks.mirae.data import LANGUAGES
from sealegs.benchmarks.mirae.make import generator
from sealegs.benchmarks.mirae.make.questions import UserQuestion, read_user_questions
from sealegs.benchmarks.mirae.make.texts import PADDINGS, Padding, TextSource, cut_to_levels, neutral
from sealegs.benchmarks.mirae.make.writer import LONGEST_TOKENS, PromptWriter, Written
from sealegs.errors import UsageError
from sealegs.make.builder import Built, parse_languages
from sealegs.make.grammar import seeded
from sealegs.models.registry import split_spec, token_counter
from sealegs.options import FILE
from sealegs.text.token_estimate import APPROXIMATE
from sealegs.types import Asking, Capability


class BuildOptions(Struct, frozen=True, kw_only=True):
    """Options of building a question set."""

    questions: Annotated[
        str | None,
        Meta(
            description="Your questions: .txt (one per line), .csv or .jsonl (a field 'question', and "
            "'expected' where the right answer is known).",
            extra=FILE,
        ),
    ] = None
    lang: Annotated[str, Meta(description="The language of the questions.")] = "en"
    seed: Annotated[int, Meta(description="Another seed gives another set.")] = 0
    model: Annotated[
        str | None,
        Meta(
            description="A model that writes the levels of your questions; with --translate or --paraphrase "
            "it only does that."
        ),
    ] = None
    padding: Annotated[
        Literal["neutral", "elaborate", "both"] | None,
        Meta(
            description="What follows a question: elaborate adds demands, neutral unrelated stories, both "
            "writes two rows of each question. Default: elaborate; neutral for your questions without a "
            "--model."
        ),
    ] = None
    translate: Annotated[str, Meta(description="Add these languages, translated by the model: ko,zh.")] = ""
    paraphrase: Annotated[
        int,
        Meta(
            ge=0,
            le=20,
            description="Add so many wordings of each question by the model, each checked by the judge.",
        ),
    ] = 0
    judge: Annotated[
        str | None,
        Meta(description="The model that checks whether a wording asks the same. Default: --model."),
    ] = None
    tokenizer: Annotated[
        str | None, Meta(description="Count lengths as the model under test would: hf:ID.")
    ] = None

    def __post_init__(self) -> None:
        if self.translate and not self.model:
            raise ValueError("--translate needs a --model that translates")
        if self.paraphrase and not self.model:
            raise ValueError("--paraphrase needs a --model that writes the wordings")
        if self.judge and not self.paraphrase:
            raise ValueError("--judge checks wordings: give --paraphrase N")
        if self.model and not self.questions:
            raise ValueError("--model writes levels for your --questions; a seed alone needs no model")
        if self.questions and not self.by_model and self.padding in ("elaborate", "both"):
            raise ValueError(f"--padding {self.padding} of your own questions needs a --model that writes it")
        if parse_languages(self.lang, LANGUAGES) != [self.lang]:
            raise ValueError("--lang takes one language; --translate adds others")
        if self.lang in parse_languages(self.translate, LANGUAGES):
            raise ValueError(f"--translate {self.lang}: the questions are in that language already")

    @property
    def by_model(self) -> bool:
        """Whether the model writes the levels; one that is there to translate or to paraphrase does not."""
        return bool(self.model) and not self.translate and not self.paraphrase

    @property
    def paddings(self) -> tuple[Padding, ...]:
        if self.padding is None:
            return ("neutral",) if self.questions and not self.by_model else ("elaborate",)
        return PADDINGS if self.padding == "both" else (self.padding,)


class MiraeBuilder:
    """Builds one file for each language."""

    Options = BuildOptions
    asks = True

    def __init__(self, options: BuildOptions) -> None:
        self.options = options
        helpers = {"model": options.model, "judge": options.judge}
        self.helpers: Mapping[str, str] = {role: spec for role, spec in helpers.items() if spec}
        self.roles: Mapping[str, frozenset[Capability]] = {
            role: frozenset({"generate"}) for role in ("model", *self.helpers)
        }
        self._counter = token_counter(options.tokenizer) if options.tokenizer else APPROXIMATE
        self._writer = PromptWriter(self._counter, seed=options.seed)

    def build(self) -> Asking[Built]:
        options = self.options
        if options.questions is None:
            content = generator.compose(options.lang, options.seed, self._counter, paddings=options.paddings)
            return Built({_file_name(options.lang): _encode(content)}, notes=[], failures=[])
        path = Path(options.questions)
        questions = read_user_questions(path, count=self._counter.count, longest=LONGEST_TOKENS)
        numbers = {question.line: number for number, question in enumerate(questions, 1)}
        files: dict[str, bytes] = {}
        failures: list[str] = []
        translated = {options.lang: questions}
        for lang in parse_languages(options.translate, LANGUAGES):
            translated[lang], faults = yield from self._writer.translate(questions, lang)
            failures += faults
        if options.paraphrase:
            judge = "judge" if options.judge else "model"
            for lang, in_lang in translated.items():
                reworded = self._writer.paraphrase(in_lang, lang, options.paraphrase, judge)
                translated[lang], faults = yield from reworded
                failures += faults
        surrounded: dict[str, Written] = {} if options.by_model else self._surround(translated)
        for lang, in_lang in translated.items():
            rows = []
            for padding in options.paddings:
                if options.by_model:
                    written = yield from self._writer.write_levels(in_lang, lang, padding)
                else:
                    written = surrounded[lang]
                failures += written.failures
                rows += [
                    generator.row(
                        numbers[question.line],
                        question.domain,
                        padding,
                        texts,
                        self._counter.count,
                        expected=question.expected,
                        wording=question.wording,
                    )
                    for question, texts in written.levels.items()
                ]
            files[_file_name(lang)] = _encode(
                generator.question_file(
                    rows,
                    language=LANGUAGES[lang],
                    asked=len(questions),
                    counter=self._counter,
                    made_by=self._made_by(lang),
                )
            )
        return Built(files, notes=[], failures=failures)

    def _made_by(self, lang: str) -> dict[str, Any]:
        """What wrote the prompts of a language, for its file."""
        options = self.options
        if options.by_model:
            return {"generator": _name(options.model), "seed": options.seed}
        made_by: dict[str, Any] = {"generator": generator.GENERATOR, "seed": options.seed}
        if lang != options.lang:
            made_by["translated_by"] = _name(options.model)
        if options.paraphrase:
            made_by["paraphrased_by"] = _name(options.model)
            made_by["wordings_checked_by"] = _name(options.judge or options.model)
        return made_by | {"generator_version": generator.VERSION}

    def _surround(self, translated: Mapping[str, Sequence[UserQuestion]]) -> dict[str, Written]:
        """Levels without a model: the question and unrelated stories, in all languages the same."""
        written = {lang: Written({}, []) for lang in translated}
        by_wording: defaultdict[tuple[int, int], dict[str, UserQuestion]] = defaultdict(dict)
        for lang, questions in translated.items():
            for question in questions:
                by_wording[question.line, question.wording][lang] = question
        for (line, _), in_languages in by_wording.items():  # all wordings with the same stories
            key = ("mirae", generator.VERSION, self.options.seed, line)
            sources = {
                lang: TextSource(question.text, neutral(lang, seeded(*key)))
                for lang, question in in_languages.items()
            }
            try:
                texts = cut_to_levels(sources, self._counter.count)
            except UsageError as error:
                for lang in in_languages:
                    written[lang].failures.append(f"line {line}, {lang}: {error}")
            else:
                for lang, question in in_languages.items():
                    written[lang].levels[question] = texts[lang]
        return written


def _name(spec: str | None) -> str:
    """A model as a file names it: without where it is reached."""
    return split_spec(spec)[0] if spec else ""


def _file_name(lang: str) -> str:
    return f"questions_{LANGUAGES[lang].lower()}.json"


def _encode(content: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(content), indent=1)
