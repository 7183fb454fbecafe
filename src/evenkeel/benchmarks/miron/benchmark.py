"""MIRON: is a base model robust to its own tokenizer?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct

from evenkeel.benchmarks.miron import files, scoring, strings
from evenkeel.benchmarks.miron.baselines import with_baselines
from evenkeel.benchmarks.miron.files import MironDetail, MironInputs
from evenkeel.benchmarks.miron.page import LAYOUT, notes
from evenkeel.benchmarks.miron.view import examples, view
from evenkeel.files.datasets import Starter
from evenkeel.harness.benchmark import Benchmark, Data, Question, Recorded
from evenkeel.options import ASKING
from evenkeel.text.answers import Rule
from evenkeel.text.token_estimate import estimate_tokens
from evenkeel.types import (
    Answered,
    Capability,
    Generate,
    LogLikelihood,
    Records,
    Request,
    RunSpec,
    Sample,
    Sampling,
    Score,
    Summary,
)

LONGEST = 4096
"""Tokens of a target, at most."""
SPARE = 8
"""Tokens of a word, beyond those that a target is estimated to have, until it must have ended."""

STARTER_SHA256 = {
    "en": "6ce620b8357516bd012b46a05618040ba0af427974aacadd853ae77b08352f01",
    "ru": "aa583ecd889966f27fb4286257a6dd58b8b677f62b56a3ee2666accdf5f7aa70",
}


class MironOptions(Struct, frozen=True, kw_only=True):
    """What can be set about a MIRON run."""

    stop: Annotated[
        str,
        Meta(
            pattern=r"^(target|word|line|tokens=[1-9]\d*)$",
            description="Where a continuation ends: target (as many tokens as the target has), "
            "word (as many words), line, or tokens=N; always at a line break.",
            extra=ASKING,
        ),
    ] = "target"
    confidence: Annotated[
        Literal["auto", "yes", "no"],
        Meta(
            description="Whether to ask for the log-likelihood of the target; auto: where the model can.",
            extra=ASKING,
        ),
    ] = "auto"
    string_probability: Annotated[
        bool,
        Meta(
            description="Whether to ask for the probability of the target as a string, over all its token "
            "sequences, and so for what the tokenizer costs. Local models only; takes about ten times as "
            "long as a log-likelihood.",
            extra=ASKING,
        ),
    ] = False


def make_starter(stem: str) -> bytes:
    from evenkeel.benchmarks.miron.make.generator import compose

    return b"".join(msgspec.json.encode(row) + b"\n" for row in compose(stem))


class Miron(Benchmark):
    """Is a base model robust to its own tokenizer?

    One sample is one example: the log-likelihood of its target, and a continuation generated in its place.
    """

    Options = MironOptions
    Inputs = MironInputs
    Detail = MironDetail | None
    # A base model continues a text: to end it at once is a continuation too, which the published formula
    # scores (Levenshtein distance to the empty text). A text that was cut off before it began is none.
    answers = Rule(truncated=True, empty=True)
    layout = LAYOUT
    metrics = LAYOUT.metrics
    notes = staticmethod(notes)
    examples = staticmethod(examples)
    view = staticmethod(view)
    starter = Starter(STARTER_SHA256, make_starter, langs=("en", "ru"))
    usage: ClassVar[Mapping[str, Sequence[str]]] = {
        "run": (
            "evenkeel run miron --model embedded --limit 200",
            "evenkeel run miron --model hf:path/to/base-model --lang ru --stop word",
            "evenkeel run miron --model hf:path/to/base-model --limit 200 --string-probability",
        ),
        "score": ("evenkeel score miron miron_en.jsonl",),
        "build": ("evenkeel build miron --seed 7 --per-category 200 --lang en,ru",),
    }
    demo: ClassVar[Mapping[str, Any]] = {"model": "embedded", "limit": 16}
    inspect_options: ClassVar[Mapping[str, Any]] = {"confidence": "no", "stop": "word"}
    covered: ClassVar[Sequence[str]] = ("target_confidence",)
    options: MironOptions

    def __init__(self, options: MironOptions, *, seed: int = 0) -> None:
        super().__init__(options, seed=seed)
        # To generate as many tokens as the target has, a model must count them: one with log-probabilities
        # can.
        generates = options.confidence == "no" and options.stop != "target"
        needs: set[Capability] = {"generate"} if generates else {"generate", "loglikelihood"}
        needs |= {"stringlikelihood"} if options.string_probability else set()
        self.roles = {"model": frozenset(needs)}
        self._left_out: list[str] = []

    def samples(self, data: Data) -> list[Sample]:
        """`limit` examples of each language, as many of each category. Baselines are those of all data."""
        examples = files.read_files(data)
        self._left_out = [file.path.name for file in data if files.is_settings(file)]
        samples = with_baselines([files.make_sample(example) for example in examples])
        chosen = {example.id for example in files.balanced(examples, data.limit)}
        return [sample for sample in samples if sample.id in chosen]

    def about_data(self, samples: Sequence[Sample]) -> dict[str, Any]:
        """The files of a folder that hold no rows."""
        return {"left_out": self._left_out} if self._left_out else {}

    def requests(self, sample: Sample[MironInputs]) -> list[Request]:
        asked = strings.requests(sample.inputs) if self.options.string_probability else []
        return [*asked, *self._token_requests(sample)]

    def question(self, sample: Sample[MironInputs]) -> Question:
        inputs = sample.inputs
        return Question(inputs.prefix, tuple(dict.fromkeys((inputs.target, *inputs.accepted))))

    def _token_requests(self, sample: Sample[MironInputs]) -> list[Request]:
        inputs = sample.inputs
        generate = Generate(prompt=inputs.prefix, sampling=self._sampling(inputs), repeat=inputs.repeat)
        if self.options.confidence == "no" or inputs.no_logprobs:
            return [generate]
        answers = [inputs.target]
        if inputs.published is None:  # what was recorded has no log-probabilities of other answers
            answers += scoring.answers_of(inputs.target, inputs.accepted)
        return [
            *(
                LogLikelihood(prefix=inputs.prefix, continuation=answer, repeat=inputs.repeat)
                for answer in dict.fromkeys(answers)
            ),
            generate,
        ]

    def _sampling(self, inputs: MironInputs) -> Sampling:
        """The text of the stop rule, and beside it what the other rule needs of the same text."""
        target, (kind, _, count) = inputs.target, self.options.stop.partition("=")
        if kind == "target":
            longest = max((target, *inputs.accepted), key=len)
            words = max(len(answer.split()) for answer in (target, *inputs.accepted))
            return Sampling(
                length_of=target,
                max_tokens=LONGEST,
                stop=("\n",),
                beyond=SPARE + estimate_tokens(longest),
                words=words,
            )
        most = {"word": 8 + 4 * estimate_tokens(target), "line": 64, "tokens": int(count or 0)}[kind]
        counts = kind == "word" and self.options.confidence != "no"
        return Sampling(max_tokens=most, stop=("\n",), marked=target if counts else "")

    def score(self, answered: Sequence[Answered[MironInputs]]) -> list[Score]:
        scores = scoring.score_examples(answered, self.answers, stop=self.options.stop)
        return [strings.with_strings(score, item) for score, item in zip(scores, answered, strict=True)]

    def summarise(self, scores: Sequence[Score]) -> Summary:
        return scoring.summarise(scores, seed=self.seed)

    def without(self, capabilities: frozenset[Capability]) -> Miron | None:
        """Without log-probabilities only the continuation is scored; tokens cannot be counted, words can."""
        if capabilities != {"loglikelihood"} or self.options.confidence == "yes":
            return None
        stop = "word" if self.options.stop == "target" else self.options.stop
        return Miron(MironOptions(stop=stop, confidence="no"), seed=self.seed)

    def recorded(self, path: Path, *, lang: str | None) -> Recorded:
        recorded = files.read_results(path, lang)
        return recorded._replace(samples=with_baselines(recorded.samples))

    def publish(self, spec: RunSpec, records: Records) -> Iterator[tuple[str, Iterator[bytes]]]:
        return files.results_files(records)

    @classmethod
    def builder(cls) -> Any:
        from evenkeel.benchmarks.miron.make.builder import MironBuilder

        return MironBuilder

    @classmethod
    def tokenizers(cls) -> Any:
        from evenkeel.benchmarks.miron import tokenizers

        return tokenizers
