"""Comparisons within groups along a tag."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from evenkeel.analysis.figures import difference, rows_by
from evenkeel.analysis.significance import holm
from evenkeel.types import Figure, Score, Tag, Unit


def scopes(scores: Sequence[Score], *names: tuple[str, ...]) -> Iterator[tuple[dict[str, Tag], list[Score]]]:
    """Every combination of values that some tags have, for each tuple of tags, with its scores; the empty
    tuple is all of them."""
    for tags in names:
        for values, rows in rows_by(scores, tags).items():
            yield dict(zip(tags, values, strict=True)), [scores[row] for row in rows]


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
    figures = {other: difference(means, metric, tag, first, other, unit=unit) for other in others}
    figures = {other: figure for other, figure in figures.items() if figure.n}
    corrected = holm([figure.p for figure in figures.values()])
    tests = max(1, sum(p is not None for p in corrected))
    return {
        other: replace(figure, p=p, tests=tests)
        for (other, figure), p in zip(figures.items(), corrected, strict=True)
    }
