"""Tables and results that show themselves: one description, drawn for pages, terminals and Markdown."""

from __future__ import annotations

import io
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from pkgutil import resolve_name
from textwrap import wrap
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

from sealegs.page.format import (
    FLOOR,
    NO_INTERVAL,
    TOO_WIDE,
    as_latex,
    as_markdown,
    escape_controls,
    figure_details,
    interval,
    limits,
    no_interval,
    p_value,
    share,
    value,
)
from sealegs.page.scale import WIDTH, Scale
from sealegs.types import Figure

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

Style: TypeAlias = Literal["", "strong", "soft", "warn", "note"]
GAP, TEXT_GAP = 3, 2
"""Spaces between two columns of figures at the terminal, and in tables of texts."""
LONGEST_WORD = 12
"""Letters beyond which a word may be broken."""
PROSE = re.compile(r"[^\W\d_]{3}")
"""What a text has, and a figure has not."""
MANY_COLUMNS = 2
"""Columns beside the row names from which a narrow screen stacks the cells of a row."""
STYLES: dict[Style, str] = {"strong": "bold", "soft": "dim", "warn": "bold red", "note": "yellow", "": ""}


class Cell(NamedTuple):
    """A text in a table. A link is followed on pages only."""

    text: str
    style: Style = ""
    link: str = ""


Content: TypeAlias = Figure | Scale | Cell | str | None
"""A figure is drawn with its interval; None is a figure that is not there."""


def coverage_cell(coverage: float, *, details: str = "", floor: float = FLOOR) -> Cell:
    """A coverage, marked where it is below the floor, also without colours."""
    low = coverage < floor
    return Cell(f"{'⚠ ' if low else ''}{share(coverage)}{details}", "warn" if low else "")


class Displayed:
    """A result that shows itself: as text by `repr`, as a block of HTML in a notebook."""

    __slots__ = ()

    def overview(self) -> Overview:
        """What is said of it: by `describe` of the report, which is named here since imports point down."""
        overview: Overview = resolve_name("sealegs.report.describe:overview_of")(self)
        return overview

    def __repr__(self) -> str:
        return printed(self.overview().show)

    def _repr_html_(self) -> str:
        return self.overview().to_html()


T = TypeVar("T", bound=Displayed)


class DisplayedList(list[T]):
    """A list of `Displayed` objects, shown one below the other in a notebook."""

    def _repr_html_(self) -> str:
        return "\n".join(item._repr_html_() for item in self)


