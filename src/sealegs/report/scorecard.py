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

from sealegs.analysis.comparability import run_names
from sealegs.analysis.others import load_results
from sealegs.analysis.references import reference_marks, reference_runs
from sealegs.errors import UsageError
from sealegs.files.cache import write_whole
from sealegs.harness.folder import Run, shared_layout
from sealegs.harness.folder.spec import served_at
from sealegs.harness.registry import benchmark_class, benchmark_names
from sealegs.page.format import counts, nouns, statuses
from sealegs.page.grid import Cell, Content, Displayed, Grid, Overview, coverage_cell
from sealegs.page.html import overview_page
from sealegs.page.layout import Layout
from sealegs.page.metrics import declaration, scope_name
from sealegs.page.scale import ReferenceMark, Scale, drawable, legend, sources
from sealegs.types import Figure

LEAD = "Benchmarks measure different things: there is no overall score."
LEGEND = "● the {}, with its 95% interval"


class CardLine(Struct, frozen=True, kw_only=True):
    """A figure and its title."""

    metric: str
    title: str
    figure: Figure


class CardEntry(Struct, frozen=True, kw_only=True):
    """A run on the card, or one method of it: its headline, and its benchmark's further figures."""

    benchmark: str
    name: str
    """What distinguishes it from the other entries of its benchmark: its model, method, folder or path."""
    subject: str
    path: str
    created: str
    verdict: str
    """One sentence on the run."""
    doubts: tuple[str, ...] = ()
    """What speaks against its headline: few samples, answers cut off."""
    headline: CardLine
    lower_is_better: bool = False
    """Of the headline."""
    facts: list[CardLine]
    marks: tuple[ReferenceMark, ...] = ()
    """What to read the headline by: guessing or a baseline, published models, the user's reference runs."""

    @property
    def line(self) -> Content:
        """The headline on a line from worst to best, where its unit has these."""
        line = Scale(self.headline.figure, self.marks, lower_is_better=self.lower_is_better)
        return line if drawable(self.headline.figure) else "–"


class Scorecard(Displayed, Struct, frozen=True, kw_only=True):
    """Runs in the order of the benchmarks, those of one benchmark next to each other."""

    model: str
    """The one model under test; empty where there are several, or none."""
    entries: list[CardEntry]
    notes: list[str]

    @property
    def title(self) -> str:
        return f"Scorecard of {self.model or nouns(len(self.entries), 'runs')}"


def scorecard_overview(card: Scorecard, out: Path | None = None) -> Overview:
    """For each benchmark the verdict and a picture, then the tables behind them; reports below the folder of
    a page at `out` are linked."""
    groups = groupby(card.entries, key=lambda entry: entry.benchmark)
    benchmarks = [list(members) for _, members in groups]
    days = sorted({entry.created[:10] for entry in card.entries if entry.created})
    dates = f"Runs of {' to '.join(dict.fromkeys((days[0], days[-1])))}. " if days else ""
    return Overview(
        card.title,
        grids=[*(_picture(members, out) for members in benchmarks), *map(_table, benchmarks)],
        lead=f"{dates}{LEAD}",
        warnings=[*_test_run(card.entries), *card.notes],
    )


def _test_run(entries: Sequence[CardEntry]) -> list[str]:
    """A warning where figures are in doubt."""
    doubted = {entry.benchmark for entry in entries if entry.doubts}
    if not doubted:
        return []
    total = len({entry.benchmark for entry in entries})
    every = "both" if total == 2 else f"all {total}"
    share = every if len(doubted) == total else f"{len(doubted)} of {total}"
    where = f"in {share} benchmarks " if total > 1 else ""
    return [
        f"A test run: {where}there are too few questions, or too many answers are missing or cut off, to "
        "judge a model by."
    ]


def scorecard(
    runs: Sequence[Run | str | Path],
    *,
    reference: Sequence[str | Path] = (),
    out: str | Path | None = None,
) -> Scorecard:
    """Put runs on one card, and with `out` on a page. All must be of one model.

    The methods of a benchmark that compares methods are side by side. `reference` has folders of runs, or of
    a suite, that are shown as marks beside the published models.

    `sl.scorecard(["runs/mirae", "runs/rgb"], out="scorecard.html").entries[0].headline`
    """
    if isinstance(runs, Run | str | Path):
        raise UsageError("scorecard takes a list of runs: scorecard([run, …]).")
    card = _card(load_results(*runs), reference_runs(reference))
    if out is not None:
        write_whole(Path(out), render(card, Path(out)))
    return card


def _card(runs: Sequence[Run], own: Sequence[Run]) -> Scorecard:
    runs = list({run.path.resolve(): run for run in runs}.values())
    if not runs:
        raise UsageError("scorecard needs at least one run.")
    models = list(dict.fromkeys(run.spec.subject for run in runs if _tests_model(run)))
    if len(models) > 1:
        raise UsageError(
            f"these runs are of different models: {', '.join(models)}. A scorecard is of one model; "
            "`sealegs compare` compares several."
        )
    entries: list[CardEntry] = []
    for benchmark in dict.fromkeys([*benchmark_names(), *(run.spec.benchmark for run in runs)]):
        members = [run for run in runs if run.spec.benchmark == benchmark]
        for run, name in zip(members, run_names(members), strict=True):
            entries += entries_of(run, members, name, own)
    return Scorecard(
        model=models[0] if models else "",
        entries=entries,
        notes=[note for model in models for note in _identity_notes(model, runs)],
    )


