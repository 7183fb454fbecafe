"""Charts as Vega-Lite specifications, for the page, the app and notebooks; drawn without a browser."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from textwrap import wrap
from typing import Any, TypeAlias, TypeVar

import msgspec

from evenkeel.analysis.intervals import RANGES
from evenkeel.errors import DrawingError
from evenkeel.page.examples import shortened
from evenkeel.page.format import no_interval, tag_value, visible
from evenkeel.page.layout import Bars, Curve, Points
from evenkeel.page.tables import figure, is_number, values_of
from evenkeel.types import Record, Summary, Unit

Chart: TypeAlias = dict[str, Any]
"""A Vega-Lite specification, without `config`: whoever draws it adds the style."""

PALETTE = [
    *("#3b7dd8", "#c2571a", "#2e8b57", "#a05bb5", "#d0406a", "#80801f"),
    *("#2b9090", "#96713a", "#c95f9b", "#6a78d8", "#5f9426", "#76818c"),
]
"""Each has a contrast of at least 3 : 1 on the light page and on the dark one."""
MOST_POINTS = 1200
"""Points of one chart: more would hide each other, and make the page heavy."""
MOST_CATEGORIES = 12
"""Colours of one chart: of more categories, the rarer ones are drawn as one."""
OTHER = "other"

BOUNDED, UNBOUNDED = "datum.low !== null", "datum.low === null"
"""Of the points of a chart: those with an interval, and those without, which are hollow."""
INK = "ink"
"""The style of lines that have the colour of the text."""

WIDE, NARROW = 1000, 330
"""Pixels of a chart on a page, and on a phone's."""
FIT = {"autosize": {"type": "fit-x", "contains": "padding"}}

OWN_COLOURS = {"scale": {"color": "independent"}}
"""Of panels side by side: each has a legend for itself."""
AXIS_FORMATS: dict[Unit, str] = {"share": "%", "score": ".0f", "points": ".0f", "count": ".1f"}


def curve(summaries: dict[str, Summary], spec: Curve) -> Chart | None:
    """A line with a band for each run and each value of the curve's line tag; None where there is no line."""
    points = _points(summaries, spec)
    if len({point["x"] for point in points}) < 2:
        return None
    scale = {"domain": _domain(points), "zero": False, "nice": True}
    axis = {"format": AXIS_FORMATS.get(points[0]["unit"], ".2f"), "minExtent": 48}
    shared = {
        "x": _field("x", "ordinal", title=spec.x_title or spec.along, axis={"labelAngle": 0}),
        "color": _colour("line", [point["line"] for point in points]),
    }
    value = {**shared, "y": _field("y", "quantitative", title=spec.y_title, scale=scale, axis=axis)}
    limits = {**shared, "y": _field("low", "quantitative", scale=scale), "y2": {"field": "high"}}
    stretch = {**limits, "detail": _field("stretch", "nominal")}
    layers = [
        # A stretch of points with intervals has a band of its own; a single one of them has a whisker.
        _layer({"type": "area", "opacity": 0.18}, stretch, BOUNDED),
        _layer({"type": "rule", "strokeWidth": 2, "opacity": 0.4}, limits, "datum.alone"),
        _layer({"type": "line", "strokeWidth": 2}, value),
        _layer({"type": "point", "filled": True, "opacity": 1, "size": 45}, value, BOUNDED),
        _layer({"type": "point", "filled": False, "opacity": 1, "size": 70}, value, UNBOUNDED),
    ]
    return {"data": {"values": points}, "layer": layers, "width": WIDE, "height": 300, **FIT}


