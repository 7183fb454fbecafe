"""Figures with their intervals, from the scores of samples.

Samples of one group (all levels of a question, say) are not independent, so every error is taken over groups:

- a mean: t over groups, with the jackknife's error;
- a share of samples that are each 0 or 1: Wilson's score interval, at the size that the groups are worth;
- a rank correlation: a bootstrap over groups.

`tests/test_intervals.py` draws samples of each kind and counts how often the interval holds the truth.
"""

from __future__ import annotations

from evenkeel.stats.figures import (
    Errors,
    clustered_error,
    difference,
    figure,
    proportion,
    rank_correlation,
    ratio,
    slope,
    summarise,
)
from evenkeel.stats.intervals import (
    CONFIDENCE,
    NOTHING,
    RANGES,
    TOO_FEW,
    UNCHANGED,
    Estimate,
    Interval,
    Tested,
    detectable,
    holm,
    interval_of,
    over_clusters,
    per_cluster,
    t_interval,
    t_test,
    welch,
    wilson,
)
from evenkeel.stats.names import scope_name, scope_of

__all__ = [
    "CONFIDENCE",
    "NOTHING",
    "RANGES",
    "TOO_FEW",
    "UNCHANGED",
    "Errors",
    "Estimate",
    "Interval",
    "Tested",
    "clustered_error",
    "detectable",
    "difference",
    "figure",
    "holm",
    "interval_of",
    "over_clusters",
    "per_cluster",
    "proportion",
    "rank_correlation",
    "ratio",
    "scope_name",
    "scope_of",
    "slope",
    "summarise",
    "t_interval",
    "t_test",
    "welch",
    "wilson",
]
