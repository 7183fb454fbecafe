"""Headlines of models of known behaviour: what each benchmark's own statistics make of scores drawn for them.

The figures are those of the benchmarks' own `summarise`, of `compare` and of `gate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from drawn_scores import (
    METHOD,
    RgbModel,
    Rng,
    blend,
    document_sets,
    mirae_scores,
    mirae_truth,
    miron_scores,
    miron_truth,
    multiview_scores,
    questions_of,
    rgb_scores,
    rgb_truth,
)
from sealegs.analysis import summarise
from sealegs.analysis.gate import gate
from sealegs.benchmarks.mirae import added as mirae
from sealegs.benchmarks.miron import added as miron
from sealegs.benchmarks.multiview import added as multiview
from sealegs.benchmarks.rgb import added as rgb
from sealegs.files.record_index import Index, index_of
from sealegs.harness.folder import Run
from sealegs.harness.folder.spec import FORMAT
from sealegs.harness.registry import benchmark_class
from sealegs.types import Record, RunSpec, Sample, Score, Summary
from triplets import triplet

Bounds: TypeAlias = tuple[float | None, float | None]

SIZES = (15, 40, 100)


class Headline(NamedTuple):
    """A known model under a benchmark: the true figures, and those of a sample of so many questions."""

    benchmark: str
    asked: str
    model: str
    truth: Callable[[int], Mapping[str, float]]
    """Of so many questions, by the names of the figures."""
    draw: Callable[[Rng, int], Mapping[str, Bounds]]

    @property
    def name(self) -> str:
        return f"{self.benchmark}, {self.asked}, {self.model}"


class Held(NamedTuple):
    """How often there is an interval, and how often that has the truth in it."""

    printed: float
    held: float


def coverage(headline: Headline, questions: int, draws: int) -> dict[str, Held]:
    """By the names of the figures. Of a gate, which has no interval: how often it passes."""
    rng = np.random.default_rng([questions, *headline.name.encode()])
    truths = headline.truth(questions)
    found: dict[str, list[Bounds]] = {name: [] for name in truths}
    for _ in range(draws):
        drawn = headline.draw(rng, questions)
        for name in truths:
            found[name].append(drawn[name])
    return {name: _held(each, truths[name]) for name, each in found.items()}


def _held(found: Sequence[Bounds], truth: float) -> Held:
    known = [(low, high) for low, high in found if low is not None and high is not None]
    inside = [low - 1e-9 <= truth <= high + 1e-9 for low, high in known]
    return Held(len(known) / len(found), float(np.mean(inside)) if inside else 0.0)


def headlines() -> list[Headline]:
    return [*rgb_headlines(), *mirae_headlines(), *miron_headlines(), *multiview_headlines(), *differences()]


def bounds(summary: Summary) -> dict[str, Bounds]:
    return {name: (figure.low, figure.high) for name, figure in summary.items()}


def known(truth: Mapping[str, float], number: int) -> Mapping[str, float]:
    """What is true whatever the number of questions."""
    return truth


RGB = {"middling": RgbModel(0.8, 0.4, 0.6, 0.3), "strong": RgbModel(0.98, 0.9, 0.93, 0.85)}
SETS = {"published data": False, "built set": True}


def rgb_headlines() -> Iterator[Headline]:
    for asked, built, repeats in (
        ("published data", False, 1), ("built set", True, 1), ("built set, 3 answers", True, 3),
    ):  # fmt: skip
        for model, shares in RGB.items():
            truth = partial(rgb_truth, shares, repeats=repeats, built=built)
            yield Headline("RGB", asked, model, truth, partial(draw_rgb, shares, repeats, built))


def draw_rgb(model: RgbModel, repeats: int, built: bool, rng: Rng, number: int) -> dict[str, Bounds]:
    return bounds(rgb.summarise(rgb_scores(model, questions_of(rng, number, built=built), repeats, rng)))


def mirae_headlines() -> Iterator[Headline]:
    for model, mean, spread in (("middling", 0.6, 1.0), ("strong", 0.85, 2.0)):
        truth = mirae_truth(mean, spread)
        draw = partial(draw_mirae, mean, spread)
        yield Headline("MIRAE", "5 answers", model, partial(known, truth), draw)


def draw_mirae(mean: float, spread: float, rng: Rng, number: int) -> dict[str, Bounds]:
    return bounds(mirae.summarise(mirae_scores(mean, spread, rng, number)))


def miron_headlines() -> Iterator[Headline]:
    for model, right in (("middling", 0.5), ("strong", 0.95)):
        truth = partial(known, miron_truth(right))
        yield Headline("MIRON", "with typos", model, truth, partial(draw_miron, right))


def draw_miron(right: float, rng: Rng, number: int) -> dict[str, Bounds]:
    return bounds(miron.summarise(miron_scores(right, rng, number)))


DOCUMENTS = {"own documents": False, "shared documents": True}


def multiview_headlines() -> Iterator[Headline]:
    for asked, shared in DOCUMENTS.items():
        for model, follows in (("middling", 0.5), ("strong", 0.95)):
            truth = {"both_ways": follows, "accuracy": (1 + follows) / 2}
            draw = partial(draw_multiview, follows, shared)
            yield Headline("multiview", asked, model, partial(known, truth), draw)


def draw_multiview(follows: float, shared: bool, rng: Rng, number: int) -> dict[str, Bounds]:
    scores = multiview_scores(follows, *document_sets(rng, number, shared=shared), rng)
    return bounds(multiview.summarise(scores, [METHOD]))


# Differences of two models, and gates


class DrawnRun(Run):
    """A run that was never stored."""

    def __init__(self, benchmark: str, name: str, scores: list[Score]) -> None:
        self.path, self.problems = Path(name), []
        options: dict[str, Any] = {"method": [METHOD]} if benchmark == "multiview" else {}
        self.spec = RunSpec(
            format=FORMAT, benchmark=benchmark, options=options, seed=0, limit=None, provenance={},
            subjects=(METHOD if benchmark == "multiview" else name,), models={},
            data={"source": "starter", "sha256": ["0"]},
        )  # fmt: skip
        self.summary = SUMMARISE[benchmark](scores)
        self.layout = benchmark_class(benchmark).layout.of_run(self.spec, self.summary)
        self._scores = scores

    @cached_property
    def columns(self) -> Index:
        return index_of(self.path, map(self._record, self._scores))

    def _record(self, score: Score) -> Record[msgspec.Raw]:
        inputs = INPUTS[self.spec.benchmark]
        sample = Sample(id=score.sample_id, group=score.group, tags=score.tags, inputs=inputs)
        return Record(sample=sample, answers=(), score=score)


RGB_INPUTS: dict[str, Any] = {
    "dataset": "en", "instance": 0, "query": "Which?", "answer": [], "fake": None, "docs": [], "kinds": [],
    "note": "", "noise": 0.0, "passages": 5, "correct": 0.0,
}  # fmt: skip
INPUTS = {
    "rgb": msgspec.Raw(msgspec.json.encode(RGB_INPUTS)),
    "multiview": msgspec.Raw(msgspec.json.encode(triplet(0))),
}
"""All samples are said to ask the same: two runs are paired by the samples' names."""
SUMMARISE: dict[str, Callable[[list[Score]], Summary]] = {
    "rgb": rgb.summarise,
    "multiview": partial(summarise, breakdown={"both_ways": [()]}, units={"both_ways": "share"}),
}  # fmt: skip


