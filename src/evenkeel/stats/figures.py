"""From the scores of samples to figures: means, shares, ratios, paired differences, slopes, correlations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evenkeel.stats.intervals import (
    NOTHING,
    TOO_FEW,
    UPPER,
    Tested,
    interval_of,
    over_clusters,
    per_cluster,
    t_test,
    wilson,
)
from evenkeel.stats.names import scope_name
from evenkeel.types import Figure, Score, Summary, Tag, Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESAMPLES = 2000
CELLS = 20_000_000  # resamples × samples at the most: past 10,000 samples fewer resamples are plenty
BLOCK = 200_000  # resamples × samples at a time


def summarise(
    scores: Sequence[Score],
    breakdown: Mapping[str, Iterable[tuple[str, ...]]],
    *,
    units: Mapping[str, Unit] | None = None,
) -> Summary:
    """The mean of each metric, over all samples and within each combination of the tags it is broken down by.

    `breakdown` maps a metric to tuples of tag names; the empty tuple is the mean over everything. Every
    interval has a closed form: the same scores give the same digits.
    """
    table = _Table(scores)
    asked = {metric: list(dimensions) for metric, dimensions in breakdown.items()}
    parts = {names: _split(scores, names) for names in dict.fromkeys(chain.from_iterable(asked.values()))}
    summary = {}
    for metric, dimensions in asked.items():
        unit = (units or {}).get(metric, "cosine")
        values = table.values(metric)
        bearing = np.array([metric in score.values for score in scores], dtype=bool)
        for names in dimensions:
            for tags, part in parts[names].items():
                members = part[bearing[part]]
                if len(members):
                    known = members[~np.isnan(values[members])]
                    found = interval_of(values[known], table.groups[known], unit)
                    name = scope_name(metric, dict(zip(names, tags, strict=True)))
                    summary[name] = table.figure(members, known, unit=unit, **found._asdict())
    return summary


def _split(scores: Iterable[Score], names: tuple[str, ...]) -> dict[tuple[Tag, ...], NDArray[np.intp]]:
    """The places of scores by their values of some tags; those that lack one of the tags are left out."""
    parts: defaultdict[tuple[Tag, ...], list[int]] = defaultdict(list)
    for place, score in enumerate(scores):
        if all(name in score.tags for name in names):
            parts[tuple(score.tags[name] for name in names)].append(place)
    return {tags: np.array(places, dtype=np.intp) for tags, places in parts.items()}


class _Table:
    """Scores as arrays, which are read many times: a summary has hundreds of figures of the same samples."""

    def __init__(self, scores: Sequence[Score]) -> None:
        self._scores = scores
        numbers = {group: number for number, group in enumerate(dict.fromkeys(s.group for s in scores))}
        self.groups = np.array([numbers[score.group] for score in scores], dtype=np.intp)
        self._answered = np.array([score.answered for score in scores], dtype=np.intp)
        self._statuses = list(dict.fromkeys(status for score in scores for status in score.statuses))
        counts = [[score.statuses.get(status, 0) for status in self._statuses] for score in scores]
        self._counts = np.array(counts, dtype=np.intp).reshape(len(scores), len(self._statuses))

    def values(self, metric: str) -> NDArray[np.float64]:
        """A metric of all samples; NaN for those without a value."""
        return np.array([score.values.get(metric) for score in self._scores], dtype=float)

    def figure(self, members: NDArray[np.intp], known: NDArray[np.intp], **fields: Any) -> Figure:
        """A figure with the coverage and the statuses of its members, of which the known have a value."""
        ends = self._counts[members].sum(axis=0)
        statuses = {status: int(n) for status, n in zip(self._statuses, ends, strict=True) if n}
        asked = int(ends.sum())
        coverage = int(self._answered[known].sum()) / asked if asked else 0.0
        return Figure(coverage=coverage, statuses=statuses, **fields)


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
    table = _Table(members)
    known = np.flatnonzero(~np.isnan(table.values(metric)))
    return table.figure(
        np.arange(len(members)), known,
        value=value, low=low, high=high, method=method, n=n, clusters=clusters, unit=unit, p=p,
    )  # fmt: skip


def ratio(scores: Sequence[Score], numerator: str, denominator: str, *, unit: Unit = "share") -> Figure:
    """Σ numerator / Σ denominator over the samples that have both, as a share of the detected is corrected.

    Where each sample counts once or not at all, it is the share of those that count, with Wilson's interval;
    otherwise t over groups with the jackknife's error, as for a mean.
    """
    (top, bottom), groups = _known(scores, numerator, denominator)
    found = interval_of(top, groups, unit, weights=bottom)
    return figure(scores, denominator, unit=unit, **found._asdict())


def _known(scores: Sequence[Score], *metrics: str) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """A row of values for each metric, over the samples that have them all, and the samples' groups."""
    table = _Table(scores)
    values = np.stack([table.values(metric) for metric in metrics])
    known = ~np.isnan(values).any(axis=0)
    return values[:, known], np.unique(table.groups[known], return_inverse=True)[1]


