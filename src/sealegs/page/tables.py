"""Which figures a table shows: its rows and columns, from the summary of a run or of several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from typing import NamedTuple, TypeAlias

from sealegs.page.format import interval, scope_words, tag_name, tag_value, value
from sealegs.page.grid import Cell, Content, Grid, coverage_cell
from sealegs.page.layout import Column, Table
from sealegs.page.metrics import Metric, scope_name, title_of
from sealegs.types import Figure, Summary

Row: TypeAlias = tuple[str, list[Content]]
ANSWERED = {"ok", "truncated"}
"""How requests end that brought an answer."""
MOST_FIGURES = 1000
"""Rows of the table of all figures; summary.json has every one."""


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
    names = (scope_name(metric, dict(tags)) for tags in permutations(scope.items()))
    return next((summary[name] for name in names if name in summary), None)


class _Head(NamedTuple):
    """A column of a table: its title, and which figures are in it."""

    title: str
    metric: str
    scope: dict[str, str]


def arrange(summary: Summary, table: Table) -> Grid | None:
    """One run's table, with a row for all together; None where it would show nothing new."""
    metrics = {each.metric for each in summary.values()}
    shown = [each for each in table.metrics or (Column(table.metric, ""),) if each.metric in metrics]

    def values(tag: str, *names: str) -> list[str]:
        return in_order(value for name in names for value in values_of(summary, name, tag))

    rows = values(table.rows, *(each.metric for each in shown))
    split = values(table.columns, *(each.metric for each in shown)) if table.columns else []
    heads, redundant = _heads(table, shown, split if len(split) > 1 else [], len(rows))
    if redundant or len(rows) < 2 or not heads:
        return None
    scopes = [{table.rows: row} for row in rows] + [{}] * table.total
    columns = [
        (
            head.title,
            [figure(summary, head.metric, scope | head.scope | dict(table.within)) for scope in scopes],
        )
        for head in heads
    ]
    known = [each for each in columns if any(cell is not None and cell.value is not None for cell in each[1])]
    if not known or (table.several and len(known) < 2):
        return None
    names = [tag_value(row, table.rows) for row in rows] + ["all"] * table.total
    body: list[Row] = [(name, [cells[index] for _, cells in known]) for index, name in enumerate(names)]
    return Grid(table.title, tag_name(table.rows), [title for title, _ in known], body)


def _heads(table: Table, shown: list[Column], split: list[str], rows: int) -> tuple[list[_Head], bool]:
    """The columns of a table, and whether they show nothing that is not elsewhere."""
    if table.metrics:
        heads = [
            _Head(f"{column.title} {tag_value(tag, table.columns)}", column.metric, {table.columns: tag})
            for column in shown
            for tag in split
        ]
        heads = heads or [_Head(column.title, column.metric, {}) for column in shown]
        return heads, table.several and len(shown) < 2
    heads = [_Head("all", table.metric, {})]
    heads += [_Head(tag_value(tag, table.columns), table.metric, {table.columns: tag}) for tag in split]
    return heads, not split and (table.several or rows < 2)


def runs_table(summaries: Mapping[str, Summary], table: Table) -> Grid:
    """Several runs' figures of one table: a row for each value of its row tag, a column for each run."""
    metric = table.metric or table.metrics[0].metric
    rows = in_order(v for summary in summaries.values() for v in values_of(summary, metric, table.rows))
    body: list[Row] = [
        (tag_value(row, table.rows), [figure(each, metric, {table.rows: row}) for each in summaries.values()])
        for row in rows
    ]
    if table.total:
        body.append(("all", [figure(summary, metric, {}) for summary in summaries.values()]))
    return Grid(f"{table.title}, run by run", tag_name(table.rows), list(summaries), body)


def all_figures(summary: Summary, metrics: Sequence[Metric]) -> Grid:
    """Every figure of a run: those of all samples, then those of parts of them."""
    figures = sorted(summary.values(), key=lambda each: len(each.scope))
    rows: list[Row] = []
    for each in figures[:MOST_FIGURES]:
        limits = interval(each, short=True) or each.reason
        cells: list[Content] = [scope_words(each.scope), Cell(value(each), "strong"), limits, f"{each.n:,}"]
        # What does not apply has no coverage either, unless requests failed.
        idle = each.n == 0 and {status for status, count in each.statuses.items() if count} <= ANSWERED
        coverage = Cell("–", "soft") if idle else coverage_cell(each.coverage)
        rows.append((title_of(metrics, each.metric), [*cells, coverage]))
    columns = ["of", "value", "95% interval", "samples", "coverage"]
    more = f" (the first {MOST_FIGURES:,} of {len(figures):,})" if len(figures) > MOST_FIGURES else ""
    return Grid(f"All figures{more}", "metric", columns, rows, left=2)