class Grid(Displayed, Struct, frozen=True):
    """A table: the name of each column, and for each row its name and its cells."""

    title: str
    corner: str
    columns: list[str]
    rows: list[tuple[str, list[Content]]]
    left: int = 0
    """How many of the first columns, that of the row names included, are texts. Row names are at the left in
    any table."""
    lead: str = ""
    """A sentence above the table."""
    note: str = ""
    """What is to be said below it."""
    links: Mapping[str, str] = {}
    """The addresses of the sources of that, by their names; they are on pages only."""
    more: bool = False
    """Whether it is folded on a page, among further figures, and left out at the terminal."""

    @property
    def pictured(self) -> bool:
        """Whether it has lines from worst to best."""
        return any(isinstance(content, Scale) for _, cells in self.rows for content in cells)

    @property
    def stacked(self) -> bool:
        """Whether a narrow screen has its rows one below the other, with the cells of each in lines."""
        return self.pictured or len(self.columns) >= MANY_COLUMNS

    @property
    def missing(self) -> str:
        """What the mark of a value without an interval means; empty where each has one."""
        return missing_note([self])

    def overview(self) -> Overview:
        return Overview("", grids=[self])

    def to_html(self) -> str:
        """A table that scrolls by itself where the screen is narrow, escaped."""
        from sealegs.page.html import render

        return render("page/grid.html", grid=self)

    def to_rich(self, width: int | None = None) -> RichTable:
        """A table for a terminal; those of texts have narrower gaps than those of figures. In one of this
        width texts may be wrapped, and figures never."""
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(
            title=Text(escape_controls(self.title)) if self.title else None,
            title_justify="left",
            title_style="bold",
            box=box.SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            padding=(0, 1, 0, 0) if self.left else (0, 1),
        )
        columns = self.rich_columns()
        widths = fitting([width_of(column) for column in columns], self._room(width))
        if sum(widths) > self._room(width):
            columns = self.rich_columns(narrow=True)
            widths = fitting([width_of(column) for column in columns], self._room(width))
        for index, (column, most) in enumerate(zip(columns, widths, strict=True)):
            justify: Literal["left", "right"] = "left" if index < max(1, self.left) else "right"
            table.add_column(column[0], justify=justify, overflow="fold", width=most)
            if justify == "right":
                column[1:] = beside_the_edge(column[1:], most)
        for index, (name, _) in enumerate(self.rows, 1):
            if name == "all":
                table.add_section()
            table.add_row(*(column[index] for column in columns))
        return table

    def _room(self, width: int | None) -> float:
        """What the columns have of this width."""
        return math.inf if width is None else width - self.gap * len(self.columns)

    def rich_columns(self, *, narrow: bool = False) -> list[list[Text]]:
        """The title and the cells of each column, that of the row names first, as a terminal draws them."""
        columns = [[rich_text(text) for text in (self.corner, *(name for name, _ in self.rows))]]
        for index, title in enumerate(self.columns):
            contents = [cells[index] for _, cells in self.rows]
            drawn = rich_cells(contents, narrow=narrow)
            for content, cell in zip(contents, drawn, strict=True) if index + 1 < self.left else ():
                if isinstance(content, str | Cell):
                    cell.no_wrap = None
            columns.append([rich_text(title), *drawn])
        return columns

    @property
    def gap(self) -> int:
        """Spaces between two columns at the terminal."""
        return TEXT_GAP if self.left else GAP

    def to_markdown(self) -> str:
        """A table of Markdown; nothing in it is read as markup."""

        def row(texts: Sequence[str]) -> str:
            return f"| {' | '.join(map(as_markdown, texts))} |"

        marks = [":--" if index < max(1, self.left) else "--:" for index in range(1 + len(self.columns))]
        lines = [row([self.corner, *self.columns]), f"| {' | '.join(marks)} |"]
        lines += [row([name, *map(_text_cell, cells)]) for name, cells in self.rows]
        return "\n".join(lines)

    def to_latex(self) -> str:
        """A table for a paper, with its intervals; it needs the LaTeX package booktabs."""

        def row(texts: Sequence[str]) -> str:
            return f"{' & '.join(map(as_latex, texts))} \\\\"

        columns = "".join("l" if index < max(1, self.left) else "r" for index in range(1 + len(self.columns)))
        body = []
        for name, cells in self.rows:
            body += ["\\midrule"] if name == "all" else []
            body.append(row([name, *map(_text_cell, cells)]))
        head = row([self.corner, *self.columns])
        lines = [f"\\begin{{tabular}}{{{columns}}}", "\\toprule", head, "\\midrule", *body]
        return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"])


class Overview(Struct, frozen=True):
    """What is said of a result, once: every renderer draws this, as deep as it has room."""

    title: str
    lines: Sequence[str] = ()
    """What is behind the answer."""
    grids: Sequence[Grid] = ()
    footnotes: Sequence[str] = ()
    lead: str = ""
    """What it is about."""
    verdicts: Sequence[str] = ()
    """The answer, in sentences."""
    warnings: Sequence[str] = ()
    pictures: Sequence[Displayed] = ()
    """On pages only."""

    def to_html(self) -> str:
        from sealegs.page.html import render

        return render("page/overview.html", overview=self)

    def to_markdown(self) -> str:
        paragraphs = [f"# {as_markdown(self.title)}"] if self.title else []
        paragraphs += [as_markdown(line) for line, _ in self._lines()]
        for grid in self.grids:
            paragraphs += [f"## {as_markdown(grid.title)}"] if grid.title else []
            paragraphs += [as_markdown(grid.lead)] if grid.lead else []
            paragraphs += [grid.to_markdown()] if grid.rows else []
            paragraphs += [as_markdown(note) for note in (grid.missing, grid.note) if note]
        paragraphs += map(as_markdown, self.footnotes)
        return "".join(f"{paragraph}\n\n" for paragraph in paragraphs)[:-1]

    def _lines(self) -> list[tuple[str, Style]]:
        """The sentences above the tables, each with its style."""
        groups: tuple[tuple[Sequence[str], Style], ...] = (
            ([self.lead] if self.lead else [], ""),
            (self.verdicts, "strong"),
            (self.lines, ""),
            ([f"⚠ {warning}" for warning in self.warnings], "note"),
        )
        return [(line, style) for lines, style in groups for line in lines]

    def show(self, console: Console) -> None:
        """Print it to a terminal."""
        if self.title:
            show_line(console, self.title, "bold")
        for line, style in self._lines():
            show_line(console, line, STYLES[style])
        for grid in self.grids:
            if grid.more:  # a page has it
                continue
            if self.title:
                console.print()
            show_grid(console, grid)
        if self.grids and self.footnotes:
            console.print()
        for footnote in self.footnotes:
            show_line(console, footnote, "dim")


