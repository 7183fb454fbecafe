"""The metrics by which runs can be compared, and the values of their samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from math import isclose
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from evenkeel.analysis.links import Group, group_of, independent_groups
from evenkeel.errors import DataError, UsageError, suggestion
from evenkeel.files.jsonfile import NOT_JSON, convert, decode
from evenkeel.harness.folder import Run
from evenkeel.harness.registry import benchmark_class
from evenkeel.page.layout import Layout
from evenkeel.page.metrics import Metric, declaration, scope_name, scope_of
from evenkeel.types import MIXED, Figure, Sample, Score, Tag

MOST_ROWS = 50
"""Values of a tag that metrics are broken down by."""
MOST_VALUES = 12
"""Of a tag, in a message that lists those available."""


class MetricValues(Struct):
    """One metric of a run's samples, within its scope."""

    groups: dict[str, Group]
    """By sample."""
    ratio: bool
    """Whether each run decides itself which samples count."""
    parts: dict[str, str] | None
    """Of a macro-average: the part that each sample belongs to."""
    values: dict[str, float] = {}
    """By sample, where it has one."""
    requests: dict[str, tuple[int, int]] = {}
    """By sample: requests answered (0 where it has no value) and requests asked."""
    samples: set[str] = set()
    """Those that the metric is about, whether they have a value or not."""
    coverage: float | None = None
    """Of its figure, or counted over the samples; None where no sample is in the scope."""

    def by_part(self) -> dict[str, list[str]]:
        """The samples with a value by their part; all are one part where there are no parts."""
        by_part: defaultdict[str, list[str]] = defaultdict(list)
        for sample in self.values:
            by_part[self.parts[sample] if self.parts is not None else ""].append(sample)
        return by_part

    def without(self, samples: Collection[str]) -> MetricValues:
        """The same without some samples."""
        if not samples:
            return self
        return msgspec.structs.replace(
            self,
            values={sample: value for sample, value in self.values.items() if sample not in samples},
            requests={sample: each for sample, each in self.requests.items() if sample not in samples},
            samples=self.samples.difference(samples),
        )

    def leave_out(self, sample: str) -> None:
        self.values.pop(sample, None)
        self.requests.pop(sample, None)
        self.samples.discard(sample)

    @property
    def mean(self) -> float | None:
        """The mean of the samples' values; of a macro-average, the mean of its parts' means."""
        parts = self.by_part().values()
        means = [sum(self.values[sample] for sample in samples) / len(samples) for samples in parts]
        return sum(means) / len(means) if means else None

    @property
    def clusters(self) -> int:
        return independent_groups(self.groups[sample] for sample in self.values)

    @property
    def complete(self) -> bool:
        """Whether every part has a value."""
        parts = self.parts
        return parts is None or set(self.by_part()) == {parts[sample] for sample in self.samples}


class RunValues(Struct):
    """What a comparison needs of a run's records."""

    groups: dict[str, Group] = {}
    """By sample."""
    asked: dict[str, Any] = {}
    """What each sample asks, made short."""
    families: dict[str, tuple[str, Tag]] = {}
    """The group of each sample in its language."""
    lowest: defaultdict[str, dict[tuple[str, Tag], Tag]] = msgspec.field(
        default_factory=lambda: defaultdict(dict)
    )
    """The lowest value of a tag in each of them, for tags by which metrics compare samples."""
    metrics: set[str] = set()
    """Every metric that samples have, without scopes."""
    tags: defaultdict[str, dict[Tag, None]] = msgspec.field(default_factory=lambda: defaultdict(dict))
    """Every tag that samples have, with its values."""
    by_metric: dict[str, MetricValues] = {}
    """The metrics to compare."""


def run_names(runs: Sequence[Run]) -> list[str]:
    """The names of the models, or of the folders where those are not distinct.

    Where neither are, the model with the end of the path: `SmolLM2 (20261116-demo/rgb)`.
    """
    models = [run.spec.subject for run in runs]
    for names in (models, [run.path.name for run in runs]):
        if len(set(names)) == len(runs):
            return names
    return [f"{model} ({end})" for model, end in zip(models, path_ends(runs), strict=True)]


