"""Means, paired differences, slopes and correlations, each with its interval, from the scores of samples."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from evenkeel.types import Figure, Score, Summary, Tag, Unit

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
    with np.errstate(invalid="ignore"):  # a resample that misses every cluster of a figure: 0 / 0
        means = [(weights @ sums) / (weights @ counts) for weights in _resamples(len(sums), seed)]
    enough = np.count_nonzero(counts, axis=0) >= 2
    low, high = np.full(sums.shape[1], np.nan), np.full(sums.shape[1], np.nan)
    if enough.any():
        low[enough], high[enough] = np.nanquantile(np.array(means)[:, enough], _TAILS, axis=0)
    return low, high


_TAILS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)


def _resamples(clusters: int, seed: int) -> Iterable[NDArray[np.intp]]:
    """How often each cluster is drawn, resample by resample."""
    rng = np.random.default_rng(seed)
    for _ in range(max(1000, min(RESAMPLES, CELLS // max(1, clusters)))):
        yield np.bincount(rng.integers(0, clusters, clusters), minlength=clusters)


def scope_name(metric: str, scope: Mapping[str, Tag]) -> str:
    """The name of a figure in a summary: `mean_similarity`, `mean_similarity/level=3,lang=en`."""
    return f"{metric}/{','.join(f'{k}={v}' for k, v in scope.items())}" if scope else metric


def summarise(
    scores: Sequence[Score],
    breakdown: Mapping[str, Iterable[tuple[str, ...]]],
    *,
    seed: int,
    units: Mapping[str, Unit] | None = None,
) -> Summary:
    """The mean of each metric, over all samples and within each combination of the tags it is broken down by.

    `breakdown` maps a metric to tuples of tag names; the empty tuple is the mean over everything.
    """
    columns: dict[str, tuple[str, list[Score]]] = {}
    for metric, dimensions in breakdown.items():
        bearing = [score for score in scores if metric in score.values]
        for names in dimensions:
            for score in bearing:
                if all(name in score.tags for name in names):
                    scope = {name: score.tags[name] for name in names}
                    columns.setdefault(scope_name(metric, scope), (metric, []))[1].append(score)
    groups = {group: index for index, group in enumerate(dict.fromkeys(score.group for score in scores))}
    sums, counts = (np.zeros((len(groups), len(columns))) for _ in range(2))
    for column, (metric, members) in enumerate(columns.values()):
        for score in members:
            value = score.values[metric]
            if value is not None:
                sums[groups[score.group], column] += value
                counts[groups[score.group], column] += 1
    low, high = bootstrap_means(sums, counts, seed=seed)
    summary = {}
    for i, (name, (metric, members)) in enumerate(columns.items()):
        n = int(counts[:, i].sum())
        known = not np.isnan(low[i])
        summary[name] = figure(
            members,
            value=float(sums[:, i].sum() / n) if n else None,
            low=float(low[i]) if known else None,
            high=float(high[i]) if known else None,
            method="bootstrap over questions" if known else "none: fewer than two questions",
            n=n,
            clusters=int(np.count_nonzero(counts[:, i])),
            unit=(units or {}).get(metric, "cosine"),
        )
    return summary


def figure(
    members: Iterable[Score],
    *,
    value: float | None,
    low: float | None,
    high: float | None,
    method: str,
    n: int,
    clusters: int,
    unit: Unit = "cosine",
    p: float | None = None,
) -> Figure:
    """A figure with the coverage and the statuses of the samples in its scope."""
    members = list(members)
    statuses: Counter[str] = Counter()
    for score in members:
        statuses.update(score.statuses)
    asked = statuses.total()
    coverage = sum(score.answered for score in members) / asked if asked else 0.0
    return Figure(
        value=value, low=low, high=high, method=method, n=n, clusters=clusters, coverage=coverage,
        statuses=dict(statuses), unit=unit, p=p,
    )  # fmt: skip


def by_group(scores: Iterable[Score], metric: str, tag: str) -> dict[str, dict[Tag, float]]:
    """A metric by group and value of a tag; the mean, where a group has several samples of one value."""
    values: defaultdict[str, defaultdict[Tag, list[float]]] = defaultdict(lambda: defaultdict(list))
    for score in scores:
        value = score.values.get(metric)
        if value is not None and tag in score.tags:
            values[score.group][score.tags[tag]].append(value)
    return {group: {k: float(np.mean(v)) for k, v in row.items()} for group, row in values.items()}


def difference(scores: Sequence[Score], metric: str, tag: str, first: Tag, last: Tag) -> Figure:
    """Mean of `last` minus `first`, paired by group: t interval and t test over groups."""
    pairs = by_group(scores, metric, tag).values()
    return _t_over_groups(
        scores,
        [row[last] - row[first] for row in pairs if first in row and last in row],
        "paired t over questions",
    )


def slope(scores: Sequence[Score], metric: str, tag: str, x: Mapping[Tag, float]) -> Figure:
    """The least-squares slope of a metric over x(tag), fitted in each group: t interval over groups.

    slope = Σ (xᵢ − x̄)(yᵢ − ȳ) / Σ (xᵢ − x̄)², in each group that has two values of the tag or more.
    """
    slopes = []
    for row in by_group(scores, metric, tag).values():
        if len(row) >= 2:
            xs = np.array([x[key] for key in row])
            centred = xs - xs.mean()
            slopes.append(float(centred @ np.array(list(row.values())) / (centred @ centred)))
    return _t_over_groups(scores, slopes, "t over the questions' slopes")


def _t_over_groups(members: Sequence[Score], values: Sequence[float], method: str) -> Figure:
    from scipy.special import stdtr, stdtrit  # scipy.stats has the same and takes a second to import

    n = len(values)
    mean = float(np.mean(values)) if n else None
    if mean is None or n < 2:
        return figure(
            members, value=mean, low=None, high=None, method="none: fewer than two questions", n=n, clusters=n
        )
    error = float(np.std(values, ddof=1)) / n**0.5
    half = float(stdtrit(n - 1, _TAILS[1])) * error
    p = float(2 * stdtr(n - 1, -abs(mean) / error)) if error else None
    return figure(members, value=mean, low=mean - half, high=mean + half, method=method, n=n, clusters=n, p=p)


def rank_correlation(scores: Sequence[Score], first: str, second: str, *, seed: int) -> Figure:
    """Spearman's ρ between two metrics over samples: Pearson's r of their ranks.

    The interval is a bootstrap over groups, with the ranks of the whole sample held.
    """
    from scipy.stats import rankdata

    both = [s for s in scores if s.values.get(first) is not None and s.values.get(second) is not None]
    groups = {group: index for index, group in enumerate(dict.fromkeys(score.group for score in both))}
    if len(both) < 3 or len(groups) < 2:
        return figure(
            both,
            value=None,
            low=None,
            high=None,
            method="none: too few samples",
            n=len(both),
            clusters=len(groups),
        )
    member = np.array([groups[score.group] for score in both])
    ranks = np.array([rankdata([score.values[metric] for score in both]) for metric in (first, second)])

    def correlation(weights: NDArray[np.float64]) -> float:
        centred = ranks - np.average(ranks, axis=1, weights=weights)[:, None]
        covariance = (weights * centred) @ centred.T
        return float(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))

    with np.errstate(invalid="ignore"):  # ranks without any spread: 0 / 0
        drawn = [correlation(weights[member].astype(float)) for weights in _resamples(len(groups), seed)]
        value = correlation(np.ones(len(both)))
    low, high = np.nanquantile(drawn, _TAILS)
    return figure(
        both, value=value, low=float(low), high=float(high), method="Spearman's ρ, bootstrap over questions",
        n=len(both), clusters=len(groups),
    )  # fmt: skip
