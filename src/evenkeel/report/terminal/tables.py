"""A run at the terminal: its headline, its main figures, notes, and tables as wide as the screen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from evenkeel.analysis.comparability import run_names
from evenkeel.harness.folder import Run
from evenkeel.page.format import (
    capitalised,
    chance,
    counts,
    interval,
    interval_words,
    p_value,
    statuses,
    value,
    visible,
)
from evenkeel.page.grid import STYLES, Grid, coverage_cell, missing_note, rich_cells, show_line, show_table
from evenkeel.page.layout import MOST_MAIN, Layout, Note
from evenkeel.page.scale import Scale, drawable, legend
from evenkeel.page.tables import arrange, side_by_side
from evenkeel.report.scorecard import marks_of
from evenkeel.types import Figure

GAP = 3
"""Spaces between two columns of figures."""


def show_run(
    console: Console, run: Run, layout: Layout, *, min_coverage: float, notes: Sequence[Note] = ()
) -> None:
    """A run's headline, its further facts, what to know about them, and its tables."""
    console.print()
    console.print(Text(visible(run.verdict), style="bold"))
    console.print(Text(f"{layout.headline_title} of {visible(run.spec.subject)}"))
    lines = [
        *_headline(run, layout, min_coverage),
        *(
            _fact(title, figure)
            for title, figure in layout.main_figures(run.summary)[:MOST_MAIN]
            if figure.value is not None
        ),
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
        show_line(console, f"In brackets: 95% intervals. {missing_note(grids)}", "dim")


def show_side_by_side(console: Console, runs: Sequence[Run], layout: Layout) -> None:
    """One column for each run."""
    summaries = {name: run.summary for name, run in zip(run_names(runs), runs, strict=True)}
    for table in layout.tables[:1]:
        grid = side_by_side(summaries, table)
        _show_grid(console, grid)
        if grid.missing:
            show_line(console, grid.missing, "dim")


def _headline(run: Run, layout: Layout, floor: float) -> list[Text]:
    figure, headlines = run.headline, list(run.headlines.values())
    guessing = chance(layout.metrics[0])
    if len(headlines) == 1:
        details = ", ".join(filter(None, (f"  {interval_words(figure)}", guessing)))
        lines = [Text.assemble((value(figure), "bold"), details), *_line(run, layout)]
    else:
        names = [visible(name) for name in run.spec.subjects]
        width = max(map(cell_len, names))
        lines = [
            Text.assemble(f"{name}{' ' * (width - cell_len(name))}  ", cell)
            for name, cell in zip(names, rich_cells(headlines), strict=True)
        ]
        lines += [Text(capitalised(guessing), style="dim")] if guessing else []
    coverage = coverage_cell(figure.coverage, floor=floor)
    basis = f"over {counts(figure, layout)}, coverage "
    style = STYLES[coverage.style]
    return [*lines, Text.assemble(basis, (coverage.text, style), f" ({statuses(figure)})")]


def _line(run: Run, layout: Layout) -> list[Text]:
    """The headline on a line from worst to best, and what its marks are."""
    if not drawable(run.headline) or run.headline.value is None:
        return []
    marks = marks_of(run, layout)
    line = Scale(run.headline, marks, lower_is_better=layout.metrics[0].better == "lower")
    words = legend(marks, run.headline.unit)
    return [Text(line.text()), *([Text(words, style="dim")] if words else [])]


def _fact(title: str, figure: Figure) -> Text:
    details = ", ".join(filter(None, (interval(figure) or interval_words(figure), p_value(figure))))
    return Text.assemble(f"{title} ", (value(figure), "bold"), f"  ({details})" if details else "")


def _show_grid(console: Console, grid: Grid) -> None:
    """A table as wide as the terminal; the columns that do not fit are in a further one below it."""
    for number, part in enumerate(split(grid, console.width)):
        if number:
            console.print()
        show_table(console, part.to_rich())


def split(grid: Grid, width: int) -> list[Grid]:
    """The grid in parts of as many columns as fit, each with at least one."""
    widths = [
        max(
            cell_len(visible(title)),
            *(text.cell_len for text in rich_cells([row[i] for _, row in grid.rows])),
        )
        for i, title in enumerate(grid.columns)
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
