"""A surface to draw on: marks as SVG text, axes with round numbers, and texts in one size that fit.

On a page the colours are variables of its style, so that one picture serves light and dark; a notebook has no
such variables, and gives the colour of its text. In a file they are plain, since converters do not read
variables. All text is escaped: names come from data.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from math import ceil, floor, log10
from typing import Literal, NamedTuple, TypeAlias
from unicodedata import east_asian_width

from sealegs.page.format import MINUS
from sealegs.types import Unit

Colours: TypeAlias = Literal["page", "plain"]
PLAIN = {"--ink": "#1c2126", "--soft": "#5a646e", "--line": "#d6dbe0", "--paper": "#ffffff"}
"""What the page's variables are in a file."""
NOTEBOOK = {"--ink": "currentColor", "--soft": "currentColor", "--line": "#8884", "--paper": "transparent"}
"""What they are in a notebook."""
TYPE_SIZE = 13


class Canvas:
    """What has been drawn, and how far down."""

    def __init__(self, width: int, colours: Colours) -> None:
        self.width, self.colours = width, colours
        self.y = 4.0
        self._marks: list[str] = []

    def colour(self, name: str) -> str:
        if not name.startswith("--"):
            return name
        return PLAIN[name] if self.colours == "plain" else f"var({name}, {NOTEBOOK[name]})"

    def mark(self, kind: str, **attributes: object) -> None:
        self._marks.append(_element(kind, attributes))

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str, **more: object) -> None:
        self.mark("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=self.colour(colour), **more)

    def circles(self, points: Iterable[tuple[float, float]], radius: float, colour: str) -> None:
        """Many points of one look, which is said once: a page has thousands."""
        circles = "".join([f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>' for x, y in points])
        self._marks.append(_element("g", {"fill": colour, "fill-opacity": 0.75}, inside=circles))

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
    listed = "".join(f' {name.replace("_", "-")}="{_written(value)}"' for name, value in attributes.items())
    content = inside or escape(words)
    return f"<{kind}{listed}>{content}</{kind}>" if content else f"<{kind}{listed}/>"


def _written(value: object) -> str:
    if isinstance(value, str):
        return escape(value)
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

    @property
    def step(self) -> float:
        return self.ticks[1] - self.ticks[0] if len(self.ticks) > 1 else 1.0

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
    """`80%` of shares, otherwise as many decimals as tell two ticks apart."""
    if unit == "share":
        decimals = 0 if step >= 0.01 - 1e-9 else 1
        return f"{100 * value:.{decimals}f}%".replace("-", MINUS)
    decimals = -floor(log10(step) + 1e-9) if step < 1 else 0
    return f"{value:,.{decimals}f}".replace("-", MINUS)


def text_width(words: str) -> float:
    """About how many pixels a text takes: the reader's font is not known."""
    return sum(TYPE_SIZE if east_asian_width(letter) in "WF" else 0.6 * TYPE_SIZE for letter in words)


def shorten(words: str, width: float) -> str:
    """A text that fits into so many pixels."""
    if text_width(words) <= width:
        return words
    kept = words
    while kept and text_width(kept) + TYPE_SIZE > width:
        kept = kept[:-1]
    return f"{kept.rstrip()}…"


def wrapped(words: str, width: float) -> list[str]:
    """A text in lines that fit into so many pixels, broken between words."""
    lines = [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return [shorten(line, width) for line in lines]
