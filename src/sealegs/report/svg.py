"""Charts as SVG: curves with bands, bars with whiskers, points; a legend explains every mark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from sealegs.analysis.intervals import RANGES
from sealegs.page.scale import ENDS
from sealegs.report.canvas import Axis, Canvas, Colours, axis, shorten, text_width, tick_text, wrapped
from sealegs.report.charts import BarChart, Chart, CurveChart, PointChart, Position, Series
from sealegs.types import Unit

PALETTE = (
    *("#3b7dd8", "#c2571a", "#2e8b57", "#a05bb5", "#d0406a", "#80801f"),
    *("#2b9090", "#96713a", "#c95f9b", "#6a78d8", "#5f9426", "#76818c"),
)
"""Each has a contrast of at least 3 : 1 on the light page and on the dark one."""
WIDE, NARROW = 1000, 340
"""Pixels of a chart on a page, and on a phone's."""
LINE_HEIGHT = 20
AXIS_TITLE = 26
"""Pixels between the legend and the topmost line of a plot."""
LEGEND_SYMBOL = 24
CURVE_HEIGHT, POINTS_HEIGHT, LEAST_PLOT, MOST_HEIGHT = 260, 300, 160, 420
MOST_BAR, LEAST_BAR, BAR_GAP, ROW_GAP = 16.0, 5.0, 2.0, 8.0
DASHES = "5 4"
HALF_LABEL = 14.0
"""Left of bars whose names are above them: half of the label below their beginning."""
ROW_NAMES = 0.36
"""The share of a chart's width that the names of its rows may take."""


def draw(chart: Chart, width: int, colours: Colours = "plain") -> str:
    """A chart as one SVG element."""
    canvas = Canvas(width, colours)
    match chart:
        case BarChart():
            _draw_bars(canvas, chart)
        case CurveChart():
            _draw_curve(canvas, chart)
        case PointChart():
            _draw_points(canvas, chart)
    return canvas.svg()


# Legend


class LegendKey(NamedTuple):
    """A mark of the legend and what it means."""

    kind: Literal["line", "bar", "point", "band", "hollow", "whisker", "dashed"]
    words: str
    colour: str = "--ink"
    colours: tuple[str, ...] = ()
    """Of a band, those of the lines."""


def _draw_legend(canvas: Canvas, keys: Sequence[LegendKey]) -> None:
    x = 4.0
    for key in keys:
        lines = wrapped(key.words, canvas.width - LEGEND_SYMBOL - 12)
        needed = LEGEND_SYMBOL + 6 + max(map(text_width, lines))
        if x > 4 and x + needed > canvas.width:
            x, canvas.y = 4.0, canvas.y + LINE_HEIGHT
        _draw_key(canvas, key, x, canvas.y + LINE_HEIGHT / 2)
        for number, line in enumerate(lines):
            canvas.y += LINE_HEIGHT if number else 0
            canvas.text(x + LEGEND_SYMBOL + 4, canvas.y + LINE_HEIGHT / 2 + 4.5, line)
        x += needed + 24
    canvas.y += LINE_HEIGHT + 6 if keys else 0


def _draw_key(canvas: Canvas, key: LegendKey, x: float, y: float) -> None:
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
            width = LEGEND_SYMBOL / len(key.colours)
            for number, each in enumerate(key.colours):
                start = x + number * width
                canvas.mark("rect", x=start, y=y - 6, width=width, height=12, fill=each, opacity=0.18)
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


def _series_keys(series: Sequence[Series], kind: Literal["line", "bar"], alone: str) -> list[LegendKey]:
    """A mark for each series by its name; one alone is called what its values are."""
    names = [each.name for each in series] if len(series) > 1 else [alone]
    return [LegendKey(kind, name, _palette(number)) for number, name in enumerate(names)]


def _uncertain_keys(series: Sequence[Series], known: LegendKey) -> Iterator[LegendKey]:
    positions = [position for each in series for position in each.positions]
    if any(position.low is not None for position in positions):
        yield known
    reasons = dict.fromkeys(each.no_interval for each in positions if each.low is None)
    if reasons:
        yield LegendKey("hollow", f"no 95% interval: {' or '.join(reasons)}", _palette(0))


def _palette(number: int) -> str:
    return PALETTE[number % len(PALETTE)]


# Curves


