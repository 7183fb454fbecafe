"""What the metrics of a benchmark mean, from its declarations."""

from __future__ import annotations

from sealegs.harness.registry import benchmark_class
from sealegs.page.grid import DisplayedList
from sealegs.page.metrics import Metric


def explained(benchmark: str) -> DisplayedList[Metric]:
    """Every metric that a benchmark declares, in its order; a name with `*` is one entry.

    `explained("mirae")[0].meaning`
    """
    return DisplayedList(benchmark_class(benchmark).layout.metrics)
