"""Tables for the terminal: aligned, an interval beside every figure, colour only where it means something."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from evenkeel.analysis import scope_of
from evenkeel.page.format import bound, chance, counted, interval, p_value, share, value, visible
from evenkeel.page.layout import Layout, Note
from evenkeel.page.tables import Grid, arrange, side_by_side, summaries
from evenkeel.run.folder import Run
from evenkeel.types import Figure

GAP = 3
"""Spaces between two columns."""


def show_run(
    console: Console, run: Run, layout: Layout, *, min_coverage: float, notes: Sequence[Note] = ()
) -> None:
    """A run's headline, its further facts, what to know beside them, and its tables."""
    console.print()
    console.print(Text.assemble((layout.headline_title, "bold"), f" of {visible(run.spec.subject)}"))
    console.print(Padding(_headline(run, layout, min_coverage), (0, 0, 0, 2), expand=False))
    for column in layout.facts:
        if column.metric in run.summary:
            console.print(
                Padding(_fact(column.title, run.summary[column.metric]), (0, 0, 0, 2), expand=False)
            )
    for note in notes:
        style = "yellow" if note.warning else "dim"
        console.print(Padding(Text(visible(note.text), style=style), (0, 0, 0, 2), expand=False))
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
    for table in layout.tables[:1]:
        _show_grid(console, side_by_side(summaries(runs), table))


def show_table(console: Console, table: RichTable) -> None:
    """Print a table at the width it needs: a line too many is better than a figure cut short."""
    table.width = table.__rich_measure__(console, console.options.update(max_width=10_000)).maximum
    console.print(table, crop=False, soft_wrap=True)


def _headline(run: Run, layout: Layout, floor: float) -> RenderableType:
    figure = run.headline
    low_coverage = figure.coverage < floor
    ends = ", ".join(f"{n:,} {status}" for status, n in figure.statuses.items())
    guessed = chance(layout.metrics[0])
    if len(run.headlines) == 1:
        known = f"  95% interval {interval(figure) or 'not known'}{f', {guessed}' if guessed else ''}"
        lines = [Text.assemble((value(figure), "bold"), known)]
    else:
        names = [visible(scope_of(name)[1]["method"]) for name in run.headlines]
        wide = max(map(cell_len, names))
        lines = [
            Text.assemble(f"{name}{' ' * (wide - cell_len(name))}  ", cell)
            for name, cell in zip(names, cells(list(run.headlines.values())), strict=True)
        ]
        lines += [Text(f"{guessed[0].upper()}{guessed[1:]}", style="dim")] if guessed else []
    return Group(
        *lines,
        Text.assemble(
            f"over {counted(figure, layout)}, coverage ",
            (share(figure.coverage), "bold red" if low_coverage else ""),
            f" ({ends})",
        ),
    )


def _fact(title: str, figure: Figure) -> Text:
    known = ", ".join(part for part in (interval(figure), p_value(figure)) if part)
    return Text.assemble(f"{title} ", (value(figure), "bold"), f"  ({known})" if known else "")


def _show_grid(console: Console, grid: Grid) -> None:
    """A table as wide as the terminal; what does not fit goes into a further one below it."""
    for number, part in enumerate(split(grid, console.width)):
        if number:
            console.print()
        show_table(console, drawn(part))


def split(grid: Grid, width: int) -> list[Grid]:
    """The grid in parts of as many columns as fit, each with at least one."""
    drawings = [cells([row[place] for _, row in grid.rows]) for place in range(len(grid.columns))]
    wide = [
        max(cell_len(visible(title)), *(text.cell_len for text in column))
        for title, column in zip(grid.columns, drawings, strict=True)
    ]
    names = max(cell_len(grid.corner), *(cell_len(visible(name)) for name, _ in grid.rows))
    parts: list[list[int]] = []
    for place in range(len(grid.columns)):
        held = parts[-1] if parts else None
        if held and names + sum(wide[each] + GAP for each in [*held, place]) <= width:
            held.append(place)
        else:
            parts.append([place])
    return [
        Grid(
            grid.title if number == 0 else f"{grid.title}, continued",
            grid.corner,
            [grid.columns[place] for place in held],
            [(name, [row[place] for place in held]) for name, row in grid.rows],
        )
        for number, held in enumerate(parts)
    ]


def drawn(grid: Grid) -> RichTable:
    table = RichTable(
        title=grid.title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
    )
    table.add_column(grid.corner, justify="right", no_wrap=True, min_width=max(len(n) for n, _ in grid.rows))
    for column in grid.columns:
        table.add_column(Text(visible(column)), justify="right", no_wrap=True)
    columns = [cells([row[place] for _, row in grid.rows]) for place in range(len(grid.columns))]
    for place, (name, _) in enumerate(grid.rows):
        if name == "all":
            table.add_section()
        table.add_row(Text(visible(name)), *(column[place] for column in columns))
    return table


def cells(figures: Sequence[Figure | None]) -> list[Text]:
    """The figures of one column, each with its interval, so that values and limits stand under each other."""
    limits = [_limits(figure) for figure in figures]
    # Coverage goes without saying where it is whole.
    partly = [
        f" ({share(f.coverage)} covered)" if f and f.value is not None and f.coverage < 1 else ""
        for f in figures
    ]
    values = [value(figure) for figure in figures]
    wide = max(map(len, values))
    low, high = (max((len(pair[side]) for pair in limits if pair), default=0) for side in (0, 1))
    end = max(map(len, partly))
    found = []
    for number, pair, note in zip(values, limits, partly, strict=True):
        known = f" [{pair[0]:>{low}}, {pair[1]:>{high}}]" if pair else " " * (low + high + 5) * bool(low)
        style = "dim" if number == "–" else ""
        found.append(
            Text.assemble((f"{number:>{wide}}", style), (known, "dim"), (f"{note:<{end}}", "yellow"))
        )
    return found


def _limits(figure: Figure | None) -> tuple[str, str] | None:
    if figure is None or figure.value is None or figure.low is None or figure.high is None:
        return None
    return bound(figure.low, figure.unit), bound(figure.high, figure.unit)