def show_line(console: Console, text: str, style: str = "") -> None:
    """A text, broken between words where the terminal is narrow: a path stays whole."""
    from rich.text import Text

    for line in wrap(escape_controls(text), console.width, break_long_words=False, break_on_hyphens=False):
        console.print(Text(line, style=style), highlight=False, soft_wrap=True)


def show_grid(console: Console, grid: Grid) -> None:
    """A table with the sentence above it and the note below it."""
    from msgspec.structs import replace

    if grid.lead:
        show_line(console, grid.title, "bold")
        show_line(console, grid.lead)
        grid = replace(grid, title="")
    width = console.width if console.is_terminal else None
    for number, part in enumerate(split(grid, console.width, wraps=console.is_terminal)):
        if number:
            console.print()
        show_table(console, part.to_rich(width))
    for note in filter(None, (grid.missing, grid.note)):
        show_line(console, note, "dim")


def split(grid: Grid, width: int, *, wraps: bool = False) -> list[Grid]:
    """A table in parts of as many columns of figures as fit, at least one, each with the texts before them;
    where these are not wrapped, a table that begins with several columns of them is whole."""
    texts = max(1, grid.left)
    columns = [width_of(column) for column in grid.rich_columns(narrow=wraps)]
    sizes = [column.least if wraps else column.natural for column in columns]
    whole = sum(sizes) + grid.gap * len(grid.columns) <= width if wraps else grid.left > 0
    if whole or len(grid.columns) < texts:
        return [grid]
    heads = [max(size, min(column.natural, width // 3)) for size, column in zip(sizes, columns, strict=True)]
    room = width - sum((heads if wraps else sizes)[:texts]) - grid.gap * (texts - 1)
    parts: list[list[int]] = []
    for index in range(texts - 1, len(grid.columns)):
        if parts and sum(sizes[1 + each] + grid.gap for each in [*parts[-1], index]) <= room:
            parts[-1].append(index)
        else:
            parts.append([index])
    parts = [[*range(texts - 1), *part] for part in parts]
    return [
        Grid(
            grid.title if number == 0 else f"{grid.title}, continued".removeprefix(", "),
            grid.corner,
            [grid.columns[index] for index in part],
            [(name, [row[index] for index in part]) for name, row in grid.rows],
            grid.left,
        )
        for number, part in enumerate(parts)
    ]


def show_table(console: Console, table: RichTable) -> None:
    """Print a table at the width it needs: a line too long is better than a figure cut off."""
    table.width = table.__rich_measure__(console, console.options.update(max_width=10_000)).maximum
    console.print(table, crop=False, soft_wrap=True)


class Width(NamedTuple):
    """Of a column, in characters."""

    natural: int
    """With nothing wrapped."""
    least: int
    """With every text wrapped as far as it can be."""


def width_of(column: Iterable[Text]) -> Width:
    from rich.cells import cell_len

    lines = [(cell.no_wrap, line) for cell in column for line in cell.plain.split("\n")]
    words = ([line] if no_wrap else [word[:LONGEST_WORD] for word in line.split()] for no_wrap, line in lines)
    least = max((cell_len(word) for group in words for word in group), default=0)
    return Width(max((cell_len(line) for _, line in lines), default=0), least)


def fitting(columns: Sequence[Width], room: float) -> list[int]:
    """The width of each column, so that all fit into the room if they can; the widest give way first."""

    def widths(most: int) -> list[int]:
        return [max(column.least, min(column.natural, most)) for column in columns]

    most = range(1 + max(column.natural for column in columns))
    return widths(bisect_right(most, room, key=lambda most: sum(widths(most))) - 1)


def printed(show: Callable[[Console], None]) -> str:
    """What would be printed at a terminal, without colour."""
    from rich.console import Console

    with io.StringIO() as file:
        show(Console(file=file, width=120, force_terminal=False, force_jupyter=False, no_color=True))
        return file.getvalue().strip("\n")


def plain_cell(content: Content) -> str:
    """What a cell shows first: a figure's value, or a text."""
    if isinstance(content, Cell):
        return content.text
    if isinstance(content, Scale):
        return content.text()
    return content if isinstance(content, str) else value(content)


def beside(content: Content) -> list[str]:
    """What a cell shows in small letters; a line may be broken between the parts, and not within them."""
    return figure_details(content) if isinstance(content, Figure) else []


def _text_cell(content: Content) -> str:
    return " ".join((plain_cell(content), *beside(content)))


def missing_note(grids: Iterable[Grid]) -> str:
    """`○ No interval: …`: why values of these tables have none; empty where each has one."""
    contents = (content for grid in grids for _, cells in grid.rows for content in cells)
    figures = (each.figure if isinstance(each, Scale) else each for each in contents)
    reasons = dict.fromkeys(no_interval(each) for each in figures if isinstance(each, Figure))
    listed = "; ".join(filter(None, reasons))
    return f"{NO_INTERVAL} No interval: {listed}." if listed else ""


def rich_cells(contents: Sequence[Content], *, narrow: bool = False) -> list[Text]:
    """The cells of one column; figures have their intervals, with values and limits below each other. Only
    texts may be wrapped. Narrow ones have notes below the figures, and shorter lines from worst to best."""
    from rich.text import Text

    figures = [content for content in contents if isinstance(content, Figure) or content is None]
    columns = [value(each) for each in figures], _intervals(figures), list(map(_note, figures))
    width, middle, end = (max(map(len, column), default=0) for column in columns)
    cells = []
    drawn = zip(*columns, strict=True)
    for each in contents:
        if isinstance(each, Figure) or each is None:
            number, words, note = next(drawn)
            note = f"\n{note.lstrip(', ')}" * bool(note) if narrow else f"{note:<{end}}"
            parts = ((number.rjust(width), "dim" * (number == "–")), (f"{words:<{middle}}", "dim"))
            cells.append(Text.assemble(*parts, (note, "yellow"), no_wrap=True, overflow="ignore"))
        else:
            drawing = each.text(WIDTH // (1 + narrow)) if isinstance(each, Scale) else plain_cell(each)
            text = rich_text(drawing, STYLES[each.style] if isinstance(each, Cell) else "")
            text.no_wrap = isinstance(each, Scale) or not PROSE.search(text.plain)
            cells.append(text)
    return cells


def beside_the_edge(column: Sequence[Text], width: int) -> list[Text]:
    """A column of this width with its figures at the right, still below each other: rich would strip the
    spaces after some of them."""
    from rich.text import Text

    figures = [cell.split("\n") if cell.overflow == "ignore" else () for cell in column]
    free = width - max((line.cell_len for lines in figures for line in lines), default=width)
    for line in [line for lines in figures for line in lines]:
        line.pad_left(free)
    return [
        Text("\n", no_wrap=True, overflow="ignore").join(lines) if lines else cell
        for cell, lines in zip(column, figures, strict=True)
    ]


def _note(figure: Figure | None) -> str:
    """A test's p-value, and how much is covered where that is not all."""
    words = f", {p_value(figure)}" if p_value(figure) else ""
    partial = figure is not None and figure.value is not None and figure.coverage < 1
    return f"{words} ({share(figure.coverage)} covered)" if figure and partial else words


def rich_text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(escape_controls(text), style=style)


def _intervals(figures: Sequence[Figure | None]) -> list[str]:
    """What is shown of each interval in a column, the ends of all below each other."""
    ends = list(map(limits, figures))
    low, high = (max((len(limit[side]) for limit in ends), default=0) for side in (0, 1))
    return [
        f" [{lower:>{low}}, {upper:>{high}}]"
        if lower
        else f" ({TOO_WIDE})"
        if interval(figure)
        else f" {NO_INTERVAL}" * bool(no_interval(figure))
        for figure, (lower, upper) in zip(figures, ends, strict=True)
    ]
