"""Charts as SVG text: curves with bands, bars with whiskers, points; drawn for a width, in one type size.

On a page the colours are variables of its style, so that one picture serves light and dark. Elsewhere they
are plain, since converters do not read variables. All text is escaped: names come from data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil, floor, log10
from typing import Literal, NamedTuple, TypeAlias
from unicodedata import east_asian_width

from markupsafe import escape

from evenkeel.report.charts import BarChart, Chart, CurveChart, Panel, PointChart, Position, Series
from evenkeel.types import Unit

Colours: TypeAlias = Literal["page", "plain"]
PALETTE = (
    *("#3b7dd8", "#c2571a", "#2e8b57", "#a05bb5", "#d0406a", "#80801f"),
    *("#2b9090", "#96713a", "#c95f9b", "#6a78d8", "#5f9426", "#76818c"),
)
"""Each has a contrast of at least 3 : 1 on the light page and on the dark one."""
PLAIN = {"--ink": "#1c2126", "--soft": "#5a646e", "--line": "#d6dbe0", "--paper": "#ffffff"}
"""What the page's variables are where there is no page."""
TYPE_SIZE = 13
LINE_HEIGHT = 20
LEGEND_SYMBOL = 24
CURVE_HEIGHT, POINTS_HEIGHT, MOST_HEIGHT = 260, 300, 420
MOST_BAR, LEAST_BAR, BAR_GAP = 16.0, 5.0, 2.0
DASHES = "5 4"
DECIMALS: dict[Unit, int] = {"share": 0, "score": 0, "points": 0, "tokens": 0}


def draw(chart: Chart, width: int, colours: Colours = "plain") -> str:
    """A chart as one SVG element."""
    canvas = Canvas(width, colours)
    match chart:
        case CurveChart():
            _draw_curve(canvas, chart)
        case BarChart():
            _draw_bars(canvas, chart)
        case PointChart():
            _draw_points(canvas, chart)
    return canvas.svg()


