"""Designs whose truth is known, for simulating intervals: what is drawn, and what the statistics make of it.

A design draws many samples at once and gives the interval of each, by the functions that summaries and
comparisons call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from records import score
from sealegs.analysis.figures import rank_correlation, ratio, slope
from sealegs.analysis.intervals import interval_of, over_clusters
from sealegs.analysis.significance import Tested, detectable, holm, paired_test
from sealegs.benchmarks.mirae.floor import corrected_for_chance
from sealegs.types import Score, Unit

Rng: TypeAlias = np.random.Generator
Shape: TypeAlias = tuple[int, int]
"""Draws × groups."""
Numbers: TypeAlias = NDArray[Any]
Bounds: TypeAlias = tuple[float | None, float | None]


class Design(NamedTuple):
    """One line of the table: of what kind, with which parameters, from how many groups."""

    kind: str
    parameters: str
    groups: int
    truth: float
    draw: Callable[[Rng, Shape], Iterable[Bounds]]
    """The intervals of so many samples."""

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.parameters}, {self.groups} groups"


def simulate(design: Design, draws: int) -> tuple[float, float]:
    """How often the interval holds the truth, and its mean width. Every sample must have an interval."""
    rng = np.random.default_rng([*design.name.encode()])
    bounds = np.array(list(design.draw(rng, (draws, design.groups))), dtype=float)
    assert not np.isnan(bounds).any(), f"{design.name}: a sample has no interval"
    low, high = bounds.T
    held = (low <= design.truth + 1e-12) & (design.truth - 1e-12 <= high)
    return float(held.mean()), float((high - low).mean())


def designs() -> list[Design]:
    return [*means(), *clustered_shares(), *differences(), *clustered_differences(), *figures(), *corrected()]


# Means of groups that are one sample each


def means() -> Iterator[Design]:
    for p in (0.02, 0.05, 0.1, 0.5, 0.9, 0.98):
        draw = partial(lambda p, rng, shape: rng.binomial(5, p, shape) / 5, p)
        yield from mean("share, values k/5", f"p = {p}", (10, 20, 40, 100), "share", p, draw)
    for a, b in ((20.0, 1.0), (20.0, 3.0), (50.0, 1.0), (8.0, 0.5)):
        draw = partial(lambda a, b, rng, shape: rng.beta(a, b, shape), a, b)
        name = f"beta({a:g}, {b:g})"
        yield from mean("cosine, skewed", name, (4, 6, 8, 20, 40), "cosine", a / (a + b), draw)
    for share in (0.05, 0.15, 0.5):
        name, truth = f"{share:.0%} of questions unstable", 1 - share / 4 - 0.0005
        draw = partial(unstable, share)
        yield from mean("cosine, few unstable", name, (10, 25, 50, 100), "cosine", truth, draw)
    for sigma in (0.5, 1.0, 1.5):
        draw = partial(lambda sigma, rng, shape: rng.lognormal(0, sigma, shape), sigma)
        truth = float(np.exp(sigma**2 / 2))
        yield from mean("tokens, lognormal", f"σ = {sigma:g}", (8, 20, 40, 100), "tokens", truth, draw)


def mean(
    kind: str,
    parameters: str,
    sizes: Iterable[int],
    unit: Unit,
    truth: float,
    draw: Callable[[Rng, Shape], Numbers],
) -> Iterator[Design]:
    def intervals(rng: Rng, shape: Shape) -> Iterator[Bounds]:
        for row in draw(rng, shape):
            yield interval_of(row, np.arange(shape[1]), unit)[1:3]

    return (Design(kind, parameters, groups, truth, intervals) for groups in sizes)


def unstable(share: float, rng: Rng, shape: Shape) -> Numbers:
    """Consistencies of 1 but for a share of the questions, whose answers differ by up to a half."""
    loss = rng.uniform(0, 1, shape) * (rng.random(shape) < share)
    return 1 - loss / 2 - 0.001 * rng.random(shape)


# Groups of 1 to 9 samples


def clustered_shares() -> Iterator[Design]:
    for p, rho in ((0.02, 0.1), (0.02, 0.3), (0.05, 0.1), (0.05, 0.3), (0.05, 0.6), (0.2, 0.3)):
        for groups in (20, 40, 100):
            name = f"p = {p}, ρ = {rho}"
            yield Design("share, clustered 0/1", name, groups, p, partial(clustered, p, rho))


def clustered(p: float, rho: float, rng: Rng, shape: Shape) -> Iterator[Bounds]:
    """Successes in groups, between whose samples there is a correlation of ρ (beta-binomial)."""
    sizes, k = rng.integers(1, 10, shape), 1 / rho - 1
    for successes, size in zip(rng.binomial(sizes, rng.beta(p * k, (1 - p) * k, shape)), sizes, strict=True):
        groups = np.repeat(np.arange(shape[1]), size)
        number = np.arange(len(groups)) - np.repeat(np.cumsum(size) - size, size)
        yield interval_of((number < successes[groups]).astype(float), groups, "share")[1:3]


def clustered_differences() -> Iterator[Design]:
    for a, b, rho in ((0.05, 0.02, 0.5), (0.02, 0.08, 0.8), (0.5, 0.6, 0.5)):
        for groups in (20, 40, 100):
            name, draw = f"{a:g} and {b:g}, ρ = {rho:g}", partial(paired_clustered, a, b, rho)
            yield Design("difference of shares, paired and clustered", name, groups, b - a, draw)


def paired_clustered(a: float, b: float, rho: float, rng: Rng, shape: Shape) -> Iterator[Bounds]:
    """What is hard for one model is mostly hard for the other."""
    sizes = rng.integers(1, 10, shape)
    there = np.arange(9) < sizes[..., None]
    shared = rng.normal(size=(*shape, 1))
    sides = []
    for p in (a, b):
        hard = rho**0.5 * (0.8 * shared + 0.6 * rng.normal(size=(*shape, 1)))
        latent = hard + (1 - rho) ** 0.5 * rng.normal(size=(*shape, 9))
        sides.append(((latent < NormalDist().inv_cdf(p)) & there).sum(axis=2).astype(float))
    for row, size in zip(sides[1] - sides[0], sizes.astype(float), strict=True):
        yield paired_test(over_clusters(row, size), unit="share")[:2]


# Paired differences of groups that are one sample each


def differences() -> Iterator[Design]:
    for a, b in ((0.02, 0.1), (0.0, 0.1), (0.1, 0.1), (0.2, 0.3), (0.1, 0.5), (0.02, 0.95), (0.0, 0.97)):
        name = f"only A {a:g}, only B {b:g}"
        draw = partial(yes_or_no_pairs, a, b)
        yield from paired("difference of shares, paired 0/1", name, (20, 40, 100), "share", b - a, draw)
    for a, b, rho in ((0.02, 0.05, 0.3), (0.05, 0.1, 0.5), (0.5, 0.6, 0.5), (0.95, 0.8, 0.5), (0.9, 0.98, 0)):
        name, sizes = f"{a:g} and {b:g}, ρ = {rho:g}", (10, 20, 40, 100)
        draw = partial(fifths_pairs, a, b, rho)
        yield from paired("difference of shares, paired k/5", name, sizes, "share", b - a, draw)
    for first, second, r in (((20, 1), (20, 1), 0.5), ((20, 1), (20, 3), 0.5), ((40, 1), (8, 1), 0.3)):
        name = f"beta{first} and beta{second}, r = {r}"
        truth = second[0] / sum(second) - first[0] / sum(first)
        draw = partial(beta_pairs, first, second, r)
        yield from paired("difference of cosines, paired", name, (6, 8, 20, 40), "cosine", truth, draw)


def paired(
    kind: str,
    parameters: str,
    sizes: Iterable[int],
    unit: Unit,
    truth: float,
    draw: Callable[[Rng, Shape], tuple[Numbers, Numbers]],
) -> Iterator[Design]:
    def intervals(rng: Rng, shape: Shape) -> Iterable[Bounds]:
        first, second = draw(rng, shape)
        return (test[:2] for test in tested(second - first, unit))

    return (Design(kind, parameters, groups, truth, intervals) for groups in sizes)


def tested(differences: Numbers, unit: Unit) -> list[Tested]:
    ones = np.ones(differences.shape[1])
    return [paired_test(over_clusters(row, ones), unit=unit) for row in differences]


def yes_or_no_pairs(only_a: float, only_b: float, rng: Rng, shape: Shape) -> tuple[Numbers, Numbers]:
    """Questions that only one of two models answers; the rest is alike."""
    chance = rng.random(shape)
    return (chance < only_a).astype(float), (chance > 1 - only_b).astype(float)


def fifths_pairs(a: float, b: float, rho: float, rng: Rng, shape: Shape) -> tuple[Numbers, Numbers]:
    """Five answers of two models to questions that are as hard for both."""
    hard = rng.normal(size=(*shape, 1)) * rho**0.5
    first, second = (
        (hard + (1 - rho) ** 0.5 * rng.normal(size=(*shape, 5)) < NormalDist().inv_cdf(p)).mean(axis=2)
        for p in (a, b)
    )
    return first, second


def normal_pairs(r: float, rng: Rng, shape: Shape) -> tuple[Numbers, Numbers]:
    """Normal values that have a correlation of r."""
    first = rng.normal(size=shape)
    return first, r * first + (1 - r**2) ** 0.5 * rng.normal(size=shape)


def beta_pairs(a: Shape, b: Shape, r: float, rng: Rng, shape: Shape) -> tuple[Numbers, Numbers]:
    """Two beta distributions whose normal scores have a correlation of r."""
    from scipy.special import betaincinv, ndtr

    first, second = normal_pairs(r, rng, shape)
    return betaincinv(*a, ndtr(first)), betaincinv(*b, ndtr(second))


# Figures of whole scores


def figures() -> Iterator[Design]:
    yield Design("ratio of counts", "70 %, four samples a group", 30, 0.7, share_corrected)
    yield Design("slope", "four levels", 15, 0.2, slopes)
    rho = float(6 / np.pi * np.arcsin(0.6 / 2))
    yield Design("rank correlation", "0.58, two samples a group", 25, rho, ranked)


def score_list(values: Numbers, **more: Numbers) -> list[Score]:
    """A score for each cell of questions × samples."""
    columns = {"m": values, **more}
    return [
        score(
            f"{i}-{j}", {name: float(column[i, j]) for name, column in columns.items()}, group=str(i),
            tags={"side": j},
        )
        for i, j in np.ndindex(values.shape)
    ]  # fmt: skip


def share_corrected(rng: Rng, shape: Shape) -> Iterator[Bounds]:
    """Of what was detected (60 %), 70 % is corrected; easy questions are so in all their samples."""

    def yes_or_no(a: float, b: float) -> Numbers:
        chances = rng.beta(a, b, shape[1])
        return (rng.random((shape[1], 4)) < chances[:, None]).astype(float)

    for _ in range(shape[0]):
        detected = yes_or_no(3, 2)
        right = yes_or_no(7, 3) * detected
        figure = ratio(score_list(right, detected=detected), "m", "detected", unit="share")
        yield figure.low, figure.high


def slopes(rng: Rng, shape: Shape) -> Iterator[Bounds]:
    """Four levels of questions, each with a slope of its own about 0.2."""
    for _ in range(shape[0]):
        own = rng.normal(0.2, 0.3, (shape[1], 1))
        values = rng.normal(0, 1, shape[1])[:, None] + rng.normal(0, 0.5, (shape[1], 4)) + own * np.arange(4)
        figure = slope(score_list(values), "m", "side", lambda score: float(score.tags["side"]), unit="count")
        yield figure.low, figure.high


def ranked(rng: Rng, shape: Shape) -> Iterator[Bounds]:
    """Normal values with a correlation of 0.6, half of whose spread is the question's."""
    for _ in range(shape[0]):
        first, noise = (rng.normal(0, 1, (shape[1], 1)) + rng.normal(0, 1, (shape[1], 2)) for _ in range(2))
        figure = rank_correlation(score_list(0.6 * first + 0.8 * noise, other=first), "m", "other")
        yield figure.low, figure.high


