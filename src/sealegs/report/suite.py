"""The outcome of a suite: leaderboards, what is not ranked and why, gates; as page and Markdown.

Nothing in the files depends on when the suite was run or how often it was interrupted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from sealegs.analysis.gate import Gate
from sealegs.analysis.leaderboard import Leaderboard
from sealegs.files.cache import write_whole
from sealegs.harness.registry import benchmark_class
from sealegs.page.format import interval, nouns, value
from sealegs.page.grid import Cell, Content, Displayed, Grid, Overview, coverage_cell
from sealegs.page.html import overview_page
from sealegs.page.metrics import meaning_of
from sealegs.report.scorecard import link

State: TypeAlias = Literal["waiting", "running", "finished", "low coverage", "failed", "stopped"]
"""`waiting`: it was not begun. `low coverage`: it ended, and too little was answered. `stopped`: it was begun
and is not finished."""

Address: TypeAlias = Callable[[Path], str]
"""The link to a run's folder; empty where there is none."""

PAGE, MARKDOWN = "leaderboard.html", "leaderboard.md"
RANKS = (
    "A model's rank is one more than the number of models that are significantly better (paired tests, "
    "corrected by Holm); none ranks above one with a better value."
)


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
    """That of a command that runs it alone; 0 where nothing was left to do."""

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


def suite_overview(result: SuiteResult) -> Overview:
    """Leaderboards, what is not ranked, gates."""
    states = Counter(run.state for run in result.runs)
    outcome = ", ".join(f"{count} {state}" for state, count in states.items())
    spent = "" if result.usd is None else f" Spent so far: ${result.usd:,.4f}."
    boards = [board for board in result.boards if board.rows]
    notes = [f"{board.title}: {note}" for board in result.boards for note in board.footnotes]
    meanings = list(dict.fromkeys(filter(None, map(_meaning, boards))))
    ranks = [RANKS] if any(len(board.rows) > 1 for board in boards) else []
    page = Path(result.path, PAGE)
    return Overview(
        f"Leaderboard: {result.name}",
        grids=[
            *(_board(board, lambda run: link(run, page)) for board in boards),
            *_unranked(result),
            *_gates(result),
        ],
        footnotes=[*notes, *ranks, *meanings],
        lead=f"{nouns(len(result.runs), 'runs')}: {outcome}.{spent}",
    )


def board_overview(board: Leaderboard, address: Address | None = None) -> Overview:
    """One leaderboard by itself; in the app with the addresses of its runs."""
    meaning = _meaning(board)
    notes = [*board.footnotes, *([RANKS] if len(board.rows) > 1 else []), *([meaning] if meaning else [])]
    grids = [replace(_board(board, address), title="", lead="")] if board.rows else []
    return Overview(board.title, grids=grids, footnotes=notes, verdicts=[board.lead] if board.lead else [])


def _meaning(board: Leaderboard) -> str:
    return meaning_of(benchmark_class(board.benchmark).layout.metrics, board.metric) if board.rows else ""


def write_leaderboards(result: SuiteResult) -> list[Path]:
    """The page and the Markdown in the folder of the suite."""
    folder = Path(result.path)
    # What was spent is not the same where the suite was interrupted.
    overview = suite_overview(replace(result, usd=None))
    contents = {
        PAGE: overview_page(overview),
        MARKDOWN: overview.to_markdown(),
    }
    for name, content in contents.items():
        write_whole(folder / name, content)
    return [folder / name for name in contents]


def _board(board: Leaderboard, address: Address | None) -> Grid:
    """A row for each entry, with its rank: `2`, `1 shared`, or a dash; on a page, with links to reports."""
    ranks = [row.rank for row in board.rows]
    rows: list[tuple[str, list[Content]]] = [
        (
            "–" if row.rank is None else f"{row.rank}{' shared' if ranks.count(row.rank) > 1 else ''}",
            [
                Cell(row.name, link=address(Path(row.path)) if address else ""),
                Cell(value(row.figure), "strong"),
                interval(row.figure, short=True) or row.figure.reason,
                coverage_cell(row.figure.coverage),
                f"{row.figure.n:,}",
            ],
        )
        for row in board.rows
    ]
    columns = ["name", "value", "95% interval", "coverage", board.counted]
    return Grid(board.title, "rank", columns, rows, left=2, lead=board.lead)


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
