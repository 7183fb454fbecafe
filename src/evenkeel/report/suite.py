"""The outcome of a suite: leaderboards, what is not ranked and why, gates; for terminal, page, CSV, Markdown.

Nothing in the files depends on when the suite was run or how often it was interrupted.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from evenkeel.analysis.gate import Gate
from evenkeel.analysis.leaderboard import Leaderboard, Standing
from evenkeel.files.cache import write_whole
from evenkeel.page.format import as_markdown, harmless, interval, share, value
from evenkeel.page.notebook import Displayed
from evenkeel.page.tables import Cell, Content, Grid
from evenkeel.report import templates
from evenkeel.report.comparison import SHARED, board_table, rank_of
from evenkeel.report.gate import gate_lines
from evenkeel.report.scorecard import link
from evenkeel.report.terminal.tables import show_line, show_table

State: TypeAlias = Literal["waiting", "running", "finished", "low coverage", "failed", "stopped"]
"""`waiting`: it was not begun. `low coverage`: it ended, and too little was answered."""

PAGE, TABLE, MARKDOWN = "leaderboard.html", "leaderboard.csv", "leaderboard.md"
COLUMNS = (
    "benchmark", "board", "rank", "name", "metric", "value", "low", "high", "unit", "coverage", "samples",
    "groups", "run", "state", "problem",
)  # fmt: skip


class SuiteRun(Struct, frozen=True, kw_only=True):
    """A run of a suite, as it stands at the end."""

    name: str
    benchmark: str
    model: str
    """The name of the model under test; empty where none is."""
    folder: str
    """Within the folder of the suite."""
    state: State
    problem: str = ""
    """Why it failed, or is not ranked."""
    exit_code: int = 0
    """Of its process; 0 where none was needed."""

    @property
    def ranked(self) -> bool:
        return self.state == "finished"


class SuiteGate(Struct, frozen=True, kw_only=True):
    """A run held against that of an earlier suite."""

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


def named(board: Leaderboard, names: Mapping[str, str]) -> Leaderboard:
    """A board whose rows have the names of the suite's models, by the paths of their runs."""
    shown = [names.get(row.path, row.name) for row in board.rows]
    rows = tuple(
        replace(row, name=name if shown.count(name) == 1 else f"{name} ({Path(row.path).name})")
        for row, name in zip(board.rows, shown, strict=True)
    )
    return replace(board, rows=rows)


def write_leaderboards(result: SuiteResult) -> list[Path]:
    """The page, the table and the Markdown in the folder of the suite."""
    folder = Path(result.path)
    page = folder / PAGE
    write_whole(page, _page(result, page))
    write_whole(folder / TABLE, _csv(result))
    write_whole(folder / MARKDOWN, markdown(result))
    return [page, folder / TABLE, folder / MARKDOWN]


def _boards(result: SuiteResult) -> list[Leaderboard]:
    return [board for board in result.boards if board.rows or board.note]


def unranked(result: SuiteResult) -> Grid | None:
    """The runs that have no rank, each with its reason."""
    rows: list[tuple[str, list[Content]]] = [
        (run.name, [Cell(run.state, "warn" if run.state != "waiting" else "soft"), Cell(run.problem)])
        for run in result.runs
        if not run.ranked
    ]
    return Grid("Not ranked", "run", ["state", "why"], rows, left=3) if rows else None


def gate_grid(result: SuiteResult) -> Grid | None:
    """A row for each check of each gate."""
    rows: list[tuple[str, list[Content]]] = []
    for each in result.gates:
        checks = each.gate.checks if each.gate else ()
        for number, check in enumerate(checks):
            outcome = Cell("pass") if check.passed else Cell("FAIL", "warn")
            rows.append((each.run if number == 0 else "", [outcome, check.reason]))
        if each.problem:
            result_cell = Cell("–") if each.passed else Cell("FAIL", "warn")
            rows.append((each.run, [result_cell, each.problem]))
    return Grid("Gate", "run", ["outcome", "reason"], rows, left=3) if rows else None


def outcome(result: SuiteResult) -> str:
    """`12 runs: 11 finished, 1 failed.`"""
    states = [run.state for run in result.runs]
    counted = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    return f"{'1 run' if len(states) == 1 else f'{len(states):,} runs'}: {counted}."


