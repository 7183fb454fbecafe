"""Whether runs can be set against each other, and the numbers of their samples by which they are."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import isclose
from typing import NamedTuple

import msgspec

from evenkeel.analysis import scope_name, scope_of
from evenkeel.errors import UsageError
from evenkeel.messages import suggestion
from evenkeel.page.layout import Layout
from evenkeel.page.metrics import Metric, declaration
from evenkeel.run.folder import Run, spec_differences
from evenkeel.run.registry import benchmark_class
from evenkeel.types import Figure, Record, RunSpec, Score, Tag

SEEN_IN_SAMPLES = ("data.", "limit", "seed")
"""Parts of a spec that decide which samples there are and what they ask: judged by the samples themselves."""

MOST_VALUES = 12
"""Of a tag, in a message that lists what there is."""


class Unpairable(UsageError):
    """The runs were asked different things, so that their samples cannot be paired."""


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
    tags: dict[str, list[Tag]]
    """Every tag that samples have, with its values."""
    coverage: dict[str, float]
    """Of each wanted metric whose scope some sample is in: its figure's, or counted over those samples."""
    requests: dict[str, dict[str, tuple[int, int]]]
    """Of each wanted metric by sample in its scope: requests answered (0 where it has no value) and asked."""
    asked_for: dict[str, set[str]]
    """The samples that each wanted metric is about, whether they have a value or not."""
    parts: dict[str, dict[str, str]]
    """Of each wanted macro-average, the part that a sample belongs to."""
    ratios: frozenset[str]
    """The wanted metrics of which each run decides itself which samples count."""


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
    """The metrics that a benchmark shows, its headline first.

    What a table shows row by row alone, without a row for all together, means nothing when pooled.
    """
    whole = [table for table in layout.tables if table.total]
    columns = [column.metric for table in whole for column in table.metrics]
    facts = [column.metric for column in layout.facts]
    names = [layout.headline, *(table.metric for table in whole), *columns, *facts]
    return [name for name in dict.fromkeys(names) if name]


def usual_metrics(layout: Layout, runs: Sequence[Run]) -> list[str]:
    """What runs are compared by where nobody says: all that is shown, or each method that all of them have.

    Runs of one method each are compared by it, whatever it is called.
    """
    if not any(run.methods for run in runs):
        return shown(layout)
    first, *others = (run.methods for run in runs)
    common = [name for name in first if all(name in other for other in others)]
    if common:
        return [f"{layout.headline}@{name}" for name in common]
    if all(len(run.methods) == 1 for run in runs):
        return [layout.headline]
    listed = "; ".join(f"{run.path}: {', '.join(run.methods)}" for run in runs)
    raise UsageError(f"these runs have no method in common. Their methods are: {listed}.")


def check_methods(wanted: Iterable[str], layout: Layout, runs: Sequence[Run]) -> None:
    """Refuse the headline of runs of several methods: whose it would be depends on which came first."""
    methods = list(dict.fromkeys(name for run in runs for name in run.methods))
    several = any(len(run.methods) > 1 for run in runs)
    for name in wanted:
        if several and name.partition("/")[0] == layout.headline:
            choices = ", ".join(f"{layout.headline}@{method}" for method in methods)
            raise UsageError(
                f"'{name}': there are several methods, and each has a figure of its own. Name one: {choices}."
            )


def split_name(name: str, metrics: Iterable[str]) -> tuple[str, dict[str, str]]:
    """The metric and the scope of a name; a metric may have a slash of its own: `accuracy@embed:a/b`."""
    head, slash, scope = name.rpartition("/")
    return (name, {}) if name in metrics or not slash else (head, scope_of(f"/{scope}")[1])


def figure_of(run: Run, name: str) -> Figure | None:
    """The summary's figure of a metric of samples: `accuracy@bm25` is `accuracy/method=bm25` there."""
    metric, _, method = name.partition("@")
    return run.summary.get(name) or run.summary.get(scope_name(metric, {"method": method}))


def read_numbers(run: Run, wanted: Sequence[str], declared: Sequence[Metric]) -> Numbers:
    """The values of the wanted metrics (`mean_similarity`, `mean_similarity/lang=en`), read as a stream.

    What the run itself says is unknown is unknown, and a sample outside the denominator of a ratio has none.
    """
    groups, asked = {}, {}
    values: dict[str, dict[str, float]] = {name: {} for name in wanted}
    asked_for: dict[str, set[str]] = {name: set() for name in wanted}
    declarations = {name: declaration(declared, name) for name in wanted}
    over = {name: metric.mean_over for name, metric in declarations.items() if metric and metric.mean_over}
    ratios = {name: metric.ratio_to for name, metric in declarations.items() if metric and metric.ratio_to}
    parts: dict[str, dict[str, str]] = {name: {} for name in over}
    metrics: set[str] = set()
    tags: defaultdict[str, dict[Tag, None]] = defaultdict(dict)
    requests: defaultdict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
    for record in run.records():
        sample, score = record.sample, record.score
        groups[sample.id] = sample.group
        asked[sample.id] = _digest(record)
        metrics.update(score.values)
        for tag, held in score.tags.items():
            tags[tag][held] = None
        for name in wanted:
            metric, scope = split_name(name, score.values)
            if all(str(score.tags.get(tag)) == wish for tag, wish in scope.items()):
                value = score.values.get(metric)
                known = score.values.get(ratios[name]) if name in ratios else value
                if name in ratios and not known:
                    value = None
                if metric in score.values and (name not in ratios or known is not None):
                    asked_for[name].add(sample.id)
                if name in over:
                    parts[name][sample.id] = str(score.tags.get(over[name]))
                answered, total = _requests(score, metric)
                if value is not None:
                    values[name][sample.id] = value
                if metric in score.values:
                    requests[name][sample.id] = answered if known is not None else 0, total
    coverage = {
        name: figure.coverage if (figure := figure_of(run, name)) else covered(counts.values())
        for name, counts in requests.items()
    }
    for name in wanted:
        if (figure := figure_of(run, name)) is not None and figure.value is None:
            values[name] = {}
    return Numbers(
        groups, asked, values, frozenset(metrics), {tag: list(held) for tag, held in tags.items()}, coverage,
        dict(requests), asked_for, parts, frozenset(ratios),
    )  # fmt: skip


