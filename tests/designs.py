"""Designs whose truth is known, for simulating intervals: what is drawn, and what the statistics make of it.

A design draws many samples at once and gives the interval of each, by the functions that summaries and
comparisons call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenkeel.analysis.figures import rank_correlation, ratio
from evenkeel.analysis.figures import slope as slope_figure
from evenkeel.analysis.intervals import interval_of, over_clusters
from evenkeel.analysis.significance import Tested, detectable, holm, paired_test
from evenkeel.benchmarks.mirae.chance import corrected_for_chance
from evenkeel.types import Score, Unit

Rng: TypeAlias = np.random.Generator
Numbers: TypeAlias = NDArray[Any]
Bounds: TypeAlias = tuple[float | None, float | None]


class Design(NamedTuple):
    """One line of the table: of what kind, with which parameters, from how many groups."""

    kind: str
    parameters: str
    groups: int
    truth: float
    draw: Callable[[Rng, int], Iterator[Bounds]]
    """The intervals of so many samples."""

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.parameters}, {self.groups} groups"


def simulate(design: Design, draws: int) -> tuple[float, float]:
    """How often the interval holds the truth, and its mean width. Every sample must have an interval."""
    rng = np.random.default_rng([*design.name.encode()])
    bounds = np.array(list(design.draw(rng, draws)), dtype=float)
    assert not np.isnan(bounds).any(), f"{design.name}: a sample has no interval"
    low, high = bounds.T
    held = (low <= design.truth + 1e-12) & (design.truth - 1e-12 <= high)
    return float(held.mean()), float((high - low).mean())


# What is drawn: an array of draws × groups (× samples)


def fifths(p: float, groups: int, rng: Rng, draws: int) -> Numbers:
    """Shares of five answers that succeed independently."""
    return rng.binomial(5, p, (draws, groups)) / 5


def beta(a: float, b: float, groups: int, rng: Rng, draws: int) -> Numbers:
    """Cosines close to 1, the rarer the farther."""
    return rng.beta(a, b, (draws, groups))


def zero_or_one(p: float, groups: int, rng: Rng, draws: int) -> Numbers:
    return rng.binomial(1, p, (draws, groups)).astype(float)


def gamma(shape: float, groups: int, rng: Rng, draws: int) -> Numbers:
    return rng.gamma(shape, 1, (draws, groups))


def lognormal(sigma: float, groups: int, rng: Rng, draws: int) -> Numbers:
    return rng.lognormal(0, sigma, (draws, groups))


def unstable(share: float, groups: int, rng: Rng, draws: int) -> Numbers:
    """Consistencies of 1 but for a share of the questions, whose answers differ by up to a half."""
    loss = rng.uniform(0, 1, (draws, groups)) * (rng.random((draws, groups)) < share)
    return 1 - loss / 2 - 0.001 * rng.random((draws, groups))


def scores(nothing: float, whole: float, groups: int, rng: Rng, draws: int) -> Numbers:
    """Scores of 0 and of 100 with these chances, and anything between."""
    chance = rng.random((draws, groups))
    between = 100 * rng.beta(2, 2, (draws, groups))
    return np.where(chance < nothing, 0.0, np.where(chance < nothing + whole, 100.0, between))


def sizes_of(groups: int, rng: Rng, draws: int) -> Numbers:
    """From 1 to 9 samples in a group."""
    return rng.integers(1, 10, (draws, groups))


def alike(p: float, rho: float, sizes: Numbers, rng: Rng) -> Numbers:
    """Successes in groups, between whose samples there is a correlation of ρ (beta-binomial)."""
    k = 1 / rho - 1
    return rng.binomial(sizes, rng.beta(p * k, (1 - p) * k, sizes.shape))


# What is made of it


def means(unit: Unit, values: Numbers) -> Iterator[Bounds]:
    groups = np.arange(values.shape[1])
    for row in values:
        found = interval_of(row, groups, unit)
        yield found.low, found.high


def mean(draw: Callable[[Rng, int], Numbers], unit: Unit) -> Callable[[Rng, int], Iterator[Bounds]]:
    return lambda rng, draws: means(unit, draw(rng, draws))


def spread_out(counts: Numbers, sizes: Numbers) -> tuple[Numbers, Numbers]:
    """A 0 or a 1 for each sample of each group, and the groups."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return (place < counts[groups]).astype(float), groups