def show_suite(console: Console, result: SuiteResult) -> None:
    """Leaderboards, what is not ranked, gates."""
    boards = _boards(result)
    for board in boards:
        console.print()
        show_line(console, board.title, "bold")
        if board.rows:
            show_table(console, board_table(board))
        if board.note:
            show_line(console, board.note, "dim")
    if any(len(board.rows) > 1 for board in boards):
        console.print()
        console.print(Text(SHARED, style="dim"))
    if missing := [run for run in result.runs if not run.ranked]:
        console.print()
        show_line(console, "Not ranked", "bold")
        for run in missing:
            why = f": {run.problem}" if run.problem else ""
            show_line(console, f"{run.name}: {run.state}{why}", "dim" if run.state == "waiting" else "red")
    for each in result.gates:
        console.print()
        show_line(console, f"Gate of {each.run}: {'passed' if each.passed else 'FAILED'}", "bold")
        for line in [
            *(gate_lines(each.gate) if each.gate else ()),
            *([each.problem] if each.problem else ()),
        ]:
            show_line(console, line, "" if each.passed else "red")
    console.print()
    spent = "" if result.usd is None else f" Spent so far: ${result.usd:,.4f}."
    show_line(console, f"{outcome(result)}{spent}")


def _cell(content: Content) -> str:
    return templates.cell(content).text


def _page(result: SuiteResult, out: Path) -> str:
    sections = []
    for board in _boards(result):
        grid = board_table(board)
        rows = [
            (name, [Cell(row.name, link=link(Path(result.path, row.path), out)), *cells[1:]])
            for (name, cells), row in zip(grid.rows, board.rows, strict=True)
        ]
        sections.append({"title": board.title, "grid": replace(grid, rows=rows), "note": board.note})
    return templates.render(
        "suite.html",
        title=f"Leaderboards of {result.name}",
        sections=sections,
        shared=SHARED,
        others=[grid for grid in (unranked(result), gate_grid(result)) if grid is not None],
        lead=outcome(result),
    )


def _csv(result: SuiteResult) -> str:
    """One line for each row of each board, and one for each run that has no rank."""
    with io.StringIO() as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        by_folder = {run.folder: run for run in result.runs}
        for number, board, row in _rows(result.boards):
            figure, run = row.figure, by_folder[Path(row.path).name]
            writer.writerow(
                [
                    harmless(board.benchmark), number, "" if row.rank is None else row.rank,
                    harmless(row.name), harmless(board.metric),
                    *(_number(each) for each in (figure.value, figure.low, figure.high)),
                    figure.unit, _number(figure.coverage), figure.n, figure.clusters, harmless(run.folder),
                    run.state, "",
                ]
            )  # fmt: skip
        for run in result.runs:
            if not run.ranked:
                blank = [""] * 9
                writer.writerow(
                    [harmless(run.benchmark), "", "", harmless(run.model), *blank[:8],
                     harmless(run.folder), run.state, harmless(run.problem)]
                )  # fmt: skip
        return file.getvalue()


def _number(amount: float | None) -> str:
    return "" if amount is None else repr(amount)


def _rows(boards: Sequence[Leaderboard]) -> Iterator[tuple[int, Leaderboard, Standing]]:
    """Each row with the number of its board among those of its benchmark."""
    counted: dict[str, int] = {}
    for board in boards:
        counted[board.benchmark] = counted.get(board.benchmark, 0) + 1
        for row in board.rows:
            yield counted[board.benchmark], board, row


def markdown(result: SuiteResult) -> str:
    """The leaderboards as tables of Markdown, as for the summary of a CI job."""
    lines = [f"# Leaderboards of {as_markdown(result.name)}", "", as_markdown(outcome(result)), ""]
    for board in _boards(result):
        lines += [f"## {as_markdown(board.title)}", ""]
        if board.rows:
            lines += ["| rank | name | value | 95% interval | coverage | samples |"]
            lines += ["| :-- | :-- | --: | --: | --: | --: |"]
            for row in board.rows:
                figure = row.figure
                cells = [
                    rank_of(board, row), row.name, value(figure), interval(figure, short=True) or "–",
                    share(figure.coverage), f"{figure.n:,}",
                ]  # fmt: skip
                lines.append(_table_row(cells))
            lines.append("")
        if board.note:
            lines += [as_markdown(board.note), ""]
    if any(len(board.rows) > 1 for board in result.boards):
        lines += [as_markdown(SHARED), ""]
    for grid in (unranked(result), gate_grid(result)):
        if grid is not None:
            lines += [f"## {grid.title}", "", _table_row([grid.corner, *grid.columns]), "| --- | --- | --- |"]
            lines += [_table_row([name, *map(_cell, cells)]) for name, cells in grid.rows]
            lines.append("")
    return "\n".join(lines)


def _table_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(as_markdown, cells))} |"
