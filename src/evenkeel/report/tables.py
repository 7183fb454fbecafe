"""Figures arranged in rows and columns, before anything is drawn."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from evenkeel.report.layout import Table
from evenkeel.types import Figure, Summary


class Grid(Struct, frozen=True):
    """A table of figures: the name of each column, and for each row its name and its cells."""

    title: str
    corner: str
    columns: list[str]
    rows: list[tuple[str, list[Figure | None]]]


def scope_of(name: str) -> tuple[str, dict[str, str]]:
    """A figure's metric and scope from its name: `m/level=3,lang=en` → `m`, {level: 3, lang: en}."""
    metric, _, scope = name.partition("/")
    return metric, dict(part.split("=", 1) for part in scope.split(",")) if scope else {}


def values_of(summary: Summary, metric: str, tag: str) -> list[str]:
    """The values of a tag that the summary has figures for, in its own order (numbers by size)."""
    found = (scope_of(name) for name in summary)
    values = list(dict.fromkeys(scope[tag] for name, scope in found if name == metric and tag in scope))
    return sorted(values, key=int) if all(value.isdigit() for value in values) else values


def figure(summary: Summary, metric: str, scope: Mapping[str, str]) -> Figure | None:
    """The figure of a scope, whatever the order in which its name states the tags."""
    for name, candidate in summary.items():
        if scope_of(name) == (metric, dict(scope)):
            return candidate
    return None


def arrange(summary: Summary, table: Table) -> Grid | None:
    """One run's table, with a row and a column for all together; None where it shows nothing new."""
    rows = values_of(summary, table.metric, table.rows)
    columns = values_of(summary, table.metric, table.columns) if table.columns else []
    if len(columns) < 2 and (table.several or len(rows) < 2):
        return None
    across = [{}, *({table.columns: value} for value in columns)] if len(columns) > 1 else [{}]
    body: list[tuple[str, list[Figure | None]]] = [
        (row, [figure(summary, table.metric, {table.rows: row, **column}) for column in across])
        for row in rows
    ]
    if len(rows) > 1:
        body.append(("all", [figure(summary, table.metric, column) for column in across]))
    return Grid(table.title, table.rows, ["all", *columns] if len(columns) > 1 else ["all"], body)


def side_by_side(summaries: Mapping[str, Summary], table: Table) -> Grid:
    """Several runs' figures of one table: a row for each value of its row tag, a column for each run."""
    rows = list(dict.fromkeys(v for s in summaries.values() for v in values_of(s, table.metric, table.rows)))
    body: list[tuple[str, list[Figure | None]]] = [
        (row, [figure(summary, table.metric, {table.rows: row}) for summary in summaries.values()])
        for row in rows
    ]
    body.append(("all", [figure(summary, table.metric, {}) for summary in summaries.values()]))
    return Grid(table.title, table.rows, list(summaries), body)