def clustered(p: float, rho: float, groups: int, rng: Rng, draws: int) -> Iterator[Bounds]:
    sizes = sizes_of(groups, rng, draws)
    for counts, own in zip(alike(p, rho, sizes, rng), sizes, strict=True):
        found = interval_of(*spread_out(counts, own), "share")
        yield found.low, found.high


def pairs(unit: Unit, first: Numbers, second: Numbers) -> Iterator[Bounds]:
    ones = np.ones(first.shape[1])
    for row in second - first:
        found = paired_test(over_clusters(row, ones), unit=unit)
        yield found.low, found.high


def paired_yes_or_no(only_a: float, only_b: float, groups: int, rng: Rng, draws: int) -> Iterator[Bounds]:
    """Questions that only one of two models answers; the rest is alike."""
    chance = rng.random((draws, groups))
    return pairs("share", (chance < only_a).astype(float), (chance > 1 - only_b).astype(float))


def normal_quantile(p: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)


def paired_fifths(a: float, b: float, rho: float, groups: int, rng: Rng, draws: int) -> Iterator[Bounds]:
    """Five answers of two models to questions that are as hard for both."""
    hard = rng.normal(size=(draws, groups, 1)) * rho**0.5
    sides = [
        (hard + (1 - rho) ** 0.5 * rng.normal(size=(draws, groups, 5)) < normal_quantile(p)).mean(axis=2)
        for p in (a, b)
    ]
    return pairs("share", *sides)


def paired_clustered(a: float, b: float, rho: float, groups: int, rng: Rng, draws: int) -> Iterator[Bounds]:
    """Groups of 1 to 9 samples; what is hard for one model is mostly hard for the other."""
    sizes = sizes_of(groups, rng, draws)
    there = np.arange(9) < sizes[..., None]
    shared = rng.normal(size=(draws, groups, 1))
    sides = []
    for p in (a, b):
        hard = rho**0.5 * (0.8 * shared + 0.6 * rng.normal(size=(draws, groups, 1)))
        latent = hard + (1 - rho) ** 0.5 * rng.normal(size=(draws, groups, 9))
        sides.append(((latent < normal_quantile(p)) & there).sum(axis=2).astype(float))
    for row, own in zip(sides[1] - sides[0], sizes, strict=True):
        found = paired_test(over_clusters(row, own.astype(float)), unit="share")
        yield found.low, found.high


def paired_cosines(
    a: tuple[float, float], b: tuple[float, float], r: float, groups: int, rng: Rng, draws: int
) -> Iterator[Bounds]:
    """Two beta distributions whose normal scores have a correlation of r."""
    from scipy.special import betaincinv, ndtr

    first = rng.normal(size=(draws, groups))
    second = r * first + (1 - r**2) ** 0.5 * rng.normal(size=(draws, groups))
    return pairs("cosine", betaincinv(*a, ndtr(first)), betaincinv(*b, ndtr(second)))


def paired_amounts(groups: int, rng: Rng, draws: int) -> Iterator[Bounds]:
    """Lognormal tokens of two models, the second with three tenths more."""
    first = rng.normal(size=(draws, groups))
    second = 0.7 * first + 0.51**0.5 * rng.normal(size=(draws, groups))
    return pairs("tokens", np.exp(first), 1.3 * np.exp(second))


# Figures of whole scores


def score_list(values: Numbers, **more: Numbers) -> list[Score]:
    """A score for each cell of questions × samples."""
    return [
        Score(
            sample_id=f"{i}-{j}", group=str(i), tags={"side": j},
            values={"m": float(values[i, j]), **{name: float(column[i, j]) for name, column in more.items()}},
            statuses={"ok": 1}, answered=1,
        )
        for i, j in np.ndindex(values.shape)
    ]  # fmt: skip


def around(questions: Numbers, each: int, rng: Rng) -> Numbers:
    """Samples that scatter about their question's own value."""
    return questions[:, None] + rng.normal(0, 0.5, (len(questions), each))


def yes_or_no(chances: Numbers, each: int, rng: Rng) -> Numbers:
    return (rng.random((len(chances), each)) < chances[:, None]).astype(float)


