"""Models of known behaviour, drawn for each benchmark, and what its own statistics make of their scores.

Each question has a chance of its own that an answer to it is right: Φ(μ + σz) with a normal z, which prompts
about the same thing have in common. So the true figure, the mean over questions and answers, is known. What
is drawn are the scores of samples; the figures are those of the benchmarks' own `summarise`, of `compare` and
of `gate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from sealegs.analysis import summarise
from sealegs.analysis.gate import gate
from sealegs.benchmarks.mirae import added as mirae
from sealegs.benchmarks.mirae.meanings import same_meaning
from sealegs.benchmarks.mirae.published import cosine_matrix, similarity
from sealegs.benchmarks.miron import added as miron
from sealegs.benchmarks.multiview import added as multiview
from sealegs.benchmarks.multiview.data import MultiviewDetail, Triplet
from sealegs.benchmarks.multiview.methods import Outcome
from sealegs.benchmarks.multiview.published import Pick
from sealegs.benchmarks.rgb import added as rgb
from sealegs.benchmarks.rgb.selection import Ability, Setting
from sealegs.files.record_index import Index, index_of
from sealegs.harness.folder import Run
from sealegs.harness.folder.spec import FORMAT
from sealegs.harness.registry import benchmark_class
from sealegs.types import Record, RunSpec, Sample, Score, Status, Summary, Tag
from triplets import triplet

Rng: TypeAlias = np.random.Generator
Numbers: TypeAlias = NDArray[np.float64]
Bounds: TypeAlias = tuple[float | None, float | None]

SIZES = (15, 40, 100)
METHOD, ORDERS = "judge", 2


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


# Chances of being right

NORMAL = NormalDist()
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(200)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def chances(mean: float, spread: float, hard: Numbers) -> Numbers:
    """Φ(μ + σz) for standard normal z, with this mean."""
    from scipy.special import ndtr

    return np.asarray(ndtr(NORMAL.inv_cdf(mean) * (1 + spread**2) ** 0.5 + spread * hard))


def mean_power(mean: float, spread: float, k: int) -> float:
    """E pᵏ of such chances."""
    return float(WEIGHTS @ chances(mean, spread, NODES) ** k)


def blend(shared: Numbers, rng: Rng, correlation: float = 0.6) -> Numbers:
    """Standard normal numbers that have this correlation with others."""
    own: Numbers = (1 - correlation**2) ** 0.5 * rng.normal(size=shared.shape)
    return correlation * shared + own


# RGB

SETTINGS = [
    Setting("noise", 0.0, 5), Setting("noise", 0.8, 5), Setting("rejection", 1.0, 5),
    Setting("integration", 0.4, 5), Setting("counterfactual", 0.0, 5),
]  # fmt: skip
HEADLINE = {setting.ability: setting.name for setting in SETTINGS}
"""The last one of each ability."""
WRONG = 0.5
"""Of the answers that are not right and do not decline; each question has a share of its own."""


class RgbModel(NamedTuple):
    """How often it is right, by ability, at the hardest setting of each."""

    noise: float
    rejection: float
    integration: float
    counterfactual: float
    spread: float = 1.0

    def right(self, setting: Setting) -> float:
        right: float = getattr(self, setting.ability)
        return right if setting.name == HEADLINE[setting.ability] else (1 + right) / 2


class Questions(NamedTuple):
    """How hard each question of each ability is, in which group it is and what it was made from."""

    hard: dict[Ability, Numbers]
    groups: dict[Ability, list[str]]
    links: dict[Ability, list[tuple[str, ...]]]


def questions_of(rng: Rng, number: int, *, built: bool) -> Questions:
    """As published: an ability asks so many, and rejection those of noise robustness. Of a set that is built
    from documents, false documents are about the same questions too, and integration joins two of them."""
    plain = rng.normal(size=number)
    names = [f"q{n}" for n in range(number)]
    if built:
        pairs = plain[: number // 2 * 2].reshape(-1, 2)
        joined, false = blend(pairs.sum(axis=1) / 2**0.5, rng), blend(plain, rng)
        links = [tuple(names[2 * n : 2 * n + 2]) for n in range(len(joined))]
    else:
        joined, false = rng.normal(size=(2, number))
        links = [()] * number
    hard: dict[Ability, Numbers] = {
        "noise": plain, "rejection": blend(plain, rng), "integration": joined, "counterfactual": false,
    }  # fmt: skip
    groups: dict[Ability, list[str]] = {
        "noise": names, "rejection": names, "integration": [f"int{n}" for n in range(len(joined))],
        "counterfactual": names if built else [f"fact{n}" for n in range(number)],
    }  # fmt: skip
    alone: list[tuple[str, ...]] = [()] * number
    return Questions(hard, groups, dict.fromkeys(hard, alone) | {"integration": links})


def rgb_scores(model: RgbModel, questions: Questions, repeats: int, rng: Rng) -> list[Score]:
    scores = []
    shares = {group: rng.random() for groups in questions.groups.values() for group in groups}
    for setting in SETTINGS:
        ability = setting.ability
        right = chances(model.right(setting), model.spread, questions.hard[ability])
        tags = {"ability": ability}
        for chance, group, links in zip(
            right, questions.groups[ability], questions.links[ability], strict=False
        ):
            for repeat, (luck, other) in enumerate(rng.random((repeats, 2))):
                value = float(luck < chance)
                values: dict[str, float | None] = {"lenient": value}
                if setting.name == HEADLINE[ability]:
                    values["macro_lenient"] = value
                if ability in ("noise", "integration"):
                    values["right_minus_wrong"] = 100.0 if value else -100.0 * (other < shares[group])
                suffix = f"-repeat{repeat + 1}" if repeat else ""
                scores.append(score(f"{group}-{setting.name}{suffix}", group, tags, values, links=links))
    return scores


def score(name: str, group: str, tags: Any, values: dict[str, float | None], **fields: Any) -> Score:
    fields = {"statuses": {"ok": 1}, "answered": 1, **fields}
    return Score(sample_id=name, group=group, tags=tags, values=values, **fields)


def rgb_truth(model: RgbModel, number: int, repeats: int, *, built: bool) -> dict[str, float]:
    asked = [number // 2 if built and s.ability == "integration" else number for s in SETTINGS]
    right = [model.right(setting) for setting in SETTINGS]
    answerable = [setting.ability in ("noise", "integration") for setting in SETTINGS]
    truth = {"macro_lenient": sum(model[:4]) / 4}
    if repeats == 1:
        net = [p - WRONG * (1 - p) for p in right]
        return truth | {"right_minus_wrong": 100 * weighted(net, asked, answerable)}
    powers = [mean_power(p, model.spread, repeats) for p in right]
    return truth | {f"pass_hat_k/k={repeats}": weighted(powers, asked, [True] * len(asked))}


def weighted(values: Sequence[float], weights: Sequence[float], counts: Sequence[bool]) -> float:
    return float(np.average(values, weights=np.multiply(weights, counts)))


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


# MIRAE

PROMPTS, ANSWERS = 3, 5
LEAST_ALIKE = 0.4
"""Two different answers to a question have a cosine between this and 1."""


def mirae_headlines() -> Iterator[Headline]:
    for model, mean, spread in (("middling", 0.6, 1.0), ("strong", 0.85, 2.0)):
        truth = mirae_truth(mean, spread)
        draw = partial(draw_mirae, mean, spread)
        yield Headline("MIRAE", "5 answers", model, partial(known, truth), draw)


def known(truth: Mapping[str, float], number: int) -> Mapping[str, float]:
    """What is true whatever the number of questions."""
    return truth


def mirae_truth(mean: float, spread: float) -> dict[str, float]:
    differ = 2 * (mean - mean_power(mean, spread, 2))
    return {
        "mean_similarity": 1 - differ * (1 - (1 + LEAST_ALIKE) / 2),
        "same_meaning": 1 - differ,
        f"pass_hat_k/k={ANSWERS}": mean_power(mean, spread, ANSWERS),
    }


def draw_mirae(mean: float, spread: float, rng: Rng, number: int) -> dict[str, Bounds]:
    """A right answer and a wrong one, by turns: each question has its chance, which its prompts move."""
    scores = []
    hard = blend(np.repeat(rng.normal(size=(number, 1)), PROMPTS, axis=1), rng, 0.85)
    right = rng.random((number, PROMPTS, ANSWERS)) < chances(mean, spread, hard)[..., None]
    for question, cosine in enumerate(rng.uniform(LEAST_ALIKE, 1, number)):
        texts = np.array([[1, 0], [cosine, (1 - cosine**2) ** 0.5]], dtype=np.float32)
        for prompt in range(PROMPTS):
            answers = right[question, prompt].astype(int)
            figures = similarity(cosine_matrix(texts[answers]))
            assert figures is not None
            values: dict[str, float | None] = {
                "mean_similarity": figures["mean_similarity"],
                "same_meaning": same_meaning(answers.tolist()),
                "right_rate": answers.sum() / ANSWERS,
            }
            counts = {"statuses": {"ok": ANSWERS}, "answered": ANSWERS}
            scores.append(score(f"{question}-{prompt}", str(question), {"level": 1}, values, **counts))
    return bounds(mirae.summarise(scores))


# MIRON

ALMOST = 1 / 3
"""The mean score of a wrong continuation, over 100."""
COPIED = 0.25
"""That of a copied word."""


def miron_headlines() -> Iterator[Headline]:
    for model, right in (("middling", 0.5), ("strong", 0.95)):
        truth = partial(known, miron_truth(right))
        yield Headline("MIRON", "with typos", model, truth, partial(draw_miron, right))


def miron_truth(right: float) -> dict[str, float]:
    lost = (1 - right) * (1 - ALMOST)
    return {
        "lev_score": 100 * (1 - lost),
        "accepted_match": right,
        "rescaled_score": 100 * (1 - lost / (1 - COPIED)),
    }


def draw_miron(right: float, rng: Rng, number: int) -> dict[str, Bounds]:
    """Examples with two versions with typos each, which are as hard for the most part."""
    scores = []
    for example, hard in enumerate(rng.normal(size=number)):
        copied, wrong = 100 * rng.beta(1, 3), 100 * rng.beta(2, 4)
        versions = ("", "-typo1", "-typo2")
        right_chances = chances(right, 1.0, blend(np.full(3, hard), rng, 0.9))
        for version, chance in zip(versions, right_chances, strict=True):
            match = float(rng.random() < chance)
            values: dict[str, float | None] = {
                "lev_score": 100.0 if match else wrong, "accepted_match": match, "copy_score": copied,
            }  # fmt: skip
            parts = {"generated": "ok"}
            scores.append(score(f"{example}{version}", str(example), {}, values, parts=parts))
    return bounds(miron.summarise(scores))


# multiview


DOCUMENTS = {"own documents": False, "shared documents": True}


def multiview_headlines() -> Iterator[Headline]:
    for asked, shared in DOCUMENTS.items():
        for model, follows in (("middling", 0.5), ("strong", 0.95)):
            truth = {"both_ways": follows, "accuracy": (1 + follows) / 2}
            draw = partial(draw_multiview, follows, shared)
            yield Headline("multiview", asked, model, partial(known, truth), draw)


def document_sets(rng: Rng, number: int, *, shared: bool) -> tuple[list[tuple[int, ...]], Numbers]:
    """An anchor and two candidates, so many times, and how hard each set is. Shared documents are
    in two of the sets each."""
    size = 3 * -(-number // 2) if shared else 3 * number
    order = [rng.permutation(size) for _ in range(2 if shared else 1)]
    chosen = [tuple(each) for each in np.concatenate(order).reshape(-1, 3)[:number].tolist()]
    effects = rng.normal(size=size)
    return chosen, np.array([effects[list(each)].sum() / 3**0.5 for each in chosen])


def multiview_scores(
    follows: float, sets: Sequence[tuple[int, ...]], hard: Numbers, rng: Rng
) -> list[Score[MultiviewDetail]]:
    """Of a judge. Where it does not follow the criterion, it picks one of the candidates under both."""
    triplets: list[Triplet] = []
    outcomes: list[Outcome] = []
    for number, ((anchor, first, second), chance) in enumerate(
        zip(sets, chances(follows, 1.0, hard), strict=True)
    ):
        follow = rng.random(ORDERS) < chance
        surface = rng.random(ORDERS) < 0.5
        for criterion in (0, 1):
            good, bad = (first, second) if criterion == 0 else (second, first)
            right = follow | (surface == (criterion == 0))
            picks: list[Pick] = ["positive" if each else "negative" for each in right]
            ends: list[Status] = ["ok"] * ORDERS
            outcomes.append(Outcome(tuple(picks[:: 1 - 2 * criterion]), tuple(ends)))
            fields = {"anchor": f"{anchor}", "positive": f"{good}", "negative": f"{bad}"}
            triplets.append(triplet(number, task=f"tools__{criterion}", **fields))
    both = multiview.opposite_pairs(triplets)
    scores = []
    for number, (asked, outcome) in enumerate(zip(triplets, outcomes, strict=True)):
        tags: dict[str, Tag] = {"task": asked.task, "docset": "tools"}
        sample = Sample(id=f"{number}", group=f"{number}", tags=tags, inputs=asked)
        right_both = {METHOD: multiview.both_ways(outcomes, both[number])} if number in both else {}
        scores.append(multiview.measure(sample, {METHOD: outcome}, "easy", right_both))
    return scores


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
