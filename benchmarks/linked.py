"""Do the intervals hold where triplets share documents? Triplets of known truth are drawn again and again.

Each document has an effect on whether a triplet is ordered correctly: one for each role, the same in all
roles, or the opposite as a negative. Prints the table of docs/statistics.md: how often the 95 % interval
holds the true accuracy, and the true difference of two methods, as if triplets were independent and with
the triplets linked by their documents.

    python benchmarks/linked.py [--draws 1000] [--only WORDS]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from math import erf, sqrt
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenkeel import analysis as stats
from evenkeel.analysis.links import Links, numbered

Rng: TypeAlias = np.random.Generator
Triplets: TypeAlias = NDArray[Any]
"""A row for each triplet: the numbers of its documents."""

EFFECTS = {"by role": (False, False), "in all roles": (True, True), "opposite": (False, True)}
"""Whether the effect as a positive, and as a negative, depends on that as an anchor."""
SETTINGS = ((0.8, 0.7), (0.3, 1.5))
"""The spread of the effects, and the mean before them: 66 % and 91 % correct."""


class Held(NamedTuple):
    """How often intervals hold the truth, and how wide they are."""

    plain: float
    linked: float
    plain_width: float
    linked_width: float


# Which triplets there are


def separate(triplets: int, rng: Rng) -> Triplets:
    return np.arange(3 * triplets).reshape(triplets, 3)


def random_choice(documents: int, triplets: int, rng: Rng) -> Triplets:
    return np.array([rng.choice(documents, 3, replace=False) for _ in range(triplets)])


def uneven_choice(documents: int, triplets: int, rng: Rng) -> Triplets:
    """The k-th document is chosen 1/k as often as the first."""
    weights = 1 / np.arange(1, documents + 1)
    weights /= weights.sum()
    return np.array([rng.choice(documents, 3, replace=False, p=weights) for _ in range(triplets)])


def few_anchors(anchors: int, triplets: int, rng: Rng) -> Triplets:
    others = anchors + np.arange(2 * triplets).reshape(triplets, 2)
    return np.column_stack([rng.integers(0, anchors, triplets), others])


def copies(times: int, triplets: int, rng: Rng) -> Triplets:
    """Twenty copies are one: the same triplets, each so many times."""
    return np.repeat(separate(triplets, rng), times, axis=0)


DESIGNS: dict[str, Callable[[Rng], Triplets]] = {
    "100 triplets of 300 documents, none shared": partial(separate, 100),
    "100 triplets of 300 documents, chosen at random": partial(random_choice, 300, 100),
    "100 triplets of 60 documents": partial(random_choice, 60, 100),
    "300 triplets of 30 documents": partial(random_choice, 30, 300),
    "300 triplets of 15 documents": partial(random_choice, 15, 300),
    "60 triplets of 8 documents": partial(random_choice, 8, 60),
    "200 triplets of 60 documents, used unevenly": partial(uneven_choice, 60, 200),
    "200 triplets of 5 anchors, other documents separate": partial(few_anchors, 5, 200),
    "200 triplets of 30 anchors, other documents separate": partial(few_anchors, 30, 200),
    "20 copies of each of 50 triplets": partial(copies, 20, 50),
}


# What a method makes of them


def correct(triplets: Triplets, kind: str, spread: float, mean: float, rng: Rng) -> NDArray[np.float64]:
    """Whether each triplet is ordered correctly; a copy of a triplet is ordered as the triplet is."""
    documents, positive, negative = int(triplets.max()) + 1, *EFFECTS[kind]
    anchors = rng.normal(0, spread, documents)
    positives = anchors if positive else rng.normal(0, spread, documents)
    negatives = -anchors if kind == "opposite" else anchors if negative else rng.normal(0, spread, documents)
    _, first, inverse = np.unique(triplets, axis=0, return_index=True, return_inverse=True)
    noise = rng.normal(0, 1, len(first))[inverse.ravel()]
    effects = anchors[triplets[:, 0]] + positives[triplets[:, 1]] + negatives[triplets[:, 2]]
    return (mean + effects + noise > 0).astype(float)


def groupings(triplets: Triplets) -> Iterator[tuple[NDArray[np.intp], Links | None]]:
    """As if each triplet were independent, and linked by its documents."""
    yield np.arange(len(triplets)), None
    yield numbered(tuple(sorted(map(int, row))) for row in triplets)


def simulate(name: str, kind: str, setting: tuple[float, float], draws: int) -> tuple[Held, Held]:
    """Of the accuracy, and of the difference of two methods whose document effects are unrelated."""
    rng = np.random.default_rng([*f"{name}{kind}{setting}".encode()])
    spread, mean = setting
    truth = (1 + erf(mean / sqrt(1 + 3 * spread**2) / sqrt(2))) / 2
    held, width = np.zeros((2, 2)), np.zeros((2, 2))
    for _ in range(draws):
        triplets = DESIGNS[name](rng)
        first, second = (correct(triplets, kind, spread, mean, rng) for _ in range(2))
        for column, (groups, links) in enumerate(groupings(triplets)):
            interval = stats.interval_of(first, groups, "share", links=links)
            tested = stats.paired_test(stats.mean_over(second - first, groups, links), unit="share")
            for row, (low, high, true) in enumerate(
                ((interval.low, interval.high, truth), (tested.low, tested.high, 0.0))
            ):
                assert low is not None, f"{name}: a sample has no interval"
                assert high is not None
                held[row, column] += low <= true <= high
                width[row, column] += high - low
    accuracy, difference = (Held(*h, *w) for h, w in zip(held / draws, width / draws, strict=True))
    return accuracy, difference


def shown(held: Held) -> str:
    return f"{held.plain:.1%} ({held.plain_width:.2f}) | {held.linked:.1%} ({held.linked_width:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--only", default="", help="designs whose name has these words")
    options = parser.parse_args()
    print(
        "| triplets | document effects | accuracy, independent | linked | difference, independent | linked |"
    )
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for name in DESIGNS:
        if options.only in name:
            for kind in EFFECTS:
                for setting in SETTINGS:
                    accuracy, difference = simulate(name, kind, setting, options.draws)
                    effects = f"{kind}, spread {setting[0]}"
                    print(f"| {name} | {effects} | {shown(accuracy)} | {shown(difference)} |", flush=True)


if __name__ == "__main__":
    main()