def _draw_curve(canvas: Canvas, chart: CurveChart) -> None:
    several = len(chart.series) > 1
    band = LegendKey("band", "95% interval", colours=tuple(map(_palette, range(len(chart.series)))))
    keys = [*_series_keys(chart.series, "line", chart.y_title), *_uncertain_keys(chart.series, band)]
    _draw_legend(canvas, keys)
    top = canvas.y + AXIS_TITLE
    bottom = max(top + LEAST_PLOT, min(top + CURVE_HEIGHT, MOST_HEIGHT - 46.0))
    values = axis(chart.domain, bottom, top, most=6)
    title = chart.y_title if several else ""
    if chart.unit in ENDS and values.low > ENDS[chart.unit][0]:
        begins = f"axis from {tick_text(values.low, chart.unit, values.step)}"
        title = f"{title} ({begins})" if title else begins
    left = _value_axis(canvas, values, title, chart.unit)
    places = _places(chart, left + 14, canvas.width - 24.0)
    _place_axis(canvas, places, bottom, chart)
    for number, each in enumerate(chart.series):
        for stretch in _stretches(each.positions, with_interval=True):
            _draw_band(canvas, values, places, stretch, _palette(number))
    for number, each in enumerate(chart.series):
        for stretch in _stretches(each.positions):
            line = [(places[position.x], values.at(position.y)) for position in stretch]
            canvas.mark("polyline", points=_path(line), fill="none", stroke=_palette(number), stroke_width=2)
        for position in each.positions:
            x, y = places[position.x], values.at(position.y)
            if position.low is None:
                _hollow(canvas, x, y, _palette(number))
            else:
                canvas.mark("circle", cx=x, cy=y, r=3.5, fill=_palette(number))


def _draw_band(
    canvas: Canvas,
    values: Axis,
    places: dict[float | str, float],
    stretch: Sequence[Position],
    colour: str,
) -> None:
    """The intervals of neighbours; a single one is a line, along which no band can be drawn."""
    limits = [(each.x, each.low or 0.0, each.high or 0.0) for each in stretch]
    if len(limits) == 1:
        [(x, low, high)] = limits
        canvas.line(
            places[x], values.at(low), places[x], values.at(high), colour, stroke_width=2, opacity=0.4
        )
        return
    edge = [(places[x], values.at(high)) for x, _, high in limits]
    edge += [(places[x], values.at(low)) for x, low, _ in reversed(limits)]
    canvas.mark("polygon", points=_path(edge), fill=colour, opacity=0.18)


def _value_axis(canvas: Canvas, values: Axis, title: str, unit: Unit) -> float:
    """The vertical axis with its title above it and lines across; where its labels end."""
    labels = [tick_text(tick, unit, values.step) for tick in values.ticks]
    left = 8 + max(map(text_width, labels))
    if title:  # with an arrow, as it stands below the legend
        canvas.text(4, canvas.y + 8, shorten(f"↑ {title}", canvas.width - 8))
    for tick, label in zip(values.ticks, labels, strict=True):
        canvas.line(left + 6, values.at(tick), canvas.width - 4.0, values.at(tick), "--line")
        canvas.text(left, values.at(tick) + 4.5, label, anchor="end")
    return left


def _places(chart: CurveChart, start: float, end: float) -> dict[float | str, float]:
    """Where each position is: numbers on their scale, anything else at equal distances."""
    positions = list(dict.fromkeys(p.x for each in chart.series for p in each.positions))
    numbers = [x for x in positions if not isinstance(x, str)]
    if len(numbers) == len(positions):
        low, high = min(numbers), max(numbers)
        return {x: start + (x - low) / ((high - low) or 1) * (end - start) for x in sorted(numbers)}
    step = (end - start) / max(1, len(positions) - 1)
    return {x: start + number * step for number, x in enumerate(positions)}


def _place_axis(canvas: Canvas, places: dict[float | str, float], bottom: float, chart: CurveChart) -> None:
    """The labels below a curve; one that would touch its neighbour is left out."""
    free = 0.0
    for x, place in places.items():
        words = x if isinstance(x, str) else f"{x:.0%}" if chart.x_unit == "share" else f"{x:g}"
        half = text_width(words) / 2
        middle = min(max(place, half), canvas.width - half)
        if middle - half >= free:
            canvas.text(middle, bottom + 18, words, anchor="middle")
            free = middle + half + 6
    _title_below(canvas, bottom, chart.x_title)


def _title_below(canvas: Canvas, bottom: float, title: str) -> None:
    canvas.y = bottom + 38
    for line in wrapped(title, canvas.width - 16):
        canvas.text(canvas.width / 2, canvas.y, line, anchor="middle")
        canvas.y += 17
    canvas.y -= 9


def _stretches(positions: Iterable[Position], *, with_interval: bool = False) -> Iterator[list[Position]]:
    """Neighbours that a line may join, or a band: that is broken also where an interval is not known."""
    stretch: list[Position] = []
    for position in positions:
        known = position.low is not None or not with_interval
        if stretch and not (position.joined and known):
            yield stretch
            stretch = []
        if known:
            stretch.append(position)
    if stretch:
        yield stretch


