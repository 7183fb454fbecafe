"""Figures arranged in rows and columns, before anything is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from evenkeel.analysis import scope_of
from evenkeel.page.format import share
from evenkeel.page.layout import Table
from evenkeel.run.folder import Run
from evenkeel.types import Figure, Summary


class Grid(Struct, frozen=True):
    """A table of figures: the name of each column, and for each row its name and its cells."""

    title: str
    corner: str
    columns: list[str]
    rows: list[tuple[str, list[Figure | None]]]


def values_of(summary: Summary, metric: str, tag: str) -> list[str]:
    """The values of a tag that the summary has figures for, in its own order (numbers by size)."""
    found = (scope_of(name) for name in summary)
    return in_order(scope[tag] for name, scope in found if name == metric and tag in scope)


def in_order(values: Iterable[str]) -> list[str]:
    """Each value once: numbers by size, anything else as it first came."""
    distinct = list(dict.fromkeys(values))
    return sorted(distinct, key=float) if all(map(is_number, distinct)) else distinct


def is_number(value: str) -> bool:
    return value.isascii() and value.replace(".", "", 1).isdigit()


def figure(summary: Summary, metric: str, scope: Mapping[str, str]) -> Figure | None:
    """The figure of a scope, whatever the order in which its name states the tags."""
    for name, candidate in summary.items():
        if scope_of(name) == (metric, dict(scope)):
            return candidate
    return None


def arrange(summary: Summary, table: Table) -> Grid | None:
    """One run's table, with a row for all together; None where it would show nothing new."""
    columns: list[tuple[str, str, dict[str, str]]]
    if table.metrics:
        known = {scope_of(name)[0] for name in summary}
        shown = [column for column in table.metrics if column.metric in known]
        rows = in_order(v for column in shown for v in values_of(summary, column.metric, table.rows))
        columns = [(column.title, column.metric, {}) for column in shown]
        if table.columns:
            values = in_order(v for c in shown for v in values_of(summary, c.metric, table.columns))
            if len(values) > 1:
                columns = [
                    (f"{column.title} {value}", column.metric, {table.columns: value})
                    for column in shown
                    for value in values
                ]
        if table.several and len(shown) < 2:
            return None
    else:
        rows = values_of(summary, table.metric, table.rows)
        values = values_of(summary, table.metric, table.columns) if table.columns else []
        if len(values) < 2 and (table.several or len(rows) < 2):
            return None
        columns = [("all", table.metric, {})]
        columns += [(v, table.metric, {table.columns: v}) for v in values if len(values) > 1]
    if not rows or not columns:
        return None
    scopes: list[tuple[str, dict[str, str]]] = [(row, {table.rows: row}) for row in rows]
    if table.total and len(rows) > 1:
        scopes.append(("all", {}))
    body = [
        (name, [figure(summary, metric, {**scope, **more}) for _, metric, more in columns])
        for name, scope in scopes
    ]
    return Grid(table.title, table.rows, [title for title, _, _ in columns], body)


def side_by_side(summaries: Mapping[str, Summary], table: Table) -> Grid:
    """Several runs' figures of one table: a row for each value of its row tag, a column for each run."""
    metric = table.metric or table.metrics[0].metric
    rows = in_order(v for s in summaries.values() for v in values_of(s, metric, table.rows))
    body: list[tuple[str, list[Figure | None]]] = [
        (row, [figure(summary, metric, {table.rows: row}) for summary in summaries.values()]) for row in rows
    ]
    if table.total:
        body.append(("all", [figure(summary, metric, {}) for summary in summaries.values()]))
    # Runs of unequal coverage do not stand side by side without saying so.
    whole = [figure(summary, metric, {}) for summary in summaries.values()]
    columns = [
        name if total is None or total.coverage == 1 else f"{name} (coverage {share(total.coverage)})"
        for name, total in zip(summaries, whole, strict=True)
    ]
    return Grid(f"{table.title}, run by run", table.rows, columns, body)


def summaries(runs: Sequence[Run]) -> dict[str, Summary]:
    """Runs by the names of their models; of their folders, or their paths, where those stand there twice."""
    for names in (
        [run.spec.subject for run in runs],
        [run.path.name for run in runs],
        [str(run.path) for run in runs],
    ):
        if len(set(names)) == len(runs):
            break
    return dict(zip(names, (run.summary for run in runs), strict=True))
