"""MIRAE: does a model say the same thing when asked again, and when the prompt grows?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta, Struct

from evenkeel.benchmarks import Recorded, Scoring
from evenkeel.benchmarks.mirae import data
from evenkeel.data import DataFile, Starter
from evenkeel.errors import UsageError
from evenkeel.report.layout import Curve, Layout, Table
from evenkeel.types import (
    Answered,
    Capability,
    Embed,
    Generate,
    Message,
    Record,
    Request,
    Response,
    RunSpec,
    Sample,
    Sampling,
    Score,
    Summary,
)

SCORED = ("ok", "truncated")
"""A truncated answer is what the model said as far as it was let, and the published script scores it."""


class MiraeOptions(Struct, frozen=True, kw_only=True):
    """What can be set about a MIRAE run."""

    levels: Annotated[
        str, Meta(description="Prompt lengths to ask, 1 (about 30 tokens) to 7 (2,000): 1-7 or 1,4,7.")
    ] = "1-7"
    samples: Annotated[int, Meta(ge=2, description="How often each prompt is asked.")] = 5
    temperature: Annotated[float, Meta(ge=0, description="Sampling temperature.")] = 0.7
    max_tokens: Annotated[int, Meta(ge=1, description="The longest answer, in tokens.")] = 256
    embedder: Annotated[str, Meta(description="The model that turns answers into vectors.")] = (
        "embedded-embedder"
    )

    def __post_init__(self) -> None:
        data.parse_levels(self.levels)


LAYOUT = Layout(
    headline="mean_similarity",
    headline_title="Answer consistency",
    question="Does it say the same thing when asked again, and when the prompt grows?",
    curves=(
        Curve(
            title="Consistency by prompt length",
            metric="mean_similarity",
            along="level",
            lines="lang",
            x_title="level (1: about 30 tokens, 7: about 2,000)",
            y_title="mean cosine of the answers",
        ),
    ),
    tables=(
        Table(title="Consistency by level", metric="mean_similarity", rows="level", columns="domain"),
        Table(
            title="Consistency by language",
            metric="mean_similarity",
            rows="level",
            columns="lang",
            several=True,
        ),
    ),
    cautions=(
        "The cosine says how alike two answers are, not whether either is right.",
        "An embedder reads only the first part of a long answer (256 tokens for all-MiniLM-L6-v2).",
        "Answers cut by max-tokens are scored as far as they go, as the published script does.",
    ),
    citation="MIRAE, https://github.com/greatgompang/MIRAE",
)


STARTER_SHA256 = {
    "en": "",
}


def make_starter(lang: str) -> bytes:
    from evenkeel.benchmarks.mirae.compose import compose

    return msgspec.json.format(msgspec.json.encode(compose(lang)), indent=1)


class Mirae:
    """One sample is one question at one level in one language, asked several times."""

    Options = MiraeOptions
    needs: ClassVar[Mapping[str, frozenset[Capability]]] = {
        "model": frozenset({"generate"}),
        "embedder": frozenset({"embed"}),
    }
    languages = tuple(data.LANGUAGES)
    layout = LAYOUT
    starter = Starter(STARTER_SHA256, make_starter)

    def __init__(self, options: MiraeOptions, *, seed: int = 0) -> None:
        self.options = options
        self._seed = seed
        self._sampling = Sampling(temperature=options.temperature, max_tokens=options.max_tokens, seed=seed)

    def samples(
        self, files: Sequence[DataFile], *, langs: Sequence[str] | None, limit: int | None
    ) -> list[Sample]:
        """`limit` questions of each language, spread evenly over the domains, at every wanted level."""
        fallback = langs[0] if langs and len(langs) == 1 else None
        questions = [question for file in files for question in data.read_questions(file.path, fallback)]
        found = dict.fromkeys(question.lang for question in questions)
        if langs and (absent := [lang for lang in langs if lang not in found]):
            raise UsageError(f"the data has no questions in '{absent[0]}'; it has: {', '.join(found)}.")
        wanted = spread([question for question in questions if not langs or question.lang in langs], limit)
        levels = data.parse_levels(self.options.levels)
        for question in wanted:
            if absent_levels := [level for level in levels if level not in question.texts]:
                raise UsageError(f"question {question.id} has no level {absent_levels[0]}: see --levels.")
        count = self.options.samples
        return tell_apart(
            [
                make_sample(q.id, q.domain, q.lang, level, q.texts[level], count)
                for q in wanted
                for level in levels
            ]
        )

    def requests(self, sample: Sample) -> tuple[Generate, ...]:
        prompt = (Message("user", sample.inputs["question_text"]),)
        first = sample.inputs["first_repeat"]
        return tuple(
            Generate(prompt=prompt, sampling=self._sampling, repeat=repeat)
            for repeat in range(first, first + sample.inputs["samples"])
        )

    def score(self, answered: Sequence[Answered]) -> Scoring:
        """All answers are embedded in one go, each distinct text once; then each prompt has its matrix."""
        import numpy as np

        from evenkeel.benchmarks.mirae.scoring import cosine_matrix, similarity

        kept = [[i for i, r in enumerate(item.responses) if r.status in SCORED] for item in answered]
        texts = [
            [item.responses[i].text for i in indexes] for item, indexes in zip(answered, kept, strict=True)
        ]
        distinct = list(dict.fromkeys(text for group in texts for text in group))
        embedded = yield [Embed(text=text) for text in distinct]
        vectors = dict(zip(distinct, embedded, strict=True))
        scores = []
        for item, indexes, group in zip(answered, kept, texts, strict=True):
            usable = [
                (i, vectors[text]) for i, text in zip(indexes, group, strict=True) if vectors[text].vector
            ]
            stacked = [np.frombuffer(response.vector or b"", dtype="<f4") for _, response in usable]
            matrix = cosine_matrix(np.stack(stacked)) if stacked else np.zeros((0, 0), np.float32)
            figures = similarity(matrix)
            scores.append(
                Score(
                    sample_id=item.sample.id,
                    group=item.sample.group,
                    tags=item.sample.tags,
                    values=dict(figures) if figures else dict.fromkeys(data.METRICS),
                    statuses=dict(Counter(response.status for response in item.responses)),
                    answered=len(usable) if figures else 0,
                    detail={
                        "responses": [i for i, _ in usable],
                        "pairwise_similarities": matrix.tolist(),
                        "cut_by_embedder": sum(response.cut for _, response in usable),
                    },
                )
            )
        return scores

    def summarise(self, scores: Sequence[Score]) -> Summary:
        from evenkeel.stats import summarise

        by_level: list[tuple[str, ...]] = [(), ("level",)]
        by_rest: list[tuple[str, ...]] = [("domain",), ("level", "domain"), ("lang",), ("lang", "level")]
        spread_of_answers = dict.fromkeys(data.METRICS[1:], by_level)
        return summarise(
            scores, {"mean_similarity": by_level + by_rest, **spread_of_answers}, seed=self._seed
        )

    def forecast(self, asked: Iterable[Request]) -> dict[str, tuple[int, int]]:
        """At the most every answer is embedded once, at its full length."""
        tokens = [request.sampling.max_tokens for request in asked if isinstance(request, Generate)]
        return {"embed": (len(tokens), sum(tokens))}

    def recorded(self, path: Path, *, lang: str | None) -> Recorded:
        recording = data.read_recording(path, lang)
        samples = [
            make_sample(
                p.id, p.domain, recording.lang, p.level, p.text, len(p.responses), published=p.published
            )
            for p in recording.prompts
        ]
        return Recorded(
            model=recording.model,
            samples=tell_apart(samples),
            responses=[[Response(status="ok", text=text) for text in p.responses] for p in recording.prompts],
        )

    def publish(self, spec: RunSpec, records: Iterable[Record]) -> Iterable[tuple[str, bytes]]:
        return data.results_files(spec, records)


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
        result.append(Sample(id=sample.id, group=sample.group, tags=sample.tags, inputs=inputs))
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