class Canvas:
    """What has been drawn, and how far down."""

    def __init__(self, width: int, colours: Colours) -> None:
        self.width, self.colours = width, colours
        self.y = 4.0
        self._marks: list[str] = []

    def colour(self, name: str) -> str:
        if not name.startswith("--"):
            return name
        return PLAIN[name] if self.colours == "plain" else f"var({name})"

    def mark(self, kind: str, **attributes: object) -> None:
        self._marks.append(_element(kind, attributes))

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str, **more: object) -> None:
        self.mark("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=self.colour(colour), **more)

    def text(self, x: float, y: float, words: str, *, anchor: str = "start", colour: str = "--soft") -> None:
        attributes = {"x": x, "y": y, "text-anchor": anchor, "fill": self.colour(colour)}
        self._marks.append(_element("text", attributes, words))

    def svg(self) -> str:
        height = ceil(self.y)
        attributes: dict[str, object] = {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {self.width} {height}",
            "width": self.width,
            "height": height,
            "font-family": "system-ui, sans-serif",
            "font-size": TYPE_SIZE,
        }
        return _element("svg", attributes, "", inside="".join(self._marks))


def _element(kind: str, attributes: dict[str, object], words: str = "", inside: str = "") -> str:
    listed = "".join(
        f' {name.replace("_", "-")}="{escape(_written(value))}"' for name, value in attributes.items()
    )
    content = inside or str(escape(words))
    return f"<{kind}{listed}>{content}</{kind}>" if content else f"<{kind}{listed}/>"


def _written(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


# Axes


class Axis(NamedTuple):
    """A scale from numbers to pixels, with the numbers that are written beside it."""

    low: float
    high: float
    start: float
    """The pixel of the lowest number."""
    end: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return self.start + share * (self.end - self.start)


def axis(domain: tuple[float, float], start: float, end: float, most: int) -> Axis:
    """An axis over a domain that is widened to round numbers, with at most so many of them."""
    low, high = domain
    step = _round_step((high - low) / max(1, most - 1))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    ticks = tuple(round(number * step, 10) for number in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], start, end, ticks)


def _round_step(least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is not below this."""
    if least <= 0:
        return 1.0
    power = 10.0 ** floor(log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def tick_text(value: float, unit: Unit, step: float) -> str:
    """`80 %` of shares, otherwise as many decimals as tell two ticks apart."""
    if unit == "share":
        decimals = 0 if step >= 0.01 - 1e-9 else 1
        return f"{100 * value:.{decimals}f}%"
    decimals = max(DECIMALS.get(unit, 0), -floor(log10(step) + 1e-9)) if step < 1 else 0
    return f"{value:,.{decimals}f}"


def text_width(words: str) -> float:
    """About how many pixels a text takes: the reader's font is not known."""
    return sum(TYPE_SIZE if east_asian_width(letter) in "WF" else 0.56 * TYPE_SIZE for letter in words)


def shorten(words: str, width: float) -> str:
    """A text that fits into so many pixels."""
    if text_width(words) <= width:
        return words
    kept = words
    while kept and text_width(kept) + TYPE_SIZE > width:
        kept = kept[:-1]
    return f"{kept.rstrip()}…"


# Legend


class Key(NamedTuple):
    """A mark of the legend and what it means."""

    kind: Literal["line", "bar", "point", "band", "hollow", "whisker", "dashed"]
    words: str
    colour: str = "--ink"


def _draw_legend(canvas: Canvas, keys: Sequence[Key]) -> None:
    x = 4.0
    for key in keys:
        words = shorten(key.words, canvas.width - LEGEND_SYMBOL - 12)
        needed = LEGEND_SYMBOL + 6 + text_width(words)
        if x > 4 and x + needed > canvas.width:
            x, canvas.y = 4.0, canvas.y + LINE_HEIGHT
        _draw_key(canvas, key, x, canvas.y + LINE_HEIGHT / 2)
        canvas.text(x + LEGEND_SYMBOL + 4, canvas.y + LINE_HEIGHT / 2 + 4.5, words)
        x += needed + 18
    canvas.y += LINE_HEIGHT + 6 if keys else 0


def _draw_key(canvas: Canvas, key: Key, x: float, y: float) -> None:
    colour, middle, end = canvas.colour(key.colour), x + LEGEND_SYMBOL / 2, x + LEGEND_SYMBOL
    match key.kind:
        case "line":
            canvas.line(x, y, end, y, key.colour, stroke_width=2)
            canvas.mark("circle", cx=middle, cy=y, r=3.5, fill=colour)
        case "bar":
            canvas.mark("rect", x=x + 4, y=y - 5, width=16, height=10, fill=colour)
        case "point":
            canvas.mark("circle", cx=middle, cy=y, r=4, fill=colour)
        case "band":
            canvas.mark("rect", x=x, y=y - 6, width=LEGEND_SYMBOL, height=12, fill=colour, opacity=0.18)
        case "hollow":
            _hollow(canvas, middle, y, key.colour)
        case "whisker":
            _whisker(canvas, x + 2, end - 2, y)
        case "dashed":
            canvas.line(middle, y - 8, middle, y + 8, key.colour, stroke_dasharray=DASHES, stroke_width=1.5)


def _hollow(canvas: Canvas, x: float, y: float, colour: str) -> None:
    """A value whose interval is not known."""
    canvas.mark(
        "circle", cx=x, cy=y, r=4, fill=canvas.colour("--paper"), stroke=canvas.colour(colour), stroke_width=2
    )


def _whisker(canvas: Canvas, low: float, high: float, y: float) -> None:
    canvas.line(low, y, high, y, "--ink", stroke_width=1.5)
    for x in (low, high):
        canvas.line(x, y - 3, x, y + 3, "--ink", stroke_width=1.5)


def _series_keys(series: Sequence[Series], kind: Literal["line", "bar"]) -> list[Key]:
    if len(series) < 2:
        return []
    return [Key(kind, each.name, _palette(number)) for number, each in enumerate(series)]


def _uncertain_keys(series: Sequence[Series], known: Key) -> Iterator[Key]:
    positions = [position for each in series for position in each.positions]
    if any(position.low is not None for position in positions):
        yield known
    reasons = dict.fromkeys(each.no_interval for each in positions if each.low is None)
    if reasons:
        yield Key("hollow", f"interval not known: {' or '.join(reasons)}", _palette(0))


def _palette(number: int) -> str:
    return PALETTE[number % len(PALETTE)]


# Curves


def _draw_curve(canvas: Canvas, chart: CurveChart) -> None:
    band = Key("band", "95% interval", _palette(0))
    _draw_legend(canvas, [*_series_keys(chart.series, "line"), *_uncertain_keys(chart.series, band)])
    top, bottom = canvas.y + LINE_HEIGHT, canvas.y + LINE_HEIGHT + CURVE_HEIGHT
    values = axis(chart.domain, bottom, top, most=6)
    left = _value_axis(canvas, values, chart, canvas.y + 12)
    places = _along(chart, left + 14, canvas.width - 18.0)
    _position_axis(canvas, places, bottom, chart.x_title)
    for number, each in enumerate(chart.series):
        for run in _with_interval(each.positions):
            edge = [(places[p.x], values.at(_bound(p.high))) for p in run]
            edge += [(places[p.x], values.at(_bound(p.low))) for p in reversed(run)]
            canvas.mark("polygon", points=_path(edge), fill=_palette(number), opacity=0.18)
    for number, each in enumerate(chart.series):
        line = [(places[p.x], values.at(p.y)) for p in each.positions]
        canvas.mark("polyline", points=_path(line), fill="none", stroke=_palette(number), stroke_width=2)
        for position, (x, y) in zip(each.positions, line, strict=True):
            if position.low is None:
                _hollow(canvas, x, y, _palette(number))
            else:
                canvas.mark("circle", cx=x, cy=y, r=3.5, fill=_palette(number))


def _value_axis(canvas: Canvas, values: Axis, chart: CurveChart, title_at: float) -> float:
    """The vertical axis with its lines across; where its labels end."""
    step = values.ticks[1] - values.ticks[0] if len(values.ticks) > 1 else 1.0
    labels = [tick_text(tick, chart.unit, step) for tick in values.ticks]
    left = 8 + max(map(text_width, labels))
    canvas.text(4, title_at, shorten(chart.y_title, canvas.width - 8))
    for tick, label in zip(values.ticks, labels, strict=True):
        canvas.line(left + 6, values.at(tick), canvas.width - 4.0, values.at(tick), "--line")
        canvas.text(left, values.at(tick) + 4.5, label, anchor="end")
    return left


def _along(chart: CurveChart, start: float, end: float) -> dict[float | str, float]:
    """Where each position is: numbers on their scale, anything else at equal distances."""
    positions = list(dict.fromkeys(p.x for each in chart.series for p in each.positions))
    numbers = [x for x in positions if not isinstance(x, str)]
    if len(numbers) == len(positions):
        low, high = min(numbers), max(numbers)
        return {x: start + (x - low) / ((high - low) or 1) * (end - start) for x in sorted(numbers)}
    step = (end - start) / max(1, len(positions) - 1)
    return {x: start + number * step for number, x in enumerate(positions)}


def _position_axis(canvas: Canvas, places: dict[float | str, float], bottom: float, title: str) -> None:
    """The labels below a curve; one that would touch its neighbour is left out."""
    free = 0.0
    for x, place in places.items():
        words = x if isinstance(x, str) else f"{x:g}"
        half = text_width(words) / 2
        place_of_text = min(max(place, half), canvas.width - half)
        if place_of_text - half >= free:
            canvas.text(place_of_text, bottom + 18, words, anchor="middle")
            free = place_of_text + half + 6
    canvas.text(canvas.width / 2, bottom + 38, shorten(title, canvas.width - 8), anchor="middle")
    canvas.y = bottom + 46


def _with_interval(positions: Iterable[Position]) -> Iterator[list[Position]]:
    """The runs of neighbours whose intervals are known: a band is broken where one is not."""
    run: list[Position] = []
    for position in positions:
        if position.low is None or position.high is None:
            if run:
                yield run
            run = []
        else:
            run.append(position)
    if run:
        yield run


def _bound(value: float | None) -> float:
    if value is None:
        raise ValueError("a position without an interval has no band")
    return value


def _path(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


# Bars


def _draw_bars(canvas: Canvas, chart: BarChart) -> None:
    keys = _series_keys(chart.series, "bar")
    keys += _uncertain_keys(chart.series, Key("whisker", "95% interval"))
    if chart.chance is not None:
        keys.append(Key("dashed", chart.chance_words))
    _draw_legend(canvas, keys)
    rows = list(dict.fromkeys(p.x for each in chart.series for p in each.positions))
    count = len(chart.series)
    space = MOST_HEIGHT - canvas.y - 48
    # The name of a row is above its bars, where a phone has room for it.
    size = max(LEAST_BAR, min(MOST_BAR, (space / len(rows) - LINE_HEIGHT) / count - BAR_GAP))
    top = canvas.y
    bottom = top + len(rows) * (LINE_HEIGHT + count * (size + BAR_GAP)) + 6
    values = axis(chart.domain, 8.0, canvas.width - 24.0, most=6 if canvas.width > 500 else 4)
    step = values.ticks[1] - values.ticks[0] if len(values.ticks) > 1 else 1.0
    for tick in values.ticks:
        canvas.line(values.at(tick), top, values.at(tick), bottom, "--line")
        canvas.text(values.at(tick), bottom + 16, tick_text(tick, chart.unit, step), anchor="middle")
    canvas.text(canvas.width / 2, bottom + 36, shorten(chart.y_title, canvas.width - 8), anchor="middle")
    for row in rows:
        label = row if isinstance(row, str) else f"{row:g}"
        canvas.text(8, canvas.y + 15, shorten(label, canvas.width - 16.0), colour="--ink")
        canvas.y += LINE_HEIGHT
        for number, each in enumerate(chart.series):
            for position in each.positions:
                if position.x == row:
                    _draw_bar(canvas, values, position, size, _palette(number))
            canvas.y += size + BAR_GAP
    if chart.chance is not None:
        x = values.at(chart.chance)
        canvas.line(x, top, x, bottom, "--ink", stroke_dasharray=DASHES, stroke_width=1.5)
    canvas.y = bottom + 44


def _draw_bar(canvas: Canvas, values: Axis, position: Position, size: float, colour: str) -> None:
    zero, end = values.at(max(0.0, values.low)), values.at(position.y)
    y = canvas.y + size / 2
    canvas.mark(
        "rect", x=min(zero, end), y=canvas.y, width=max(abs(end - zero), 1.0), height=size, fill=colour,
        opacity=0.75,
    )  # fmt: skip
    if position.low is None or position.high is None:
        _hollow(canvas, end, y, colour)
    else:
        _whisker(canvas, values.at(position.low), values.at(position.high), y)


# Points


def _draw_points(canvas: Canvas, chart: PointChart) -> None:
    for panel in chart.panels:
        if panel.title:
            canvas.text(4, canvas.y + 14, shorten(panel.title, canvas.width - 8.0), colour="--ink")
            canvas.y += LINE_HEIGHT
        _draw_panel(canvas, chart, panel)


def _draw_panel(canvas: Canvas, chart: PointChart, panel: Panel) -> None:
    names = list(panel.categories)
    if len(names) > 1:
        _draw_legend(canvas, [Key("point", name, _palette(i)) for i, name in enumerate(names)])
    points = [point for listed in panel.categories.values() for point in listed]
    top, bottom = canvas.y + LINE_HEIGHT, canvas.y + LINE_HEIGHT + POINTS_HEIGHT
    vertical = axis(_spread(y for _, y in points), bottom, top, most=6)
    step = vertical.ticks[1] - vertical.ticks[0]
    labels = [tick_text(tick, chart.y_unit, step) for tick in vertical.ticks]
    left = 8 + max(map(text_width, labels))
    canvas.text(4, canvas.y + 12, shorten(chart.y_title, canvas.width - 8.0))
    for tick, label in zip(vertical.ticks, labels, strict=True):
        canvas.line(left + 6, vertical.at(tick), canvas.width - 4.0, vertical.at(tick), "--line")
        canvas.text(left, vertical.at(tick) + 4.5, label, anchor="end")
    along = axis(
        _spread(x for x, _ in points), left + 14, canvas.width - 24.0, most=6 if canvas.width > 500 else 4
    )
    width = along.ticks[1] - along.ticks[0]
    for tick in along.ticks:
        words = tick_text(tick, chart.x_unit, width)
        canvas.text(along.at(tick), bottom + 18, words, anchor="middle")
    canvas.text(canvas.width / 2, bottom + 38, shorten(chart.x_title, canvas.width - 8.0), anchor="middle")
    for number, name in enumerate(names):
        for x, y in panel.categories[name]:
            canvas.mark(
                "circle", cx=along.at(x), cy=vertical.at(y), r=3.5, fill=_palette(number), opacity=0.75
            )
    canvas.y = bottom + 46


def _spread(values: Iterable[float]) -> tuple[float, float]:
    listed = list(values)
    low, high = min(listed), max(listed)
    return (low, high) if high > low else (low - 0.5, high + 0.5)
