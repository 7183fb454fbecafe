"""MIRON: does a base model survive its own tokenizer?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct

from evenkeel.benchmarks.miron import files as data
from evenkeel.benchmarks.miron.page import LAYOUT, UNITS, examples, notes
from evenkeel.files.datasets import Starter
from evenkeel.options import ASKING
from evenkeel.run.benchmark import Benchmark, Data, Recorded, Scoring
from evenkeel.text.token_estimate import estimate_tokens
from evenkeel.types import (
    Answered,
    Capability,
    Generate,
    LogLikelihood,
    Logprobs,
    Records,
    Request,
    Response,
    RunSpec,
    Sample,
    Sampling,
    Score,
    Summary,
    Tag,
)

LONGEST = 4096
"""Tokens of a target, at the most."""

STARTER_SHA256 = {
    "en": "7e76fb78f4d00093570ace640afa727dae4a0498d99f0ff6415387ff100bf363",
    "ru": "effa9a662926c675b7747b8a3227ac0e1262aec945aaad1f4af02f34c8811e0c",
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
        Meta(description="Whether the target is weighed; auto: where the model can.", extra=ASKING),
    ] = "auto"


def make_starter(stem: str) -> bytes:
    from evenkeel.benchmarks.miron.make.generator import compose

    return b"".join(msgspec.json.encode(row) + b"\n" for row in compose(stem))


class Miron(Benchmark):
    """One sample is one example: its target is weighed, and a continuation written in its place."""

    Options = MironOptions
    layout = LAYOUT
    metrics = LAYOUT.metrics
    starter = Starter(STARTER_SHA256, make_starter, langs=("en", "ru"))
    usage: ClassVar[Mapping[str, Sequence[str]]] = {
        "run": (
            "evenkeel run miron --model embedded --limit 200",
            "evenkeel run miron --model hf:path/to/base-model --lang ru --stop word",
        ),
        "score": ("evenkeel score miron miron_en.jsonl",),
        "build": ("evenkeel build miron --seed 7 --per-category 200 --lang en,ru",),
    }
    demo: ClassVar[Mapping[str, Any]] = {"model": "embedded", "limit": 40}
    helpers: Mapping[str, str] = {}
    covered: ClassVar[tuple[str, ...]] = ("target_confidence",)
    """What the floor of coverage is for beside the headline, where it was asked for."""

    def __init__(self, options: MironOptions, *, seed: int = 0) -> None:
        super().__init__(options, seed=seed)
        # To write as many tokens as the target has, a model must be able to count them: what weighs, can.
        weighs = options.confidence != "no" or options.stop == "target"
        self.roles: Mapping[str, frozenset[Capability]] = {
            "model": frozenset({"generate", "loglikelihood"} if weighs else {"generate"})
        }

    def samples(self, files: Data) -> list[Sample]:
        langs, limit = files.langs, files.limit
        fallback = langs[0] if langs and len(langs) == 1 else None
        sets = {file.path: data.read_examples(file.path, file.lang or fallback) for file in files}
        found = data.told_apart(sets)
        wanted = data.choose(data.check_langs(found, langs), limit)
        return [make_sample(example) for example in wanted]

    def choose(self, samples: Sequence[Sample], data: Data) -> Sequence[Sample]:
        """`samples` has chosen already."""
        return samples

    def requests(self, sample: Sample) -> list[Request]:
        prefix, target, repeat = (sample.inputs.get(name, 0) for name in ("prefix", "target", "repeat"))
        written = Generate(prompt=prefix, sampling=self._sampling(target), repeat=repeat)
        if self.options.confidence == "no" or sample.inputs.get("no_logprobs"):
            return [written]
        return [LogLikelihood(prefix=prefix, continuation=target, repeat=repeat), written]

    def _sampling(self, target: str) -> Sampling:
        kind, _, count = self.options.stop.partition("=")
        if kind == "target":
            return Sampling(length_of=target, max_tokens=LONGEST, stop=("\n",))
        most = {"word": 8 + 4 * estimate_tokens(target), "line": 64, "tokens": int(count or 0)}[kind]
        return Sampling(max_tokens=most, stop=("\n",))

    def score(self, answered: Sequence[Answered]) -> Scoring:
        from evenkeel.benchmarks.miron.scoring import measure

        yield from ()  # nothing further is asked
        return measure(answered, stop=self.options.stop)

    def summarise(self, scores: Sequence[Score]) -> Summary:
        from evenkeel import analysis as stats
        from evenkeel.benchmarks.miron.scoring import covering, parts_of

        everywhere: list[tuple[str, ...]] = [(), ("category",), ("lang",), ("category", "lang")]
        metrics = dict.fromkeys(name for score in scores for name in score.values)
        breakdown = {name: list(everywhere) for name in metrics}
        for name in ("target_confidence", "lev_score"):
            if name in breakdown:
                breakdown[name] += [("pieces",), ("pieces", "lang")]
        for name in ("score_drift", "confidence_drift"):
            if name in breakdown:
                breakdown[name] = [(), ("lang",), ("edits",), ("edits", "lang"), ("edit",)]
        summary: Summary = {}
        for parts in dict.fromkeys(map(parts_of, metrics)):
            own = {name: by for name, by in breakdown.items() if parts_of(name) == parts}
            covered = [covering(score, next(iter(own))) for score in scores]
            summary |= stats.summarise(covered, own, units=UNITS)
        if "pieces" in metrics:
            for name in ("target_confidence", "lev_score"):
                summary[f"pieces_and_{name}"] = stats.rank_correlation(scores, "pieces", name, seed=self.seed)
        return {"lev_score": summary.pop("lev_score"), **summary}

    notes = staticmethod(notes)
    examples = staticmethod(examples)

    def without(self, capabilities: frozenset[Capability]) -> Miron | None:
        """A model that cannot weigh is scored by what it writes; its tokens cannot be counted, words can."""
        if capabilities != {"loglikelihood"} or self.options.confidence == "yes":
            return None
        stop = "word" if self.options.stop == "target" else self.options.stop
        return Miron(MironOptions(stop=stop, confidence="no"), seed=self.seed)

    def recorded(self, path: Path, *, lang: str | None) -> Recorded:
        results = data.read_results(path, lang)
        # A model that cannot weigh leaves a file without any confidence: nothing is missing from that.
        no_logprobs = all(result.target_confidence is None for _, result in results)
        asked: Counter[str] = Counter()  # rows of one prefix are told apart: each has its own answer
        repeats = []
        for example, _ in results:
            repeats.append(asked[example.prefix])
            asked[example.prefix] += 1
        return Recorded(
            model=path.stem,
            samples=[
                make_sample(
                    example, recorded=True, no_logprobs=no_logprobs, repeat=repeat, published=_given(result)
                )
                for (example, result), repeat in zip(results, repeats, strict=True)
            ],
            responses=[
                [_written(result)] if no_logprobs else [_logprobs(example, result), _written(result)]
                for example, result in results
            ],
        )

    def publish(self, spec: RunSpec, records: Records) -> Iterator[tuple[str, Iterator[bytes]]]:
        return data.results_files(records)

    @classmethod
    def builder(cls) -> Any:
        from evenkeel.benchmarks.miron.make.builder import MironBuilder

        return MironBuilder


def make_sample(example: data.Example, **more: Any) -> Sample:
    tags: dict[str, Tag] = {"lang": example.lang, "category": example.category}
    if example.twin and example.edits:
        tags["edits"] = example.edits
    if example.twin and example.edit_kinds:
        tags["edit"] = example.edit
    inputs = {name: getattr(example, name) for name in ("prefix", "target", "category", "kind", "twin")}
    return Sample(
        id=example.id,
        group=example.twin or example.id,  # typos and their clean twin stand or fall together
        tags=tags,
        inputs={**inputs, **more},
    )


def _given(result: data.Result) -> dict[str, float]:
    scores = {"lev_score": result.lev_score, "target_confidence": result.target_confidence}
    return {name: value for name, value in scores.items() if value is not None}


def _logprobs(example: data.Example, result: data.Result) -> Response:
    """A recorded confidence as the one token that gives it; the file does not tell of the real ones."""
    confidence = result.target_confidence
    if confidence is None:
        return Response(status="error", reason="not recorded")
    if confidence <= 0:
        return Response(status="ok", logprobs=Logprobs((), ()))
    return Response(status="ok", logprobs=Logprobs((example.target,), (math.log(confidence / 100),)))


def _written(result: data.Result) -> Response:
    if result.generated is None:
        return Response(status="error", reason="not recorded")
    return Response(status="ok", text=result.generated)
