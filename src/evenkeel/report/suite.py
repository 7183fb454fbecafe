"""The outcome of a suite: leaderboards, what is not ranked and why, gates; as page and Markdown.

Nothing in the files depends on when the suite was run or how often it was interrupted.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from evenkeel.analysis.gate import Gate
from evenkeel.analysis.leaderboard import SHARED, Leaderboard
from evenkeel.files.cache import write_whole
from evenkeel.page.format import counted
from evenkeel.page.grid import Cell, Content, Displayed, Grid, Overview
from evenkeel.page.html import render
from evenkeel.report.scorecard import link

State: TypeAlias = Literal["waiting", "running", "finished", "low coverage", "failed", "stopped"]
"""`waiting`: it was not begun. `low coverage`: it ended, and too little was answered."""

PAGE, MARKDOWN = "leaderboard.html", "leaderboard.md"


class SuiteRun(Struct, frozen=True, kw_only=True):
    """A run of a suite, as it stands at the end."""

    name: str
    """Also that of its folder, within the suite's."""
    benchmark: str
    model: str
    """The name of the model under test; empty where none is."""
    state: State
    problem: str = ""
    """Why it failed, or is not ranked."""
    exit_code: int = 0
    """Of its process; 0 where none was needed."""

    @property
    def ranked(self) -> bool:
        return self.state == "finished"


class SuiteGate(Struct, frozen=True, kw_only=True):
    """A run compared with that of an earlier suite."""

    run: str
    gate: Gate | None = None
    problem: str = ""
    """Why there is no comparison."""
    passed: bool


class SuiteResult(Displayed, Struct, frozen=True, kw_only=True):
    """The outcome of a suite."""

    name: str
    """That of its file."""
    path: str
    runs: tuple[SuiteRun, ...]
    boards: tuple[Leaderboard, ...]
    gates: tuple[SuiteGate, ...] = ()
    usd: float | None = None
    """What all runs have cost, where there is a budget."""
    exit_code: int = 0
    """0 done, 1 a run, a coverage or a gate failed, 3 no model was reached."""

    @property
    def passed(self) -> bool:
        return self.exit_code == 0

    def overview(self) -> Overview:
        """Leaderboards, what is not ranked, gates."""
        states = Counter(run.state for run in self.runs)
        outcome = ", ".join(f"{count} {state}" for state, count in states.items())
        spent = "" if self.usd is None else f" Spent so far: ${self.usd:,.4f}."
        boards = [board for board in self.boards if board.rows]
        notes = [f"{board.title}: {note}" for board in self.boards for note in board.footnotes]
        shared = [SHARED] if any(len(board.rows) > 1 for board in boards) else []
        return Overview(
            f"Leaderboard: {self.name}",
            [f"{counted(len(self.runs), 'runs')}: {outcome}.{spent}"],
            [*(_board(board, self.path) for board in boards), *_unranked(self), *_gates(self)],
            [*notes, *shared],
        )


def write_leaderboards(result: SuiteResult) -> list[Path]:
    """The page and the Markdown in the folder of the suite."""
    folder = Path(result.path)
    overview = result.overview()
    # What was spent is not the same where the suite was interrupted.
    overview = replace(overview, lines=replace(result, usd=None).overview().lines)
    contents = {
        PAGE: render("report/overview.html", title=overview.title, overview=overview),
        MARKDOWN: overview.to_markdown(),
    }
    for name, content in contents.items():
        write_whole(folder / name, content)
    return [folder / name for name in contents]


def _board(board: Leaderboard, folder: str) -> Grid:
    """A board whose names are links to the reports of their runs."""
    grid = board.table()
    rows: list[tuple[str, list[Content]]] = [
        (rank, [Cell(row.name, link=link(Path(row.path), Path(folder) / PAGE)), *cells[1:]])
        for (rank, cells), row in zip(grid.rows, board.rows, strict=True)
    ]
    return replace(grid, title=board.title, rows=rows, lead=board.lead)


def _unranked(result: SuiteResult) -> list[Grid]:
    """The runs that have no rank, each with its reason."""
    rows: list[tuple[str, list[Content]]] = [
        (run.name, [Cell(run.state, "warn" if run.state != "waiting" else "soft"), Cell(run.problem)])
        for run in result.runs
        if not run.ranked
    ]
    return [Grid("Not ranked", "run", ["state", "why"], rows, left=3)] if rows else []


def _gates(result: SuiteResult) -> list[Grid]:
    """A row for each check of each gate."""
    rows: list[tuple[str, list[Content]]] = []
    for each in result.gates:
        checks = [(check.passed, check.reason) for check in each.gate.checks] if each.gate else []
        checks += [(each.passed, each.problem)] if each.problem else []
        for number, (passed, reason) in enumerate(checks):
            outcome = Cell("pass") if passed else Cell("FAIL", "warn")
            rows.append((each.run if number == 0 else "", [outcome, reason]))
    return [Grid("Gate", "run", ["outcome", "reason"], rows, left=3)] if rows else []
