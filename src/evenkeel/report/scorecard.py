"""A model's runs of several benchmarks side by side: each with its own figures, and no overall score.

Computed first, then drawn: as tables for the terminal and for notebooks, and as a page.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from evenkeel.analysis.comparable_metrics import run_names
from evenkeel.errors import UsageError
from evenkeel.files.cache import write_whole
from evenkeel.harness.folder import Run, served_at
from evenkeel.harness.registry import benchmark_class, benchmark_names
from evenkeel.page.format import chance, counted, counts, statuses
from evenkeel.page.grid import Cell, Content, Displayed, Grid, Overview, coverage_cell
from evenkeel.page.html import render as render_template
from evenkeel.page.layout import MOST_MAIN
from evenkeel.page.metrics import scope_name
from evenkeel.types import Figure

LEAD = "Benchmarks measure different things: there is no overall score. 95% intervals are in brackets."


class Line(Struct, frozen=True, kw_only=True):
    """A figure and its title."""

    metric: str
    title: str
    figure: Figure


class Entry(Struct, frozen=True, kw_only=True):
    """A run on the card, or one method of it: its headline, and its benchmark's further figures."""

    benchmark: str
    name: str
    """What distinguishes it from the other entries of its benchmark: its model, method, folder or path."""
    subject: str
    path: str
    created: str
    headline: Line
    facts: list[Line]


class Scorecard(Displayed, Struct, frozen=True, kw_only=True):
    """Runs in the order of the benchmarks, those of one benchmark next to each other."""

    model: str
    """The one model under test; empty where there are several, or none."""
    entries: list[Entry]
    notes: list[str]

    @property
    def title(self) -> str:
        return f"Scorecard of {self.model or counted(len(self.entries), 'runs')}"

    def overview(self) -> Overview:
        """The tables, and which runs they are of."""
        runs = {entry.path: entry for entry in self.entries}
        return Overview(
            self.title,
            [LEAD, *(Cell(note, "note") for note in self.notes)],
            [_table(members) for members in _by_benchmark(self.entries)],
            [f"{entry.created[:10]}  {entry.benchmark:<9}  {path}" for path, entry in runs.items()],
        )


def scorecard(runs: Sequence[Run | str | Path], *, out: str | Path | None = None) -> Scorecard:
    """Put runs on one card, and with `out` on a page. All must be of one model.

    The methods of a benchmark that compares methods are side by side.

    `ek.scorecard(["runs/mirae", "runs/rgb"], out="scorecard.html").entries[0].headline`
    """
    if isinstance(runs, Run | str | Path):
        raise UsageError("scorecard takes a list of runs: scorecard([run, …]).")
    card = _card([run if isinstance(run, Run) else Run(run) for run in runs])
    if out is not None:
        write_whole(Path(out), render(card, Path(out)))
    return card


def _card(runs: Sequence[Run]) -> Scorecard:
    runs = list({run.path.resolve(): run for run in runs}.values())
    if not runs:
        raise UsageError("scorecard needs at least one run.")
    models = list(dict.fromkeys(run.spec.subject for run in runs if _tests_model(run)))
    if len(models) > 1:
        raise UsageError(
            f"these runs are of different models: {', '.join(models)}. A scorecard is of one model; "
            "`evenkeel compare` compares several."
        )
    entries: list[Entry] = []
    for benchmark in benchmark_names():
        members = [run for run in runs if run.spec.benchmark == benchmark]
        for run, name in zip(members, run_names(members), strict=True):
            entries += _entries(run, name, alone=len(members) == 1)
    return Scorecard(
        model=models[0] if models else "",
        entries=entries,
        notes=[note for model in models for note in _identity_notes(model, runs)],
    )


def _tests_model(run: Run) -> bool:
    """Whether a model is under test; an unknown benchmark is an error."""
    return benchmark_class(run.spec.benchmark).subject == "model"


