"""Tables for the terminal: aligned, an interval beside every figure, colour only where it means something."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from evenkeel.report.layout import Layout, Note
from evenkeel.report.tables import Grid, arrange, side_by_side, summaries
from evenkeel.report.text import counted, interval, p_value, share, value, visible
from evenkeel.store import Run
from evenkeel.types import Figure


def show_run(
    console: Console, run: Run, layout: Layout, *, min_coverage: float, notes: Sequence[Note] = ()
) -> None:
    """A run's headline, its further facts, what to know beside them, and its tables."""
    headline = run.summary[layout.headline]
    console.print()
    console.print(Text.assemble((layout.headline_title, "bold"), f" of {visible(run.spec.subject)}"))
    console.print(Padding(_headline(headline, layout, min_coverage), (0, 0, 0, 2), expand=False))
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
    for table in layout.tables:
        grid = arrange(run.summary, table)
        if grid is not None:
            show_table(console, drawn(grid))
            console.print()


def show_side_by_side(console: Console, runs: Sequence[Run], layout: Layout) -> None:
    """One column a run."""
    for table in layout.tables[:1]:
        show_table(console, drawn(side_by_side(summaries(runs), table)))


def show_table(console: Console, table: RichTable) -> None:
    """Print a table at the width it needs: a line too many is better than a figure cut short."""
    table.width = table.__rich_measure__(console, console.options.update(max_width=10_000)).maximum
    console.print(table, crop=False, soft_wrap=True)


def _headline(figure: Figure, layout: Layout, floor: float) -> RenderableType:
    low_coverage = figure.coverage < floor
    ends = ", ".join(f"{n:,} {status}" for status, n in figure.statuses.items())
    return Group(
        Text.assemble((value(figure), "bold"), f"  95% interval {interval(figure) or 'not known'}"),
        Text.assemble(
            f"over {counted(figure, layout)}, coverage ",
            (share(figure.coverage), "bold red" if low_coverage else ""),
            f" ({ends})",
        ),
    )


def _fact(title: str, figure: Figure) -> Text:
    known = ", ".join(part for part in (interval(figure), p_value(figure)) if part)
    return Text.assemble(f"{title} ", (value(figure), "bold"), f"  ({known})" if known else "")


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
    for name, cells in grid.rows:
        if name == "all":
            table.add_section()
        table.add_row(Text(visible(name)), *(_cell(cell) for cell in cells))
    return table


def _cell(figure: Figure | None) -> Text:
    if figure is None or figure.value is None:
        return Text("–", style="dim")
    half = interval(figure, short=True)
    # Coverage goes without saying where it is whole.
    partly = f" ({share(figure.coverage)} covered)" if figure.coverage < 1 else ""
    return Text.assemble(value(figure), (f" {half}" if half else "", "dim"), (partly, "yellow"))