def differences() -> Iterator[Headline]:
    """Two models that are equally good, and to which mostly the same is hard: a gate should pass."""
    for asked, built in SETS.items():
        for model, shares in RGB.items():
            yield difference("rgb", asked, model, partial(rgb_pair, shares, built))
    for asked, shared in DOCUMENTS.items():
        for model, follows in (("middling", 0.5), ("strong", 0.95)):
            yield difference("multiview", asked, model, partial(multiview_pair, follows, shared))


Pair: TypeAlias = tuple[list[Score], list[Score]]


def difference(benchmark: str, asked: str, model: str, draw: Callable[[Rng, int], Pair]) -> Headline:
    """The difference of the headlines, and how often the gate passes."""
    truths = {"difference": 0.0, "gate": 0.0}

    def drawn(rng: Rng, number: int) -> dict[str, Bounds]:
        old, new = (DrawnRun(benchmark, *side) for side in zip("ab", draw(rng, number), strict=True))
        _, check = gate(new, old, min_coverage=0).checks
        assert check.difference is not None
        limits = check.difference.low, check.difference.high
        return {"difference": limits, "gate": (0.0, 0.0) if check.passed else (1.0, 1.0)}

    return Headline(f"compare {benchmark}", asked, model, partial(known, truths), drawn)


def rgb_pair(model: RgbModel, built: bool, rng: Rng, number: int) -> Pair:
    questions = questions_of(rng, number, built=built)
    other = {ability: blend(hard, rng, 0.8) for ability, hard in questions.hard.items()}
    first, second = (
        [
            msgspec.structs.replace(each, values={"macro_lenient": value})
            for each in rgb_scores(model, questions._replace(hard=hard), 1, rng)
            if (value := each.values.get("macro_lenient")) is not None
        ]
        for hard in (questions.hard, other)
    )
    return first, second


def multiview_pair(follows: float, shared: bool, rng: Rng, number: int) -> Pair:
    sets, hard = document_sets(rng, number, shared=shared)
    first, second = (multiview_scores(follows, sets, h, rng) for h in (hard, blend(hard, rng, 0.8)))
    return first, second