def share_corrected(each: int, groups: int, rng: Rng, draws: int) -> Iterator[Bounds]:
    """Of what was detected (60 %), 70 % is corrected; easy questions are so in all their samples."""
    for _ in range(draws):
        detected = yes_or_no(rng.beta(3, 2, groups), each, rng)
        right = yes_or_no(rng.beta(7, 3, groups), each, rng) * detected
        found = ratio(score_list(right, detected=detected), "m", "detected", unit="share")
        yield found.low, found.high


def ratio_of_sums(groups: int, rng: Rng, draws: int) -> Iterator[Bounds]:
    """Twice as much above as below, with noise that is the question's own."""
    for _ in range(draws):
        below = rng.gamma(4, 1, (groups, 3))
        above = 2 * below + below * rng.normal(0, 0.4, (groups, 1)) + rng.normal(0, 0.5, (groups, 3))
        found = ratio(score_list(above, below=below), "m", "below", unit="count")
        yield found.low, found.high


def side_of(score: Score) -> float:
    return float(score.tags["side"])


def slope(groups: int, rng: Rng, draws: int) -> Iterator[Bounds]:
    """Four levels of questions, each with a slope of its own about 0.2."""
    for _ in range(draws):
        slopes = rng.normal(0.2, 0.3, (groups, 1))
        values = around(rng.normal(0, 1, groups), 4, rng) + slopes * np.arange(4)
        found = slope_figure(score_list(values), "m", "side", side_of, unit="count")
        yield found.low, found.high


AXES = 10
"""Directions that questions of one stratum have, beside the one that they share."""


def directions(shared: float, groups: int, rng: Rng) -> Numbers:
    """A direction for each question: all share one by `shared`, and each has one of a few axes otherwise."""
    vectors = np.zeros((groups, 1 + AXES + 5))
    vectors[:, 0] = shared**0.5
    vectors[np.arange(groups), 1 + rng.integers(AXES, size=groups)] = (1 - shared) ** 0.5
    return vectors


def corrected(questions: Numbers, strays: tuple[float, float], rng: Rng) -> Numbers:
    """The corrected values of five answers to each question: a share of them, beta distributed over
    questions, strays in a direction of its own."""
    groups, size = questions.shape
    stray = rng.random((groups, 5)) < rng.beta(*strays, (groups, 1))
    alone = np.zeros((5, size))
    alone[np.arange(5), 1 + AXES + np.arange(5)] = 1
    signs = rng.choice([-1.0, 1.0], (groups, 5, 1))
    answers = np.where(stray[..., None], signs * alone, questions[:, None])
    similarity = (np.einsum("gid,gjd->g", answers, answers) - 5) / 20
    result = corrected_for_chance(range(groups), answers.mean(axis=1), similarity)
    assert result is not None
    assert result.similarity is not None
    return result.similarity


def corrected_means(
    shared: float, strays: tuple[float, float], groups: int, rng: Rng, draws: int
) -> Iterator[Bounds]:
    for _ in range(draws):
        values = corrected(directions(shared, groups, rng), strays, rng)
        interval = interval_of(values, np.arange(groups), "cosine")
        yield interval.low, interval.high


def corrected_differences(
    shared: float, first: tuple[float, float], second: tuple[float, float], groups: int, rng: Rng, draws: int
) -> Iterator[Bounds]:
    """Two models that answer the same questions."""
    for _ in range(draws):
        questions = directions(shared, groups, rng)
        a, b = (corrected(questions, strays, rng) for strays in (first, second))
        yield from pairs("cosine", a[None], b[None])


def truly_corrected(shared: float, strays: tuple[float, float]) -> float:
    """1 − (1 − s)/(1 − floor) of such answers: two of a question agree unless one strays, and two of
    different questions have the cosine of their directions unless one strays."""
    a, b = strays
    stray = a / (a + b)
    both_stay = (1 - stray) ** 2 + stray * (1 - stray) / (a + b + 1)
    floor = (1 - stray) ** 2 * (shared + (1 - shared) / AXES)
    return 1 - (1 - both_stay) / (1 - floor)