def _entries(run: Run, name: str, *, alone: bool) -> list[Entry]:
    """An entry for each subject of a run: the model, or each method."""
    layout = benchmark_class(run.spec.benchmark).layout
    facts = [
        Line(metric=scope_name(figure.metric, figure.scope), title=title, figure=figure)
        for title, figure in layout.main_figures(run.summary)[:MOST_MAIN]
    ]
    guessing = chance(layout.metrics[0])
    headline_title = f"{layout.headline_title} ({guessing})" if guessing else layout.headline_title
    return [
        Entry(
            benchmark=run.spec.benchmark,
            name=name if _tests_model(run) else subject if alone else f"{subject} ({name})",
            subject=subject,
            path=str(run.path),
            created=str(run.spec.provenance.get("created", "")),
            # Under one metric in every entry, so that methods have their figures in one row.
            headline=Line(metric=layout.headline, title=headline_title, figure=figure),
            facts=facts,
        )
        for subject, figure in zip(run.spec.subjects, run.headlines.values(), strict=True)
    ]


def _identity_notes(model: str, runs: Sequence[Run]) -> list[str]:
    """Whether one name is used for different states of a model: another data type, another server."""
    identities = [
        {**run.spec.models["model"]["identity"], "base_url": served_at(run.spec).get("model")}
        for run in runs
        if _tests_model(run) and run.spec.subject == model and run.spec.data["source"] != "recorded"
    ]
    differing = [
        key
        for key in dict.fromkeys(key for identity in identities for key in identity)
        if len({msgspec.json.encode(identity.get(key)) for identity in identities}) > 1
    ]
    if not differing:
        return []
    return [f"{model} is not the same in all of its runs; they differ in: {', '.join(differing)}."]


# Drawing


def _by_benchmark(entries: Sequence[Entry]) -> list[list[Entry]]:
    return [list(members) for _, members in groupby(entries, key=lambda entry: entry.benchmark)]


def _figure_rows(entries: Sequence[Entry]) -> list[tuple[str, list[Line | None]]]:
    """The figures of runs of one benchmark: the title of each, and each run's line if it has one."""
    lines = [{line.metric: line for line in (entry.headline, *entry.facts)} for entry in entries]
    titles = {metric: line.title for each in lines for metric, line in each.items()}
    return [(words, [each.get(metric) for each in lines]) for metric, words in titles.items()]


def _table(entries: Sequence[Entry], out: Path | None = None) -> Grid:
    """Runs of one benchmark side by side: their figures, and what is behind the headlines."""
    benchmark = entries[0].benchmark
    layout = benchmark_class(benchmark).layout
    rows: list[tuple[str, list[Content]]] = [
        (words, [line.figure if line else None for line in lines]) for words, lines in _figure_rows(entries)
    ]
    figures = [entry.headline.figure for entry in entries]
    rows += [
        ("intervals by", [figure.method for figure in figures]),
        ("over", [counts(figure, layout) for figure in figures]),
        ("coverage", [coverage_cell(f.coverage, details=f": {statuses(f)}") for f in figures]),
        ("created", [entry.created[:16].replace("T", " ") or "–" for entry in entries]),
    ]
    if out is not None:
        rows.append(("run", [Cell(entry.path, link=link(Path(entry.path), out)) for entry in entries]))
    return Grid(benchmark, "figure", [entry.name for entry in entries], rows, left=1)


def render(card: Scorecard, out: Path) -> str:
    """The page, to be written to `out`: reports below its folder are linked."""
    grids = [_table(members, out) for members in _by_benchmark(card.entries)]
    overview = replace(card.overview(), grids=grids, footnotes=_citations(card))
    return render_template("report/overview.html", title=card.title, overview=overview)


def _citations(card: Scorecard) -> list[str]:
    benchmarks = dict.fromkeys(entry.benchmark for entry in card.entries)
    layouts = [benchmark_class(name).layout for name in benchmarks]
    return [f"Please cite: {layout.citation}" for layout in layouts if layout.citation]


def link(run: Path, out: Path) -> str:
    """The address of a run's report on a page at `out`; empty where it is not below the page's folder."""
    report, folder = (run / "report.html").resolve(), out.resolve().parent
    if not report.is_file() or not report.is_relative_to(folder):
        return ""
    return quote(os.fsencode(report.relative_to(folder).as_posix()))
