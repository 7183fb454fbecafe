"""MIRAE: does a model say the same thing when asked again, and when the prompt grows?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import islice
from math import log2
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec
from msgspec import Meta, Struct

from evenkeel.benchmarks.mirae import files as data
from evenkeel.benchmarks.mirae.page import LAYOUT, METRICS, examples, notes
from evenkeel.errors import UsageError
from evenkeel.files.datasets import Starter
from evenkeel.files.package_data import read_json
from evenkeel.messages import suggestion
from evenkeel.models.vectors import usable
from evenkeel.options import ASKING
from evenkeel.page.metrics import unit_of
from evenkeel.run.benchmark import Benchmark, Data, Recorded, Scoring
from evenkeel.types import (
    Answered,
    Capability,
    Embed,
    Generate,
    Message,
    Records,
    Request,
    Response,
    RunSpec,
    Sample,
    Sampling,
    Score,
    Summary,
    Tag,
    tags_match,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STARTER_SHA256 = {
    "en": "b3ec47794ece5a7e7f5c0e3e2ab8a346723f02d44b5b0b0389d6c6ff8dbeae55",
    "ko": "8414d71610a431693f4e4d265bb2d6c6f48da199edfdba24b8ec7542eff24d47",
    "zh": "820c117841f44775bd31bd0ccc013ee7277619f5dc3216ddf16a3d8402483a2b",
}


class MiraeOptions(Struct, frozen=True, kw_only=True):
    """What can be set about a MIRAE run."""

    levels: Annotated[
        str,
        Meta(
            description="Prompt lengths to ask, 1 (about 30 tokens) to 7 (2,000): 1-7, 1,4,7 or all.",
            extra=ASKING,
        ),
    ] = "all"
    samples: Annotated[int, Meta(ge=2, description="How often each prompt is asked.", extra=ASKING)] = 5
    temperature: Annotated[float, Meta(ge=0, description="Sampling temperature.", extra=ASKING)] = 0.7
    max_tokens: Annotated[int, Meta(ge=1, description="The longest answer, in tokens.", extra=ASKING)] = 256
    embedder: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1,
            description="The model that turns answers into vectors; repeat to set others beside it.",
        ),
    ] = ("embedded-embedder",)
    chunked: Annotated[
        bool,
        Meta(description="Also embed long answers whole, as the mean over windows, in a further column."),
    ] = False
    meaning_distance: Annotated[
        float, Meta(gt=0, lt=2, description="Answers closer than this (1 − cosine) are of one meaning.")
    ] = 0.2

    def __post_init__(self) -> None:
        levels = data.parse_levels(self.levels)
        if self.levels != "all":  # one way to write it, so that 1,2,3 and 1-3 are the same run
            msgspec.structs.force_setattr(self, "levels", data.span(levels))
        if len(set(self.embedder)) < len(self.embedder):
            raise ValueError("--embedder: the same one twice")
        if len(self.embedder) > 4:
            raise ValueError("--embedder: four at the most")


def make_starter(lang: str) -> bytes:
    from evenkeel.benchmarks.mirae.make.generator import compose

    return msgspec.json.format(msgspec.json.encode(compose(lang)), indent=1)


class Mirae(Benchmark):
    """One sample is one question at one level in one language, asked several times."""

    Options = MiraeOptions
    layout = LAYOUT
    metrics = LAYOUT.metrics
    starter = Starter(STARTER_SHA256, make_starter)
    usage: ClassVar[Mapping[str, Sequence[str]]] = {
        "run": (
            "evenkeel run mirae --model embedded --limit 4 --levels 1-3",
            "evenkeel run mirae --model hf:path/to/model --model-arg dtype=bfloat16 --out runs/mine",
            "evenkeel run mirae --model openai:NAME --base-url http://127.0.0.1:8000/v1 --concurrency 256",
            "evenkeel run mirae --model openai:NAME --dry-run",
        ),
        "score": (
            "evenkeel score mirae MIRAE_claude_haiku_results_english.json --out runs/haiku",
            "evenkeel score mirae A.json B.json C.json",
            "evenkeel score mirae A.json --embedder embedded-embedder "
            "--embedder sbert:path/to/model --chunked",
        ),
        "build": (
            "evenkeel build mirae --questions mine.txt --out mine.json",
            "evenkeel build mirae --seed 7 --out fresh.json",
            "evenkeel build mirae --questions mine.csv --on-bad skip --tokenizer hf:PATH --out mine.json",
            "evenkeel build mirae --questions mine.txt --model openai:NAME --translate ko,zh --out mine.json",
        ),
    }
    demo: ClassVar[Mapping[str, Any]] = {
        "model": "embedded",
        "limit": 4,
        "levels": "1-3",
        "samples": 3,
        "max_tokens": 24,
    }

    def __init__(self, options: MiraeOptions, *, seed: int = 0) -> None:
        super().__init__(options, seed=seed)
        # The first embedder is the headline; the others stand beside it under their numbers.
        self.helpers: Mapping[str, str] = {
            "embedder" if number == 1 else f"embedder-{number}": spec
            for number, spec in enumerate(options.embedder, 1)
        }
        needs: dict[str, frozenset[Capability]] = {role: frozenset({"embed"}) for role in self.helpers}
        self.roles: Mapping[str, frozenset[Capability]] = {"model": frozenset({"generate"}), **needs}
        self._sampling = Sampling(temperature=options.temperature, max_tokens=options.max_tokens, seed=seed)

    def samples(self, files: Data) -> list[Sample]:
        """`limit` questions of each language, spread evenly over the domains, at every wanted level."""
        langs, limit = files.langs, files.limit
        fallback = langs[0] if langs and len(langs) == 1 else None
        questions = [question for file in files for question in data.read_questions(file.path, fallback)]
        found = dict.fromkeys(question.lang for question in questions)
        if langs and (absent := [lang for lang in langs if lang not in found]):
            hint = suggestion(absent[0], found)
            raise UsageError(f"the data has no questions in '{absent[0]}'; it has: {', '.join(found)}.{hint}")
        wanted = spread([question for question in questions if not langs or question.lang in langs], limit)
        twice = [key for key, n in Counter((q.lang, q.id) for q in wanted).items() if n > 1]
        if twice:
            raise UsageError(
                f"question {twice[0][1]} in '{twice[0][0]}' stands in several files: give one of them."
            )
        levels = data.parse_levels(self.options.levels)
        if self.options.levels == "all":
            levels = tuple(level for level in levels if any(level in question.texts for question in wanted))
        for question in wanted:
            if absent_levels := [level for level in levels if level not in question.texts]:
                raise UsageError(f"question {question.id} has no level {absent_levels[0]}: see --levels.")
        return tell_apart(
            [
                make_sample(q.id, q.domain, q.lang, level, q.texts[level], self.options.samples)
                for q in wanted
                for level in levels
            ]
        )

    def choose(self, samples: Sequence[Sample], data: Data) -> Sequence[Sample]:
        """`samples` has chosen already."""
        return samples

    def requests(self, sample: Sample) -> tuple[Generate, ...]:
        prompt = (Message("user", sample.inputs["question_text"]),)
        first = sample.inputs["first_repeat"]
        return tuple(
            Generate(prompt=prompt, sampling=self._sampling, repeat=repeat)
            for repeat in range(first, first + sample.inputs["samples"])
        )

    def score(self, answered: Sequence[Answered]) -> Scoring:
        """All answers are embedded in one go, each distinct text once; then each prompt has its scores."""
        from evenkeel.benchmarks.mirae.scoring import measure, texts_to_embed

        texts = texts_to_embed(answered)
        langs = dict.fromkeys(str(item.sample.tags["lang"]) for item in answered)
        probed = [lang for lang in langs if lang != "en" and lang in probes()]
        sentences = [sentence for lang in ("en", *probed) for sentence in probes()[lang]] if probed else []
        asked = [Embed(text=text, role=role) for role in self.helpers for text in (*texts, *sentences)]
        responses = iter((yield asked))
        asked_for = [*texts, *sentences]
        embedded = {
            role: dict(zip(asked_for, usable(islice(responses, len(asked_for))), strict=True))
            for role in self.helpers
        }
        whole = (yield from read_whole(texts, embedded["embedder"])) if self.options.chunked else None
        reads = {lang: share for lang in probed if (share := _reads(lang, embedded["embedder"])) is not None}
        return measure(answered, embedded, whole, reads=reads, distance=self.options.meaning_distance)

    def summarise(self, scores: Sequence[Score]) -> Summary:
        from evenkeel import analysis as stats

        by_level: list[tuple[str, ...]] = [(), ("level",)]
        everywhere = [
            *by_level,
            ("domain",),
            ("level", "domain"),
            ("lang",),
            ("lang", "level"),
            ("lang", "domain"),
        ]
        metrics = dict.fromkeys(name for score in scores for name in score.values)
        beside = {name: [*by_level, ("lang",), ("lang", "level")] for name in metrics}
        if "embedder_reads" in beside:
            beside["embedder_reads"] = [("lang",)]
        units = {name: unit_of(METRICS, name) for name in metrics}
        summary = stats.summarise(scores, {**beside, "mean_similarity": everywhere}, units=units)
        lengths: dict[Tag, float] = {
            level: log2(tokens) for level, tokens in zip(data.LEVELS, data.TARGETS, strict=True)
        }
        levels = sorted({int(score.tags["level"]) for score in scores})
        langs = dict.fromkeys(str(score.tags["lang"]) for score in scores)
        for scope in ({}, *({"lang": lang} for lang in langs)) if len(levels) > 1 else ():
            members = [score for score in scores if tags_match(score.tags, scope)]
            for name, figure in (
                (
                    "trend_per_doubling",
                    stats.slope(members, "mean_similarity", "level", lengths, unit="cosine"),
                ),
                (
                    "last_minus_first_level",
                    stats.difference(
                        members, "mean_similarity", "level", levels[0], levels[-1], unit="cosine"
                    ),
                ),
            ):
                summary[stats.scope_name(name, scope)] = figure
        for name in metrics:
            if name.startswith("mean_similarity@"):
                other = name.partition("@")[2]
                summary[f"rank_correlation@{other}"] = stats.rank_correlation(
                    scores, "mean_similarity", name, seed=self.seed
                )
        return {"mean_similarity": summary.pop("mean_similarity"), **_probed(summary)}

    notes = staticmethod(notes)
    examples = staticmethod(examples)

    def recorded(self, path: Path, *, lang: str | None) -> Recorded:
        recording = data.read_recording(path, lang)
        # A prompt with fewer answers than the others lacks some: they count as missing, not as never asked.
        count = max([2, *(len(p.responses) for p in recording.prompts)])
        missing = Response(status="error", reason="not recorded")
        samples = [
            make_sample(p.id, p.domain, recording.lang, p.level, p.text, count, published=p.published)
            for p in recording.prompts
        ]
        responses = [[Response(status="ok", text=text) for text in p.responses] for p in recording.prompts]
        return Recorded(
            model=recording.model,
            samples=tell_apart(samples),
            responses=[[*found, *[missing] * (count - len(found))] for found in responses],
        )

    def publish(self, spec: RunSpec, records: Records) -> Iterator[tuple[str, Iterator[bytes]]]:
        return data.results_files(spec, records)

    @classmethod
    def builder(cls) -> Any:
        from evenkeel.benchmarks.mirae.make.builder import MiraeBuilder

        return MiraeBuilder


def read_whole(
    texts: Sequence[str], embedded: Mapping[str, Response]
) -> Generator[Sequence[Request], Sequence[Response], dict[str, NDArray[np.float32]]]:
    """A vector of the whole of every text: what the embedder cut is halved until nothing is cut."""
    import numpy as np

    from evenkeel.benchmarks.mirae.formulas import mean_of_windows

    known = dict(embedded)
    windows = {text: [text] for text in texts}
    while too_long := [w for parts in windows.values() for w in parts if known[w].cut and len(w) > 1]:
        halves = {window: halved(window) for window in dict.fromkeys(too_long)}
        new = [half for pair in halves.values() for half in pair if half not in known]
        known.update(zip(new, (yield [Embed(text=half) for half in new]), strict=True))
        known = dict(zip(known, usable(known.values()), strict=True))
        windows = {text: [h for w in parts for h in halves.get(w, (w,))] for text, parts in windows.items()}
    return {
        text: mean_of_windows(
            np.stack([np.frombuffer(known[w].vector or b"", dtype="<f4") for w in parts]),
            [len(w) for w in parts],
        )
        for text, parts in windows.items()
        if all(known[w].vector for w in parts)
    }


def halved(text: str) -> tuple[str, str]:
    """Both halves of a text, split at a space near its middle, or in the middle where there is none."""
    middle = len(text) // 2
    space = text.find(" ", middle, middle + len(text) // 4)
    at = space if space > 0 else middle
    return text[:at], text[at:]


def probes() -> dict[str, list[str]]:
    """The same sentences in every language, which an embedder that reads them puts together."""
    return read_json(__package__, "probes.json", type=dict[str, list[str]])


def _reads(lang: str, embedded: Mapping[str, Response]) -> float | None:
    """The share of the probe's sentences that the embedder matches; None where it embedded none of them."""
    import numpy as np

    from evenkeel.benchmarks.mirae.formulas import matched

    pairs = [
        (embedded[english].vector, embedded[other].vector)
        for english, other in zip(probes()["en"], probes()[lang], strict=True)
    ]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not known:
        return None
    english, other = (
        np.stack([np.frombuffer(v, dtype="<f4") for v in column]) for column in zip(*known, strict=True)
    )
    return matched(english, other)


