"""From the scores of samples to figures: means, shares, ratios, paired differences, slopes, correlations."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from math import atanh, sqrt, tanh
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from msgspec.structs import replace

from sealegs.analysis.intervals import (
    ALPHA,
    NOTHING,
    ROUNDING,
    TOO_FEW,
    Estimate,
    Interval,
    interval_of,
    mean_over,
)
from sealegs.analysis.links import Group, group_of, numbered
from sealegs.analysis.significance import Tested, holm, paired_test, t_test
from sealegs.analysis.student import NORMAL
from sealegs.page.metrics import scope_name
from sealegs.types import Figure, Score, Summary, Tag, Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

Requests: TypeAlias = tuple[int, int]
"""How many of a sample's requests were answered, and how many were asked."""


def summarise(
    scores: Sequence[Score],
    breakdown: Mapping[str, Iterable[tuple[str, ...]]],
    *,
    units: Mapping[str, Unit],
    weights: Mapping[str, str] | None = None,
) -> Summary:
    """The mean of each metric, over all samples and within each combination of the tags it is broken down by.

    `breakdown` maps a metric to tuples of tag names; the empty tuple is the mean over everything. `units`
    says what each metric counts, which decides its interval; `weights` names the value that is
    the weight of a sample, for a mean of Σ w v / Σ w. Every interval has a closed form: the same scores give
    the same digits.
    """
    table = _ScoreTable(scores)
    tags_of = {metric: list(dimensions) for metric, dimensions in breakdown.items()}
    parts = {names: rows_by(scores, names) for names in dict.fromkeys(chain.from_iterable(tags_of.values()))}
    summary = {}
    for metric, dimensions in tags_of.items():
        unit = units[metric]
        values = table.values(metric)
        weight = table.values(weights[metric]) if weights and metric in weights else np.ones(len(scores))
        bearing = np.array([metric in score.values for score in scores], dtype=bool)
        for names in dimensions:
            for tags, part in parts[names].items():
                members = part[bearing[part]]
                if len(members):
                    known = members[~np.isnan(values[members])]
                    sums, sizes = values[known] * weight[known], weight[known]
                    interval = interval_of(sums, table.groups[known], unit, weights=sizes, links=table.links)
                    scope = {name: str(tag) for name, tag in zip(names, tags, strict=True)}
                    fields = {"unit": unit, "metric": metric, "scope": scope, **interval._asdict()}
                    summary[scope_name(metric, scope)] = table.figure(~np.isnan(values), members, **fields)
    return summary


def rows_by(scores: Iterable[Score], names: tuple[str, ...]) -> dict[tuple[Tag, ...], NDArray[np.intp]]:
    """The indices of scores by their values of some tags; those that lack one of the tags are left out."""
    parts: defaultdict[tuple[Tag, ...], list[int]] = defaultdict(list)
    for index, score in enumerate(scores):
        if all(name in score.tags for name in names):
            parts[tuple(score.tags[name] for name in names)].append(index)
    return {tags: np.array(indices, dtype=np.intp) for tags, indices in parts.items()}


def scopes(scores: Sequence[Score], *names: tuple[str, ...]) -> Iterator[tuple[dict[str, Tag], list[Score]]]:
    """Every combination of values that some tags have, for each tuple of tags, with its scores; the empty
    tuple is all of them."""
    for tags in names:
        for values, rows in rows_by(scores, tags).items():
            yield dict(zip(tags, values, strict=True)), [scores[row] for row in rows]


class _ScoreTable:
    """Scores as arrays: a summary has hundreds of figures of the same samples."""

    def __init__(self, scores: Sequence[Score]) -> None:
        self._scores = scores
        self.groups, self.links = numbered(map(group_of, scores))
        self._answered = np.array([score.answered for score in scores], dtype=np.intp)
        self._statuses = list(dict.fromkeys(status for score in scores for status in score.statuses))
        counts = [[score.statuses.get(status, 0) for status in self._statuses] for score in scores]
        self._counts = np.array(counts, dtype=np.intp).reshape(len(scores), len(self._statuses))

    def values(self, metric: str) -> NDArray[np.float64]:
        """A metric of all samples; NaN for those without a value."""
        return np.array([score.values.get(metric) for score in self._scores], dtype=float)

    def figure(
        self, entered: NDArray[np.bool_], members: NDArray[np.intp] | slice = slice(None), **fields: Any
    ) -> Figure:
        """A figure with the coverage and the statuses of its members, of which some entered its value."""
        counts = self._counts[members].sum(axis=0)
        statuses = {status: int(n) for status, n in zip(self._statuses, counts, strict=True) if n}
        total = int(counts.sum())
        answered = int(self._answered[members][entered[members]].sum())
        return Figure(coverage=answered / total if total else 0.0, statuses=statuses, **fields)