def bars(summaries: dict[str, Summary], spec: Bars, chance: float | None = None) -> Chart | None:
    """A bar with a whisker for each value of a tag, run and group; None where there is nothing to compare.

    A dashed line is where guessing would be.
    """
    points = [
        {**point, "x": f"{point['x']:g}" if isinstance(point["x"], float) else point["x"]}
        for point in _points(summaries, spec)
    ]
    names = list(dict.fromkeys(point["line"] for point in points))
    values = list(dict.fromkeys(point["x"] for point in points))
    if len(names) * len(values) < 2:
        return None
    start, end = _domain(points)
    start, end = min(0.0, start), 1.0 if points[0]["unit"] == "share" else end
    scale = {"domain": [start, end]}
    shared = {
        "y": _field(
            "x", "nominal",
            title=spec.x_title or None, sort=values, axis={"labelLimit": 240, "labelOverlap": False},
        ),
        "yOffset": _field("line", "nominal", sort=names),
    }  # fmt: skip
    axis = {"format": AXIS_FORMATS.get(points[0]["unit"], ".2f"), "tickCount": 5}
    value = _field("y", "quantitative", title=spec.y_title, scale=scale, axis=axis)
    # Whoever shows the chart says what colour its text has, and so these lines.
    whisker = {"x": _field("low", "quantitative", scale=scale), "x2": {"field": "high"}}
    bar = {**shared, "x": value, "color": _colour("line", names)}
    layers = [
        _layer({"type": "bar", "opacity": 0.6}, bar, BOUNDED),
        _layer({"type": "bar", "filled": False, "strokeWidth": 2}, bar, UNBOUNDED),
        _layer({"type": "rule", "strokeWidth": 2, "style": INK}, {**shared, **whisker}, BOUNDED),
    ]
    if chance is not None:
        mark = {"type": "rule", "strokeDash": [5, 4], "style": INK}
        guessing = _layer(mark, {"x": _field("chance", "quantitative", scale=scale)})
        layers.insert(1, {"data": {"values": [{"chance": chance}]}, **guessing})
    height = (18 * len(names) + 12) * len(values)
    return {"data": {"values": points}, "layer": layers, "width": WIDE, "height": height, **FIT}


