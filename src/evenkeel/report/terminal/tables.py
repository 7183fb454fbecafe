"""Tables for the terminal: aligned, an interval beside every figure, colour only where it means something."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from evenkeel.analysis.comparability import run_names
from evenkeel.harness.folder import Run
from evenkeel.page.format import (
    bound,
    capitalised,
    chance,
    counts,
    interval,
    p_value,
    share,
    statuses,
    value,
    visible,
)
from evenkeel.page.layout import Layout, Note
from evenkeel.page.tables import Cell, Content, Grid, Style, arrange, side_by_side
from evenkeel.types import Figure

GAP = 3
"""Spaces between two columns of figures."""
STYLES: dict[Style, str] = {"strong": "bold", "soft": "dim", "warn": "bold red", "": ""}


def show_run(
    console: Console, run: Run, layout: Layout, *, min_coverage: float, notes: Sequence[Note] = ()
) -> None:
    """A run's headline, its further facts, what to know about them, and its tables."""
    console.print()
    console.print(Text.assemble((layout.headline_title, "bold"), f" of {visible(run.spec.subject)}"))
    facts = [(each.title, run.summary[each.metric]) for each in layout.facts if each.metric in run.summary]
    lines = [
        *_headline(run, layout, min_coverage),
        *(_fact(title, figure) for title, figure in facts),
        *(Text(visible(note.text), style="yellow" if note.warning else "dim") for note in notes),
    ]
    for line in lines:
        console.print(Padding(line, (0, 0, 0, 2), expand=False))
    console.print()
    for block in layout.blocks(run.summary) if layout.blocks else ():
        console.print(Text(visible(block)), soft_wrap=True)
        console.print()
    grids = [grid for table in layout.tables if (grid := arrange(run.summary, table))]
    for grid in grids:
        _show_grid(console, grid)
        console.print()
    if grids:
        console.print(Text("In brackets: 95% intervals.", style="dim"))


def show_side_by_side(console: Console, runs: Sequence[Run], layout: Layout) -> None:
    """One column a run."""
    summaries = {name: run.summary for name, run in zip(run_names(runs), runs, strict=True)}
    for table in layout.tables[:1]:
        _show_grid(console, side_by_side(summaries, table))


def show_line(console: Console, text: str, style: str = "") -> None:
    """A line that is not broken where the terminal is narrow."""
    console.print(Text(visible(text), style=style), highlight=False, soft_wrap=True)


def show_table(console: Console, table: Grid | RichTable) -> None:
    """Print a table at the width it needs: a line too long is better than a figure cut off."""
    table = drawn(table) if isinstance(table, Grid) else table
    table.width = table.__rich_measure__(console, console.options.update(max_width=10_000)).maximum
    console.print(table, crop=False, soft_wrap=True)


def printed(show: Callable[[Console], None]) -> str:
    """What would be printed at a terminal, without colour."""
    with io.StringIO() as file:
        show(Console(file=file, width=120, force_terminal=False, force_jupyter=False, no_color=True))
        return file.getvalue().strip("\n")


def _headline(run: Run, layout: Layout, floor: float) -> list[Text]:
    figure, headlines = run.headline, list(run.headlines.values())
    guessing = chance(layout.metrics[0])
    if len(headlines) == 1:
        details = ", ".join(filter(None, (f"  95% interval {interval(figure) or 'not known'}", guessing)))
        lines = [Text.assemble((value(figure), "bold"), details)]
    else:
        names = [visible(name) for name in run.spec.subjects]
        width = max(map(cell_len, names))
        lines = [
            Text.assemble(f"{name}{' ' * (width - cell_len(name))}  ", cell)
            for name, cell in zip(names, cells(headlines), strict=True)
        ]
        lines += [Text(capitalised(guessing), style="dim")] if guessing else []
    coverage = Cell(share(figure.coverage), "warn" if figure.coverage < floor else "")
    basis = f"over {counts(figure, layout)}, coverage "
    return [*lines, Text.assemble(basis, _text(coverage), f" ({statuses(figure)})")]


