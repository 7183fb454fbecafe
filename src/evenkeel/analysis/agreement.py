"""Two deciders about the same things: agreement beyond chance, and hits told from false alarms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from evenkeel import analysis as stats
from evenkeel.analysis.student import NORMAL
from evenkeel.types import Figure, Score, Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray


def kappa(decisions: Iterable[tuple[Hashable, Hashable]]) -> tuple[int, float | None]:
    """How many pairs were decided, and Cohen's κ of them: (p − e) / (1 − e), with p the share of equal
    decisions and e = Σ over labels of the product of both shares.

    A decision that is None (a verdict that could not be read) leaves its pair out. Where both always decide
    the same one way, chance alone explains it and κ is None.
    """
    pairs = [(first, second) for first, second in decisions if first is not None and second is not None]
    n = len(pairs)
    share = sum(first == second for first, second in pairs) / max(1, n)
    firsts, seconds = (Counter(pair[side] for pair in pairs) for side in (0, 1))
    chance = sum(firsts[label] * seconds[label] for label in firsts) / max(1, n) ** 2
    return n, (share - chance) / (1 - chance) if n and chance < 1 else None


def kappa_interval(decisions: Iterable[tuple[float | None, float | None, Hashable]]) -> stats.Interval:
    """κ of two deciders who say 0 or 1, with the group of each pair; its interval is a jackknife over groups.

    Of G groups, group g has the pseudo-value G κ − (G − 1) κ(without g); their mean has an interval as any
    mean of agreements has (Efron 1982).
    """
    known = [(int(a), int(b), group) for a, b, group in decisions if a is not None and b is not None]
    n, value = kappa((first, second) for first, second, _ in known)
    groups = {group: number for number, group in enumerate(dict.fromkeys(each[2] for each in known))}
    count = len(groups)
    if value is None or count < 2:
        method = "none: chance alone explains it" if count >= 2 else stats.TOO_FEW if n else stats.NOTHING
        return stats.Interval(value, None, None, method, n, count)
    tables = np.zeros((count, 2, 2))
    for first, second, group in known:
        tables[groups[group], first, second] += 1
    pseudo = count * value - (count - 1) * _kappa_of(tables.sum(axis=0) - tables)
    if np.isnan(pseudo).any():
        return stats.Interval(value, None, None, "none: one group decides it", n, count)
    each = stats.interval_of(pseudo, np.arange(count), "agreement")
    if each.low is None or each.high is None:
        return each._replace(value=value, n=n)
    low, high = max(-1.0, min(value, each.low)), min(1.0, max(value, each.high))
    return stats.Interval(value, low, high, f"jackknife, {each.method}", n, count)


def _kappa_of(tables: NDArray[np.float64]) -> NDArray[np.float64]:
    """κ of each table of counts; NaN where chance alone explains the agreement."""
    n = tables.sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0
        share = np.trace(tables, axis1=1, axis2=2) / n
        chance = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1) / n**2
        return np.asarray(np.where(chance < 1, (share - chance) / (1 - chance), np.nan))


def discrimination(hits: Sequence[Score], alarms: Sequence[Score], names: tuple[str, str]) -> list[Figure]:
    """Youden's J = H − F and d′ = z(H) − z(F), with H the mean of the first name over `hits`, where there is
    something to report, and F that of the second over `alarms`, where there is nothing; none without both.

    z is the normal quantile of (count + ½) / (n + 1), the log-linear correction (Hautus 1995): so d′ is
    finite where a share is 0 or 1. The lower limit is J − √(h² + f² − 2 r h f), with h how far H is above its
    lower limit, f how far F is below its upper one, and r the correlation of both over the groups that they
    share; the upper one likewise (Zou & Donner 2008), and those of d′ from the quantiles of the same limits.
    """
    members, sides, moves = [], [], []
    for side, name in zip((hits, alarms), names, strict=True):
        known = [(value, score.group) for score in side if (value := score.values[name]) is not None]
        if not known:
            return []
        members += [stats.with_values(score, reported=score.values[name]) for score in side]
        numbers = {group: number for number, group in enumerate(dict.fromkeys(group for _, group in known))}
        values = np.array([value for value, _ in known])
        groups = np.array([numbers[group] for _, group in known], dtype=np.intp)
        sides.append(stats.interval_of(values, groups, "share"))
        sums, sizes = stats.per_cluster(groups, values), stats.per_cluster(groups, np.ones(len(values)))
        moved = (sums - values.mean() * sizes) / np.maximum(1, len(values) - sizes)
        moves.append(dict(zip(numbers, moved, strict=True)))
    shared = sum(move * moves[1][group] for group, move in moves[0].items() if group in moves[1])
    length = np.prod([sum(move**2 for move in side.values()) for side in moves]) ** 0.5
    correlation = float(shared / length) if length else 0.0
    count = len(moves[0].keys() | moves[1].keys())
    return [
        stats.figure(members, "reported", _difference(sides, correlation, count, scale), unit=unit)
        for scale, unit in SCALES.items()
    ]


def _plain(share: float, n: int) -> float:
    return share


def _z(share: float, n: int) -> float:
    return NORMAL.inv_cdf((share * n + 0.5) / (n + 1))


SCALES: dict[Callable[[float, int], float], Unit] = {_plain: "share", _z: "deviations"}
"""On which hits and false alarms are subtracted: Youden's J and d′."""


def _difference(
    sides: Sequence[stats.Interval], correlation: float, groups: int, scale: Callable[[float, int], float]
) -> stats.Interval:
    """The first side minus the second on a scale, with limits from theirs."""
    first, second = (
        side._replace(
            value=None if side.value is None else scale(side.value, side.n),
            low=None if side.low is None else scale(side.low, side.n),
            high=None if side.high is None else scale(side.high, side.n),
        )
        for side in sides
    )
    n, methods = first.n + second.n, ", ".join(dict.fromkeys(side.method for side in sides))
    value = (first.value or 0.0) - (second.value or 0.0)
    (below, above), (under, over) = first.margins, second.margins
    low, high = (
        max(0.0, h**2 + f**2 - 2 * correlation * h * f) ** 0.5 for h, f in ((below, over), (above, under))
    )
    if not (isfinite(low) and isfinite(high)):
        return stats.Interval(value, None, None, methods, n, groups)
    return stats.Interval(value, value - low, value + high, methods, n, groups)
