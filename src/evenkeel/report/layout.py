"""What a benchmark wants shown, said once: the terminal, the page and the app draw it their own way."""

from __future__ import annotations

from msgspec import Struct


class Table(Struct, frozen=True, kw_only=True):
    """Figures of one metric, a row for each value of a tag and a column for each value of another."""

    title: str
    metric: str
    rows: str
    columns: str = ""
    several: bool = False
    """Shown only where there is more than one column."""


class Curve(Struct, frozen=True, kw_only=True):
    """A metric along an ordered tag, with its interval as a band; a line for each value of `lines`."""

    title: str
    metric: str
    along: str
    lines: str = ""
    x_title: str = ""
    y_title: str = ""


class Layout(Struct, frozen=True, kw_only=True):
    """A benchmark's page: its headline metric, its pictures, its tables, and what to be careful about."""

    headline: str
    headline_title: str
    question: str
    curves: tuple[Curve, ...] = ()
    tables: tuple[Table, ...] = ()
    cautions: tuple[str, ...] = ()
    citation: str = ""
