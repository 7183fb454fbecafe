"""The report: one HTML file, nothing to load. Model output is hostile, and only ever text.

Its only script is that of the table of samples, which the page's policy allows by its hash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from evenkeel.analysis.comparability import run_names
from evenkeel.analysis.comparison import compare
from evenkeel.analysis.references import orientation_table, reference_runs, references
from evenkeel.errors import UsageError
from evenkeel.harness.folder import Run, shared_layout
from evenkeel.page.examples import shortened
from evenkeel.page.format import counts
from evenkeel.page.grid import Cell, Content, Grid, Overview, coverage_cell
from evenkeel.page.html import render as render_template
from evenkeel.page.layout import MOST_MAIN, Layout, Note
from evenkeel.page.scale import Scale, drawable, legend, sources
from evenkeel.page.tables import all_figures, side_by_side
from evenkeel.page.view_html import spaces_shown
from evenkeel.report import charts, pictures
from evenkeel.report.notes import notes_of
from evenkeel.report.samples.table import sample_table
from evenkeel.report.scorecard import marks_of


def render(run: Run, *others: Run, reference: Sequence[str | Path] = ()) -> str:
    """A run's page; with others of the same benchmark, their curves and figures are beside its own.

    `reference` has folders of runs, or of a suite, that are shown beside the published models.

    `Path("page.html").write_text(ek.render(ek.load_run("runs/yesterday")), encoding="utf-8")`.
    What is of one run alone (its tables, its samples) is of the first, and says so.
    """
    distinct = list({each.path.resolve(): each for each in (run, *others)}.values())
    runs = dict(zip(run_names(distinct), distinct, strict=True))
    layout = shared_layout(distinct)
    several = len(runs) > 1
    of_run = f", of {next(iter(runs))}" if several else ""
    own = reference_runs(reference)
    listed = references(run.spec.benchmark, own, distinct)
    return render_template(
        "report/page.html",
        title=_title(layout, list(runs)),
        verdicts={name if several else "": each.verdict for name, each in runs.items()},
        layout=layout,
        of_run=of_run,
        headline=None if several or len(run.headlines) > 1 else run.headline,
        overview=_scales(runs, layout, own),
        notes=_notes(runs),
        charts=pictures.draw(runs, layout, of_run, listed),
        differences=_differences(distinct) if several else None,
        main=_main_figures(runs, layout),
        meanings=layout.main_meanings(run.summary),
        grids=_grids(runs, layout, of_run),
        references=orientation_table(listed, layout.headline, layout.headline_title),
        figures=all_figures(run.summary, layout.metrics),
        samples=sample_table(run),
        settings=[
            (f" of {name}" if several else "", pictures.settings_of(each.spec)) for name, each in runs.items()
        ],
    )


def _title(layout: Layout, names: Sequence[str]) -> str:
    title = layout.name or layout.headline_title
    if len(names) == 1:
        return f"{title}: {names[0]}"
    return f"{title}: {len(names)} runs ({', '.join(shortened(name) for name in names)})"


def _scales(runs: Mapping[str, Run], layout: Layout, own: Sequence[Run]) -> Grid:
    """A line from worst to best for each run, or each of its subjects, with what is behind it."""
    rows: list[tuple[str, list[Content]]] = []
    for name, run in runs.items():
        figures = run.figures_of(layout.headline).values()
        for subject, figure in zip(run.spec.subjects, figures, strict=True):
            row_name = name if len(figures) == 1 else subject if len(runs) == 1 else f"{name}: {subject}"
            marks = marks_of(run, layout, own)
            line = Scale(figure, marks, lower_is_better=layout.metrics[0].better == "lower")
            coverage = coverage_cell(figure.coverage)
            rows.append(
                (row_name, [line if drawable(figure) else "–", figure, counts(figure, layout), coverage])
            )
    first = next(iter(runs.values()))
    heads = ["worst to best", layout.headline_title, "based on", "coverage"]
    marks = marks_of(first, layout, own)
    words = legend(marks, layout.metrics[0].unit)
    several = len(runs) > 1
    return Grid(
        "The runs" if several else layout.headline_title,
        "run" if several else first.subject,
        heads,
        rows,
        left=2,
        note=f"{words}." if words else "",
        links=sources(marks),
    )


def _main_figures(runs: Mapping[str, Run], layout: Layout) -> Grid | None:
    """The figures beside the headline, a column for each run."""
    main = {name: dict(layout.main_figures(run.summary)[:MOST_MAIN]) for name, run in runs.items()}
    titles = dict.fromkeys(title for figures in main.values() for title in figures)
    rows: list[tuple[str, list[Content]]] = [
        (title, [figures.get(title) for figures in main.values()])
        for title in titles
        if any(title in figures and figures[title].value is not None for figures in main.values())
    ]
    return Grid("Main figures", "figure", list(main), rows, left=1) if rows else None


def _notes(runs: Mapping[str, Run]) -> list[Note]:
    """The notes of all runs; one that several have is there once."""
    owners: dict[Note, list[str]] = {}
    for name, run in runs.items():
        for note in notes_of(run):
            owners.setdefault(note, []).append(name)
    return [
        note if len(names) == len(runs) else note._replace(text=f"{', '.join(names)}: {note.text}")
        for note, names in owners.items()
    ]


def _differences(runs: Sequence[Run]) -> Overview:
    """Every pair of runs, paired by sample; or why they cannot be paired."""
    try:
        return compare(*runs).overview()
    except UsageError as error:
        return Overview("", [Cell(f"The runs cannot be paired: {error}", "warn")])


def _grids(runs: Mapping[str, Run], layout: Layout, of_run: str) -> list[Grid]:
    """The runs side by side, where there are several, and the tables of the first."""
    first = next(iter(runs.values()))
    grids = pictures.tables(first)
    if len(runs) == 1:
        return grids
    summaries = {name: run.summary for name, run in runs.items()}
    beside = [side_by_side(summaries, table) for table in layout.tables[:1]]
    return [*beside, *(replace(grid, title=f"{grid.title}{of_run}") for grid in grids)]


def render_tokenizers(tokenizers: Any, comparison: Any) -> str:
    """The page of `evenkeel tokenizers`: texts as tokens, then a sentence, a chart and a table a measure.

    `tokenizers` is the module that a benchmark gives, and `comparison` what its `compare` found.
    """
    summaries = comparison.named
    drawn = {each.title: charts.bars(summaries, each) for each in tokenizers.PICTURES}
    return render_template(
        "report/tokenizers.html",
        title="Tokenizers",
        verdict=tokenizers.verdict(summaries),
        names=dict(zip(summaries, comparison.summaries, strict=True)),
        illustrations=comparison.illustrations,
        spaces_shown=spaces_shown,
        charts={title: pictures.Drawn(title, chart, "") for title, chart in drawn.items() if chart},
        grids=tokenizers.grids(comparison),
        notes=comparison.notes,
        cautions=tokenizers.CAUTIONS,
    )
