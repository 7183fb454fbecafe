"""Whether runs can be set against each other, and the numbers of their samples by which they are."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import isclose
from typing import NamedTuple

import msgspec

from evenkeel.benchmarks import benchmark_class
from evenkeel.errors import UsageError
from evenkeel.report.layout import Layout
from evenkeel.stats import scope_of
from evenkeel.store import Run, spec_differences
from evenkeel.types import Record, RunSpec

SEEN_IN_SAMPLES = ("data.", "limit", "seed")
"""Parts of a spec that decide which samples there are and what they ask: judged by the samples themselves."""


class Numbers(NamedTuple):
    """What a comparison needs of a run's records."""

    groups: dict[str, str]
    """By sample."""
    asked: dict[str, bytes]
    """A digest of what each sample asks."""
    values: dict[str, dict[str, float]]
    """Of each wanted metric by sample, where it has one."""
    metrics: frozenset[str]
    """Every metric that samples have, without scopes."""


def layout_of(runs: Sequence[Run]) -> Layout:
    """The layout of the one benchmark that all are runs of."""
    if len(runs) < 2:
        raise UsageError("compare takes two runs or more.")
    if len({run.path.resolve() for run in runs}) < len(runs):
        raise UsageError("the same run is given twice.")
    benchmarks = list(dict.fromkeys(run.spec.benchmark for run in runs))
    if len(benchmarks) > 1:
        raise UsageError(
            f"runs of {' and '.join(benchmarks)} cannot be compared: give runs of one benchmark."
        )
    layout: Layout = benchmark_class(benchmarks[0]).layout
    return layout


def shown(layout: Layout) -> list[str]:
    """The metrics that a benchmark shows, its headline first."""
    columns = [column.metric for table in layout.tables for column in table.metrics]
    facts = [column.metric for column in layout.facts]
    names = [layout.headline, *(table.metric for table in layout.tables), *columns, *facts]
    return [name for name in dict.fromkeys(names) if name]


def read_numbers(run: Run, wanted: Sequence[str]) -> Numbers:
    """The values of the wanted metrics (`mean_similarity`, `mean_similarity/lang=en`), read as a stream."""
    scopes = {name: scope_of(name) for name in wanted}
    groups, asked = {}, {}
    values: dict[str, dict[str, float]] = {name: {} for name in wanted}
    metrics: set[str] = set()
    for record in run.records():
        sample, score = record.sample, record.score
        groups[sample.id] = sample.group
        asked[sample.id] = _digest(record)
        metrics.update(score.values)
        for name, (metric, scope) in scopes.items():
            value = score.values.get(metric)
            if value is not None and all(str(score.tags.get(tag)) == wish for tag, wish in scope.items()):
                values[name][sample.id] = value
    return Numbers(groups, asked, values, frozenset(metrics))


def _digest(record: Record) -> bytes:
    # What the recorded file itself said of the answers is no part of the question.
    inputs = {name: value for name, value in record.sample.inputs.items() if name != "published"}
    return hashlib.sha256(msgspec.json.encode(inputs, order="deterministic")).digest()


def comparable(
    wanted: Sequence[str], runs: Sequence[Run], numbers: Sequence[Numbers], *, named: bool
) -> list[str]:
    """The metrics that can be compared sample by sample; one that a person named must be among them."""
    common = frozenset.intersection(*(found.metrics for found in numbers))
    kept = [
        name
        for name in wanted
        if scope_of(name)[0] in common
        and all(_is_mean(run, name, found.values[name]) for run, found in zip(runs, numbers, strict=True))
    ]
    absent = [name for name in wanted if name not in kept]
    if not kept or (absent and named):
        raise UsageError(
            f"'{absent[0]}' cannot be compared sample by sample: it must be a value that the samples of all "
            f"these runs have, and its figure their mean. They have: {', '.join(sorted(common)) or 'none'}."
        )
    return kept


def _is_mean(run: Run, name: str, values: Mapping[str, float]) -> bool:
    """Whether a figure, where the summary has it, is the mean of the samples' values: a ratio is not."""
    figure = run.summary.get(name)
    if figure is None or figure.value is None or not values:
        return True
    return isclose(figure.value, sum(values.values()) / len(values), rel_tol=1e-9, abs_tol=1e-12)


def differing(runs: Sequence[Run], numbers: Sequence[Numbers], *, paired: bool) -> list[str]:
    """What was asked otherwise of one run than of another, in words; refused where they are to be paired.

    Settings must be equal. Whether the data are is seen in the samples: those that both runs have must ask
    the same, wherever they came from and however many others there are.
    """
    differs: list[str] = []
    for a, b in combinations(range(len(runs)), 2):
        found = _settings(runs[a].spec, runs[b].spec)
        reasons = [said for name, said in found.items() if not name.startswith(SEEN_IN_SAMPLES)]
        if unlike := _unlike(numbers[a].asked, numbers[b].asked):
            reasons = [unlike, *found.values()]
        if paired and reasons:
            raise UsageError(
                f"{runs[b].path} was not asked what {runs[a].path} was: {'; '.join(reasons)}. "
                "Compare runs over the same data with the same settings, or take them as unrelated samples "
                "(--unpaired)."
            )
        differs += [*([unlike] if unlike else []), *found.values()]
    return list(dict.fromkeys(differs))


def _settings(there: RunSpec, here: RunSpec) -> dict[str, str]:
    """What two specs ask differently, by name, save who is under test: the model, or the methods."""
    subject = ("models.model.",) if "model" in there.models else ("models.", "options.method")
    sentences = ((said.partition(" is ")[0], said) for said in spec_differences(there, here))
    return {name: said for name, said in sentences if not name.startswith(subject)}


def _unlike(there: Mapping[str, bytes], here: Mapping[str, bytes]) -> str | None:
    common = [sample for sample in there if sample in here]
    if not common:
        return "they have no sample in common"
    other = next((sample for sample in common if there[sample] != here[sample]), None)
    return f"sample {other} does not ask the same" if other is not None else None
