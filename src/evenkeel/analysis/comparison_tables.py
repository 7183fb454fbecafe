"""A comparison, or a leaderboard, as tables and lines: the same for the terminal, the page and a notebook."""

from __future__ import annotations

from evenkeel.analysis.comparison import Comparison, Difference
from evenkeel.analysis.leaderboard import Leaderboard
from evenkeel.harness.registry import benchmark_class
from evenkeel.page.format import (
    capitalised,
    chance,
    counts,
    interval,
    known,
    probability,
    share,
    signed,
    signed_bound,
    value,
)
from evenkeel.page.grid import Cell, Content, Grid, Overview, Style, coverage_cell
from evenkeel.page.metrics import declaration

HEADS = ["B − A", "95% interval", "p", "minimum\ndetectable", "differ"]
SHARED = (
    "A rank is 1 + the number of entries that are significantly better (paired, corrected by Holm). "
    "Entries share a rank where equally many others are significantly better than each: they need not be "
    "equal, and as a rule do not differ significantly. "
    "Figures are over all samples of a run, ranks over those that two runs have in common."
)


def overview(comparison: Comparison) -> Overview:
    """The runs, and every difference: bold where it is significant."""
    notes = [Cell(f"  {line}", "note") for line in (*comparison.differs, *comparison.notes)]
    return Overview(
        f"{comparison.benchmark}: {len(comparison.runs)} runs, paired by sample",
        [*(f"  {line}" for line in run_lines(comparison)), *notes],
        comparison_tables(comparison),
        [footnote(comparison)],
    )


def run_lines(comparison: Comparison) -> list[str]:
    """A line for each run: its letter where there are two, its folder, and its coverage if it is partial."""
    letters = ("A ", "B ") if len(comparison.runs) == 2 else ("",) * len(comparison.runs)
    lines = []
    for letter, side in zip(letters, comparison.runs, strict=True):
        coverage = f", coverage {share(side.coverage)}" if side.coverage < 1 else ""
        named = side.name == side.path or side.name.endswith(f"({side.path})")
        lines.append(f"{letter}{side.name}{'' if named else f' ({side.path})'}{coverage}")
    return lines


def comparison_tables(comparison: Comparison) -> list[Grid]:
    """Two runs: a row for each metric. More: for each metric a row for each pair."""
    if len(comparison.runs) == 2:
        rows = [(each.metric, _row(each)) for each in comparison.differences]
        return [Grid("", "metric", ["A", "B", *HEADS], rows, left=1)]
    return [
        Grid(
            metric,
            "A",
            ["B", "of A", "of B", *HEADS],
            [(each.a, [each.b, *_row(each)]) for each in comparison.differences if each.metric == metric],
            left=2,
        )
        for metric in comparison.metrics
    ]


def _row(difference: Difference) -> list[Content]:
    unit, low, high = difference.unit, difference.low, difference.high
    style: Style = "strong" if difference.different else ""
    change = "–" if difference.difference is None else signed(difference.difference, unit)
    limits = "" if low is None or high is None else f"[{signed_bound(low, unit)}, {signed_bound(high, unit)}]"
    return [
        known(difference.value_a, unit),
        known(difference.value_b, unit),
        Cell(change, style),
        Cell(limits, "soft"),
        probability(difference.p_holm),
        known(difference.detectable, unit),
        Cell("yes" if difference.different else "no", style),
    ]


def footnote(comparison: Comparison) -> str:
    """What the columns mean, and how many samples are behind them."""
    layout = benchmark_class(comparison.benchmark).layout
    largest = max(comparison.differences, key=lambda difference: difference.n)
    methods = dict.fromkeys(each.method for each in comparison.differences if each.p is not None)
    sentences = [
        f"Up to {counts(largest, layout)}.",
        "Each interval is of its own difference.",
        f"p: {', '.join(methods) or 'no test'}; after Holm's correction for all rows.",
        "minimum detectable: the smallest true difference that would be significant with 80% power.",
    ]
    declarations = (declaration(layout.metrics, name) for name in comparison.metrics)
    if guessing := next(filter(None, map(chance, declarations)), ""):
        sentences.append(f"{capitalised(guessing)}.")
    return " ".join(sentences)


def board_overview(board: Leaderboard) -> Overview:
    notes = [*([board.note] if board.note else []), *([SHARED] if len(board.rows) > 1 else [])]
    return Overview(board.title, grids=[board_table(board)] if board.rows else [], footnotes=notes)


def board_table(board: Leaderboard) -> Grid:
    """A row for each entry, with its rank: `2`, `1 shared`, or a dash."""
    ranks = [row.rank for row in board.rows]
    rows: list[tuple[str, list[Content]]] = [
        (
            "–" if row.rank is None else f"{row.rank}{' shared' if ranks.count(row.rank) > 1 else ''}",
            [
                Cell(row.name),
                Cell(value(row.figure), "strong"),
                interval(row.figure, short=True) or "–",
                coverage_cell(row.figure.coverage),
                f"{row.figure.n:,}",
            ],
        )
        for row in board.rows
    ]
    return Grid("", "rank", ["name", "value", "95% interval", "coverage", "samples"], rows, left=2)
