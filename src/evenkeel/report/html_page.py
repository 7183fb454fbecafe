"""The report: one HTML file, nothing to load. Model output is hostile, and only ever text.

Its only script is that of the table of samples, which the page's policy allows by its hash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from msgspec.structs import replace

from evenkeel.analysis.comparability import run_names
from evenkeel.analysis.comparison import compare
from evenkeel.errors import UsageError
from evenkeel.page import format as text
from evenkeel.page.examples import fitting, shortened
from evenkeel.page.layout import Bars, Curve, Heatmap, Layout, Note, Picture, Points
from evenkeel.page.metrics import declaration
from evenkeel.page.tables import Cell, Content, Grid, arrange, side_by_side
from evenkeel.report import charts, templates
from evenkeel.report.comparison import comparison_tables, footnote, run_lines
from evenkeel.report.notes import notes_of
from evenkeel.report.samples import sample_table
from evenkeel.run.folder import Run, served_at
from evenkeel.run.registry import benchmark_class
from evenkeel.types import Figure, Record, RunSpec, Summary


def render(run: Run, *others: Run) -> str:
    """A run's page; with others of the same benchmark, their curves and figures are beside its own.

    What is of one run alone (its tables, its examples) is of the first, and says so.
    """
    distinct = list({each.path.resolve(): each for each in (run, *others)}.values())
    runs = dict(zip(run_names(distinct), distinct, strict=True))
    benchmark = benchmark_class(run.spec.benchmark)
    layout = benchmark.layout
    several = len(runs) > 1
    of_run = f", of {next(iter(runs))}" if several else ""
    return templates.render(
        "page.html",
        title=_title(layout, list(runs)),
        layout=layout,
        of_run=of_run,
        headline=None if several or len(run.headlines) > 1 else run.headline,
        overview=_runs_table(runs, layout) if several else _subjects_table(run, layout),
        overview_note=_overview_note(run, layout, several=several),
        chance=text.chance(layout.metrics[0]),
        facts=[] if several else _facts(run, layout),
        notes=_notes(runs),
        charts=_charts(runs, layout, of_run),
        differences=_differences(distinct) if several else None,
        grids=_grids(runs, layout, of_run),
        examples=fitting([section for section in benchmark.examples(run.scored) if section.items]),
        samples=sample_table(run),
        settings=[(f" of {name}" if several else "", _settings(each.spec)) for name, each in runs.items()],
    )


def _title(layout: Layout, names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"{layout.headline_title} of {names[0]}"
    return f"{layout.headline_title}: {len(names)} runs ({', '.join(shortened(name) for name in names)})"


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
    coverage = Cell(text.share(figure.coverage), "warn" if figure.coverage < text.FLOOR else "")
    return [Cell(text.value(figure), "strong"), text.interval(figure) or "not known", coverage]


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


def _facts(run: Run, layout: Layout) -> list[tuple[str, Figure]]:
    return [(c.title, run.summary[c.metric]) for c in layout.facts if c.metric in run.summary]


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
    grids = [grid for table in layout.tables if (grid := arrange(first.summary, table))]
    if len(runs) == 1:
        return grids
    summaries = {name: run.summary for name, run in runs.items()}
    facts: list[tuple[str, list[Content]]] = [
        (c.title, [summary.get(c.metric) for summary in summaries.values()])
        for c in layout.facts
        if any(c.metric in summary for summary in summaries.values())
    ]
    beside = [side_by_side(summaries, layout.tables[0])]
    if facts:
        beside.append(Grid("Further figures, run by run", "figure", list(summaries), facts))
    return [*beside, *(replace(grid, title=f"{grid.title}{of_run}") for grid in grids)]


def render_grids(
    title: str,
    lead: str,
    summaries: Mapping[str, Summary],
    pictures: Sequence[Bars],
    grids: Sequence[Grid],
    *,
    notes: Sequence[str] = (),
    cautions: Sequence[str] = (),
) -> str:
    """A page of pictures and tables that are of no run: figures of tokenizers, say."""
    drawn = ((picture.title, charts.bars(dict(summaries), picture)) for picture in pictures)
    svgs = [
        {"title": name, "svg": Markup(charts.to_svg(chart))} for name, chart in drawn if chart is not None
    ]
    values = {"title": title, "lead": lead, "charts": svgs, "grids": grids, "notes": notes}
    return templates.render("grids.html", **values, cautions=cautions)


def _charts(runs: Mapping[str, Run], layout: Layout, of_run: str) -> list[dict[str, Any]]:
    drawn = [_chart(picture, runs, layout, of_run) for picture in layout.pictures]
    # vl-convert draws the SVG from numbers, our titles and the data's tags, which it escapes.
    return [
        {"title": title, "svg": Markup(charts.to_svg(chart)) if chart is not None else "", "note": note}
        for title, chart, note in drawn
        if chart is not None or note
    ]


def _chart(picture: Picture, runs: Mapping[str, Run], layout: Layout, of_run: str) -> tuple[str, Any, str]:
    """The title of a picture, its chart where there is one, and what is said below it."""
    summaries = {name: run.summary for name, run in runs.items()}
    first = next(iter(runs.values()))
    match picture:
        case Curve():
            return picture.title, charts.curve(summaries, picture), ""
        case Bars():
            metric = declaration(layout.metrics, picture.metric)
            guessing = text.chance(metric)
            title = f"{picture.title} (dashed: {guessing})" if guessing else picture.title
            return title, charts.bars(summaries, picture, metric.chance if metric else None), ""
        case Points():
            return f"{picture.title}{of_run}", *charts.points(first.records(), picture)
        case Heatmap():
            record = _typical(first, layout.headline)
            matrix = charts.field_of(record, picture.detail) if record else None
            sample = f" ({record.sample.id})" if record else ""
            return f"{picture.title}{of_run}{sample}", charts.heatmap(matrix) if matrix else None, ""


def _typical(run: Run, metric: str) -> Record | None:
    """The sample whose score is nearest to the headline."""
    centre = run.summary[metric].value
    scored = (record for record in run.records() if record.score.values.get(metric) is not None)
    if centre is None:
        return None
    return min(scored, key=lambda record: abs((record.score.values[metric] or 0) - centre), default=None)


def _settings(spec: RunSpec) -> list[tuple[str, str]]:
    """The settings of a run, and where and when it was made; empty ones are left out."""
    provenance = spec.provenance
    versions = [f"{name} {provenance[name]}" for name in ("evenkeel", "python") if name in provenance]
    rows: list[tuple[str, Any]] = [("benchmark", spec.benchmark)]
    rows += [(role, model["spec"]) for role, model in spec.models.items()]
    rows += [
        (name.replace("_", "-"), value) for name, value in spec.options.items() if name not in spec.models
    ]
    rows += [
        ("data", f"{spec.data['source']}, sha256 {', '.join(digest[:16] for digest in spec.data['sha256'])}"),
        ("limit", spec.limit),
        ("seed", spec.seed),
        ("created", [provenance.get("created"), *versions, provenance.get("platform")]),
        ("packages", provenance.get("packages")),
    ]
    rows += [(f"{role} reached at", addresses) for role, addresses in served_at(spec).items()]
    rows += [(f"{role} identity", model["identity"]) for role, model in spec.models.items()]
    return [(name, words) for name, value in rows if (words := _plain(value))]


def _plain(value: Any) -> str:
    """A setting in plain words: lists and pairs joined, nothing for an empty one."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case dict():
            parts = {name: _plain(part) for name, part in value.items()}
            return ", ".join(f"{name} {part}" for name, part in parts.items() if part)
        case list() | tuple():
            return ", ".join(filter(None, map(_plain, value)))
        case _:
            return str(value)
