"""The metrics of a benchmark explained, from `explained.json` beside its module and from its declarations.

The file maps the name of a metric, as it is declared, to what the metric says, its formula, its source and
what to be careful about. docs/metrics.md and the app show the same text.
"""

from __future__ import annotations

import sys

from msgspec import Struct

from evenkeel.files.package_data import data_path, read_json
from evenkeel.harness.benchmark import Benchmark
from evenkeel.harness.registry import benchmark_class
from evenkeel.page.explained import Explained
from evenkeel.page.format import capitalised, chance
from evenkeel.page.metrics import Metric

FILE = "explained.json"


class Entry(Struct, frozen=True, forbid_unknown_fields=True):
    """What the file has of one metric."""

    what: str
    formula: str
    source: str
    careful: str


def explained(benchmark: str) -> list[Explained]:
    """Every metric that a benchmark declares, in its order; a name with `*` is one entry.

    Of a metric that is not in the benchmark's file, and of a benchmark without one, the declaration says what
    there is to say.

    `ek.explained("mirae")[0].formula`
    """
    cls = benchmark_class(benchmark)
    entries = written(cls)
    return [
        Explained(
            name=metric.name,
            title=capitalised(metric.title),
            what=entry.what,
            formula=entry.formula,
            source=entry.source,
            careful=entry.careful,
        )
        for metric in cls.layout.metrics
        for entry in [entries.get(metric.name) or _declared(metric, cls)]
    ]


def written(cls: type[Benchmark]) -> dict[str, Entry]:
    """The entries of the file in the package that has the benchmark; none where it has no such file."""
    package = sys.modules[cls.__module__].__package__
    if not package or not data_path(package, FILE).is_file():
        return {}
    return read_json(package, FILE, type=dict[str, Entry])


def _declared(metric: Metric, cls: type[Benchmark]) -> Entry:
    """What the declaration of a metric says of it."""
    better = f" {capitalised(metric.better)} is better." if metric.better else ""
    careful = [chance(metric)]
    careful += ["it depends on how many answers of a sample are scored"] if metric.by_repeats else []
    careful += ["it depends on which other samples are in the run"] if metric.by_others else []
    careful += [f"it compares samples along {metric.against}"] if metric.against else []
    return Entry(
        what=f"{capitalised(metric.title)}.{better}",
        formula=_formula(metric)
        if cls.summarise is Benchmark.summarise
        else f"{metric.name} ({metric.unit}), as the benchmark summarises it",
        source=cls.layout.citation or f"the benchmark {cls.__name__}",
        careful=" ".join(f"{capitalised(each)}." for each in careful if each),
    )


def _formula(metric: Metric) -> str:
    """As the harness computes it where the benchmark does not summarise by itself."""
    return f"mean of {metric.name} over samples. Interval: by its unit ({metric.unit}), over groups."