# Consistency corrected for chance


AXES = 10
"""Directions that questions of one stratum have, beside the one that they share."""


def corrected() -> Iterator[Design]:
    for shared, strays in ((0.1, (1.0, 9.0)), (0.75, (1.0, 9.0)), (0.4, (2.0, 4.0))):
        name = f"{shared:.0%} shared, {strays[0] / sum(strays):.0%} stray"
        truth = truly_corrected(shared, strays)
        for groups in (5, 10, 40):
            draw = partial(corrected_means, shared, strays)
            yield Design("consistency corrected for chance", name, groups, truth, draw)


def directions(shared: float, groups: int, rng: Rng) -> Numbers:
    """A direction for each question: all share one by `shared`, and each has one of a few axes otherwise."""
    vectors = np.zeros((groups, 1 + AXES + 5))
    vectors[:, 0] = shared**0.5
    vectors[np.arange(groups), 1 + rng.integers(AXES, size=groups)] = (1 - shared) ** 0.5
    return vectors


def corrected_values(questions: Numbers, strays: tuple[float, float], rng: Rng) -> Numbers:
    """The corrected values of five answers to each question: a share of them, beta distributed over
    questions, strays in a direction of its own."""
    groups, size = questions.shape
    stray = rng.random((groups, 5)) < rng.beta(*strays, (groups, 1))
    alone = np.eye(size)[1 + AXES :]
    signs = rng.choice([-1.0, 1.0], (groups, 5, 1))
    answers = np.where(stray[..., None], signs * alone, questions[:, None])
    similarity = (np.einsum("gid,gjd->g", answers, answers) - 5) / 20
    result = corrected_for_chance(range(groups), answers.mean(axis=1), similarity)
    assert result is not None
    assert result.similarity is not None
    return result.similarity


