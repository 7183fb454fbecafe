"""The report: one HTML file, no script, nothing to load. Model output is hostile and only ever text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from markupsafe import Markup

from evenkeel.analysis import scope_of
from evenkeel.analysis.comparison import Comparison, compare
from evenkeel.errors import UsageError
from evenkeel.page import format as text
from evenkeel.page.examples import fitting, shortened
from evenkeel.page.layout import Bars, Curve, Heatmap, Layout, Note, Picture, Points
from evenkeel.page.metrics import declaration
from evenkeel.page.tables import Grid, arrange, side_by_side, summaries
from evenkeel.report import charts
from evenkeel.report.html import environment
from evenkeel.report.notes import notes_of
from evenkeel.run.folder import Run, served_at
from evenkeel.run.registry import benchmark_class
from evenkeel.types import Figure, Record, RunSpec


def render(run: Run, *others: Run) -> str:
    """A run's page; with others of the same benchmark, their curves and figures stand beside its own.

    What only one run can have (its tables, its examples) is the first's, and says so.
    """
    given = list({each.path.resolve(): each for each in (run, *others)}.values())
    runs = dict(zip(summaries(given), given, strict=True))
    benchmark = benchmark_class(run.spec.benchmark)
    layout: Layout = benchmark.layout
    several = len(runs) > 1
    whose = f", of {next(iter(runs))}" if several else ""
    return (
        environment()
        .get_template("page.html")
        .render(
            title=_title(layout, list(runs)),
            layout=layout,
            whose=whose,
            runs=[row for name, each in runs.items() for row in _rows(name, each)] if several else [],
            headline=None if several or len(run.headlines) > 1 else run.headline,
            methods=None if several or len(run.headlines) == 1 else _methods(run),
            whole=run.headline,
            chance=text.chance(layout.metrics[0]),
            facts=[] if several else _facts(run, layout),
            notes=_notes(runs),
            charts=_charts(runs, layout, whose),
            differences=_differences(given) if several else None,
            grids=_grids(runs, layout),
            examples=fitting([shown for shown in benchmark.examples(run.scored) if shown.items]),
            settings=[
                (f" of {name}" if several else "", _settings(each.spec)) for name, each in runs.items()
            ],
        )
    )


def _title(layout: Layout, names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"{layout.headline_title} of {names[0]}"
    return f"{layout.headline_title}: {len(names)} runs ({', '.join(shortened(name) for name in names)})"


def _rows(name: str, run: Run) -> list[dict[str, Any]]:
    """A run's rows in the table of several, one for each method: what it found, and what of."""
    return [
        {
            "name": name if len(run.headlines) == 1 else f"{name}: {method}",
            "headline": figure,
            "data": ", ".join(digest[:12] for digest in run.spec.data["sha256"]),
            "made": run.spec.provenance.get("created", "")[:16].replace("T", " "),
        }
        for method, figure in _methods(run)
    ]


def _methods(run: Run) -> list[tuple[str, Figure]]:
    return [(scope_of(name)[1].get("method", ""), figure) for name, figure in run.headlines.items()]


def _notes(runs: Mapping[str, Run]) -> list[Note]:
    return [
        note._replace(text=f"{name}: {note.text}") if len(runs) > 1 else note
        for name, run in runs.items()
        for note in notes_of(run)
    ]


def _facts(run: Run, layout: Layout) -> list[tuple[str, Figure]]:
    return [(c.title, run.summary[c.metric]) for c in layout.facts if c.metric in run.summary]


def _differences(runs: Sequence[Run]) -> dict[str, Any]:
    """Every pair of runs, paired by sample; or why they cannot be."""
    try:
        found = compare(*runs)
    except UsageError as error:
        return {"refused": str(error)}
    rows = [
        {
            "metric": d.metric,
            "a": d.a,
            "b": d.b,
            "difference": "–" if d.difference is None else text.signed(d.difference, d.unit),
            "interval": "–"
            if d.low is None or d.high is None
            else f"{text.signed(d.low, d.unit)} to {text.signed(d.high, d.unit)}",
            "p": d.p_holm,
            "detectable": "–" if d.detectable is None else text.number(d.detectable, d.unit),
            "different": d.different,
        }
        for d in found.differences
    ]
    methods = ", ".join(dict.fromkeys(d.method for d in found.differences))
    return {
        "refused": "",
        "rows": rows,
        "differs": found.differs,
        "methods": methods,
        "rankings": [(metric, _ranking(found, metric)) for metric in found.metrics] if len(runs) > 2 else [],
    }