def ranked(groups: int, rng: Rng, draws: int) -> Iterator[Bounds]:
    """Normal values with a correlation of 0.6, half of whose spread is the question's."""
    for _ in range(draws):
        first, noise = (rng.normal(0, 1, (groups, 1)) + rng.normal(0, 1, (groups, 2)) for _ in range(2))
        both = score_list(0.6 * first + 0.8 * noise, other=first)
        found = rank_correlation(both, "m", "other")
        yield found.low, found.high


def bounded() -> Iterator[Design]:
    for p in (0.02, 0.05, 0.1, 0.5, 0.9, 0.98):
        for groups in (10, 20, 40, 100):
            draw = mean(partial(fifths, p, groups), "share")
            yield Design("share, values k/5", f"p = {p}", groups, p, draw)
    for p, rho in ((0.02, 0.1), (0.02, 0.3), (0.05, 0.1), (0.05, 0.3), (0.05, 0.6), (0.2, 0.3)):
        for groups in (20, 40, 100):
            name = f"p = {p}, ρ = {rho}"
            yield Design("share, clustered 0/1", name, groups, p, partial(clustered, p, rho, groups))
    for p in (0.02, 0.1, 0.5):
        for groups in (20, 40, 100):
            draw = mean(partial(zero_or_one, p, groups), "share")
            yield Design("share, 0/1", f"p = {p}", groups, p, draw)
    for a, b in ((20.0, 1.0), (20.0, 3.0), (50.0, 1.0), (8.0, 0.5)):
        for groups in (4, 6, 8, 20, 40):
            draw = mean(partial(beta, a, b, groups), "cosine")
            yield Design("cosine, skewed", f"beta({a:g}, {b:g})", groups, a / (a + b), draw)
    for share in (0.05, 0.15, 0.5):
        for groups in (10, 25, 50, 100):
            draw = mean(partial(unstable, share, groups), "cosine")
            name = f"{share:.0%} of questions unstable"
            yield Design("cosine, few unstable", name, groups, 1 - share / 4 - 0.0005, draw)
    for nothing, whole in ((0.3, 0.3), (0.05, 0.8), (0.85, 0.05)):
        for groups in (10, 20, 40, 100):
            name = f"{nothing:.0%} at 0, {whole:.0%} at 100"
            draw = mean(partial(scores, nothing, whole, groups), "score")
            yield Design("score", name, groups, 100 * whole + 50 * (1 - nothing - whole), draw)


def amounts() -> Iterator[Design]:
    for sigma in (0.5, 1.0, 1.5):
        for groups in (8, 20, 40, 100):
            draw = mean(partial(lognormal, sigma, groups), "tokens")
            yield Design("tokens, lognormal", f"σ = {sigma:g}", groups, float(np.exp(sigma**2 / 2)), draw)
    for groups in (8, 20, 40, 100):
        draw = mean(partial(gamma, 4, groups), "tokens")
        yield Design("tokens, gamma", "shape 4", groups, 4.0, draw)


def differences() -> Iterator[Design]:
    for a, b in ((0.02, 0.1), (0.0, 0.1), (0.1, 0.1), (0.2, 0.3), (0.1, 0.5)):
        for groups in (20, 40, 100):
            name = f"only A {a:g}, only B {b:g}"
            draw = partial(paired_yes_or_no, a, b, groups)
            yield Design("difference of shares, paired 0/1", name, groups, b - a, draw)
    for a, b, rho in (
        (0.02, 0.05, 0.3),
        (0.05, 0.1, 0.5),
        (0.5, 0.6, 0.5),
        (0.95, 0.8, 0.5),
        (0.9, 0.98, 0.0),
    ):
        for groups in (10, 20, 40, 100):
            name = f"{a:g} and {b:g}, ρ = {rho:g}"
            draw = partial(paired_fifths, a, b, rho, groups)
            yield Design("difference of shares, paired k/5", name, groups, b - a, draw)
    for a, b, rho in ((0.05, 0.02, 0.5), (0.02, 0.08, 0.8), (0.5, 0.6, 0.5)):
        for groups in (20, 40, 100):
            name = f"{a:g} and {b:g}, ρ = {rho:g}"
            draw = partial(paired_clustered, a, b, rho, groups)
            yield Design("difference of shares, paired and clustered", name, groups, b - a, draw)
    for first, second, r in (((20, 1), (20, 1), 0.5), ((20, 1), (20, 3), 0.5), ((40, 1), (8, 1), 0.3)):
        for groups in (6, 8, 20, 40):
            name = f"beta{first} and beta{second}, r = {r}"
            truth = second[0] / sum(second) - first[0] / sum(first)
            draw = partial(paired_cosines, first, second, r, groups)
            yield Design("difference of cosines, paired", name, groups, truth, draw)
    for groups in (8, 20, 40):
        truth = 0.3 * float(np.exp(0.5))
        yield Design("difference of tokens, paired", "σ = 1", groups, truth, partial(paired_amounts, groups))