def path_ends(runs: Sequence[Run]) -> list[str]:
    """The shortest ends of the runs' paths, of as many parts each, that are distinct."""
    parts = [run.path.resolve().parts[1:] for run in runs]
    for length in range(1, max(map(len, parts), default=0) + 1):
        ends = ["/".join(each[-length:]) for each in parts]
        if len(set(ends)) == len(set(parts)):
            return ends
    return [run.path.name for run in runs]


def layout_of(runs: Sequence[Run]) -> Layout:
    """The layout of the one benchmark that all runs are of."""
    if len(runs) < 2:
        raise UsageError("compare takes two runs or more.")
    if len({run.path.resolve() for run in runs}) < len(runs):
        raise UsageError("the same run is given twice.")
    benchmarks = list(dict.fromkeys(run.spec.benchmark for run in runs))
    if len(benchmarks) > 1:
        raise UsageError(
            f"runs of {' and '.join(benchmarks)} cannot be compared: give runs of one benchmark."
        )
    return benchmark_class(runs[0].spec.benchmark).layout


def usual_metrics(layout: Layout, runs: Sequence[Run]) -> list[str]:
    """The metrics of a comparison that names none: all that are shown, or each subject that all runs have.

    Runs of one subject each are compared by it, whatever it is called. What a table shows row by row, without
    a row for all together, means nothing when pooled.
    """
    if not any(run.subjects for run in runs):
        whole = [table for table in layout.tables if table.total]
        columns = [column.metric for table in whole for column in table.metrics]
        facts = [column.metric for column in layout.facts]
        names = [layout.headline, *(table.metric for table in whole), *columns, *facts]
        return [name for name in dict.fromkeys(names) if name]
    common = [name for name in runs[0].subjects if all(name in run.subjects for run in runs)]
    if common:
        return [f"{layout.headline}@{name}" for name in common]
    if all(len(run.subjects) == 1 for run in runs):
        return [layout.headline]
    names = path_ends(runs)
    listed = "; ".join(f"{name}: {', '.join(run.subjects)}" for name, run in zip(names, runs, strict=True))
    kind = runs[0].subject
    raise UsageError(f"these runs have no {kind} in common. Their {kind}s are: {listed}.")


def broken_down(names: Sequence[str], tags: Sequence[str], runs: Sequence[Run]) -> list[str]:
    """Each metric by itself, then within each value of the tags that all runs have: `drift/level=2`."""
    if not tags:
        return list(names)
    metrics: set[str] = set()
    by_run: list[defaultdict[str, set[Tag]]] = []
    for run in runs:
        by_run.append(defaultdict(set))
        for record in run.scores():
            metrics.update(record.score.values)
            for tag, value in record.score.tags.items():
                by_run[-1][tag].add(value)
    scopes: list[dict[str, Tag]] = [{}]
    for tag in tags:
        if not all(tag in of_run for of_run in by_run):
            available = sorted(set.intersection(*(set(of_run) for of_run in by_run)))
            hint = f"{suggestion(tag, available)} Available: {', '.join(available) or 'none'}."
            raise UsageError(f"--by {tag}: not every run has samples with this tag.{hint}")
        common = sorted(set.intersection(*(of_run[tag] for of_run in by_run)), key=_order)
        if not 0 < len(common) <= MOST_ROWS:
            raise UsageError(
                f"--by {tag}: the runs have {len(common):,} values of it in common. Give a tag that has from "
                f"1 to {MOST_ROWS}, or a scope: --metric {names[0]}/{tag}=VALUE."
            )
        scopes += [{tag: value} for value in common]
    split = [split_name(name, metrics) for name in names]
    return [scope_name(metric, {**scope, **more}) for metric, scope in split for more in scopes]


def check_subjects(names: Iterable[str], layout: Layout, runs: Sequence[Run]) -> None:
    """Refuse the headline of runs of several subjects: each has its own figure."""
    if all(len(run.subjects) <= 1 for run in runs):
        return
    subjects = dict.fromkeys(name for run in runs for name in run.subjects)
    for name in names:
        if name.partition("/")[0] == layout.headline:
            available = ", ".join(f"{layout.headline}@{subject}" for subject in subjects)
            raise UsageError(
                f"'{name}': there are several {runs[0].subject}s, each with its own figure. "
                f"Give one of: {available}."
            )


