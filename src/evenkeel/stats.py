"""Means with intervals, broken down by tag, from the scores of a run's samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.types import Figure, Score, Summary, Tag

if TYPE_CHECKING:
    from numpy.typing import NDArray

CONFIDENCE = 0.95
RESAMPLES = 4000
CELLS = 20_000_000  # resamples × clusters drawn at the most: past 5,000 clusters fewer resamples are plenty


def bootstrap_means(
    sums: NDArray[np.float64], counts: NDArray[np.float64], *, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Percentile bootstrap over clusters (Efron & Tibshirani 1993, ch. 13) of many means at once.

    `sums` and `counts` are clusters × figures. A resample draws as many clusters as there are, with
    replacement, and each figure's mean is Σ wᵢ sumᵢ / Σ wᵢ countᵢ, with wᵢ how often cluster i was drawn.
    All figures share the draws, so that figures of one run vary together as they would in truth.
    Returns the lower and upper bounds; NaN where fewer than two clusters bear on a figure.
    """
    clusters = len(sums)
    resamples = max(1000, min(RESAMPLES, CELLS // max(1, clusters)))
    rng = np.random.default_rng(seed)
    means = np.empty((resamples, sums.shape[1]))
    with np.errstate(invalid="ignore"):  # a resample that misses every cluster of a figure: 0 / 0
        for row in means:
            weights = np.bincount(rng.integers(0, clusters, clusters), minlength=clusters)
            row[:] = (weights @ sums) / (weights @ counts)
    tail = (1 - CONFIDENCE) / 2
    enough = np.count_nonzero(counts, axis=0) >= 2
    low, high = np.full(sums.shape[1], np.nan), np.full(sums.shape[1], np.nan)
    if enough.any():
        low[enough], high[enough] = np.nanquantile(means[:, enough], [tail, 1 - tail], axis=0)
    return low, high


def scope_name(metric: str, scope: Mapping[str, Tag]) -> str:
    """The name of a figure in a summary: `mean_similarity`, `mean_similarity/level=3,lang=en`."""
    return f"{metric}/{','.join(f'{k}={v}' for k, v in scope.items())}" if scope else metric


def summarise(
    scores: Sequence[Score], breakdown: Mapping[str, Iterable[tuple[str, ...]]], *, seed: int
) -> Summary:
    """The mean of each metric, over all samples and within each combination of the tags it is broken down by.

    `breakdown` maps a metric to tuples of tag names; the empty tuple is the mean over everything.
    """
    columns: dict[str, tuple[str, list[Score]]] = {}
    for metric, dimensions in breakdown.items():
        for names in dimensions:
            for score in scores:
                if all(name in score.tags for name in names):
                    scope = {name: score.tags[name] for name in names}
                    columns.setdefault(scope_name(metric, scope), (metric, []))[1].append(score)
    groups = {group: index for index, group in enumerate(dict.fromkeys(score.group for score in scores))}
    sums, counts = (np.zeros((len(groups), len(columns))) for _ in range(2))
    for column, (metric, members) in enumerate(columns.values()):
        for score in members:
            value = score.values.get(metric)
            if value is not None:
                sums[groups[score.group], column] += value
                counts[groups[score.group], column] += 1
    low, high = bootstrap_means(sums, counts, seed=seed)
    return {
        name: _figure(sums[:, i], counts[:, i], float(low[i]), float(high[i]), members)
        for i, (name, (_, members)) in enumerate(columns.items())
    }


def _figure(
    sums: NDArray[np.float64], counts: NDArray[np.float64], low: float, high: float, members: list[Score]
) -> Figure:
    n = int(counts.sum())
    statuses: Counter[str] = Counter()
    for score in members:
        statuses.update(score.statuses)
    asked = statuses.total()
    known = not np.isnan(low)
    return Figure(
        value=float(sums.sum() / n) if n else None,
        low=low if known else None,
        high=high if known else None,
        method="bootstrap over clusters" if known else "none: fewer than two clusters",
        n=n,
        clusters=int(np.count_nonzero(counts)),
        coverage=sum(score.answered for score in members) / asked if asked else 0.0,
        statuses=dict(statuses),
    )
