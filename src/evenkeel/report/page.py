"""The report: one HTML file, no script, nothing to load. Model output is hostile and only ever text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from evenkeel.benchmarks import benchmark_class
from evenkeel.comparison import compare
from evenkeel.errors import UsageError
from evenkeel.report import charts, text
from evenkeel.report.comparison import signed
from evenkeel.report.environment import environment
from evenkeel.report.examples import LONGEST
from evenkeel.report.layout import Bars, Curve, Heatmap, Layout, Picture, Points
from evenkeel.report.tables import Grid, arrange, side_by_side, summaries
from evenkeel.store import Run
from evenkeel.types import Record, RunSpec


def render(run: Run, *others: Run) -> str:
    """A run's page; with others of the same benchmark, their curves and figures stand beside its own."""
    benchmark = benchmark_class(run.spec.benchmark)
    layout: Layout = benchmark.layout
    model = run.spec.subject
    return (
        environment()
        .get_template("page.html")
        .render(
            title=f"{layout.headline_title} of {model}",
            layout=layout,
            model=model,
            headline=run.summary[layout.headline],
            facts=[(c.title, run.summary[c.metric]) for c in layout.facts if c.metric in run.summary],
            notes=[
                note._replace(text=f"{name}: {note.text}") if others else note
                for name, each in zip(summaries([run, *others]), [run, *others], strict=True)
                for note in benchmark.notes(each.spec, each.summary)
            ],
            charts=_charts(run, layout, others),
            grids=_grids(run, layout, others),
            differences=_differences(run, others) if others else None,
            examples=[shown for shown in benchmark.examples(run.records) if shown.items],
            longest=LONGEST,
            settings=_settings(run.spec),
        )
    )


def _differences(run: Run, others: Sequence[Run]) -> dict[str, Any]:
    """Every pair of runs, paired by sample; or why they cannot be."""
    try:
        found = compare(run, *others)
    except UsageError as error:
        return {"refused": str(error), "rows": []}
    return {
        "refused": "",
        "rows": [
            {
                "metric": d.metric,
                "a": d.a,
                "b": d.b,
                "difference": "–" if d.difference is None else signed(d.difference, d.unit),
                "interval": "–"
                if d.low is None or d.high is None
                else f"{signed(d.low, d.unit)} to {signed(d.high, d.unit)}",
                "p": "–" if d.p_holm is None else "< 0.001" if d.p_holm < 0.001 else f"{d.p_holm:.3f}",
                "different": d.different,
                "method": d.method,
            }
            for d in found.differences
        ],
        "differs": found.differs,
    }


def _grids(run: Run, layout: Layout, others: Sequence[Run]) -> list[Grid]:
    beside = [side_by_side(summaries([run, *others]), layout.tables[0])] if others else []
    return [*beside, *(grid for table in layout.tables if (grid := arrange(run.summary, table)))]


def _charts(run: Run, layout: Layout, others: Sequence[Run]) -> list[dict[str, Any]]:
    drawn = [_chart(picture, run, layout, others) for picture in layout.pictures]
    # vl-convert draws the SVG from numbers, our own titles and the data's tags, which it escapes.
    return [
        {"title": title, "svg": Markup(charts.to_svg(chart))} for title, chart in drawn if chart is not None
    ]


def _chart(picture: Picture, run: Run, layout: Layout, others: Sequence[Run]) -> tuple[str, Any]:
    match picture:
        case Curve():
            return picture.title, charts.curve(summaries([run, *others]), picture)
        case Bars():
            return picture.title, charts.bars(summaries([run, *others]), picture)
        case Points():
            return picture.title, charts.points(run.records(), picture)
        case Heatmap():
            record = _typical(run, layout.headline)
            matrix = record.score.detail.get(picture.detail) if record else None
            title = f"{picture.title} ({text.visible(record.sample.id)})" if record else picture.title
            return title, charts.heatmap(matrix) if matrix else None


def _typical(run: Run, metric: str) -> Record | None:
    """The sample whose score is nearest to the headline."""
    centre = run.summary[metric].value
    scored = (record for record in run.records() if record.score.values.get(metric) is not None)
    if centre is None:
        return None
    return min(scored, key=lambda record: abs((record.score.values[metric] or 0) - centre), default=None)


def _settings(spec: RunSpec) -> list[tuple[str, str]]:
    made = spec.provenance
    rows = [("benchmark", spec.benchmark)]
    rows += [(role, model["spec"]) for role, model in spec.models.items()]
    rows += [
        (name.replace("_", "-"), str(value))
        for name, value in spec.options.items()
        if name not in spec.models
    ]
    rows += [
        ("data", f"{spec.data['source']}, sha256 {', '.join(digest[:16] for digest in spec.data['sha256'])}"),
        ("limit", "none" if spec.limit is None else str(spec.limit)),
        ("seed", str(spec.seed)),
        (
            "made",
            f"{made['created']}, evenkeel {made['evenkeel']}, python {made['python']}, {made['platform']}",
        ),
        ("packages", ", ".join(f"{name} {version}" for name, version in made["packages"].items())),
    ]
    for role, model in spec.models.items():
        known = ", ".join(
            f"{name} {value}" for name, value in model["identity"].items() if value not in (None, "")
        )
        rows.append((f"{role} identity", known))
    return rows
