"""Comparisons within groups: along a tag, and between the repeats of a prompt and its variants."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from evenkeel import analysis as stats
from evenkeel.types import Figure, Score, Tag, Unit, tags_match

if TYPE_CHECKING:
    from numpy.typing import NDArray


def scopes(scores: Sequence[Score], *names: tuple[str, ...]) -> Iterator[tuple[dict[str, Tag], list[Score]]]:
    """Every combination of values that some tags have, for each tuple of tags, with its scores; the empty
    tuple is all of them."""
    for tags in names:
        tagged = [score for score in scores if all(tag in score.tags for tag in tags)]
        for values in dict.fromkeys(tuple(score.tags[tag] for tag in tags) for score in tagged):
            scope = dict(zip(tags, values, strict=True))
            yield scope, [score for score in tagged if tags_match(score.tags, scope)]


def merged(members: Sequence[Score], tags: Mapping[str, Tag], **values: float | None) -> Score:
    """Scores of one group as one, with what was asked and answered for all of them."""
    statuses: Counter[str] = Counter()
    for score in members:
        statuses.update(score.statuses)
    answered = sum(score.answered for score in members)
    return replace(members[0], tags=dict(tags), values=values, statuses=dict(statuses), answered=answered)


def mean(members: Iterable[Score], metric: str) -> float | None:
    known = [value for score in members if (value := score.values[metric]) is not None]
    return sum(known) / len(known) if known else None


def changes(scores: Iterable[Score], metric: str, tag: str, *, unit: Unit) -> dict[Tag, Figure]:
    """By each value of a tag but the smallest: the mean there minus that at the smallest, paired by group, of
    which several samples at a value count as their mean. p is corrected for the values by Holm.
    """
    cells: defaultdict[tuple[str, Tag], list[Score]] = defaultdict(list)
    for score in scores:
        if metric in score.values and tag in score.tags:
            cells[score.group, score.tags[tag]].append(score)
    means = [
        merged(members, {tag: value}, **{metric: mean(members, metric)})
        for (_, value), members in cells.items()
    ]
    if not means:
        return {}
    first, *others = sorted({score.tags[tag] for score in means}, key=float)
    figures = {other: stats.difference(means, metric, tag, first, other, unit=unit) for other in others}
    figures = {other: figure for other, figure in figures.items() if figure.n}
    corrected = stats.holm([figure.p for figure in figures.values()])
    tests = max(1, sum(p is not None for p in corrected))
    return {
        other: replace(figure, p=p, tests=tests)
        for (other, figure), p in zip(figures.items(), corrected, strict=True)
    }


def variation(scores: Iterable[Score], metric: str, variant: Sequence[str]) -> dict[str, Figure]:
    """Where prompts were asked several times: how much answers vary between the repeats of a prompt, and how
    much the prompts of a group, which differ in the tags of `variant`, vary beyond that.

    In a group with prompts p of nₚ repeats each, sₚ² is the variance of the repeats (over nₚ − 1):
    sampling_variance W = mean sₚ²; prompt_variance B = variance of the prompts' means − mean sₚ²/nₚ; both
    unbiased, so that B may be negative. sampling_share is Σ W / Σ (W + B).
    """
    groups: defaultdict[str, defaultdict[tuple[Tag | None, ...], list[Score]]]
    groups = defaultdict(lambda: defaultdict(list))
    for score in scores:
        if metric in score.values:
            groups[score.group][tuple(score.tags.get(tag) for tag in variant)].append(score)
    if not any(len(answers) > 1 for prompts in groups.values() for answers in prompts.values()):
        return {}
    members = []
    for prompts in groups.values():
        values = _components([[s.values[metric] for s in answers] for answers in prompts.values()])
        asked = [score for answers in prompts.values() for score in answers]
        members.append(merged(asked, {}, within=values[0], between=values[1]))

    def known(name: str, beside: str) -> NDArray[np.float64]:
        return np.array([s.values[name] for s in members if s.values[beside] is not None], dtype=float)

    within = known("within", "within")
    interval = stats.interval_of(within, np.arange(len(within)), "variance")
    figures = {"sampling_variance": stats.figure(members, "within", interval, unit="variance")}
    if any(len(prompts) > 1 for prompts in groups.values()):
        between = known("between", "between")
        share = sampling_share(known("within", "between"), between)
        figures["prompt_variance"] = stats.figure(members, "between", _t_interval(between), unit="variance")
        figures["sampling_share"] = stats.figure(members, "between", share, unit="share")
    return figures


def _components(prompts: Sequence[Sequence[float | None]]) -> tuple[float | None, float | None]:
    """W and B of one group; None where there are too few answers."""
    known = [[value for value in answers if value is not None] for answers in prompts]
    repeated = [np.array(answers) for answers in known if len(answers) > 1]
    variances = [float(np.var(answers, ddof=1)) for answers in repeated]
    if len(repeated) < 2:
        return (variances[0] if variances else None), None
    noise = np.mean([v / len(answers) for v, answers in zip(variances, repeated, strict=True)])
    spread = np.var([answers.mean() for answers in repeated], ddof=1)
    return float(np.mean(variances)), float(spread - noise)


def _t_interval(values: NDArray[np.float64]) -> stats.Interval:
    """The mean of what may be negative by chance, one value for each group: a plain t interval."""
    return stats.interval_of(values, np.arange(len(values)), "deviations")


def sampling_share(within: NDArray[np.float64], between: NDArray[np.float64]) -> stats.Interval:
    """S = Σ W / Σ (W + B) over groups, each of which moves it by (W − S (W + B)) / mean (W + B).

    S and its limits are cut to what a share can be: a B that is negative by chance takes them beyond.
    """
    both, count = within + between, len(within)
    if not count or both.sum() <= 0:
        method = "none: nothing varies" if count else stats.NOTHING
        return stats.Interval(None, None, None, method, count, count)
    share = float(within.sum() / both.sum())
    each = _t_interval(share + (within - share * both) / both.mean())
    value, low, high = (
        None if limit is None else min(1.0, max(0.0, limit)) for limit in (share, each.low, each.high)
    )
    return each._replace(value=value, low=low, high=high)
