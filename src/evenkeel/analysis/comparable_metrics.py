"""By which metrics runs can be compared, and what the runs are called."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from evenkeel.analysis.sample_values import RunValues, split_name, tag_order
from evenkeel.errors import UsageError, suggestion
from evenkeel.harness.folder import Run
from evenkeel.harness.registry import benchmark_class
from evenkeel.page.examples import shortened
from evenkeel.page.layout import Layout
from evenkeel.page.metrics import scope_name
from evenkeel.types import Tag

MOST_ROWS = 50
"""Values of a tag that metrics are broken down by."""


def run_names(runs: Sequence[Run]) -> list[str]:
    """The names of the models, or of the folders where those are not distinct.

    Where neither are, the model with the end of the path: `SmolLM2 (20261116-demo/rgb)`.
    """
    models = [run.spec.subject for run in runs]
    for names in (models, [run.path.name for run in runs]):
        if len(set(names)) == len(runs):
            return names
    ends = path_ends([run.path for run in runs])
    return [f"{model} ({end})" for model, end in zip(models, ends, strict=True)]


def path_ends(paths: Sequence[Path]) -> list[str]:
    """The shortest ends of paths, of as many parts each, that are distinct."""
    parts = [path.resolve().parts[1:] for path in paths]
    for length in range(1, max(map(len, parts), default=0) + 1):
        ends = ["/".join(each[-length:]) for each in parts]
        if len(set(ends)) == len(set(parts)):
            return ends
    return [path.name for path in paths]


def layout_of(runs: Sequence[Run]) -> Layout:
    """The layout of the one benchmark that all runs are of."""
    if len(runs) < 2:
        raise UsageError("compare needs at least two runs.")
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
        main = [scope_name(f.metric, f.scope) for _, f in layout.main_figures(runs[0].summary)]
        names = [layout.headline, *(table.metric for table in whole), *columns, *main]
        return [name for name in dict.fromkeys(names) if name]
    common = [name for name in runs[0].subjects if all(name in run.subjects for run in runs)]
    if common:
        return [f"{layout.headline}@{name}" for name in common]
    if all(len(run.subjects) == 1 for run in runs):
        return [layout.headline]
    names = path_ends([run.path for run in runs])
    listed = "; ".join(f"{name}: {', '.join(run.subjects)}" for name, run in zip(names, runs, strict=True))
    kind = runs[0].subject
    raise UsageError(f"these runs have no {kind} in common. Their {kind}s are: {listed}.")


def broken_down(names: Sequence[str], tags: Sequence[str], values: Sequence[RunValues]) -> list[str]:
    """Each metric by itself, then within each value of the tags that all runs have: `drift/level=2`."""
    if not tags:
        return list(names)
    scopes: list[dict[str, Tag]] = [{}]
    for tag in tags:
        by_run = [{score.tags[tag] for score in run.scores if tag in score.tags} for run in values]
        common = sorted(set.intersection(*by_run), key=tag_order)
        if not 0 < len(common) <= MOST_ROWS:
            available = list(values[0].run.samples().tags)
            raise UsageError(
                f"--by {tag}: the runs have {len(common):,} values of this tag in common. Give one that has "
                f"from 1 to {MOST_ROWS}.{suggestion(tag, available)} Available: {', '.join(available)}."
            )
        scopes += [{tag: value} for value in common]
    metrics = set.union(*(run.metrics for run in values))
    split = [split_name(name, metrics) for name in names]
    return [scope_name(metric, {**scope, **more}) for metric, scope in split for more in scopes]


def comparable(names: Sequence[str], values: Sequence[RunValues], *, explicit: Collection[str]) -> list[str]:
    """The metrics that can be compared sample by sample; those that a person named must be among them.

    A row of a breakdown that has no value in any run is left out.
    """
    common = set.intersection(*(of_run.metrics for of_run in values))
    usable = [
        name
        for name in names
        if split_name(name, common)[0] in common
        and all(of_run.is_mean(name) for of_run in values)
        and any(of_run[name].in_scope.any() for of_run in values)
    ]
    for name in explicit if usable else names:
        if name not in usable:
            tags = values[0].run.samples().tags.items()
            scopes = "; ".join(f"{tag}: {shortened(', '.join(listed))}" for tag, listed in tags)
            raise UsageError(
                f"'{name}' cannot be compared sample by sample: it must be a value that samples of all "
                f"these runs have, and its figure their mean.{suggestion(name, common)} "
                f"Available: {', '.join(sorted(common)) or 'none'}. Tags: {scopes}."
            )
    return usable
