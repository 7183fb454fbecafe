"""Results of other harnesses as runs that can be compared: in memory, without a folder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta, Struct

from sealegs.analysis.combined import interval as combined_interval
from sealegs.analysis.combined import macro_terms
from sealegs.analysis.figures import figure
from sealegs.analysis.intervals import interval_of
from sealegs.analysis.links import numbered
from sealegs.errors import UsageError, listed
from sealegs.files.others.reading import has_other_results, read_other_results
from sealegs.files.others.values import OtherResults, OtherSample
from sealegs.files.record_index import Index, index_of
from sealegs.harness.benchmark import Benchmark
from sealegs.harness.folder import Run
from sealegs.harness.folder.run import Figures
from sealegs.harness.folder.spec import FORMAT
from sealegs.harness.registry import benchmark_class, benchmark_names
from sealegs.options import ASKING
from sealegs.page.layout import Layout
from sealegs.page.metrics import Better, Metric, declaration
from sealegs.types import Figure, Record, RunSpec, Sample, Score, Unit


class Others(Benchmark):
    """Results of another harness"""

    class Options(Struct, frozen=True):
        task: Annotated[str, Meta(description="The task, as the harness calls it.")] = ""
        arguments: Annotated[str, Meta(description="Its arguments.", extra=ASKING)] = ""

    metrics = (Metric("score", "score", "share", "higher"),)
    layout = Layout(metrics=metrics, question="results of another harness", counted=("samples", "groups"))


class OtherRun(Run):
    """Results that were read from a file of another harness."""

    def __init__(self, results: OtherResults, metrics: tuple[Metric, ...]) -> None:
        self.path, self.problems = results.path, results.notes
        self._samples = list(results.samples.values())
        tasks = results.tasks
        name = tasks[0] if len(tasks) == 1 else f"{len(tasks)} tasks"
        self.spec = RunSpec(
            format=FORMAT, benchmark=f"{results.harness}:{name}".rstrip(":"), seed=0, limit=None,
            options={"task": ", ".join(tasks), "arguments": results.arguments},
            models={"model": {"name": results.model, "spec": results.model, "identity": {}}},
            data={"source": results.harness}, provenance={"created": results.created},
            subjects=(results.model,),
        )  # fmt: skip
        self.layout = Layout(metrics=metrics, question=Others.layout.question, counted=Others.layout.counted)
        scores = [_score(each) for each in self._samples]
        self.summary = Figures({metric.name: _figure(scores, metric) for metric in metrics})

    @cached_property
    def columns(self) -> Index:
        return index_of(self.path, map(_record, self._samples))

    def inputs(self, rows: Sequence[int]) -> list[dict[str, str]]:
        return [{"asked": self._samples[row].asked} for row in rows]


def load_results(*sources: Run | str | Path, better: Better | None = None, single: bool = False) -> list[Run]:
    """Runs from their folders, and results of other harnesses from their files.

    A file may have those of several models; where one is wanted from each (`single`), it is chosen by
    FILE::MODEL. A metric has the same unit in all of them: a share where every value is between 0 and 1.
    `better` is the direction of metrics that no file states one of.
    """
    loaded: list[Run | OtherResults] = []
    for source in sources:
        if isinstance(source, Run):
            loaded.append(source)
        elif _is_run(Path(source)):
            loaded.append(Run(source))
        else:
            results = read_other_results(Path(source))
            if single and len(results) > 1:
                models = listed(str(each.path) for each in results)
                raise UsageError(f"{source} has the results of several models. Give one of: {models}.")
            loaded += results
    others = [each for each in loaded if isinstance(each, OtherResults)]
    units = {name: _unit(name, others) for each in others for name in each.metrics}
    return [
        each
        if isinstance(each, Run)
        else OtherRun(each, tuple(_metric(name, unit, each, better) for name, unit in units.items()))
        for each in loaded
    ]


def _is_run(path: Path) -> bool:
    """A folder is a run's, unless it has no spec and holds what another harness wrote."""
    return path.is_dir() and ((path / "spec.json").exists() or not has_other_results(path))


def _unit(name: str, results: Sequence[OtherResults]) -> Unit:
    values = [v for each in results for s in each.samples.values() for v in s.values.get(name, ())]
    return "share" if all(value is None or 0 <= value <= 1 for value in values) else "value"


def _metric(name: str, unit: Unit, results: OtherResults, better: Better | None) -> Metric:
    """What is known of a metric; the benchmark that Inspect ran declares its own."""
    if results.declared_by in benchmark_names():
        declared = declaration(benchmark_class(results.declared_by).metrics, name.partition("-at-")[0])
        if declared is not None:
            return Metric(name, name, declared.unit, declared.better, main=True, within_sample=True)
    samples = [sample for sample in results.samples.values() if name in sample.values]
    if (higher := results.higher_is_better.get(name)) is not None:
        better = "higher" if higher else "lower"
    return Metric(
        name, name, unit, better,
        main=True,
        within_sample=any(value not in (0, 1, None) for each in samples for value in [_mean(each, name)]),
        mean_over="task" if len({sample.task for sample in samples}) > 1 else "",
    )  # fmt: skip


def _mean(sample: OtherSample, name: str) -> float | None:
    """The mean over the times that a sample was answered and scored."""
    known = [value for value in sample.values[name] if value is not None]
    return sum(known) / len(known) if known else None


def _score(sample: OtherSample) -> Score:
    counts = {"ok": sample.ok, "error": sample.failed}
    return Score(
        sample_id=sample.id, group=sample.group, tags={"task": sample.task} if sample.task else {},
        values={name: _mean(sample, name) for name in sample.values},
        statuses={status: count for status, count in counts.items() if count}, answered=sample.ok,
    )  # fmt: skip


def _record(sample: OtherSample) -> Record[msgspec.Raw]:
    score, asked = _score(sample), msgspec.Raw(msgspec.json.encode(sample.asked))
    stored = Sample(id=sample.id, group=sample.group, tags=score.tags, inputs=asked)
    return Record(sample=stored, answers=(), score=score)


def _figure(scores: Sequence[Score], metric: Metric) -> Figure:
    """The mean of a metric; of several tasks, the mean of their means."""
    members = [score for score in scores if metric.name in score.values]
    scored = [score for score in members if score.values[metric.name] is not None]
    values = [value for score in scored if (value := score.values[metric.name]) is not None]
    groups = [score.group for score in scored]
    if metric.mean_over and values:
        terms = macro_terms(values, groups, [score.tags["task"] for score in scored])
        interval = combined_interval(terms, metric.unit)
    else:
        interval = interval_of(np.array(values, dtype=float), numbered(groups)[0], metric.unit)
    made = figure(members, metric.name, interval, unit=metric.unit)
    return msgspec.structs.replace(made, metric=metric.name)
