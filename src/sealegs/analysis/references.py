"""Results to read a figure beside: published ones, each with its source and date, and a user's own runs.

They are for orientation: the prompts, the data or the date may differ, so they are not tested against a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sealegs.errors import UsageError
from sealegs.files.datasets import published_results
from sealegs.files.jsonfile import read_json
from sealegs.harness.folder import Run
from sealegs.harness.registry import benchmark_class, benchmark_names
from sealegs.harness.stored.listing import run_folders
from sealegs.page.format import interval, value
from sealegs.page.grid import Cell, Content, Grid
from sealegs.page.metrics import scope_of, unit_of
from sealegs.page.scale import ReferenceMark, source_link
from sealegs.types import Figure, Summary

FILE = Path(__file__).with_name("references.json")
ORIENTATION = "For orientation: published results, on other prompts or dates."


class Reference(Struct, frozen=True, kw_only=True):
    """A result of a model, or of a method, elsewhere."""

    benchmark: str
    name: str
    about: str
    """On which data."""
    source: str
    date: str
    """When it was read, or of a user's own run, when that was created."""
    figures: Summary
    """By the names that a run's summary has."""
    published: bool = True
    only_beside: dict[str, str] = {}
    """Tags: all of it is shown beside runs whose samples all have these; beside runs of which only some do,
    the figures that name the tag."""


@cache
def published_references() -> tuple[Reference, ...]:
    """Those of the package; of benchmarks that are not installed, none."""
    return tuple(_published(**line) for line in read_json(FILE, list[dict[str, Any]]))


@cache
def fetched_references(benchmark: str) -> tuple[Reference, ...]:
    """The results of models that came with `sealegs data fetch`."""
    listed = []
    for path, source, lang in published_results(benchmark):
        recordings = benchmark_class(benchmark).recordings
        if recordings is None or recordings.published_result is None:
            continue
        name, figures = recordings.published_result(path)
        read = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC).date().isoformat()
        listed.append(
            Reference(
                benchmark=benchmark, name=name, about=path.name, source=source, date=read, figures=figures,
                only_beside={"lang": lang},
            )
        )  # fmt: skip
    return tuple(listed)


def references(benchmark: str, own: Iterable[Run] = (), beside: Iterable[Run] = ()) -> list[Reference]:
    """The references of a benchmark: a user's own runs first, then those published ones that may be shown
    beside some runs."""
    runs = [run for run in own if run.spec.benchmark == benchmark]
    scopes = [figure.scope for run in beside for figure in run.summary.values()]
    published = [each for each in published_references() if each.benchmark == benchmark]
    shown = (_beside(each, scopes) for each in (*published, *fetched_references(benchmark)))
    return [
        *(reference for run in runs for reference in _of_run(run)),
        *(each for each in shown if each.figures),
    ]


def _beside(reference: Reference, scopes: Sequence[Mapping[str, str]]) -> Reference:
    """What of a reference may be shown beside runs that have figures of these scopes."""
    figures = reference.figures
    for tag, only in reference.only_beside.items():
        values = {scope[tag] for scope in scopes if tag in scope}
        if not values <= {only}:
            figures = {
                name: figure
                for name, figure in figures.items()
                if only in values and figure.scope.get(tag) == only
            }
    return replace(reference, figures=figures)


def reference_runs(folders: Sequence[str | Path]) -> list[Run]:
    """The runs that `--reference` names: each is a run's folder, or one with runs below it, as a suite's."""
    runs = []
    for folder in folders:
        paths = sorted(run_folders(Path(folder)))
        if not paths:
            raise UsageError(f"--reference {folder}: there is no run in this folder.")
        runs += [Run(path) for path in paths]
    return runs


def reference_marks(
    benchmark: str, metric: str, own: Iterable[Run] = (), beside: Iterable[Run] = ()
) -> tuple[ReferenceMark, ...]:
    """What a benchmark's references have of a metric."""
    return tuple(
        ReferenceMark(figure.value, each.name, "published", each.about, each.source)
        if each.published
        else ReferenceMark(figure.value, each.name, "own")
        for each in references(benchmark, own, beside)
        if (figure := each.figures.get(metric)) and figure.value is not None
    )


def orientation_table(listed: Sequence[Reference], metric: str, title: str) -> Grid | None:
    """A row for each reference that has the metric; None where none has."""
    rows: list[tuple[str, list[Content]]] = []
    for each in listed:
        if figure := each.figures.get(metric):
            name, address = source_link(each.source)
            source = Cell(f"{name} ({each.date})", link=address)
            rows.append((each.name, [value(figure), interval(figure) or figure.reason, each.about, source]))
    columns = [title, "95% interval", "data", "source"]
    return Grid(ORIENTATION, "reference", columns, rows, left=5) if rows else None


def _published(benchmark: str, figures: dict[str, dict[str, Any]], **about: Any) -> Reference:
    metrics = benchmark_class(benchmark).metrics if benchmark in benchmark_names() else ()
    summary: Summary = {}
    for name, numbers in figures.items() if metrics else ():
        metric, scope = scope_of(name)
        known = numbers.get("low") is not None
        method, reason = ("published", "") if known else ("", "published without one")
        summary[name] = Figure(
            **numbers, method=method, reason=reason, clusters=numbers["n"], coverage=1.0, statuses={},
            unit=unit_of(metrics, name), metric=metric, scope=scope,
        )  # fmt: skip
    return Reference(benchmark=benchmark, figures=summary, **about)


def _of_run(run: Run) -> list[Reference]:
    """The run as a reference, or each of its methods."""
    created = str(run.spec.provenance.get("created", ""))[:10]
    return [
        Reference(
            benchmark=run.spec.benchmark,
            name=subject,
            about="your reference run",
            source=str(run.path),
            date=created,
            figures=_figures_of(run, subject) if run.subjects else run.summary,
            published=False,
        )
        for subject in run.spec.subjects
    ]


def _figures_of(run: Run, subject: str) -> Summary:
    """What a method has over all samples, by metric."""
    scope = {run.subject: subject}
    return {figure.metric: figure for figure in run.summary.values() if figure.scope == scope}