def corrected_means(shared: float, strays: tuple[float, float], rng: Rng, shape: Shape) -> Iterator[Bounds]:
    for _ in range(shape[0]):
        values = corrected_values(directions(shared, shape[1], rng), strays, rng)
        yield interval_of(values, np.arange(shape[1]), "cosine")[1:3]


def truly_corrected(shared: float, strays: tuple[float, float]) -> float:
    """1 − (1 − s)/(1 − floor) of such answers: two of a question agree unless one strays, and two of
    different questions have the cosine of their directions unless one strays."""
    a, b = strays
    stray = a / (a + b)
    both_stay = (1 - stray) ** 2 + stray * (1 - stray) / (a + b + 1)
    floor = (1 - stray) ** 2 * (shared + (1 - shared) / AXES)
    return 1 - (1 - both_stay) / (1 - floor)


# Comparisons of several rows


def rows_of(kind: str, rows: int, groups: int, rng: Rng) -> Numbers:
    """Paired differences of two equal models by so many metrics: rows × groups."""
    if kind == "normal cosines":
        return rng.normal(0, 0.1, (rows, groups))
    if kind == "shares k/5":
        chances = rng.beta(2, 2, (rows, groups))
        return (rng.binomial(5, chances) - rng.binomial(5, chances)) / 5
    return rng.choice([-1.0, 0.0, 1.0], (rows, groups), p=[0.05, 0.9, 0.05])


def false_alarms(kind: str, rows: int, draws: int) -> float:
    """How often any row of a comparison of equal models is said to differ."""
    rng = np.random.default_rng([rows, *kind.encode()])
    unit: Unit = "cosine" if kind == "normal cosines" else "share"
    corrected = (holm([test.p for test in tested(rows_of(kind, rows, 40, rng), unit)]) for _ in range(draws))
    return float(np.mean([any(p is not None and p < 0.05 for p in row) for row in corrected]))


def power(groups: int, rows: int, draws: int) -> float:
    """How often one row differs that truly does, by what the samples say is detectable; the others do not."""
    rng = np.random.default_rng([groups, rows])
    pilot = [over_clusters(row, np.ones(groups)) for row in rows_of("normal cosines", 400, groups, rng)]
    sizes = [detectable(estimate, unit="cosine", tests=rows) for estimate in pilot]
    size = float(np.mean([one for one in sizes if one is not None]))
    shown = 0
    for _ in range(draws):
        differences = rows_of("normal cosines", rows, groups, rng)
        differences[0] += size
        p = holm([test.p for test in tested(differences, "cosine")])[0]
        shown += p is not None and p < 0.05
    return shown / draws