def split_name(name: str, metrics: Iterable[str]) -> tuple[str, dict[str, str]]:
    """The metric and the scope of a name; a metric may itself have a slash: `accuracy@embed:a/b`."""
    head, slash, scope = name.rpartition("/")
    return (name, {}) if name in metrics or not slash else (head, scope_of(f"/{scope}")[1])


def figure_of(run: Run, name: str) -> Figure | None:
    """The summary's figure of a metric of samples: `accuracy@bm25` is `accuracy/method=bm25` there."""
    metric, _, subject = name.partition("@")
    return run.summary.get(name) or run.summary.get(scope_name(metric, {run.subject: subject}))


def read_values(
    run: Run, names: Sequence[str], declared: Sequence[Metric], asked: dict[bytes, Any] | None = None
) -> RunValues:
    """The values of some metrics (`mean_similarity`, `mean_similarity/lang=en`), read as a stream.

    A figure that the run gives as unknown is unknown here too, and a sample outside the denominator of a
    ratio has no value. `asked` has what samples ask by the digest of their inputs: runs of the same samples
    that share it work that out once.
    """
    run_values = RunValues()
    benchmark = benchmark_class(run.spec.benchmark)
    declarations = {name: declaration(declared, name) for name in names}
    against = {metric.against for metric in declarations.values() if metric and metric.against}
    for name, metric in declarations.items():
        run_values.by_metric[name] = MetricValues(
            groups=run_values.groups,
            ratio=bool(metric and metric.ratio_to),
            parts={} if metric and metric.mean_over else None,
        )
    asked = {} if asked is None else asked
    decode_inputs = msgspec.json.Decoder(benchmark.Inputs).decode
    for record in run.scores():
        sample, score = record.sample, record.score
        run_values.groups[sample.id] = group_of(score)
        digest = sha256(sample.inputs).digest()
        if digest not in asked:
            try:
                inputs = decode_inputs(sample.inputs)
            except NOT_JSON:  # described by what is wrong where
                inputs = _inputs(run.path / "records.jsonl", sample, benchmark.Inputs)
            asked[digest] = benchmark.asked(inputs)
        run_values.asked[sample.id] = asked[digest]
        family = run_values.families[sample.id] = (sample.group, sample.tags.get("lang", ""))
        for tag in against:
            value = sample.tags.get(tag)
            lowest = run_values.lowest[tag]
            if value is not None:
                lowest[family] = min(lowest.get(family, value), value, key=_order)
        run_values.metrics.update(score.values)
        for tag, value in score.tags.items():
            run_values.tags[tag][value] = None
        for name, metric in declarations.items():
            _add(run_values.by_metric[name], name, metric, sample.id, score)
    for name, each in run_values.by_metric.items():
        figure = figure_of(run, name)
        if figure is not None and figure.value is None:
            each.values = {}
        if each.requests:
            each.coverage = figure.coverage if figure else covered(each.requests.values())
    return run_values


def _inputs(path: Path, sample: Sample[msgspec.Raw], kind: Any) -> Any:
    """The inputs of a sample, decoded; an error names the sample."""
    try:
        return convert(path, decode(bytes(sample.inputs)), kind)
    except NOT_JSON:
        raise DataError(path, "its inputs are not JSON.", where=f"sample '{sample.id}'") from None


def _order(value: Tag) -> tuple[bool, Tag]:
    """Numbers before texts, each in their own order."""
    return isinstance(value, str), value


def _add(metric_values: MetricValues, name: str, declared: Metric | None, sample: str, score: Score) -> None:
    """Add one sample to a metric, if it is in the scope."""
    metric = name
    if name not in score.values:
        metric, scope = split_name(name, score.values)
        if any(str(score.tags.get(tag)) != value for tag, value in scope.items()):
            return
    if declared and declared.mean_over and metric_values.parts is not None:
        metric_values.parts[sample] = str(score.tags.get(declared.mean_over))
    if metric not in score.values:
        return
    value = score.values[metric]
    known = value
    if declared and declared.ratio_to:
        known = score.values.get(declared.ratio_to)
        value = value if known else None
    if value is not None:
        metric_values.values[sample] = value
    if known is not None or not metric_values.ratio:
        metric_values.samples.add(sample)
    answered, total = _requests(score, metric)
    metric_values.requests[sample] = answered if known is not None else 0, total