def others() -> Iterator[Design]:
    yield Design("ratio of counts", "70 %, one sample a group", 40, 0.7, partial(share_corrected, 1, 40))
    yield Design("ratio of counts", "70 %, four samples a group", 30, 0.7, partial(share_corrected, 4, 30))
    yield Design("ratio of sums", "2", 25, 2.0, partial(ratio_of_sums, 25))
    yield Design("slope", "four levels", 15, 0.2, partial(slope, 15))
    for shared, strays in ((0.1, (1.0, 9.0)), (0.75, (1.0, 9.0)), (0.4, (2.0, 4.0))):
        for groups in (5, 10, 40):
            yield Design(
                "consistency corrected for chance",
                f"{shared:.0%} shared, {strays[0] / sum(strays):.0%} stray",
                groups,
                truly_corrected(shared, strays),
                partial(corrected_means, shared, strays, groups),
            )
    for shared in (0.1, 0.75):
        first, second = (1.0, 9.0), (2.0, 4.0)
        for groups in (10, 40):
            yield Design(
                "difference of consistencies corrected for chance, paired",
                f"{shared:.0%} shared, 10% and 33% stray",
                groups,
                truly_corrected(shared, second) - truly_corrected(shared, first),
                partial(corrected_differences, shared, first, second, groups),
            )
    rho = float(6 / np.pi * np.arcsin(0.6 / 2))
    yield Design("rank correlation", "0.58, two samples a group", 25, rho, partial(ranked, 25))


def designs() -> list[Design]:
    made: Iterable[Iterator[Design]] = (bounded(), amounts(), differences(), others())
    return [design for kind in made for design in kind]


# Comparisons of several rows


def rows_of(kind: str, rows: int, groups: int, rng: Rng) -> Numbers:
    """Paired differences of two equal models by so many metrics: rows × groups."""
    if kind == "normal cosines":
        return rng.normal(0, 0.1, (rows, groups))
    if kind == "shares k/5":
        chances = rng.beta(2, 2, (rows, groups))
        return (rng.binomial(5, chances) - rng.binomial(5, chances)) / 5
    return rng.choice([-1.0, 0.0, 1.0], (rows, groups), p=[0.05, 0.9, 0.05])


def tested(differences: Numbers, unit: Unit) -> list[Tested]:
    ones = np.ones(differences.shape[1])
    return [paired_test(over_clusters(row, ones), unit=unit) for row in differences]


def false_alarms(kind: str, rows: int, draws: int) -> float:
    """How often any row of a comparison of equal models is said to differ."""
    rng = np.random.default_rng([rows, *kind.encode()])
    unit: Unit = "cosine" if kind == "normal cosines" else "share"
    corrected = (holm([test.p for test in tested(rows_of(kind, rows, 40, rng), unit)]) for _ in range(draws))
    return float(np.mean([any(p is not None and p < 0.05 for p in row) for row in corrected]))


def power(groups: int, rows: int, draws: int) -> float:
    """How often one row differs that truly does, by what the samples say is detectable; the others do not."""
    rng = np.random.default_rng([groups, rows])
    ones = np.ones(groups)
    pilot = [over_clusters(row, ones) for row in rows_of("normal cosines", 400, groups, rng)]
    sizes = [detectable(estimate, unit="cosine", tests=rows) for estimate in pilot]
    size = float(np.mean([one for one in sizes if one is not None]))
    shown = 0
    for _ in range(draws):
        differences = rows_of("normal cosines", rows, groups, rng)
        differences[0] += size
        p = holm([test.p for test in tested(differences, "cosine")])[0]
        shown += p is not None and p < 0.05
    return shown / draws