def _ranking(found: Comparison, metric: str) -> list[dict[str, str]]:
    unit = next(difference.unit for difference in found.differences if difference.metric == metric)
    return [
        {
            "name": place.name,
            "value": "–" if place.value is None else text.number(place.value, unit),
            "interval": "–"
            if place.low is None or place.high is None
            else f"{text.number(place.low, unit)} to {text.number(place.high, unit)}",
            "letters": place.letters,
        }
        for place in found.ranking
        if place.metric == metric
    ]


def _grids(runs: Mapping[str, Run], layout: Layout) -> list[tuple[Grid, bool]]:
    """Tables, and of each whether it is one run's alone."""
    first = next(iter(runs.values()))
    own = [(grid, True) for table in layout.tables if (grid := arrange(first.summary, table))]
    if len(runs) == 1:
        return own
    held = {name: run.summary for name, run in runs.items()}
    facts = [
        (c.title, [summary.get(c.metric) for summary in held.values()])
        for c in layout.facts
        if any(c.metric in summary for summary in held.values())
    ]
    beside = [side_by_side(held, layout.tables[0])]
    if facts:
        beside.append(Grid("Further figures, run by run", "figure", list(held), facts))
    return [*((grid, False) for grid in beside), *own]


def _charts(runs: Mapping[str, Run], layout: Layout, whose: str) -> list[dict[str, Any]]:
    drawn = [_chart(picture, runs, layout, whose) for picture in layout.pictures]
    # vl-convert draws the SVG from numbers, our own titles and the data's tags, which it escapes.
    return [
        {"title": title, "svg": Markup(charts.to_svg(chart))} for title, chart in drawn if chart is not None
    ]


def _chart(picture: Picture, runs: Mapping[str, Run], layout: Layout, whose: str) -> tuple[str, Any]:
    held = {name: run.summary for name, run in runs.items()}
    first = next(iter(runs.values()))
    match picture:
        case Curve():
            return picture.title, charts.curve(held, picture)
        case Bars():
            metric = declaration(layout.metrics, picture.metric)
            guessed = text.chance(metric)
            title = f"{picture.title} (dashed: {guessed})" if guessed else picture.title
            return title, charts.bars(held, picture, metric.chance if metric else None)
        case Points():
            return f"{picture.title}{whose}", charts.points(first.records(), picture)
        case Heatmap():
            record = _typical(first, layout.headline)
            matrix = msgspec.to_builtins(record.score.detail)[picture.detail] if record else None
            place = f" ({record.sample.id})" if record else ""
            return f"{picture.title}{whose}{place}", charts.heatmap(matrix) if matrix else None


def _typical(run: Run, metric: str) -> Record | None:
    """The sample whose score is nearest to the headline."""
    centre = run.summary[metric].value
    scored = (record for record in run.records() if record.score.values.get(metric) is not None)
    if centre is None:
        return None
    return min(scored, key=lambda record: abs((record.score.values[metric] or 0) - centre), default=None)


def _settings(spec: RunSpec) -> list[tuple[str, str]]:
    """What was asked of a run, and where and when; what was left empty is left out."""
    made = spec.provenance
    versions = [f"{name} {made[name]}" for name in ("evenkeel", "python") if name in made]
    rows: list[tuple[str, Any]] = [("benchmark", spec.benchmark)]
    rows += [(role, model["spec"]) for role, model in spec.models.items()]
    rows += [
        (name.replace("_", "-"), value) for name, value in spec.options.items() if name not in spec.models
    ]
    rows += [
        ("data", f"{spec.data['source']}, sha256 {', '.join(digest[:16] for digest in spec.data['sha256'])}"),
        ("limit", spec.limit),
        ("seed", spec.seed),
        ("made", [made.get("created"), *versions, made.get("platform")]),
        ("packages", made.get("packages")),
    ]
    rows += [(f"{role} reached at", held) for role, held in served_at(spec).items()]
    rows += [(f"{role} identity", model["identity"]) for role, model in spec.models.items()]
    return [(name, shown) for name, value in rows if (shown := _plain(value))]


def _plain(value: Any) -> str:
    """A setting in plain words: lists and pairs joined, nothing for what is empty."""
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