def covered(requests: Iterable[tuple[int, int]]) -> float:
    """Requests answered over requests asked."""
    answered, total = map(sum, zip((0, 0), *requests, strict=True))
    return answered / total if total else 0.0


def _requests(score: Score, metric: str) -> tuple[int, int]:
    """How many requests of a sample were answered and asked; of `accuracy@bm25`, those of that subject."""
    if score.requests and (subject := metric.partition("@")[2]) in score.requests:
        return score.requests[subject]
    return score.answered, sum(score.statuses.values())


def comparable(
    names: Sequence[str], runs: Sequence[Run], values: Sequence[RunValues], *, explicit: Collection[str]
) -> list[str]:
    """The metrics that can be compared sample by sample; those that a person named must be among them.

    A row of a breakdown that has no value in any run is left out.
    """
    common = set.intersection(*(each.metrics for each in values))
    means = [
        name
        for name in names
        if split_name(name, common)[0] in common
        and all(_is_mean(run, name, each.by_metric[name]) for run, each in zip(runs, values, strict=True))
    ]
    unlike = {
        name: bases
        for name in means
        if len(bases := _bases(name, runs)) > 1 or any(basis.startswith(MIXED) for basis in bases)
    }
    for name, bases in unlike.items() if explicit else ():
        raise UsageError(f"'{name}' cannot be compared, its figures differ in kind: {'; '.join(bases)}.")
    means = [name for name in means if name not in unlike]
    absent = [name for name in names if name not in means]
    absent = [name for name in absent if name in explicit] or ([] if means else absent)
    if absent:
        raise UsageError(
            f"'{absent[0]}' cannot be compared sample by sample: it must be a value that the samples of all "
            f"these runs have, and its figure their mean.{suggestion(absent[0], common)} "
            f"Available: {', '.join(sorted(common)) or 'none'}."
        )
    in_scope = [name for name in means if any(each.by_metric[name].requests for each in values)]
    for name in means:
        if name not in in_scope and (name in explicit or not in_scope):
            raise UsageError(f"'{name}': {_empty_scope(split_name(name, common)[1], common, values)}.")
    return in_scope


def _bases(name: str, runs: Iterable[Run]) -> list[str]:
    """What the figures of a name depend on beside the scores, each once."""
    figures = (figure_of(run, name) for run in runs)
    return list(dict.fromkeys(figure.basis for figure in figures if figure is not None))


def _empty_scope(scope: Mapping[str, str], metrics: Iterable[str], values: Sequence[RunValues]) -> str:
    """Why no sample of any run is in a scope, and what is available."""
    tags: dict[str, list[str]] = {}
    for each in values:
        for tag, tag_values in each.tags.items():
            tags[tag] = list(dict.fromkeys([*tags.get(tag, ()), *map(str, tag_values)]))
    for tag, value in scope.items():
        if tag not in tags:
            available = f"{', '.join(tags) or 'none'}, their values {', '.join(sorted(metrics))}"
            return f"no sample of these runs has the tag '{tag}'; their tags are {available}"
        if value not in tags[tag]:
            more = ", …" if len(tags[tag]) > MOST_VALUES else ""
            available = ", ".join(tags[tag][:MOST_VALUES])
            return f"no sample of these runs has {tag}={value}; {tag} is one of {available}{more}"
    return "no sample of these runs with these tags has a value of it"


def _is_mean(run: Run, name: str, values: MetricValues) -> bool:
    """Whether a figure, where the summary has it, is the mean of the samples' values.

    What depends on more than the scores has a mean only where the summary gives it.
    """
    figure, mean = figure_of(run, name), values.mean
    if figure is None:
        whole = figure_of(run, name.rpartition("/")[0])
        return whole is None or not whole.basis
    if figure.value is None or mean is None:
        return True
    return isclose(figure.value, mean, rel_tol=1e-9, abs_tol=1e-12)
