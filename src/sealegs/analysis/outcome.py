"""What a comparison says of a difference: better, worse, no clear difference, or too few to tell."""

from __future__ import annotations

from math import ceil, log10, sqrt
from typing import Literal, TypeAlias

from sealegs.analysis.intervals import ALPHA, RANGES, ROUNDING, Estimate
from sealegs.analysis.significance import POWER
from sealegs.analysis.student import NORMAL
from sealegs.page.format import is_uninformative
from sealegs.page.metrics import Better
from sealegs.page.scale import ENDS
from sealegs.types import Unit

Outcome: TypeAlias = Literal[
    "better", "worse", "higher", "lower", "no clear difference", "too few to tell", "not compared"
]

MIN_GROUPS = 6
"""With five groups not even a change in each of them is significant by a sign test: 2 / 2⁵ > 0.05."""
PRECISE = 0.15
"""Half the width of an interval, as a share of the unit's range, from which there are too few samples."""
SMALL_DROP = 0.05
"""The change that a gate says how many groups would show, where none is allowed: a share of the range."""
SMALLEST_PLANNED = 0.1
"""The smallest difference that samples are planned for, as a share of the unit's range."""


def outcome_of(
    difference: float | None,
    limits: tuple[float | None, float | None],
    *,
    tested: bool,
    groups: int,
    significant: bool,
    unit: Unit,
    better: Better | None,
) -> Outcome:
    """A significant difference has a direction. Of another one it depends on how wide its interval is; where
    a side has no value, nothing was compared."""
    if difference is None:
        return "not compared"
    if significant and difference:
        if better is None:
            return "higher" if difference > 0 else "lower"
        return "better" if (difference > 0) == (better == "higher") else "worse"
    low, high = limits
    same = difference is not None and abs(difference) < ROUNDING and not tested
    nothing = low is not None and high is not None and is_uninformative(low, high, unit)
    if same and groups >= MIN_GROUPS and not nothing:
        return "no clear difference"  # it is the same in every sample
    if low is None or high is None:
        return "too few to tell"
    span = range_of(unit)
    wide = span is not None and (high - low) / 2 > PRECISE * span
    return "too few to tell" if wide else "no clear difference"


def needed_groups(difference: float | None, estimate: Estimate | None, unit: Unit) -> int | None:
    """How many groups would show such a difference with 80 % power: n = ((z₁₋α/₂ + z₀.₈) σ / δ)².

    This is the usual size of a paired sample (Cohen 1988). δ is the difference seen, or a tenth of the unit's
    range where that is more. σ is that of the groups' differences; where it is not known, that of two
    independent values which are each at one end of the range as often as at the other: R / √2.
    """
    return groups_to_show(
        max(abs(difference or 0.0), SMALLEST_PLANNED * (range_of(unit) or 0.0)), estimate, unit
    )


def groups_to_show(delta: float, estimate: Estimate | None, unit: Unit) -> int | None:
    """The same for a difference of a given size δ; None where it cannot be said."""
    if estimate is not None and estimate.error:
        sigma = estimate.error * sqrt(estimate.clusters)
    else:
        sigma = (range_of(unit) or 0.0) / sqrt(2)
    if not delta or not sigma:
        return None
    quantiles = NORMAL.inv_cdf(1 - ALPHA / 2) + NORMAL.inv_cdf(POWER)
    return _rounded_up(max(MIN_GROUPS, (quantiles * sigma / delta) ** 2))


def range_of(unit: Unit) -> float | None:
    low, high = ENDS.get(unit) or RANGES.get(unit) or (0.0, 0.0)
    return high - low or None


def _rounded_up(number: float) -> int:
    """Two digits are enough: 137 groups are about 140."""
    step: int = 10 ** max(0, int(log10(number)) - 1)
    return ceil(number / step) * step