def figure(members: Sequence[Score], metric: str, interval: Interval, *, unit: Unit) -> Figure:
    """A figure with the coverage and the statuses of the samples in its scope.

    A sample that has no value of the metric covers nothing, however many answers it has.
    """
    table = _ScoreTable(members)
    return table.figure(~np.isnan(table.values(metric)), unit=unit, **interval._asdict())


def ratio(scores: Sequence[Score], numerator: str, denominator: str, *, unit: Unit) -> Figure:
    """Σ numerator / Σ denominator over the samples that have both, as a share of the detected is corrected.

    Where each sample counts once or not at all, it is the share of those that count. A sample that does not
    count needs no numerator: it is as known as one that does.
    """
    table = _ScoreTable(scores)
    top, bottom = table.values(numerator), table.values(denominator)
    top = np.where(bottom == 0, 0.0, top)
    known = ~(np.isnan(top) | np.isnan(bottom))
    interval = interval_of(top[known], table.groups[known], unit, weights=bottom[known], links=table.links)
    return table.figure(known, unit=unit, **interval._asdict())


def _rows(scores: Iterable[Score], metric: str, tag: str) -> dict[tuple[str, ...], dict[Tag, Score]]:
    """The samples of a metric by the value of a tag, for each group and each combination of its other tags.

    Samples are paired within such a row: a language that failed at one level does not shift the others.
    """
    rows: defaultdict[tuple[str, ...], dict[Tag, Score]] = defaultdict(dict)
    for score in scores:
        if metric in score.values and tag in score.tags:
            rest = (f"{key}={other}" for key, other in sorted(score.tags.items()) if key != tag)
            rows[score.group, *rest][score.tags[tag]] = score
    return rows


def difference(
    scores: Sequence[Score], metric: str, tag: str, first: Tag, last: Tag, *, unit: Unit
) -> Figure:
    """Mean of `last` minus `first`, paired by group.

    A pair is covered as far as the side of which less was answered, and not at all where one is unknown.
    """
    requests: list[tuple[Requests, Requests]] = []
    members: list[Score] = []
    entered: list[bool] = []
    pairs = []
    for row in _rows(scores, metric, tag).values():
        if first in row and last in row:
            sides = row[first], row[last]
            before, after = (score.values[metric] for score in sides)
            known = before is not None and after is not None
            members += sides
            entered += known, known
            a, b = ((known * score.answered, sum(score.statuses.values())) for score in sides)
            requests.append((a, b))
            if before is not None and after is not None:
                pairs.append((row[first], after - before))
    figure = _over_groups(members, entered, pairs, unit, partial(paired_test, unit=unit))
    by_pair = np.array(requests, dtype=np.intp).reshape(-1, 2, 2)
    return replace(figure, coverage=pair_coverage(by_pair[:, 0], by_pair[:, 1]))


def pair_coverage(first: NDArray[np.intp], second: NDArray[np.intp]) -> float:
    """What of pairs was answered: Σ (nₐ + n_b) · min(answeredₐ/nₐ, answered_b/n_b) / Σ (nₐ + n_b).

    Each side has a row for each pair: requests answered and asked.
    """
    both = (first[:, 1] > 0) & (second[:, 1] > 0)
    if not both.any():
        return 0.0
    (a, of_a), (b, of_b) = first[both].T, second[both].T
    weights = of_a + of_b
    covered = np.cumsum(weights * np.minimum(a / of_a, b / of_b))
    return float(covered[-1] / weights.sum())


def changes(scores: Iterable[Score], metric: str, tag: str, *, unit: Unit) -> dict[Tag, Figure]:
    """By each value of a tag but the smallest: the mean there minus that at the smallest, paired by group, of
    which several samples at a value count as their mean. p is corrected for the values by Holm.
    """
    cells: defaultdict[tuple[str, Tag], list[Score]] = defaultdict(list)
    for score in scores:
        if metric in score.values and tag in score.tags:
            cells[score.group, score.tags[tag]].append(score)
    means = []
    for (_, value), members in cells.items():
        known = [each for score in members if (each := score.values[metric]) is not None]
        mean = sum(known) / len(known) if known else None
        statuses = sum((Counter(score.statuses) for score in members), Counter[str]())
        answered = sum(score.answered for score in members)
        merged = replace(members[0], tags={tag: value}, values={metric: mean}, answered=answered)
        means.append(replace(merged, statuses=dict(statuses)))
    first, *others = sorted({score.tags[tag] for score in means}, key=float) or [0]
    figures = {other: difference(means, metric, tag, first, other, unit=unit) for other in others}
    figures = {other: figure for other, figure in figures.items() if figure.n}
    corrected = holm([figure.p for figure in figures.values()])
    tests = max(1, sum(p is not None for p in corrected))
    return {
        other: replace(figure, p=p, tests=tests)
        for (other, figure), p in zip(figures.items(), corrected, strict=True)
    }


