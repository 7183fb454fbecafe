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
            legend=alt.Legend(title=None, orient="top") if len(names) > 1 else None,
        ),
    )
    scale = alt.Scale(zero=False, nice=True)
    band = base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q", title=spec.y_title, scale=scale), y2="high:Q")
    line = base.mark_line(point=alt.OverlayMarkDef(size=45), strokeWidth=2).encode(
        y=alt.Y("y:Q", scale=scale)
    )
    return alt.layer(band, line).properties(width=560, height=260)


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


def _points(summaries: dict[str, Summary], spec: Curve) -> list[dict[str, Any]]:
    points = []
    for run, summary in summaries.items():
        lines = values_of(summary, spec.metric, spec.lines) if spec.lines else []
        for line in lines or [""]:
            for x in values_of(summary, spec.metric, spec.along):
                scope = {spec.along: x, **({spec.lines: line} if line else {})}
                found = figure(summary, spec.metric, scope)
                if found is not None and found.value is not None:
                    low, high = (found.value if b is None else b for b in (found.low, found.high))
                    name = " ".join(part for part in (run if len(summaries) > 1 else "", line) if part)
                    points.append(
                        {
                            "x": int(x) if x.isdigit() else x,
                            "y": found.value,
                            "low": low,
                            "high": high,
                            "line": name,
                        }
                    )
    return points
