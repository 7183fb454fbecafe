"""Figures with their intervals, from the scores of samples.

Samples of one group (all levels of a question, say) are not independent, so every error is taken over groups:

- a share of samples that are each 0 or 1 and a group of their own: Wilson's score interval;
- the mean of any other bounded value (cosines, scores, shares of five answers): t on the logit scale;
- the mean of an amount (tokens, bits): t on the logarithmic scale;
- a difference: t over pairs, on the scale of Fisher's z;
- a rank correlation: Fisher's z.

docs/statistics.md has the formulas, and how often such intervals contain the truth in the simulations of
`benchmarks/intervals.py`.
"""

from __future__ import annotations

from evenkeel.analysis.figures import (
    difference,
    figure,
    pair_coverage,
    rank_correlation,
    ratio,
    slope,
    summarise,
)
from evenkeel.analysis.intervals import (
    NOTHING,
    RANGES,
    TOO_FEW,
    Estimate,
    Interval,
    interval_of,
    mean_over,
    over_clusters,
    per_cluster,
    t_interval,
    wilson,
)
from evenkeel.analysis.significance import (
    Tested,
    detectable,
    difference_range,
    holm,
    paired_test,
)
from evenkeel.page.metrics import scope_name, scope_of

__all__ = [
    "NOTHING",
    "RANGES",
    "TOO_FEW",
    "Estimate",
    "Interval",
    "Tested",
    "detectable",
    "difference",
    "difference_range",
    "figure",
    "holm",
    "interval_of",
    "mean_over",
    "over_clusters",
    "pair_coverage",
    "paired_test",
    "per_cluster",
    "rank_correlation",
    "ratio",
    "scope_name",
    "scope_of",
    "slope",
    "summarise",
    "t_interval",
    "wilson",
]
