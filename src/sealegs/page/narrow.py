"""Tables at a terminal that is narrower than they are: texts are wrapped, figures are not."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from rich.text import Text

LONGEST_WORD = 16
"""Letters of a word beyond which it may be broken: behind a sign if it has one, as names and paths have."""
PART = re.compile(r"[^/_:@.=-]*[/_:@.=-]*")
PROSE = re.compile(r"[^\W\d_]{3}")
"""What a text has, and a figure has not."""


class NarrowCell(NamedTuple):
    """A cell as a terminal draws it, and where it may be broken into lines."""

    text: Text
    breaks: Literal["words", "never"] | int = "words"
    """Between words, nowhere, or at one place: behind so many characters."""
    indent: int = 0
    """Spaces before all lines but the first."""

    @property
    def least(self) -> int:
        """How narrow it can be."""
        from rich.cells import cell_len

        if self.breaks == "words":
            words = list(_parts(self.text.plain))
            return max(
                (cell_len(word) + self.indent * (row > 0) for row, word in enumerate(words)), default=0
            )
        return max(line.cell_len for line in self.lines(0)) if self.text else 0

    def lines(self, width: int) -> list[Text]:
        """The cell in lines of at most so many characters, if it can be."""
        from rich.text import Text

        if self.text.cell_len <= width or self.breaks == "never":
            return [self.text]
        if self.breaks == "words":
            style = self.text.style
            return [Text(line, style=style) for line in _lines(self.text.plain, width, self.indent)]
        first, *others = self.text.divide([self.breaks])
        return [first, *(Text(plain, style="yellow") for each in others if (plain := each.plain.strip(", ")))]


class Width(NamedTuple):
    """Of a column, in characters."""

    natural: int
    """With nothing wrapped."""
    least: int
    """With every text wrapped as far as it can be."""


def width_of(column: Sequence[NarrowCell]) -> Width:
    return Width(max(cell.text.cell_len for cell in column), max(cell.least for cell in column))


def fitting(columns: Sequence[Width], room: int) -> list[int]:
    """The width of each column, so that all fit into the room if they can; the widest give way first."""

    def widths(most: int) -> list[int]:
        return [max(column.least, min(column.natural, most)) for column in columns]

    most = range(1 + max(column.natural for column in columns))
    return widths(bisect_right(most, room, key=lambda most: sum(widths(most))) - 1)


def wrapped(cell: NarrowCell, width: int) -> Text:
    from rich.text import Text

    return Text("\n").join(cell.lines(width))


def _lines(text: str, width: int, indent: int) -> list[str]:
    """A text in lines, broken between words, and within those that are too long for a line."""
    from rich.cells import cell_len

    lines = [""]
    for word in text.split():
        joint = " " if lines[-1].strip() else ""
        if cell_len(f"{lines[-1]}{joint}{word}") <= width:
            lines[-1] += f"{joint}{word}"
            continue
        if joint:
            lines.append(" " * indent)
        for part in [word] if cell_len(word) + indent <= width else _parts(word):
            if lines[-1].strip() and cell_len(lines[-1] + part) > width:
                lines.append(" " * indent)
            lines[-1] += part
    return lines


def _parts(text: str) -> Iterator[str]:
    """The words of a text, and the parts of those that are long."""
    from rich.cells import cell_len, chop_cells

    for word in text.split():
        if cell_len(word) <= LONGEST_WORD:
            yield word
            continue
        for part in filter(None, PART.findall(word)):
            yield from chop_cells(part, LONGEST_WORD)
