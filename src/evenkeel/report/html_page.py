"""The report: one HTML file, nothing to load. Model output is hostile, and only ever text.

Its only script is that of the table of samples, which the page's policy allows by its hash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from msgspec.structs import replace

from evenkeel.analysis.comparable_metrics import run_names
from evenkeel.analysis.comparison import compare
from evenkeel.analysis.comparison_tables import comparison_tables, footnote, run_lines
from evenkeel.errors import DrawingError, UsageError
from evenkeel.harness.folder import Run
from evenkeel.harness.registry import benchmark_class
from evenkeel.page import format as text
from evenkeel.page.examples import fitting, shortened
from evenkeel.page.grid import Cell, Content, Grid, coverage_cell
from evenkeel.page.html import render as render_template
from evenkeel.page.layout import MOST_MAIN, Bars, Layout, Note
from evenkeel.page.tables import all_figures, side_by_side
from evenkeel.report import charts, pictures
from evenkeel.report.notes import notes_of
from evenkeel.report.samples.table import sample_table
from evenkeel.types import Figure, Summary


def render(run: Run, *others: Run) -> str:
    """A run's page; with others of the same benchmark, their curves and figures are beside its own.

    `Path("page.html").write_text(ek.render(ek.load_run("runs/yesterday")), encoding="utf-8")`.
    What is of one run alone (its tables, its examples) is of the first, and says so.
    """
    distinct = list({each.path.resolve(): each for each in (run, *others)}.values())
    runs = dict(zip(run_names(distinct), distinct, strict=True))
    benchmark = benchmark_class(run.spec.benchmark)
    layout = benchmark.layout
    several = len(runs) > 1
    of_run = f", of {next(iter(runs))}" if several else ""
    drawn = [_shown(picture) for picture in pictures.draw(runs, layout, of_run)]
    return render_template(
        "report/page.html",
        title=_title(layout, list(runs)),
        verdicts={name if several else "": each.verdict for name, each in runs.items()},
        layout=layout,
        of_run=of_run,
        headline=None if several or len(run.headlines) > 1 else run.headline,
        overview=_runs_table(runs, layout) if several else _subjects_table(run, layout),
        overview_note=_overview_note(run, layout, several=several),
        chance=text.chance(layout.metrics[0]),
        main=[] if several else layout.main_figures(run.summary)[:MOST_MAIN],
        notes=_notes(runs),
        charts=drawn,
        differences=_differences(distinct) if several else None,
        grids=_grids(runs, layout, of_run),
        figures=all_figures(run.summary),
        examples=fitting([section for section in benchmark.examples(run.records) if section.items]),
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


def _subjects_table(run: Run, layout: Layout) -> Grid:
    """A row for each subject of one run."""
    headlines = zip(run.spec.subjects, run.headlines.values(), strict=True)
    rows = [(name, _headline(figure)) for name, figure in headlines]
    heads = [layout.headline_title, "95% interval", "coverage"]
    return Grid(f"The {run.subject}s", run.subject, heads, rows)


def _runs_table(runs: Mapping[str, Run], layout: Layout) -> Grid:
    """A row for each run, or each of its subjects, with its data and its time."""
    rows = []
    for name, run in runs.items():
        digests = ", ".join(digest[:12] for digest in run.spec.data["sha256"])
        created = run.spec.provenance.get("created", "")[:16].replace("T", " ")
        for subject, figure in zip(run.spec.subjects, run.headlines.values(), strict=True):
            row_name = name if len(run.headlines) == 1 else f"{name}: {subject}"
            rows.append((row_name, [*_headline(figure), digests, created or "–"]))
    heads = [layout.headline_title, "95% interval", "coverage", "data, sha256", "created"]
    return Grid("The runs", "run", heads, rows)


def _headline(figure: Figure) -> list[Content]:
    interval = text.interval(figure) or "not known"
    return [Cell(text.value(figure), "strong"), interval, coverage_cell(figure.coverage)]


def _overview_note(run: Run, layout: Layout, *, several: bool) -> str:
    """What guessing gives and, for the subjects of one run, how many samples and requests there are."""
    figure = run.headline
    ended = f"coverage of all {run.subject}s {text.share(figure.coverage)}: {text.statuses(figure)}"
    parts = [text.chance(layout.metrics[0]), *([] if several else [text.counts(figure, layout), ended])]
    return "; ".join(filter(None, parts))


def _notes(runs: Mapping[str, Run]) -> list[Note]:
    return [
        note._replace(text=f"{name}: {note.text}") if len(runs) > 1 else note
        for name, run in runs.items()
        for note in notes_of(run)
    ]


def _differences(runs: Sequence[Run]) -> dict[str, Any]:
    """Every pair of runs, paired by sample; or why they cannot be paired."""
    try:
        comparison = compare(*runs)
    except UsageError as error:
        return {"refused": str(error)}
    return {
        "refused": "",
        "runs": run_lines(comparison),
        "differs": (*comparison.differs, *comparison.notes),
        "grids": comparison_tables(comparison),
        "footnote": footnote(comparison),
    }


def _grids(runs: Mapping[str, Run], layout: Layout, of_run: str) -> list[Grid]:
    """The runs side by side, where there are several, and the tables of the first."""
    first = next(iter(runs.values()))
    grids = pictures.tables(first)
    if len(runs) == 1:
        return grids
    summaries = {name: run.summary for name, run in runs.items()}
    main = [dict(layout.main_figures(summary)) for summary in summaries.values()]
    titles = dict.fromkeys(title for figures in main for title in figures)
    rows: list[tuple[str, list[Content]]] = [
        (title, [figures.get(title) for figures in main]) for title in titles
    ]
    beside = [side_by_side(summaries, table) for table in layout.tables[:1]]
    beside += [Grid("Further figures, run by run", "figure", list(summaries), rows)] if rows else []
    return [*beside, *(replace(grid, title=f"{grid.title}{of_run}") for grid in grids)]


def render_grids(
    title: str,
    lead: str,
    summaries: Mapping[str, Summary],
    bars: Sequence[Bars],
    grids: Sequence[Grid],
    *,
    notes: Sequence[str] = (),
    cautions: Sequence[str] = (),
) -> str:
    """A page of pictures and tables that are of no run: figures of tokenizers, say."""
    drawn = (pictures.Drawn(each.title, charts.bars(dict(summaries), each), "") for each in bars)
    svgs = [_shown(each) for each in drawn if each.chart is not None]
    values = {"title": title, "lead": lead, "charts": svgs, "grids": grids, "notes": notes}
    return render_template("report/grids.html", **values, cautions=cautions)


def _shown(drawn: pictures.Drawn) -> dict[str, Any]:
    """A picture for the template; where it cannot be drawn, the page says why and has the figures."""
    svg, note = "", drawn.note
    try:
        # vl-convert draws the SVG from numbers, our titles and the data's tags, which it escapes.
        svg = Markup(drawn.to_svg()) if drawn.chart is not None else ""
    except DrawingError as error:
        note = f"{note} {text.capitalised(str(error))} Its figures are in the tables.".strip()
    return {"title": drawn.title, "svg": svg, "note": note}