def _path(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


# Bars


class Rows(NamedTuple):
    """How the rows of a bar chart are arranged."""

    names: tuple[str, ...]
    left: float
    """Where the bars begin."""
    head: float
    """The space above the bars of a row for its name: 0 where the name is beside them."""
    bar: float
    bars: int
    gap: float
    """Between two rows."""

    @property
    def height(self) -> float:
        return self.head + self.bars * (self.bar + BAR_GAP) + self.gap


def _rows(chart: BarChart, width: int, space: float) -> Rows:
    """Names beside the bars where they fit, else above them, as long as the picture is not too high."""
    names = tuple(dict.fromkeys(row_name(p) for each in chart.series for p in each.positions))
    widest, count = max(map(text_width, names)), len(chart.series)
    gap = min(ROW_GAP, space / len(names) / 4)
    room = space / len(names) - gap
    least = count * (LEAST_BAR + BAR_GAP)
    above = widest > ROW_NAMES * width and room >= LINE_HEIGHT + least
    head = LINE_HEIGHT if above else 0.0
    bar = max(LEAST_BAR, min(MOST_BAR, (room - head) / count - BAR_GAP))
    return Rows(names, HALF_LABEL if above else min(widest, ROW_NAMES * width) + 16, head, bar, count, gap)


def row_name(position: Position) -> str:
    return position.x if isinstance(position.x, str) else f"{position.x:g}"


def _draw_bars(canvas: Canvas, chart: BarChart) -> None:
    keys = _series_keys(chart.series, "bar", chart.y_title)
    keys += _uncertain_keys(chart.series, LegendKey("whisker", "95% interval"))
    if chart.chance is not None:
        keys.append(LegendKey("dashed", chart.chance_words))
    _draw_legend(canvas, keys)
    if chart.x_title:
        canvas.text(8, canvas.y + 9, shorten(chart.x_title, canvas.width - 16.0))
        canvas.y += LINE_HEIGHT
    rows = _rows(chart, canvas.width, MOST_HEIGHT - canvas.y - 52)
    top, bottom = canvas.y, canvas.y + len(rows.names) * rows.height
    values = axis(chart.domain, rows.left, canvas.width - 24.0, most=6 if canvas.width > 500 else 5)
    for tick in values.ticks:
        canvas.line(values.at(tick), top, values.at(tick), bottom, "--line")
        words = tick_text(tick, chart.unit, values.step)
        canvas.text(values.at(tick), bottom + 16, words, anchor="middle")
    for index, name in enumerate(rows.names):
        y = top + index * rows.height
        if rows.head:
            canvas.text(8, y + 15, shorten(name, canvas.width - 16.0), colour="--ink")
        else:
            middle = y + (rows.height - rows.gap) / 2 + 4.5
            words = shorten(name, rows.left - 12)
            canvas.text(rows.left - 8, middle, words, anchor="end", colour="--ink")
        for number, each in enumerate(chart.series):
            for position in each.positions:
                if row_name(position) == name:
                    _draw_bar(canvas, values, position, y + rows.head, rows.bar, _palette(number))
            y += rows.bar + BAR_GAP
    if chart.chance is not None:
        x = values.at(chart.chance)
        canvas.line(x, top, x, bottom, "--ink", stroke_dasharray=DASHES, stroke_width=1.5)
    _title_below(canvas, bottom - 2, chart.y_title)


def _draw_bar(canvas: Canvas, values: Axis, position: Position, top: float, size: float, colour: str) -> None:
    zero, end = values.at(max(0.0, values.low)), values.at(position.y)
    x, length = min(zero, end), max(abs(end - zero), 1.0)
    canvas.mark("rect", x=x, y=top, width=length, height=size, fill=colour, opacity=0.75)
    middle = top + size / 2
    if position.low is None or position.high is None:
        _hollow(canvas, end, middle, colour)
    else:
        _whisker(canvas, values.at(position.low), values.at(position.high), middle)


# Points


def _draw_points(canvas: Canvas, chart: PointChart) -> None:
    names = list(chart.categories)
    _draw_legend(canvas, [LegendKey("point", name, _palette(i)) for i, name in enumerate(names)])
    points = [point for listed in chart.categories.values() for point in listed]
    top = canvas.y + AXIS_TITLE
    bottom = max(top + LEAST_PLOT, min(top + POINTS_HEIGHT, MOST_HEIGHT - 46.0))
    vertical = axis(_spread((y for _, y in points), chart.y_unit), bottom, top, most=6)
    left = _value_axis(canvas, vertical, chart.y_title, chart.y_unit)
    most = 6 if canvas.width > 500 else 5
    along = axis(_spread((x for x, _ in points), chart.x_unit), left + 14, canvas.width - 24.0, most)
    for tick in along.ticks:
        words = tick_text(tick, chart.x_unit, along.step)
        canvas.text(along.at(tick), bottom + 18, words, anchor="middle")
    for number, name in enumerate(names):
        places = ((along.at(x), vertical.at(y)) for x, y in chart.categories[name])
        canvas.circles(places, 3.5, _palette(number))
    _title_below(canvas, bottom, chart.x_title)


def _spread(values: Iterable[float], unit: Unit) -> tuple[float, float]:
    """From the least to the most, or all of a share or a score."""
    listed = list(values)
    low, high = min(listed), max(listed)
    least, most = RANGES.get(unit, (low, high)) if unit in ("share", "score") else (low, high)
    low, high = min(low, least), max(high, most)
    return (low, high) if high > low else (low - 0.5, high + 0.5)