def _fact(title: str, figure: Figure) -> Text:
    details = ", ".join(filter(None, (interval(figure), p_value(figure))))
    return Text.assemble(f"{title} ", (value(figure), "bold"), f"  ({details})" if details else "")


def _show_grid(console: Console, grid: Grid) -> None:
    """A table as wide as the terminal; the columns that do not fit are in a further one below it."""
    for number, part in enumerate(split(grid, console.width)):
        if number:
            console.print()
        show_table(console, part)


def split(grid: Grid, width: int) -> list[Grid]:
    """The grid in parts of as many columns as fit, each with at least one."""
    widths = [
        max(cell_len(visible(title)), *(text.cell_len for text in cells(contents)))
        for title, contents in zip(grid.columns, _columns(grid), strict=True)
    ]
    names = max(cell_len(visible(name)) for name in (grid.corner, *(name for name, _ in grid.rows)))
    parts: list[list[int]] = []
    for index in range(len(grid.columns)):
        if parts and names + sum(widths[each] + GAP for each in [*parts[-1], index]) <= width:
            parts[-1].append(index)
        else:
            parts.append([index])
    return [
        Grid(
            grid.title if number == 0 else f"{grid.title}, continued",
            grid.corner,
            [grid.columns[index] for index in part],
            [(name, [row[index] for index in part]) for name, row in grid.rows],
        )
        for number, part in enumerate(parts)
    ]


def _columns(grid: Grid) -> list[list[Content]]:
    return [[row[index] for _, row in grid.rows] for index in range(len(grid.columns))]


def drawn(grid: Grid) -> RichTable:
    """A table for rich; tables of texts have narrower gaps than those of figures."""
    table = RichTable(
        title=Text(visible(grid.title)) if grid.title else None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0) if grid.left else (0, 1),
    )
    for index, title in enumerate([grid.corner, *grid.columns]):
        justify = "left" if index < grid.left else "right"
        table.add_column(Text(visible(title)), justify=justify, no_wrap=True)  # type: ignore[arg-type]
    columns = [cells(contents) for contents in _columns(grid)]
    for index, (name, _) in enumerate(grid.rows):
        if name == "all" or (grid.sections and name):
            table.add_section()
        table.add_row(Text(visible(name)), *(column[index] for column in columns))
    return table


def cells(contents: Sequence[Content]) -> list[Text]:
    """The cells of one column; figures have their intervals, with values and limits below each other."""
    if all(isinstance(content, str | Cell) for content in contents):
        return [_text(content) for content in contents if isinstance(content, str | Cell)]
    figures = [content if isinstance(content, Figure) else None for content in contents]
    limits = [_limits(figure) for figure in figures]
    # Full coverage is not mentioned.
    partial = [
        f" ({share(f.coverage)} covered)" if f and f.value is not None and f.coverage < 1 else ""
        for f in figures
    ]
    values = [value(figure) for figure in figures]
    width = max(map(len, values))
    low, high = (max(map(len, side)) for side in zip(*limits, strict=True))
    end = max(map(len, partial))
    texts = []
    for number, (lower, upper), note in zip(values, limits, partial, strict=True):
        brackets = f" [{lower:>{low}}, {upper:>{high}}]" if lower else " " * (low + high + 5) * bool(low)
        style = "dim" if number == "–" else ""
        texts.append(
            Text.assemble((f"{number:>{width}}", style), (brackets, "dim"), (f"{note:<{end}}", "yellow"))
        )
    return texts


def _text(content: str | Cell) -> Text:
    cell = content if isinstance(content, Cell) else Cell(content)
    return Text(visible(cell.text), style=STYLES[cell.style])


def _limits(figure: Figure | None) -> tuple[str, str]:
    """Both ends of the interval; empty where it is unknown."""
    if figure is None or figure.value is None or figure.low is None or figure.high is None:
        return "", ""
    return bound(figure.low, figure.unit), bound(figure.high, figure.unit)
