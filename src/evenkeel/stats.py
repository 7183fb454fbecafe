"""Means, paired differences, slopes and correlations, each with its interval, from the scores of samples."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

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
    parts = (f"{key}={str(value).translate(_QUOTED)}" for key, value in scope.items())
    return f"{metric}/{','.join(parts)}" if scope else metric


def scope_of(name: str) -> tuple[str, dict[str, str]]:
    """The metric and the scope of a figure's name, as `scope_name` had them."""
    metric, _, scope = name.partition("/")
    pairs = (part.split("=", 1) for part in scope.split(",")) if scope else ()
    return metric, {key: unquote(value) for key, value in pairs}


_QUOTED = str.maketrans({mark: f"%{ord(mark):02X}" for mark in "%,=/"})
"""What would be misread in a scope, as addresses quote it."""


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
            metric,
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
    metric: str,
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
    """A figure with the coverage and the statuses of the samples in its scope.

    A sample that has no value of the metric covers nothing, however many answers it has.
    """
    members = list(members)
    statuses: Counter[str] = Counter()
    for score in members:
        statuses.update(score.statuses)
    asked = statuses.total()
    covered = sum(score.answered for score in members if score.values.get(metric) is not None)
    coverage = covered / asked if asked else 0.0
    return Figure(
        value=value, low=low, high=high, method=method, n=n, clusters=clusters, coverage=coverage,
        statuses=dict(statuses), unit=unit, p=p,
    )  # fmt: skip


def _rows(scores: Iterable[Score], metric: str, tag: str) -> dict[tuple[str, ...], dict[Tag, float]]:
    """A metric by the value of a tag, for each group and each combination of its other tags.

    Pairs are made within such a row: a language that failed at one level must not shift the others.
    """
    rows: defaultdict[tuple[str, ...], dict[Tag, float]] = defaultdict(dict)
    for score in scores:
        value = score.values.get(metric)
        if value is not None and tag in score.tags:
            rest = (f"{key}={other}" for key, other in sorted(score.tags.items()) if key != tag)
            rows[score.group, *rest][score.tags[tag]] = value
    return rows


def _mean_by_group(values: Iterable[tuple[str, float]]) -> list[float]:
    groups: defaultdict[str, list[float]] = defaultdict(list)
    for group, value in values:
        groups[group].append(value)
    return [float(np.mean(members)) for members in groups.values()]


def difference(scores: Sequence[Score], metric: str, tag: str, first: Tag, last: Tag) -> Figure:
    """Mean of `last` minus `first`, paired by group: t interval and t test over groups."""
    rows = _rows(scores, metric, tag).items()
    pairs = ((key[0], row[last] - row[first]) for key, row in rows if first in row and last in row)
    return _t_over_groups(scores, _mean_by_group(pairs), metric, "paired t over questions")


def slope(scores: Sequence[Score], metric: str, tag: str, x: Mapping[Tag, float]) -> Figure:
    """The least-squares slope of a metric over x(tag), fitted in each group: t interval over groups.

    slope = Σ (xᵢ − x̄)(yᵢ − ȳ) / Σ (xᵢ − x̄)², in each group that has two values of the tag or more.
    """
    slopes = []
    for key, row in _rows(scores, metric, tag).items():
        if len(row) >= 2:
            xs = np.array([x[value] for value in row])
            centred = xs - xs.mean()
            slopes.append((key[0], float(centred @ np.array(list(row.values())) / (centred @ centred))))
    return _t_over_groups(scores, _mean_by_group(slopes), metric, "t over the questions' slopes")


def _t_over_groups(members: Sequence[Score], values: Sequence[float], metric: str, method: str) -> Figure:
    from scipy.special import stdtr, stdtrit  # scipy.stats has the same and takes a second to import

    n = len(values)
    mean = float(np.mean(values)) if n else None
    if mean is None or n < 2:
        method, low, high, p = "none: fewer than two questions", None, None, None
    else:
        error = float(np.std(values, ddof=1)) / n**0.5
        half = float(stdtrit(n - 1, _TAILS[1])) * error
        low, high = mean - half, mean + half
        p = float(2 * stdtr(n - 1, -abs(mean) / error)) if error else None
    return figure(members, metric, value=mean, low=low, high=high, method=method, n=n, clusters=n, p=p)


def rank_correlation(scores: Sequence[Score], first: str, second: str, *, seed: int) -> Figure:
    """Spearman's ρ between two metrics over samples: Pearson's r of their ranks.

    The interval is a bootstrap over groups, with the ranks of the whole sample held.
    """
    from scipy.stats import rankdata

    both = [s for s in scores if s.values.get(first) is not None and s.values.get(second) is not None]
    groups = {group: index for index, group in enumerate(dict.fromkeys(score.group for score in both))}
    if len(both) < 3 or len(groups) < 2:
        none = "none: too few samples"
        return figure(
            scores, second, value=None, low=None, high=None, method=none, n=len(both), clusters=len(groups)
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
    low, high = np.nanquantile(drawn, _TAILS) if not np.isnan(drawn).all() else (np.nan, np.nan)
    return figure(
        scores, second, value=None if np.isnan(value) else value, low=None if np.isnan(low) else float(low),
        high=None if np.isnan(high) else float(high), method="Spearman's ρ, bootstrap over questions",
        n=len(both), clusters=len(groups),
    )  # fmt: skip
