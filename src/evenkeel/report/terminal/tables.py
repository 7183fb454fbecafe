"""A run at the terminal: its headline, its main figures, notes, and tables as wide as the screen."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from evenkeel.page.format import capitalised, interval, interval_words, p_value, value, visible
from evenkeel.page.grid import STYLES, Grid, coverage_cell, missing_note, rich_cells, show_line, show_table
from evenkeel.report.describe import Description
from evenkeel.types import Figure

GAP = 3
"""Spaces between two columns of figures."""


def show_run(console: Console, described: Description, *, min_coverage: float) -> None:
    """A run's headline, its further facts, what to know about them, and its tables."""
    run, layout = described.first, described.layout
    console.print()
    for verdict in described.verdicts.values():
        console.print(Text(visible(verdict), style="bold"))
    console.print(Text(f"{layout.headline_title} of {visible(run.spec.subject)}"))
    main = described.main.rows if described.main else []
    lines = [
        *_headline(described, min_coverage),
        *(_fact(title, cells[0]) for title, cells in main if isinstance(cells[0], Figure)),
        *(Text(visible(note.text), style="yellow" if note.warning else "dim") for note in described.notes),
    ]
    for line in lines:
        console.print(Padding(line, (0, 0, 0, 2), expand=False))
    console.print()
    for grid in described.grids:
        _show_grid(console, grid)
        console.print()
    if described.grids:
        show_line(console, f"In brackets: 95% intervals. {missing_note(described.grids)}", "dim")


def show_side_by_side(console: Console, described: Description) -> None:
    """One column for each run."""
    for grid in described.beside:
        _show_grid(console, grid)
        if grid.missing:
            show_line(console, grid.missing, "dim")


def _headline(described: Description, floor: float) -> list[Text]:
    headline, guessing = described.headline, described.chance
    if headline is not None:
        details = ", ".join(filter(None, (f"  {headline.interval}", guessing)))
        lines = [Text.assemble((headline.value, "bold"), details)]
        if headline.scale and headline.figure.value is not None:
            lines.append(Text(headline.scale.text()))
            lines += [Text(described.scales.note, style="dim")] if described.scales.note else []
    else:
        names = [visible(each.name) for each in described.headlines]
        width = max(map(cell_len, names))
        cells = rich_cells([each.figure for each in described.headlines])
        lines = [
            Text.assemble(f"{name}{' ' * (width - cell_len(name))}  ", cell)
            for name, cell in zip(names, cells, strict=True)
        ]
        lines += [Text(capitalised(guessing), style="dim")] if guessing else []
    basis = described.basis
    coverage = coverage_cell(basis.coverage, floor=floor)
    style = STYLES[coverage.style]
    words = (f"over {basis.based_on}, coverage ", (coverage.text, style), f" ({basis.endings})")
    return [*lines, Text.assemble(*words)]


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