def slope(
    scores: Sequence[Score], metric: str, tag: str, x: Callable[[Score], float], *, unit: Unit
) -> Figure:
    """The least-squares slope of a metric over x, fitted in each group along a tag: t interval over groups.

    slope = Σ (xᵢ − x̄)(yᵢ − ȳ) / Σ (xᵢ − x̄)², in each group that has two samples or more of different x.
    """
    members: list[Score] = []
    entered: list[bool] = []
    slopes = []
    for row in _rows(scores, metric, tag).values():
        if len(row) >= 2:
            values = {tag: y for tag, score in row.items() if (y := score.values[metric]) is not None}
            xs = np.array([x(row[value]) for value in values], dtype=float)
            ys = np.array(list(values.values()))
            fits = bool(len(values) and np.ptp(xs))
            members += row.values()
            entered += (fits and value in values for value in row)
            if fits:
                centred = xs - xs.mean()
                fitted = float(centred @ (ys - ys.mean()) / (centred @ centred))  # 0 where all are equal
                slopes.append((next(iter(row.values())), fitted))
    test = partial(t_test, method="t over the groups' slopes")
    return _over_groups(members, entered, slopes, unit, test)


def _over_groups(
    members: Sequence[Score],
    entered: Sequence[bool],
    values: Iterable[tuple[Score, float]],
    unit: Unit,
    test: Callable[[Estimate], Tested],
) -> Figure:
    """The mean of values of groups, each group's mean counting once, tested against zero.

    The score beside a value is one of its group.
    """
    groups: defaultdict[str, list[float]] = defaultdict(list)
    names: dict[str, Group] = {}
    for score, value in values:
        groups[score.group].append(value)
        names[score.group] = group_of(score)
    means = np.array([np.mean(group_values) for group_values in groups.values()])
    numbers, links = numbered(names.values())
    n, clusters = len(means), len(set(numbers))
    tested, linked = Tested.unknown(TOO_FEW if n else NOTHING), False
    if clusters > 1:
        estimate = mean_over(means, numbers, links)
        clusters, linked = estimate.clusters, estimate.linked
        tested = test(estimate) if clusters > 1 else tested
    return _ScoreTable(members).figure(
        np.array(entered, dtype=bool), value=float(means.sum()) / n if n else None, low=tested.low,
        high=tested.high, method=tested.method, n=n, clusters=clusters, unit=unit, p=tested.p,
        reason=tested.reason, linked=linked,
    )  # fmt: skip


def rank_correlation(
    scores: Sequence[Score], first: str, second: str, *, within: Sequence[str] = ()
) -> Figure:
    """Spearman's ρ between two metrics over samples: Pearson's r of their ranks.

    With tags to stay `within`, it is the mean of the ρ of their strata, weighted by the samples of each, so
    that a difference between strata is not taken for a correlation: Σ n ρ / Σ n. Strata of fewer than three
    samples, and those where a metric is constant, have no ρ and do not enter.

    The interval is on the scale of Fisher's z with the variance (1 + ρ²/2) / Σ (G − 3) over the strata's
    groups G (Bonett & Wright 2000; Hedges & Olkin 1985 for several strata). There is none where the order is
    perfect, and where no stratum has more than three groups.
    """
    table = _ScoreTable(scores)
    metrics = np.stack([table.values(first), table.values(second)])
    known = ~np.asarray(np.isnan(metrics).any(axis=0))
    rhos: list[tuple[int, float]] = []
    freedom, entering = 0, []
    for part in rows_by(scores, tuple(within)).values():
        members = part[known[part]]
        if len(members) < 3 or bool((np.ptp(metrics[:, members], axis=1) == 0).any()):
            continue
        groups = np.unique(table.groups[members])
        rhos.append((len(members), spearman(metrics[:, members])))
        freedom += max(0, len(groups) - 3)
        entering += groups.tolist()
    n, clusters = sum(size for size, _ in rhos), len(set(entering))
    value = sum(size * rho for size, rho in rhos) / n if n else None
    low = high = None
    method, reason = "", "too few samples" if known.any() else NOTHING
    if value is not None and abs(value) > 1 - ROUNDING:
        reason = "the order is perfect"
    elif value is not None and freedom:
        over = f", mean within {' and '.join(within)}" if len(rhos) > 1 else ""
        half = NORMAL.inv_cdf(1 - ALPHA / 2) * sqrt((1 + value**2 / 2) / freedom)
        low, high = tanh(atanh(value) - half), tanh(atanh(value) + half)
        method, reason = f"Spearman's ρ{over}, Fisher's z over groups", ""
    return table.figure(
        known, value=value, low=low, high=high, method=method, n=n, clusters=clusters, unit="correlation",
        reason=reason,
    )  # fmt: skip


def spearman(values: NDArray[np.float64]) -> float:
    """ρ of two rows of values, neither of them constant."""
    return float(np.corrcoef([_ranks(row) for row in values])[0, 1])


def _ranks(row: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rank of each value; equal ones share the mean of theirs."""
    _, inverse, counts = np.unique(row, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse])
