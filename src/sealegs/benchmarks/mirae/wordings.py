"""A question in several wordings: the spread of the answers over wordings, beside that over repeats."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from sealegs import analysis
from sealegs.analysis.components import components
from sealegs.analysis.figures import scopes
from sealegs.types import Score, Summary

SPREADS = ("wording_spread", "repeat_spread")
SHARE = "wording_share"
RIGHT_SPREADS = ("right_wording_spread", "right_repeat_spread")
RIGHT = ("right_worst_wording", "right_mean_wording", "right_best_wording")


def wording_values(
    vectors: Sequence[NDArray[np.float32]], right: Sequence[Sequence[bool]]
) -> dict[str, float | None]:
    """The values of a question at one level, from the unit vectors of the answers to each of its wordings
    and, where its answer is known, from which of them are right.

    Of unit vectors the variance within a wording is 1 less the mean cosine of its answers.
    """
    parts = components([np.asarray(rows, dtype=float) for rows in vectors])
    values: dict[str, float | None] = dict(zip(SPREADS, parts or (None, None), strict=True))
    if right:
        marks = [np.array(each, dtype=float)[:, None] for each in right]
        values |= dict(zip(RIGHT_SPREADS, components(marks) or (None, None), strict=True))
        rates = [float(each.mean()) for each in marks if len(each)]
        complete = len(rates) == len(right)
        summed = (min(rates), float(np.mean(rates)), max(rates)) if complete else (None, None, None)
        values |= dict(zip(RIGHT, summed, strict=True))
    return values


def wording_shares(scores: Sequence[Score], *tags: tuple[str, ...]) -> Summary:
    """The share of the spread that is due to the wording: Σ between / Σ (between + within) over questions."""
    asked = [_with_sum(score) for score in scores if SPREADS[0] in score.values]
    return {
        analysis.scope_name(SHARE, scope): analysis.ratio(members, SPREADS[0], "both", unit="share")
        for scope, members in scopes(asked, *tags)
    }


def _with_sum(score: Score) -> Score:
    between, within = (score.values[name] for name in SPREADS)
    both = None if between is None or within is None else between + within
    return replace(score, values={**score.values, "both": both})