def _probed(summary: Summary) -> Summary:
    """The probe is one measurement of the embedder, not one of every prompt: no interval over questions."""
    size = len(probes()["en"])
    return {
        name: msgspec.structs.replace(
            figure, low=None, high=None, n=size, clusters=size, method="translated sentences matched"
        )
        if name.startswith("embedder_reads")
        else figure
        for name, figure in summary.items()
    }


def make_sample(
    question_id: str, domain: str, lang: str, level: int, text: str, samples: int, **more: Any
) -> Sample:
    return Sample(
        id=f"{lang}-{question_id}-L{level}",
        group=question_id,
        tags={"lang": lang, "domain": domain, "level": level},
        inputs={
            "question_id": question_id,
            "question_text": text,
            "samples": samples,
            "first_repeat": 0,
            **more,
        },
    )


def tell_apart(samples: Sequence[Sample]) -> list[Sample]:
    """Give samples of the same wording different repeat numbers, so that each has answers of its own."""
    asked: Counter[str] = Counter()
    result = []
    for sample in samples:
        text = sample.inputs["question_text"]
        inputs = {**sample.inputs, "first_repeat": asked[text]}
        asked[text] += sample.inputs["samples"]
        result.append(msgspec.structs.replace(sample, inputs=inputs))
    return result


def spread(questions: Sequence[data.Question], limit: int | None) -> list[data.Question]:
    """The first `limit` questions of each language, taking turns among the domains, in their own order."""
    if limit is None:
        return list(questions)
    by_domain: defaultdict[tuple[str, str], int] = defaultdict(int)
    turns = []
    for index, question in enumerate(questions):
        turns.append((by_domain[question.lang, question.domain], index))
        by_domain[question.lang, question.domain] += 1
    chosen: set[int] = set()
    for lang in dict.fromkeys(question.lang for question in questions):
        chosen.update(index for _, index in sorted(t for t in turns if questions[t[1]].lang == lang)[:limit])
    return [question for index, question in enumerate(questions) if index in chosen]
