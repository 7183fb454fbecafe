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

from evenkeel.analysis.comparable_metrics import run_names
from evenkeel.errors import UsageError
from evenkeel.files.cache import write_whole
from evenkeel.harness.folder import Run, served_at
from evenkeel.harness.registry import benchmark_class, benchmark_names, load_stored
from evenkeel.page.examples import shortened
from evenkeel.page.format import capitalised, chance, counts, interval, p_value, statuses, value
from evenkeel.page.grid import Cell, Content, Displayed, Grid, Overview, coverage_cell
from evenkeel.page.html import render as render_template
from evenkeel.page.layout import MOST_MAIN
from evenkeel.page.metrics import scope_name
from evenkeel.types import Figure


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
    others: list[Entry]
    """Methods of these runs that do not use the models, such as BM25 beside a judge."""
    notes: list[str]

    @property
    def title(self) -> str:
        return f"Scorecard of {self.model or f'{len(self.entries)} runs'}"

    def overview(self) -> Overview:
        """The tables, and which runs they are of."""
        runs = {entry.path: entry for entry in (*self.entries, *self.others)}
        return Overview(
            self.title,
            [Cell(note, "note") for note in self.notes],
            tables(self),
            [f"{entry.created[:10]}  {entry.benchmark:<9}  {path}" for path, entry in runs.items()],
        )


def scorecard(runs: Sequence[Run | str | Path], *, out: str | Path | None = None) -> Scorecard:
    """Put runs on one card, and with `out` on a page. All must be of one model.

    Of a benchmark that compares methods, those in which a model of the card judges, writes, ranks or embeds
    are its entries; the others are apart. Where no run has a model under test, all methods are entries.

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
    others: list[Entry] = []
    for benchmark in benchmark_names():
        members = [run for run in runs if run.spec.benchmark == benchmark]
        for run, name in zip(members, run_names(members), strict=True):
            for entry in _entries(run, name, alone=len(members) == 1):
                (entries if not models or _uses(run, entry.subject, models) else others).append(entry)
    return Scorecard(
        model=models[0] if len(models) == 1 else "",
        entries=entries,
        others=others,
        notes=[note for model in models for note in _identity_notes(model, runs)],
    )


def _tests_model(run: Run) -> bool:
    """Whether a model is under test; an unknown benchmark is an error."""
    return benchmark_class(run.spec.benchmark).subject == "model"


def _uses(run: Run, subject: str, models: Sequence[str]) -> bool:
    """Whether a subject is one of the models, or needs one: `rewrite:A+embed:B` has two roles."""
    if _tests_model(run):
        return True
    roles = (run.spec.models.get(role) for role in load_stored(run.spec).roles_of(subject))
    return any(role["name"] in models for role in roles if role)


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


def tables(card: Scorecard) -> list[Grid]:
    """One table of all entries, and one of the methods that do not use the models."""
    names = {entry.name for entry in card.entries}
    several = len(card.entries) > len({entry.benchmark for entry in card.entries})
    named = len(names) > 1 and (several or not card.model)
    grids = [_table("", card.entries, named=named, model=card.model)]
    if card.others:
        grids.append(_table(capitalised(_others_title(card)), card.others, named=True))
    return grids


def _others_title(card: Scorecard) -> str:
    return f"methods without {card.model}" if card.model else "methods without these models"


def _table(heading: str, entries: Sequence[Entry], *, named: bool, model: str = "") -> Grid:
    """A row for each figure of each entry. Whose it is, is in a column where entries of one benchmark differ,
    and with the headline where one differs from the model of the title."""
    rows: list[tuple[str, list[Content]]] = []
    for benchmark, members in _by_benchmark(entries):
        for figure_title, lines in _figure_rows(members):
            for entry, line in zip(members, lines, strict=True):
                if line is None:
                    continue
                figure, top = line.figure, line is entry.headline
                name = shortened(entry.name, 40) if top or len(members) > 1 else ""
                by = f" by {name}" if top and not named and model and entry.name != model else ""
                cells: list[Content] = [
                    f"{figure_title}{by}" if top else f"  {figure_title}",
                    *([name] if named else []),
                    Cell(value(figure), "strong" if top else ""),
                    " ".join(filter(None, (interval(figure, short=True), p_value(figure)))),
                    coverage_cell(figure.coverage) if top else "",
                ]
                rows.append((benchmark if top and entry is members[0] else "", cells))
    columns = ["figure", *(["of"] if named else []), "value", "95% interval", "coverage"]
    return Grid(heading, "benchmark", columns, rows, left=3 if named else 2, sections=True)


def _by_benchmark(entries: Sequence[Entry]) -> list[tuple[str, list[Entry]]]:
    return [(name, list(members)) for name, members in groupby(entries, key=lambda entry: entry.benchmark)]


def _figure_rows(entries: Sequence[Entry]) -> list[tuple[str, list[Line | None]]]:
    """The figures of runs of one benchmark: the title of each, and each run's line if it has one."""
    lines = [{line.metric: line for line in (entry.headline, *entry.facts)} for entry in entries]
    titles = {metric: line.title for each in lines for metric, line in each.items()}
    return [(words, [each.get(metric) for each in lines]) for metric, words in titles.items()]


def render(card: Scorecard, out: Path) -> str:
    """The page, to be written to `out`: reports below its folder are linked."""
    sections = [(name, name, members) for name, members in _by_benchmark(card.entries)]
    sections += [
        (f"{name}-others", f"{name}: {_others_title(card)}", members)
        for name, members in _by_benchmark(card.others)
    ]
    return render_template(
        "report/scorecard.html",
        title=card.title,
        card=card,
        named=len({entry.subject for entry in card.entries}) > 1,
        sections=[
            {
                "id": anchor,
                "heading": heading,
                "layout": benchmark_class(members[0].benchmark).layout,
                "grid": _section(members, out),
            }
            for anchor, heading, members in sections
        ],
    )


def _section(entries: Sequence[Entry], out: Path) -> Grid:
    """Runs of one benchmark side by side: their figures, and what is behind the headlines."""
    layout = benchmark_class(entries[0].benchmark).layout
    rows: list[tuple[str, list[Content]]] = [
        (words, [line.figure if line else None for line in lines]) for words, lines in _figure_rows(entries)
    ]
    figures = [entry.headline.figure for entry in entries]
    rows += [
        ("intervals by", [figure.method for figure in figures]),
        ("over", [counts(figure, layout) for figure in figures]),
        ("coverage", [coverage_cell(f.coverage, details=f": {statuses(f)}") for f in figures]),
        ("created", [entry.created[:16].replace("T", " ") or "–" for entry in entries]),
        ("run", [Cell(entry.path, link=link(Path(entry.path), out)) for entry in entries]),
    ]
    return Grid("", "figure", [entry.name for entry in entries], rows, left=1)


def link(run: Path, out: Path) -> str:
    """The address of a run's report on a page at `out`; empty where it is not below the page's folder."""
    report, folder = (run / "report.html").resolve(), out.resolve().parent
    if not report.is_file() or not report.is_relative_to(folder):
        return ""
    return quote(os.fsencode(report.relative_to(folder).as_posix()))
