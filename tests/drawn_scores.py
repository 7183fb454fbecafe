"""Scores of models of known behaviour, drawn for each benchmark, and the figures that are true of them.

Each question has a chance of its own that an answer to it is right: Φ(μ + σz) with a normal z, which prompts
about the same thing have in common. So the true figure, the mean over questions and answers, is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sealegs.benchmarks.mirae.meanings import same_meaning
from sealegs.benchmarks.mirae.published import cosine_matrix, similarity
from sealegs.benchmarks.multiview import added as multiview
from sealegs.benchmarks.multiview.data import MultiviewDetail, Triplet
from sealegs.benchmarks.multiview.methods import Outcome
from sealegs.benchmarks.multiview.published import Pick
from sealegs.benchmarks.rgb.selection import Ability, Setting
from sealegs.types import Sample, Score, Status, Tag
from triplets import triplet

Rng: TypeAlias = np.random.Generator
Numbers: TypeAlias = NDArray[np.float64]

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


def score(name: str, group: str, tags: Any, values: dict[str, float | None], **fields: Any) -> Score:
    fields = {"statuses": {"ok": 1}, "answered": 1, **fields}
    return Score(sample_id=name, group=group, tags=tags, values=values, **fields)


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


# MIRAE

PROMPTS, ANSWERS = 3, 5
LEAST_ALIKE = 0.4
"""Two different answers to a question have a cosine between this and 1."""


def mirae_truth(mean: float, spread: float) -> dict[str, float]:
    differ = 2 * (mean - mean_power(mean, spread, 2))
    return {
        "mean_similarity": 1 - differ * (1 - (1 + LEAST_ALIKE) / 2),
        "same_meaning": 1 - differ,
        f"pass_hat_k/k={ANSWERS}": mean_power(mean, spread, ANSWERS),
    }


def mirae_scores(mean: float, spread: float, rng: Rng, number: int) -> list[Score]:
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
    return scores


# MIRON

ALMOST = 1 / 3
"""The mean score of a wrong continuation, over 100."""
COPIED = 0.25
"""That of a copied word."""


def miron_truth(right: float) -> dict[str, float]:
    lost = (1 - right) * (1 - ALMOST)
    return {
        "lev_score": 100 * (1 - lost),
        "accepted_match": right,
        "rescaled_score": 100 * (1 - lost / (1 - COPIED)),
    }


def miron_scores(right: float, rng: Rng, number: int) -> list[Score]:
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
    return scores


# multiview

METHOD, ORDERS = "judge", 2


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