def proportion(successes: int, n: int) -> Figure:
    """A share of `n` independent trials, with Wilson's interval."""
    low, high = wilson(successes / n, n) if n else (None, None)
    return Figure(
        value=successes / n if n else None, low=low, high=high,
        method="Wilson score" if n else NOTHING,
        n=n, clusters=n, coverage=1.0 if n else 0.0, statuses={}, unit="share",
    )  # fmt: skip


class Errors(NamedTuple):
    """The standard error of a mean: over groups, and as it would seem if all samples were independent."""

    clustered: float
    naive: float


def clustered_error(scores: Sequence[Score], metric: str) -> Errors:
    """Both standard errors of a metric's mean; NaN where there are fewer than two groups."""
    (values,), groups = _known(scores, metric)
    if len(set(groups)) < 2:
        return Errors(float("nan"), float("nan"))
    clustered = over_clusters(per_cluster(groups, values), per_cluster(groups, np.ones(len(values)))).error
    return Errors(clustered, float(values.std(ddof=1)) / len(values) ** 0.5)


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


def difference(
    scores: Sequence[Score], metric: str, tag: str, first: Tag, last: Tag, *, unit: Unit = "cosine"
) -> Figure:
    """Mean of `last` minus `first`, paired by group: t interval and t test over groups."""
    rows = _rows(scores, metric, tag).items()
    pairs = ((key[0], row[last] - row[first]) for key, row in rows if first in row and last in row)
    return _t_over_groups(scores, _mean_by_group(pairs), metric, "paired t over groups", unit)


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
    return _t_over_groups(scores, _mean_by_group(slopes), metric, "t over the groups' slopes")


def _t_over_groups(
    members: Sequence[Score], values: Sequence[float], metric: str, method: str, unit: Unit = "cosine"
) -> Figure:
    n = len(values)
    if n < 2:
        value, test = next(iter(values), None), Tested(None, None, None, TOO_FEW if n else NOTHING)
    else:
        estimate = over_clusters(np.array(values), np.ones(n))
        value, test = estimate.value, t_test(estimate, method, unit=unit)
    return figure(members, metric, value=value, n=n, clusters=n, unit=unit, **test._asdict())


def rank_correlation(scores: Sequence[Score], first: str, second: str, *, seed: int) -> Figure:
    """Spearman's ρ between two metrics over samples: Pearson's r of their ranks.

    The interval is a bootstrap over groups; each resample is ranked anew.
    """
    values, groups = _known(scores, first, second)
    n, clusters = len(groups), len(set(groups))
    if n < 3 or clusters < 2:
        none = "none: too few samples" if n else NOTHING
        return figure(scores, second, value=None, low=None, high=None, method=none, n=n, clusters=clusters)
    drawn = np.concatenate([spearman(values, times[:, groups]) for times in _resamples(clusters, n, seed)])
    at_hand = spearman(values, np.ones((1, n)))
    bounds = np.nanquantile(drawn, (1 - UPPER, UPPER)) if not np.isnan(drawn).all() else (np.nan, np.nan)
    value, low, high = (None if np.isnan(found) else float(found) for found in (*at_hand, *bounds))
    method = "Spearman's ρ, bootstrap over groups"
    return figure(scores, second, value=value, low=low, high=high, method=method, n=n, clusters=clusters)


def spearman(values: NDArray[np.float64], times: NDArray[np.float64]) -> NDArray[np.float64]:
    """ρ of two rows of values for each row of `times`, which says how often each sample is there.

    A value's rank, less ½, is the number of samples below it and half the number of its equals: on the mean
    half of all. NaN where there is no spread.
    """
    first, second = (_ranks(row, times) - times.sum(axis=1, keepdims=True) / 2 for row in values)
    with np.errstate(invalid="ignore"):  # 0 / 0
        shared = (times * first * second).sum(axis=1)
        rho = shared / np.sqrt((times * first**2).sum(axis=1) * (times * second**2).sum(axis=1))
    return np.asarray(rho, dtype=float)


def _ranks(row: NDArray[np.float64], times: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rank, less ½, of each value among as many of each as each row of `times` says; ties share one."""
    order = np.argsort(row, kind="stable")
    _, starts = np.unique(row[order], return_index=True)
    equal = np.add.reduceat(times[:, order], starts, axis=1)
    return np.asarray((np.cumsum(equal, axis=1) - equal / 2)[:, np.searchsorted(row[order][starts], row)])


def _resamples(clusters: int, n: int, seed: int) -> Iterable[NDArray[np.float64]]:
    """How often each cluster is drawn, a row for each resample, as many at a time as are light to hold."""
    rng = np.random.default_rng(seed)
    left, block = max(1000, min(RESAMPLES, CELLS // n)), max(1, BLOCK // n)
    while left > 0:
        rows = min(block, left)
        drawn = rng.integers(0, clusters, (rows, clusters)) + clusters * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * clusters).reshape(rows, clusters).astype(float)
        left -= rows
