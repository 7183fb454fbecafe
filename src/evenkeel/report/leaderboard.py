"""A leaderboard as a table, for the terminal, notebooks and the app."""

from __future__ import annotations

from collections import Counter

from rich.console import Console

from evenkeel.analysis.leaderboard import Leaderboard
from evenkeel.page.format import FLOOR, interval, share, value
from evenkeel.page.tables import Cell, Grid
from evenkeel.report.terminal import show_line, show_table

SHARED = (
    "A rank is 1 + the number of entries that are significantly better (paired, corrected by Holm). "
    "Entries that share a rank need not be equal: these samples are too few to tell which of them is better. "
    "Figures are over all samples of a run, ranks over those that two runs have in common."
)


def board_lines(board: Leaderboard) -> list[str]:
    """What is said under the table."""
    return [*([board.note] if board.note else []), *([SHARED] if len(board.rows) > 1 else [])]


def board_table(board: Leaderboard) -> Grid:
    sizes = Counter(row.rank for row in board.rows)
    return Grid(
        "",
        "rank",
        ["name", "value", "95% interval", "coverage", "samples"],
        [
            (
                "–" if row.rank is None else f"{row.rank}{' shared' if sizes[row.rank] > 1 else ''}",
                [
                    Cell(row.name),
                    Cell(value(row.figure), "strong"),
                    interval(row.figure, short=True) or "–",
                    Cell(share(row.figure.coverage), "warn" if row.figure.coverage < FLOOR else ""),
                    f"{row.figure.n:,}",
                ],
            )
            for row in board.rows
        ],
        left=2,
    )


def show_leaderboard(console: Console, board: Leaderboard) -> None:
    show_line(console, board.title, "bold")
    if board.rows:
        show_table(console, board_table(board))
    for line in board_lines(board):
        show_line(console, line, "dim")
