"""Whether a data set that a person has edited is still valid: `sealegs build BENCHMARK --check FILE`."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from sealegs.api.setup import read_samples
from sealegs.files import datasets
from sealegs.harness.benchmark import builder_class
from sealegs.harness.registry import benchmark_name, load_benchmark
from sealegs.make.builder import FindsFaults
from sealegs.page.format import nouns, tag_name

MOST_VALUES = 12
"""Of a tag that is counted: one with more is an id rather than a group."""


class Checked(NamedTuple):
    """A data set that was read whole."""

    samples: int
    groups: int
    """Independent questions."""
    requests: int
    """That a run with the default options asks the model; equal ones are asked once."""
    counts: dict[str, dict[str, int]]
    """Samples by the values of each tag."""
    faults: list[str]
    """What can be read, and does not measure what it should."""

    def lines(self) -> list[str]:
        """What is in it, a line for each tag."""
        head = f"{nouns(self.samples, 'samples')} of {nouns(self.groups, 'questions')}"
        asked = f", {nouns(self.requests, 'requests')} with the default options" if self.requests else ""
        return [
            f"{head}{asked}",
            *(
                f"  {tag_name(tag)}: {'; '.join(f'{value} ({count:,})' for value, count in values.items())}"
                for tag, values in self.counts.items()
            ),
        ]


def check(benchmark: str | Path, data: str | Path) -> Checked:
    """Read all of a data set as a run would, and look for what no run would notice. DataError where it cannot
    be read, with the file and the line."""
    loaded, name = load_benchmark(benchmark, {}), benchmark_name(benchmark)
    samples, _ = read_samples(loaded, name, data, None, None)
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sample in samples:
        for tag, value in sample.tags.items():
            counts[tag][str(value)] += 1
    builder = builder_class(type(loaded)) if loaded.builder else None
    files = datasets.find(name, str(data), None, starter=loaded.starter)
    return Checked(
        samples=len(samples),
        groups=len({sample.group for sample in samples}),
        requests=len({request for sample in samples for request in loaded.requests(sample)}),
        counts={tag: dict(values) for tag, values in counts.items() if len(values) <= MOST_VALUES},
        faults=list(builder.faults(files)) if isinstance(builder, FindsFaults) else [],
    )
