"""Tables before they are drawn: the same rows and columns for the terminal, the page and a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from evenkeel.page.format import share
from evenkeel.page.layout import Column, Table
from evenkeel.page.notebook import Displayed
from evenkeel.types import Figure, Summary

Style: TypeAlias = Literal["", "strong", "soft", "warn"]


class Cell(NamedTuple):
    """A text in a table. A link is followed on pages only."""

    text: str
    style: Style = ""
    link: str = ""


Content: TypeAlias = Figure | Cell | str | None
"""A figure is drawn with its interval; None is a figure that is not there."""


class Grid(Displayed, Struct, frozen=True):
    """A table: the name of each column, and for each row its name and its cells."""

    title: str
    corner: str
    columns: list[str]
    rows: list[tuple[str, list[Content]]]
    left: int = 0
    """How many of the first columns, that of the row names included, are aligned to the left."""
    sections: bool = False
    """Whether every row with a name begins a section."""


def values_of(summary: Summary, metric: str, tag: str) -> list[str]:
    """The values of a tag that the summary has figures for, in its order (numbers by size)."""
    figures = (each for each in summary.values() if each.metric == metric)
    return in_order(each.scope[tag] for each in figures if tag in each.scope)


def in_order(values: Iterable[str]) -> list[str]:
    """Each value once: numbers by size, anything else in the order of its first occurrence."""
    distinct = list(dict.fromkeys(values))
    return sorted(distinct, key=float) if all(map(is_number, distinct)) else distinct


def is_number(value: str) -> bool:
    return value.isascii() and value.replace(".", "", 1).isdigit()


def figure(summary: Summary, metric: str, scope: Mapping[str, str]) -> Figure | None:
    """The figure of a scope, in whatever order its name has the tags."""
    return next((each for each in summary.values() if each.metric == metric and each.scope == scope), None)


def arrange(summary: Summary, table: Table) -> Grid | None:
    """One run's table, with a row for all together; None where it would show nothing new."""
    if table.pairs:
        return paired_rows(summary, table)
    metrics = {each.metric for each in summary.values()}
    shown = [each for each in table.metrics or (Column(table.metric, ""),) if each.metric in metrics]

    def values(tag: str) -> list[str]:
        return in_order(value for each in shown for value in values_of(summary, each.metric, tag))

    rows, split = values(table.rows), values(table.columns) if table.columns else []
    scopes = [(value, {table.columns: value}) for value in split] if len(split) > 1 else []
    columns: list[tuple[str, str, dict[str, str]]]
    if table.metrics:
        columns = [(f"{each.title} {value}", each.metric, scope) for each in shown for value, scope in scopes]
        columns = columns or [(each.title, each.metric, {}) for each in shown]
        redundant = table.several and len(shown) < 2
    else:
        columns = [("all", table.metric, {}), *((value, table.metric, scope) for value, scope in scopes)]
        redundant = not scopes and (table.several or len(rows) < 2)
    if redundant or not rows or not columns:
        return None
    row_scopes: list[tuple[str, dict[str, str]]] = [(row, {table.rows: row}) for row in rows]
    if table.total and len(rows) > 1:
        row_scopes.append(("all", {}))
    body: list[tuple[str, list[Content]]] = [
        (name, [figure(summary, metric, {**scope, **more}) for _, metric, more in columns])
        for name, scope in row_scopes
    ]
    return Grid(table.title, table.rows, [title for title, _, _ in columns], body)


def paired_rows(summary: Summary, table: Table) -> Grid | None:
    """A row for each figure of two values, of the table's row and column tags."""
    figures = [each for each in summary.values() if each.metric == table.metric]
    figures = [each for each in figures if set(each.scope) == {table.rows, table.columns}]
    names = in_order(each.scope[table.rows] for each in figures)
    rows: list[tuple[str, list[Content]]] = []
    for name in names:
        of_name = [each for each in figures if each.scope[table.rows] == name]
        # The name is in the first of its rows only.
        rows += [
            ("" if number else name, [each.scope[table.columns], each]) for number, each in enumerate(of_name)
        ]
    columns = [f"{table.pairs} {table.columns}", "difference"]
    return Grid(table.title, table.rows, columns, rows, left=2, sections=True) if rows else None


def side_by_side(summaries: Mapping[str, Summary], table: Table) -> Grid:
    """Several runs' figures of one table: a row for each value of its row tag, a column for each run."""
    metric = table.metric or table.metrics[0].metric
    rows = in_order(v for summary in summaries.values() for v in values_of(summary, metric, table.rows))
    totals = [figure(summary, metric, {}) for summary in summaries.values()]
    body: list[tuple[str, list[Content]]] = [
        (row, [figure(summary, metric, {table.rows: row}) for summary in summaries.values()]) for row in rows
    ]
    if table.total:
        body.append(("all", [*totals]))
    # Runs of unequal coverage are not shown side by side without saying so.
    columns = [
        name if total is None or total.coverage == 1 else f"{name} (coverage {share(total.coverage)})"
        for name, total in zip(summaries, totals, strict=True)
    ]
    return Grid(f"{table.title}, run by run", table.rows, columns, body)