def _tests_model(run: Run) -> bool:
    """Whether a model is under test; an unknown benchmark is an error."""
    return benchmark_class(run.spec.benchmark).subjects.tag == "model"


def entries_of(run: Run, members: Sequence[Run], name: str, own: Sequence[Run]) -> list[CardEntry]:
    """An entry for each subject of a run among those of its benchmark: the model, or each method."""
    layout, alone = shared_layout(members), len(members) == 1
    shown = layout.first_figures(*(member.summary for member in members))
    facts = [
        CardLine(metric=scope_name(figure.metric, figure.scope), title=title, figure=figure)
        for title, figure in layout.main_figures(run.summary)
        if title in shown
    ]
    entries = []
    figures = run.figures_of(layout.headline).values()
    for subject, figure in zip(run.spec.subjects, figures, strict=True):
        entry_name = name if _tests_model(run) else subject if alone else f"{subject} ({name})"
        entries.append(
            CardEntry(
                benchmark=run.spec.benchmark,
                name=", ".join(filter(None, (entry_name, layout.part(run.summary)))),
                subject=subject,
                path=str(run.path),
                created=str(run.spec.provenance.get("created", "")),
                verdict=run.verdict,
                doubts=run.doubts,
                # Under one metric in every entry, so that methods have their figures in one row.
                headline=CardLine(metric=layout.headline, title=layout.headline_title, figure=figure),
                lower_is_better=layout.metrics[0].better == "lower",
                facts=facts,
                marks=marks_of(run, layout, own),
            )
        )
    return entries


def marks_of(run: Run, layout: Layout, own: Sequence[Run] = ()) -> tuple[ReferenceMark, ...]:
    """What to read the headline of a run by."""
    metric = layout.metrics[0]
    marks = [ReferenceMark(metric.chance, "guessing", "baseline")] if metric.chance is not None else []
    figure = run.summary.get(layout.baseline.metric) if layout.baseline else None
    if layout.baseline and figure and figure.value is not None:
        marks.append(ReferenceMark(figure.value, layout.baseline.title, "baseline"))
    return (*marks, *reference_marks(run.spec.benchmark, metric.name, own, [run]))


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


def _picture(entries: Sequence[CardEntry], out: Path | None = None) -> Grid:
    """The verdicts of a benchmark's runs, and a line from worst to best for each entry."""
    benchmark, headline = benchmark_class(entries[0].benchmark), entries[0].headline
    layout = benchmark.layout
    metric = declaration(layout.metrics, headline.metric) or layout.metrics[0]
    rows: list[tuple[str, list[Content]]] = []
    for entry in entries:
        figure, address = entry.headline.figure, link(Path(entry.path), out) if out else ""
        report = [Cell("report", link=address)] if address else []
        rows.append((entry.name, [entry.line, figure, *report]))
    linked = any(len(cells) > 2 for _, cells in rows)
    marks = tuple(dict.fromkeys(mark for entry in entries for mark in entry.marks))
    verdicts = dict.fromkeys(entry.verdict for entry in entries)
    unit = headline.figure.unit
    note = "; ".join(filter(None, (LEGEND.format(benchmark.subjects.tag), legend(marks, unit))))
    note = f"{metric.explained} {note}".strip()
    return Grid(
        f"{layout.name or entries[0].benchmark}: {layout.question}",
        benchmark.subjects.tag,
        ["worst to best", headline.title, *(["details"] if linked else [])],
        rows,
        left=2,
        lead=" ".join(verdicts),
        note=f"{note}.",
        links=sources(marks),
    )


def _table(entries: Sequence[CardEntry]) -> Grid:
    """Runs of one benchmark side by side: their figures, and what is behind the headlines."""
    layout = benchmark_class(entries[0].benchmark).layout
    lines = [(entry.headline, *entry.facts) for entry in entries]
    by_metric = [{line.metric: line.figure for line in of_entry} for of_entry in lines]
    titles = {line.metric: line.title for of_entry in lines for line in of_entry}
    rows: list[tuple[str, list[Content]]] = [
        (title, [of_entry.get(metric) for of_entry in by_metric]) for metric, title in titles.items()
    ]
    figures = [entry.headline.figure for entry in entries]
    rows += [
        ("based on", [counts(figure, layout) for figure in figures]),
        ("coverage", [coverage_cell(f.coverage, details=f": {statuses(f)}") for f in figures]),
        ("created", [entry.created[:16].replace("T", " ") or "–" for entry in entries]),
        ("run", [entry.path for entry in entries]),
    ]
    title = f"More figures: {layout.name or entries[0].benchmark}"
    return Grid(title, "figure", [entry.name for entry in entries], rows, left=1, more=True)


def render(card: Scorecard, out: Path) -> str:
    """The page, to be written to `out`."""
    return overview_page(scorecard_overview(card, out))


def link(run: Path, out: Path) -> str:
    """The address of a run's report on a page at `out`; empty where it is not below the page's folder."""
    report, folder = (run / "report.html").resolve(), out.resolve().parent
    if not report.is_file() or not report.is_relative_to(folder):
        return ""
    return quote(os.fsencode(report.relative_to(folder).as_posix()))
