"""By which metrics runs can be compared, and what the runs are called."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import isclose

from evenkeel.analysis.sample_values import RunValues, Values, figure_of, split_name, tag_order
from evenkeel.errors import UsageError, suggestion
from evenkeel.harness.folder import Run
from evenkeel.harness.registry import benchmark_class
from evenkeel.page.layout import Layout
from evenkeel.page.metrics import scope_name
from evenkeel.types import Tag

MOST_ROWS = 50
"""Values of a tag that metrics are broken down by."""
MOST_LISTED = 12
"""Values of a tag in a message."""


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
    paths = [run.path.resolve().parts[1:] for run in runs]
    for length in range(1, max(map(len, paths), default=0) + 1):
        ends = ["/".join(parts[-length:]) for parts in paths]
        if len(set(ends)) == len(set(paths)):
            return ends
    return [run.path.name for run in runs]


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
    names = path_ends(runs)
    listed = "; ".join(f"{name}: {', '.join(run.subjects)}" for name, run in zip(names, runs, strict=True))
    kind = runs[0].subject
    raise UsageError(f"these runs have no {kind} in common. Their {kind}s are: {listed}.")


def broken_down(names: Sequence[str], tags: Sequence[str], runs: Sequence[Run]) -> list[str]:
    """Each metric by itself, then within each value of the tags that all runs have: `drift/level=2`."""
    if not tags:
        return list(names)
    indexed = [run.samples() for run in runs]
    metrics = set().union(*(samples.values for samples in indexed))
    by_run = [
        {tag: {cell for cell in cells if cell is not None} for tag, cells in samples.index.tags.items()}
        for samples in indexed
    ]
    scopes: list[dict[str, Tag]] = [{}]
    for tag in tags:
        if not all(tag in of_run for of_run in by_run):
            available = sorted(set.intersection(*(set(of_run) for of_run in by_run)))
            hint = f"{suggestion(tag, available)} Available: {', '.join(available) or 'none'}."
            raise UsageError(f"--by {tag}: not every run has samples with this tag.{hint}")
        common = sorted(set.intersection(*(of_run[tag] for of_run in by_run)), key=tag_order)
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


def comparable(
    names: Sequence[str], runs: Sequence[Run], values: Sequence[RunValues], *, explicit: Collection[str]
) -> list[str]:
    """The metrics that can be compared sample by sample; those that a person named must be among them.

    A row of a breakdown that has no value in any run is left out.
    """
    common = set.intersection(*(of_run.metrics for of_run in values))
    means = [
        name
        for name in names
        if split_name(name, common)[0] in common
        and all(is_mean(run, name, of_run.by_metric[name]) for run, of_run in zip(runs, values, strict=True))
    ]
    in_scope = [name for name in means if any(of_run.by_metric[name].in_scope.any() for of_run in values)]
    for name in names:
        if name in in_scope or (in_scope and name not in explicit):
            continue
        if name not in means:
            raise UsageError(
                f"'{name}' cannot be compared sample by sample: it must be a value that the samples of all "
                f"these runs have, and its figure their mean.{suggestion(name, common)} "
                f"Available: {', '.join(sorted(common)) or 'none'}."
            )
        listed = (
            f"{tag}: {', '.join(map(str, list(known)[:MOST_LISTED]))}"
            for tag, known in values[0].tags.items()
        )
        raise UsageError(f"'{name}': no sample of these runs has it. Their tags are {'; '.join(listed)}.")
    return in_scope


def is_mean(run: Run, name: str, values: Values) -> bool:
    """Whether a figure, where the summary has it, is the mean of the samples' values."""
    figure, mean = figure_of(run, name), values.mean
    if figure is None or figure.value is None or mean is None:
        return True
    return isclose(figure.value, mean, rel_tol=1e-9, abs_tol=1e-12)
