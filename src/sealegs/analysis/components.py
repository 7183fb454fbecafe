"""Variance components: how much answers differ between groups, and how much within a group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MIN_GROUPS = MIN_ANSWERS = 2


class Components(NamedTuple):
    """The variance between groups, and that within a group."""

    between: float
    within: float


def components(groups: Sequence[NDArray[np.float64]]) -> Components | None:
    """The components of a one-way random-effects model, by the analysis of variance of unweighted means:

        within = mean sᵢ²,  between = s²(means) − mean sᵢ²/nᵢ

    Each group is a matrix with a row for each of its nᵢ answers: one number, or a vector, whose variance is
    the sum over the coordinates. Both estimates are unbiased whatever the distributions; for groups of one
    size they are those of the analysis of variance, (MSB − MSW)/n and MSW (Searle, Casella & McCulloch 1992).
    Being unbiased, `between` may be negative where groups differ less than their answers would have them.
    None for fewer than two groups of two answers; smaller groups are left out.
    """
    groups = [group for group in groups if len(group) >= MIN_ANSWERS]
    if len(groups) < MIN_GROUPS:
        return None
    variances = [float(group.var(axis=0, ddof=1).sum()) for group in groups]
    of_means = np.stack([group.mean(axis=0) for group in groups]).var(axis=0, ddof=1).sum()
    noise = np.mean([variance / len(group) for variance, group in zip(variances, groups, strict=True)])
    return Components(float(of_means - noise), float(np.mean(variances)))
