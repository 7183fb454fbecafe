"""Charts, defined once in Vega-Lite through altair and drawn to SVG without a browser."""

from __future__ import annotations

from typing import Any

from evenkeel.report.layout import Curve
from evenkeel.report.tables import figure, values_of
from evenkeel.types import Summary

PALETTE = ["#2563a8", "#c2571a", "#2e7d4f", "#8b4a9c", "#a83250", "#6b6b1f"]


def curve(summaries: dict[str, Summary], spec: Curve) -> Any:
    """A line with a band for each run and each value of the curve's line tag; None where there is no line."""
    import altair as alt

    points = _points(summaries, spec)
    if len({point["x"] for point in points}) < 2:
        return None
    names = list(dict.fromkeys(point["line"] for point in points))
    base = alt.Chart(alt.InlineData(values=points)).encode(
        x=alt.X("x:O", title=spec.x_title or spec.along, axis=alt.Axis(labelAngle=0)),
        color=alt.Color(
            "line:N",
            scale=alt.Scale(domain=names, range=[PALETTE[i % len(PALETTE)] for i in range(len(names))]),
            legend=alt.Legend(title=None, orient="top", labelLimit=420, symbolOpacity=1)
            if len(names) > 1
            else None,
        ),
    )
    scale = alt.Scale(domain=_domain(points), zero=False)
    band = base.mark_area(opacity=0.18).encode(
        y=alt.Y("low:Q", title=spec.y_title, scale=scale, axis=alt.Axis(format=".2f")), y2="high:Q"
    )
    line = base.mark_line(point=alt.OverlayMarkDef(size=45), strokeWidth=2).encode(
        y=alt.Y("y:Q", scale=scale)
    )
    return alt.layer(band, line).properties(width=560, height=260)


def heatmap(matrix: list[list[float]]) -> Any:
    """How alike every two answers are, as a coloured grid with the numbers in it."""
    import altair as alt

    cells = [
        {"a": i + 1, "b": j + 1, "cosine": value, "shown": f"{value:.2f}"}
        for i, row in enumerate(matrix)
        for j, value in enumerate(row)
    ]
    base = alt.Chart(alt.InlineData(values=cells)).encode(
        x=alt.X("b:O", title="answer", axis=alt.Axis(labelAngle=0)), y=alt.Y("a:O", title="answer")
    )
    low = min(0.0, *(value for row in matrix for value in row))
    colour = alt.Color("cosine:Q", scale=alt.Scale(domain=[low, 1], scheme="blues"), legend=None)
    ink = alt.condition("datum.cosine > 0.6", alt.value("white"), alt.value("#1c2126"))
    side = min(56 * len(matrix), 460)
    squares = base.mark_rect(stroke="#8884").encode(color=colour)
    return alt.layer(squares, base.mark_text(fontSize=12).encode(text="shown:N", color=ink)).properties(
        width=side, height=side
    )


def to_svg(chart: Any) -> str:
    """An altair chart as SVG text."""
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(chart.configure(**STYLE).to_json())
    return svg


AXIS = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "gridColor": "#8883"}
GREYS = {"labelColor": "#777", "titleColor": "#777", "domainColor": "#888", "tickColor": "#888"}
STYLE: dict[str, Any] = {
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "axis": AXIS | GREYS,
    "legend": {"labelColor": "#777", "labelFontSize": 12},
    "view": {"stroke": None},
}


def _domain(points: list[dict[str, Any]]) -> list[float]:
    """From the lowest band to the highest with some air, and never so narrow that noise looks like news."""
    low, high = min(point["low"] for point in points), max(point["high"] for point in points)
    air = max(0.01, 0.05 * (high - low), (0.1 - (high - low)) / 2)
    return [low - air, high + air if high > 1 else min(1.0, high + air)]


def _points(summaries: dict[str, Summary], spec: Curve) -> list[dict[str, Any]]:
    lines = {
        run: values_of(summary, spec.metric, spec.lines) if spec.lines else []
        for run, summary in summaries.items()
    }
    # A name says what tells lines apart: the run, the tag, or both.
    names_run, names_line = len(summaries) > 1, len({line for found in lines.values() for line in found}) > 1
    points = []
    for run, summary in summaries.items():
        for line in lines[run] or [""]:
            name = " ".join(part for part, told in ((run, names_run), (line, names_line)) if told)
            for x in values_of(summary, spec.metric, spec.along):
                scope = {spec.along: x, **({spec.lines: line} if line else {})}
                found = figure(summary, spec.metric, scope)
                if found is not None and found.value is not None:
                    low, high = (found.value if bound is None else bound for bound in (found.low, found.high))
                    place = int(x) if x.isdigit() else x
                    points.append({"x": place, "y": found.value, "low": low, "high": high, "line": name})
    return points