def covered(requests: Iterable[tuple[int, int]]) -> float:
    """Requests answered over requests asked."""
    answered, asked = map(sum, zip((0, 0), *requests, strict=True))
    return answered / asked if asked else 0.0


def _requests(score: Score, metric: str) -> tuple[int, int]:
    """How many requests of a sample were answered and asked; of `accuracy@bm25`, those of that method."""
    whole = (score.answered, sum(score.statuses.values()))
    return score.requests.get(metric.partition("@")[2], whole)


def _digest(record: Record) -> bytes:
    # What the recorded file itself said of the answers is no part of the question.
    inputs = {
        name: value
        for name, value in msgspec.to_builtins(record.sample.inputs).items()
        if name != "published"
    }
    return hashlib.sha256(msgspec.json.encode(inputs, order="deterministic")).digest()


def comparable(
    wanted: Sequence[str], runs: Sequence[Run], numbers: Sequence[Numbers], *, named: bool
) -> list[str]:
    """The metrics that can be compared sample by sample; one that a person named must be among them."""
    common = frozenset.intersection(*(found.metrics for found in numbers))
    kept = [
        name
        for name in wanted
        if split_name(name, common)[0] in common
        and all(_is_mean(run, name, found) for run, found in zip(runs, numbers, strict=True))
    ]
    absent = [name for name in wanted if name not in kept]
    if not kept or (absent and named):
        raise UsageError(
            f"'{absent[0]}' cannot be compared sample by sample: it must be a value that the samples of all "
            f"these runs have, and its figure their mean.{suggestion(absent[0], common)} "
            f"They have: {', '.join(sorted(common)) or 'none'}."
        )
    borne = [name for name in kept if any(name in found.coverage for found in numbers)]
    for name in kept if named or not borne else ():
        if name not in borne:
            raise UsageError(f"'{name}': {_no_such_scope(split_name(name, common)[1], common, numbers)}.")
    return borne


def _no_such_scope(scope: Mapping[str, str], metrics: Iterable[str], numbers: Sequence[Numbers]) -> str:
    """Why no sample of any run is in a scope, in words, with what there is instead."""
    known: dict[str, list[Tag]] = {}
    for found in numbers:
        for tag, values in found.tags.items():
            known[tag] = list(dict.fromkeys([*known.get(tag, ()), *values]))
    for tag, wish in scope.items():
        if tag not in known:
            told = f"their tags are {', '.join(known) or 'none'}, their values {', '.join(sorted(metrics))}"
            return f"no sample of these runs has the tag '{tag}'; {told}"
        if wish not in map(str, known[tag]):
            more = ", …" if len(known[tag]) > MOST_VALUES else ""
            told = ", ".join(map(str, known[tag][:MOST_VALUES]))
            return f"no sample of these runs has {tag}={wish}; {tag} is one of {told}{more}"
    return "no sample of these runs has all of these tags together"


def mean_of(values: Mapping[str, float], parts: Mapping[str, str] | None) -> float | None:
    """The mean of samples' values; of a macro-average, the mean of its parts' means."""
    if not values:
        return None
    sums: defaultdict[str, list[float]] = defaultdict(list)
    for sample, value in values.items():
        sums[parts[sample] if parts else ""].append(value)
    return sum(sum(held) / len(held) for held in sums.values()) / len(sums)


def _is_mean(run: Run, name: str, numbers: Numbers) -> bool:
    """Whether a figure, where the summary has it, is what the samples' values give: anything else cannot be
    compared sample by sample."""
    figure, ours = figure_of(run, name), mean_of(numbers.values[name], numbers.parts.get(name))
    if figure is None or figure.value is None or ours is None:
        return True
    return isclose(figure.value, ours, rel_tol=1e-9, abs_tol=1e-12)


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
            raise Unpairable(
                f"{runs[b].path} was not asked what {runs[a].path} was: {'; '.join(reasons)}. "
                "Compare runs over the same data with the same settings."
            )
        differs += [*([unlike] if unlike else []), *found.values()]
    return list(dict.fromkeys(differs))


def _settings(there: RunSpec, here: RunSpec) -> dict[str, str]:
    """What two specs ask differently, by name, save who is under test: the model, or the methods."""
    subject = ("models.model.",) if "model" in there.models else ("models.", "options.method")
    sentences = ((said.partition(" is ")[0], said) for said in spec_differences(there, here))
    return {name: _readable(said) for name, said in sentences if not name.startswith(subject)}


def _readable(said: str) -> str:
    """The first digits of a digest tell it from others, and nothing is `none` in English."""
    shortened = re.sub(r"\b([0-9a-f]{12})[0-9a-f]{20,}\b", r"\1", said)
    return re.sub(r"\bnull(?= there and | here$)", "none", shortened)


def _unlike(there: Mapping[str, bytes], here: Mapping[str, bytes]) -> str | None:
    common = [sample for sample in there if sample in here]
    if not common:
        return "they have no sample in common"
    other = next((sample for sample in common if there[sample] != here[sample]), None)
    return f"sample {other} does not ask the same" if other is not None else None
