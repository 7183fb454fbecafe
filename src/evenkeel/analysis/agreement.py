"""Two deciders about the same things: agreement beyond chance, and hits told from false alarms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from evenkeel import analysis as stats
from evenkeel.analysis import combined
from evenkeel.types import Figure, Score

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
        return stats.Interval(value, None, None, "none: it hangs on one group", n, count)
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
    finite where a share is 0 or 1.
    """
    terms, members = [], []
    for coefficient, side, name in zip((1.0, -1.0), (hits, alarms), names, strict=True):
        known = [(value, score.group) for score in side if (value := score.values[name]) is not None]
        if not known:
            return []
        terms.append(combined.Term(coefficient, *zip(*known, strict=True)))
        members += [stats.with_values(score, reported=score.values[name]) for score in side]
    youden, dprime = combined.interval(terms, "share"), combined.interval(terms, "share", scale=_z)
    return [
        stats.figure(members, "reported", youden, unit="share"),
        stats.figure(members, "reported", dprime, unit="deviations"),
    ]


def _z(share: float, n: int) -> float:
    from scipy.special import ndtri

    return float(ndtri((share * n + 0.5) / (n + 1)))
