"""The report: one HTML file, no script, nothing to load. Model output is hostile and only ever text."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evenkeel.benchmarks import benchmark_class
from evenkeel.report import charts, text
from evenkeel.report.layout import Layout
from evenkeel.report.tables import Grid, arrange, side_by_side, summaries
from evenkeel.store import Run
from evenkeel.types import Record, RunSpec

EXTREMES = 5
LONGEST = 20_000  # characters of one answer on the page; the whole of it is in records.jsonl


def render(run: Run, *others: Run) -> str:
    """A run's page; with others of the same benchmark, their curves and figures stand beside its own."""
    benchmark = benchmark_class(run.spec.benchmark)
    layout: Layout = benchmark.layout
    environment = Environment(
        loader=PackageLoader("evenkeel.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        value=text.value, interval=text.interval, share=text.share, visible=text.visible, p_value=text.p_value
    )
    model = run.spec.models["model"]["name"]
    return environment.get_template("page.html").render(
        title=f"{layout.headline_title} of {model}",
        layout=layout,
        model=model,
        headline=run.summary[layout.headline],
        facts=[(c.title, run.summary[c.metric]) for c in layout.facts if c.metric in run.summary],
        notes=[
            f"{name}: {note}" if others else note
            for name, summary in summaries([run, *others]).items()
            for note in benchmark.notes(summary)
        ],
        charts=_charts(run, layout, others),
        grids=_grids(run, layout, others),
        extremes=_extremes(run, layout.headline),
        settings=_settings(run.spec),
    )


def _grids(run: Run, layout: Layout, others: Sequence[Run]) -> list[Grid]:
    beside = [side_by_side(summaries([run, *others]), layout.tables[0])] if others else []
    return [*beside, *(grid for table in layout.tables if (grid := arrange(run.summary, table)))]


def _charts(run: Run, layout: Layout, others: Sequence[Run]) -> list[dict[str, Any]]:
    drawn = [(spec.title, charts.curve(summaries([run, *others]), spec)) for spec in layout.curves]
    if layout.heatmap and (record := _typical(run, layout.headline)):
        title = f"{layout.heatmap} ({text.visible(record.sample.id)})"
        drawn.append((title, charts.heatmap(record.score.detail["pairwise_similarities"])))
    # vl-convert draws the SVG from numbers, our own titles and the data's tags, which it escapes.
    return [
        {"title": title, "svg": Markup(charts.to_svg(chart))} for title, chart in drawn if chart is not None
    ]


def _typical(run: Run, metric: str) -> Record | None:
    """The sample whose score is nearest to the headline."""
    centre = run.summary[metric].value
    scored = (record for record in run.records() if record.score.values.get(metric) is not None)
    if centre is None:
        return None
    return min(scored, key=lambda record: abs((record.score.values[metric] or 0) - centre), default=None)


def _extremes(run: Run, metric: str) -> list[dict[str, Any]]:
    """The samples at both ends of the headline metric, read as a stream: a run may be larger than memory."""

    def scored() -> Iterator[Record]:
        return (record for record in run.records() if record.score.values.get(metric) is not None)

    def place(record: Record) -> float:
        return record.score.values[metric] or 0.0

    least = heapq.nsmallest(EXTREMES, scored(), key=place)
    most = heapq.nlargest(EXTREMES, scored(), key=place)
    ids = [record.sample.id for record in least]
    return [_shown(record, metric) for record in [*least, *(r for r in most if r.sample.id not in ids)]]


def _shown(record: Record, metric: str) -> dict[str, Any]:
    prompt = record.sample.inputs["question_text"]
    return {
        "id": record.sample.id,
        "value": f"{record.score.values[metric]:.4f}",
        "question": prompt if len(prompt) <= 90 else f"{prompt[:90]}…",
        "prompt": prompt,
        "answers": [
            {
                "status": a.status,
                "reason": a.reason,
                "text": a.text[:LONGEST] + ("…" if len(a.text) > LONGEST else ""),
            }
            for a in record.answers
        ],
    }


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
