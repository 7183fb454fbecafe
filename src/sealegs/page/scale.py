"""A figure on a line from the worst value to the best: its interval, and marks to read it by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from sealegs.page.format import NO_INTERVAL, interval_words, number, value
from sealegs.types import Figure, Unit

Kind: TypeAlias = Literal["baseline", "published", "own"]
SYMBOLS: dict[Kind, str] = {"baseline": "┆", "published": "◆", "own": "◇"}
WORDS: dict[Kind, str] = {
    "baseline": "",
    "published": " published, on other prompts or dates:",
    "own": " your reference:",
}
ENDS: dict[Unit, tuple[float, float]] = {"share": (0, 1), "cosine": (0, 1), "score": (0, 100)}
"""The worst and the best value of a unit of which more is better."""
WIDTH = 40
"""Characters of the line at the terminal."""


class ReferenceMark(Struct, frozen=True):
    """A value to compare a figure with: what guessing gives, or a model elsewhere."""

    value: float
    label: str
    kind: Kind
    about: str = ""
    """On which data."""
    source: str = ""
    """Where it was published: an address, which may be followed by words."""


class Scale(NamedTuple):
    """A figure of a bounded unit, with marks."""

    figure: Figure
    marks: tuple[ReferenceMark, ...] = ()
    lower_is_better: bool = False

    @property
    def ends(self) -> tuple[str, str]:
        """The worst and the best value in words."""
        low, high = (f"{end:.0%}" if self.figure.unit == "share" else f"{end:g}" for end in self._range)
        return (high, low) if self.lower_is_better else (low, high)

    @property
    def _range(self) -> tuple[float, float]:
        return ENDS[self.figure.unit]

    def position(self, amount: float) -> float:
        """Where an amount is, from 0 (worst) to 1 (best)."""
        low, high = self._range
        share = min(1.0, max(0.0, (amount - low) / (high - low)))
        return 1 - share if self.lower_is_better else share

    @property
    def band(self) -> tuple[float, float] | None:
        """The interval's two ends as positions from 0 to 1 on the scale; None without an interval."""
        figure = self.figure
        if figure.value is None or figure.low is None or figure.high is None:
            return None
        positions = sorted(map(self.position, (figure.low, figure.value, figure.high)))
        return positions[0], positions[-1]

    def text(self, width: int = WIDTH) -> str:
        """`0% ┤──━━●━━━━━───────◆──├ 100%`"""
        cells = ["─"] * width
        if self.band is not None:
            start, end = (round(position * (width - 1)) for position in self.band)
            cells[start : end + 1] = "━" * (end + 1 - start)
        for mark in self.marks:
            cells[round(self.position(mark.value) * (width - 1))] = SYMBOLS[mark.kind]
        if self.figure.value is not None:
            cells[round(self.position(self.figure.value) * (width - 1))] = "●" if self.band else NO_INTERVAL
        worst, best = self.ends
        return f"{worst} {''.join(cells)} {best}"

    @property
    def words(self) -> str:
        """The same for those who do not see it."""
        line = f"on a line from {self.ends[0]} (worst) to {self.ends[1]} (best)"
        return f"{value(self.figure)} {line}, {interval_words(self.figure)}"


def drawable(figure: Figure) -> bool:
    return figure.unit in ENDS


def numbered(marks: Sequence[ReferenceMark]) -> list[tuple[ReferenceMark, str]]:
    """Each mark, with a number by its value where there are several models among them."""
    models = sorted((mark for mark in marks if mark.kind != "baseline"), key=lambda mark: mark.value)
    names = {mark: str(index) for index, mark in enumerate(models, 1)} if len(models) > 1 else {}
    return [(mark, names.get(mark, "")) for mark in [*(m for m in marks if m not in models), *models]]


def legend(marks: Sequence[ReferenceMark], unit: Unit) -> str:
    """What the marks are: `┆ guessing 50%; ◆ published, on other prompts or dates: 1 BM25 10%, 2 …`."""
    parts = []
    for kind in SYMBOLS:
        members = [(mark, name) for mark, name in numbered(marks) if mark.kind == kind]
        listed = [f"{name} {mark.label} {number(mark.value, unit)}".strip() for mark, name in members]
        about = {mark.about for mark, _ in members}
        data = f" ({about.pop()})" if len(about) == 1 and kind == "published" else ""
        if listed:
            parts.append(f"{SYMBOLS[kind]}{WORDS[kind]} {', '.join(listed)}{data}")
    return "; ".join(parts)


def listed(marks: Sequence[ReferenceMark], unit: Unit) -> str:
    """Models elsewhere, where no line is drawn: `your reference: a 63%; published, on other prompts …`."""
    parts = []
    kinds: tuple[Kind, ...] = "own", "published"
    for kind in kinds:
        members = [f"{mark.label} {number(mark.value, unit)}" for mark in marks if mark.kind == kind]
        parts += [f"{WORDS[kind].strip()} {', '.join(members)}"] if members else []
    return "; ".join(parts)


def source_link(source: str) -> tuple[str, str]:
    """The name of a source, `github.com/sarahlc888/multiview`, and its address, if it has one."""
    address = source.partition(" ")[0]
    return ("/".join(address.split("/")[2:5]), address) if address.startswith("https://") else (source, "")


def sources(marks: Sequence[ReferenceMark]) -> dict[str, str]:
    """The addresses of the sources of marks, by their names."""
    links = [source_link(mark.source) for mark in marks]
    return {name: address for name, address in links if address}
