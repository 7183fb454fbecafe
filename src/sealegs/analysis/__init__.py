"""Figures with their intervals, from the scores of samples.

Samples of one group (all levels of a question, say) are not independent, so every error is taken over groups:

- a share of samples that are each 0 or 1 and a group of their own: Wilson's score interval;
- the mean of any other bounded value (cosines, scores, shares of five answers): t on the logit scale;
- the mean of an amount (tokens, bits): t on the logarithmic scale;
- a difference: t over pairs, on the scale of Fisher's z;
- a rank correlation: Fisher's z.

docs/statistics.md has the formulas, and how often such intervals contain the truth in the simulations of
`benchmarks/intervals.py`. These are the functions that benchmarks summarise with.
"""

from __future__ import annotations

from sealegs.analysis.figures import (
    changes,
    difference,
    figure,
    rank_correlation,
    ratio,
    scopes,
    slope,
    summarise,
)
from sealegs.analysis.intervals import NOTHING, Interval, interval_of
from sealegs.analysis.significance import holm
from sealegs.page.metrics import scope_name

__all__ = [
    "NOTHING",
    "Interval",
    "changes",
    "difference",
    "figure",
    "holm",
    "interval_of",
    "rank_correlation",
    "ratio",
    "scope_name",
    "scopes",
    "slope",
    "summarise",
]
