"""What a benchmark wants shown, said once: the terminal, the page and the app draw it their own way."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct


class Column(NamedTuple):
    """A metric and the words for it."""

    metric: str
    title: str


class Table(Struct, frozen=True, kw_only=True):
    """A row for each value of a tag; the columns are the values of another tag, or several metrics."""

    title: str
    rows: str
    metric: str = ""
    columns: str = ""
    metrics: tuple[Column, ...] = ()
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
    facts: tuple[Column, ...] = ()
    """Further single figures, shown below the headline where the run has them."""
    curves: tuple[Curve, ...] = ()
    heatmap: str = ""
    """The title of one sample's `pairwise_similarities`, drawn as a map."""
    tables: tuple[Table, ...] = ()
    cautions: tuple[str, ...] = ()
    citation: str = ""