def points(records: Iterable[Record], spec: Points) -> tuple[Chart | None, str]:
    """Samples as points, and what is to be said of them; no chart where too few have both numbers.

    Where there are very many they are thinned evenly.
    """
    rows: dict[str, list[dict[str, Any]]] = {}
    without = 0
    for record in records:
        row = str(record.score.tags.get(spec.split, "")) if spec.split else ""
        x, y, colour = (field_of(record, name) for name in (spec.x, spec.y, spec.colour))
        if x is None or y is None or colour is None:
            without += 1
            continue
        colours = colour if isinstance(colour, dict) else {"": colour}
        rows.setdefault(row, []).append({"x": x, "y": y, **{f"by {k}": v for k, v in colours.items()}})
    total = sum(map(len, rows.values()))
    rows = {row: samples[:: -(-len(samples) // MOST_POINTS)] for row, samples in rows.items()}
    charts = [_panels(samples, spec, row) for row, samples in rows.items() if len(samples) > 2]
    if not charts:
        return None, ""
    drawn = sum(map(len, rows.values()))
    note = f"Showing {drawn:,} of {total + without:,} samples." if drawn < total else ""
    return (charts[0] if len(charts) == 1 else {"vconcat": charts, "resolve": OWN_COLOURS}), note


def _panels(samples: list[dict[str, Any]], spec: Points, row: str) -> Chart:
    """A panel for each thing to colour by, side by side, at most two in a row."""
    fields = list(dict.fromkeys(name for each in samples for name in each if name.startswith("by ")))
    side = 280 if len(fields) > 1 else 420
    panels = []
    for field in fields:
        members, names = _with_categories([sample for sample in samples if field in sample], field)
        encoding = {
            "x": _field("x", "quantitative", title=spec.x_title or spec.x, scale={"zero": False}),
            "y": _field("y", "quantitative", title=spec.y_title or spec.y, scale={"zero": False}),
            "color": _colour("category", names, wide=side),
        }
        title = visible(f"{row} {field}".strip()) if len(fields) > 1 or row else ""
        panels.append(
            {
                "data": {"values": members},
                **_layer({"type": "circle", "size": 28, "opacity": 0.75}, encoding),
                "width": side,
                "height": side,
                **({"title": title} if title else {}),
            }
        )
    return panels[0] if len(panels) == 1 else {"concat": panels, "columns": 2, "resolve": OWN_COLOURS}


def _with_categories(samples: list[dict[str, Any]], field: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Points with the name that colours them, and these names: the rarer ones of many share one, the last."""
    names = [visible(shortened(str(sample[field]))) for sample in samples]
    frequent = [name for name, _ in Counter(names).most_common()]
    if len(frequent) > MOST_CATEGORIES:
        frequent = frequent[: MOST_CATEGORIES - 1]
        names = [name if name in frequent else OTHER for name in names]
    points = [
        {"x": sample["x"], "y": sample["y"], "category": name}
        for sample, name in zip(samples, names, strict=True)
    ]
    return points, sorted({*names}, key=lambda name: (name == OTHER, name))


def field_of(record: Record, name: str) -> Any:
    """A value, a detail or a tag of a sample's score."""
    score = record.score
    detail = msgspec.to_builtins(score.detail) or {}
    return score.values.get(name, detail.get(name, score.tags.get(name)))


def _field(field: str, kind: str, **settings: Any) -> dict[str, Any]:
    """A field of the data on a channel of a chart."""
    return {"field": field, "type": kind, **settings}


def _layer(mark: dict[str, Any], encoding: dict[str, Any], condition: str = "") -> Chart:
    """Marks of one kind, by what decides where each is and how it looks; of some of the data alone."""
    filtered = {"transform": [{"filter": condition}]} if condition else {}
    return {**filtered, "mark": mark, "encoding": encoding}


def _colour(field: str, names: Iterable[str], *, wide: int = 1000) -> dict[str, Any]:
    """A colour for each name, and a legend in as many columns as fit into `wide` pixels.

    The page's font may be wider than the one that the columns are measured with: long names need more space.
    """
    distinct = list(dict.fromkeys(names))
    longest = min(max(map(len, distinct)), 60)
    legend = {
        "title": None,
        "orient": "top",
        "labelLimit": 420,
        "symbolOpacity": 1,
        "columns": max(1, min(len(distinct), wide // (8 * longest + 40))),
        "columnPadding": 20 + 2 * longest,
    }
    scale = {"domain": distinct, "range": [PALETTE[i % len(PALETTE)] for i in range(len(distinct))]}
    return _field(field, "nominal", scale=scale, legend=legend if len(distinct) > 1 else None)


def narrow(chart: Chart) -> Chart:
    """The same for a phone: panels below each other, legends in one column, short labels."""
    for arrangement in ("concat", "vconcat"):
        if arrangement in chart:
            panels = [narrow(panel) for panel in chart[arrangement]]
            return {"vconcat": panels, "resolve": OWN_COLOURS}
    small = msgspec.json.decode(msgspec.json.encode(chart))
    for layer in small.get("layer", [small]):
        channels = layer["encoding"]
        if legend := channels.get("color", {}).get("legend"):
            legend |= {"columns": 1, "labelLimit": NARROW - 120}
        if axis := channels.get("y", {}).get("axis"):
            axis |= {"labelLimit": 90} if "labelLimit" in axis else {}
        for channel in (channels.get("x", {}), channels.get("y", {})):
            if isinstance(channel.get("title"), str):
                channel["title"] = wrap(channel["title"], 30)
    side = {"height": min(chart["height"], NARROW - 60)} if chart["height"] == chart["width"] else {}
    return {**small, "width": NARROW if "autosize" in chart else NARROW - 60, **side}


T = TypeVar("T")


def to_svg(chart: Chart) -> str:
    """A chart as SVG text."""
    import vl_convert

    return _drawn(lambda: vl_convert.vegalite_to_svg(_styled(chart, STYLE), allowed_base_urls=[]))


def to_png(chart: Chart) -> bytes:
    """A chart as a PNG picture on white, twice as large as on the page."""
    import vl_convert

    white = _styled(chart, {**STYLE, "background": "white"})
    return _drawn(lambda: vl_convert.vegalite_to_png(white, scale=2, allowed_base_urls=[]))


def _drawn(draw: Callable[[], T]) -> T:
    try:
        return draw()
    except ValueError as error:
        reason = (str(error).strip().splitlines() or ["no reason given"])[0]
        raise DrawingError(f"the chart could not be drawn: {reason}.") from None


def _styled(chart: Chart, style: dict[str, Any]) -> str:
    return msgspec.json.encode({**chart, "config": style}).decode()


AXIS = {"labelFontSize": 13, "titleFontSize": 13, "titleFontWeight": "normal", "gridColor": "#8883"}
GREYS = {"labelColor": "#777", "titleColor": "#777", "domainColor": "#888", "tickColor": "#888"}
STYLE: dict[str, Any] = {
    "background": "transparent",
    # The page's fonts may be wider than those that the sizes were measured with.
    "padding": {"left": 12, "right": 20, "top": 6, "bottom": 6},
    "font": "system-ui, sans-serif",
    "axis": AXIS | GREYS,
    "legend": {"labelColor": "#777", "labelFontSize": 13},
    "title": {"color": "#777", "fontSize": 13},
    "view": {"stroke": None},
    "style": {INK: {"color": "#1c2126"}},
}


def _domain(points: list[dict[str, Any]]) -> list[float]:
    """From the lowest interval to the highest with a margin, and at least a tenth of the unit's range."""
    ends = [
        each for point in points for each in (point["low"], point["y"], point["high"]) if each is not None
    ]
    low, high = min(ends), max(ends)
    least, most = RANGES.get(points[0]["unit"], (low, high))
    margin = max(0.05 * (high - low), (0.1 * (most - least) - (high - low)) / 2)
    inside = least <= low and high <= most  # a difference may be outside of the range of its unit
    return [max(low - margin, least), min(high + margin, most)] if inside else [low - margin, high + margin]


def _points(summaries: dict[str, Summary], spec: Curve) -> list[dict[str, Any]]:
    tag = spec.lines
    lines = {run: values_of(summary, spec.metric, tag) if tag else [] for run, summary in summaries.items()}
    # The name of a line says in what it differs from the others: the run, the tag, or both.
    names_run, names_line = len(summaries) > 1, len({line for each in lines.values() for line in each}) > 1
    points = []
    for run, summary in summaries.items():
        positions = values_of(summary, spec.metric, spec.along)
        for line in lines[run] or [""]:
            parts = ((run, names_run), (tag_value(line), names_line))
            words = " ".join(part for part, differs in parts if differs)
            name = visible(words)  # vl-convert aborts the process at a control character
            for x in positions:
                each = figure(summary, spec.metric, {spec.along: x, **({tag: line} if line else {})})
                if each is not None and each.value is not None:
                    why = no_interval(each)
                    low, high = (None, None) if why else (each.low, each.high)
                    limits = {"y": each.value, "low": low, "high": high, "why": why, "unit": each.unit}
                    place = float(x) if is_number(x) else visible(tag_value(x))
                    points.append({"x": place, "line": name, **limits})
    return _stretches(points)


def _stretches(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Points with the number of their stretch: neighbours of a line of which each has an interval.

    `alone` are those in a stretch of their own, along which no band can be drawn.
    """
    numbers = [0]
    for before, after in pairwise(points):
        joined = before["line"] == after["line"] and not before["why"] and not after["why"]
        numbers.append(numbers[-1] + (not joined))
    sizes = Counter(numbers)
    return [
        {**point, "stretch": number, "alone": sizes[number] == 1 and not point["why"]}
        for point, number in zip(points, numbers, strict=False)
    ]


def hollow_note(chart: Chart) -> str:
    """What is hollow in a curve or bars, and why: empty where every value has its interval."""
    reasons = dict.fromkeys(point["why"] for point in chart["data"]["values"])
    listed = visible("; ".join(filter(None, reasons)))
    return f"Hollow: a value without an interval ({listed})." if listed else ""
