"""Results where they are looked at in Python: a small HTML block in a notebook, text at the prompt.

The block is escaped like the pages: model output is only ever text, no script, nothing to load.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from evenkeel.errors import EvenkeelError
from evenkeel.page.format import (
    counted,
    interval,
    number,
    p_value,
    probability,
    share,
    signed,
    value,
    visible,
)
from evenkeel.page.layout import Layout
from evenkeel.page.tables import arrange
from evenkeel.report.html import environment
from evenkeel.run.registry import benchmark_class
from evenkeel.types import Figure, Unit

if TYPE_CHECKING:
    from rich.console import Console

    from evenkeel.analysis.comparison import Comparison, Difference
    from evenkeel.analysis.gate import Gate
    from evenkeel.report.scorecard import Line, Scorecard
    from evenkeel.run.budget import Plan
    from evenkeel.run.folder import Run


class Shown(NamedTuple):
    """A table of texts."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


def run_html(run: Run) -> str:
    """The headline with its interval and coverage, and the benchmark's first table."""
    try:
        title, lines = _headline(run)
        layout: Layout = benchmark_class(run.spec.benchmark).layout
        grids = (arrange(run.summary, table) for table in layout.tables)
        grid = next((grid for grid in grids if grid is not None), None)
        notes = benchmark_class(run.spec.benchmark).notes(run.spec, run.summary)
    except EvenkeelError as error:  # not finished, or not a run of ours
        return _html(str(run.path), [str(error)])
    tables = []
    if grid is not None:
        rows = [[name, *(_cell(cell) for cell in cells)] for name, cells in grid.rows]
        tables = [Shown(grid.title, [grid.corner, *grid.columns], rows)]
    warned = [f"⚠ {note.text}" for note in notes if note.warning]
    return _html(title, [*lines, *warned, f"Report: {run.path / 'report.html'}"], tables)


def run_text(run: Run) -> str:
    """One line: what it is, where it lies, and its headline if it is finished."""
    try:
        about = f"{run.spec.benchmark} of {run.spec.subject}"
    except EvenkeelError as error:
        return visible(f"<Run at {run.path}: {error}>")
    try:
        found = run.headline
        between = f" ({interval(found)})" if interval(found) else ""
        about += f": {value(found)}{between}, coverage {share(found.coverage)}"
    except EvenkeelError:
        about += ", not finished"
    return visible(f"<Run {about}, at {run.path}>")


def comparison_html(found: Comparison) -> str:
    """A row for each difference."""
    how = "paired by sample" if found.paired else "as unrelated samples"
    heads = ["metric", "A", "B", "of A", "of B", "B − A", "95% interval", "p (Holm)", "samples"]
    rows = [
        [d.metric, d.a, d.b, *_difference(d), probability(d.p_holm), f"{d.n:,}"] for d in found.differences
    ]
    return _html(f"{found.benchmark}: {len(found.runs)} runs, {how}", found.differs, [Shown("", heads, rows)])


def _difference(found: Difference) -> list[str]:
    unit, low, high = found.unit, found.low, found.high
    return [
        *(_number(amount, unit) for amount in (found.value_a, found.value_b)),
        "–" if found.difference is None else signed(found.difference, unit),
        "–" if low is None or high is None else f"{signed(low, unit)} to {signed(high, unit)}",
    ]


def comparison_text(found: Comparison) -> str:
    from evenkeel.report.comparison import show_comparison

    words = benchmark_class(found.benchmark).layout.counted
    return _printed(lambda console: show_comparison(console, found, counted=words))


def gate_html(found: Gate) -> str:
    """A row for each check."""
    rows = [[check.name, "pass" if check.passed else "FAIL", check.reason] for check in found.checks]
    return _html(_verdict(found), [], [Shown("", ["check", "", "why"], rows)])


def gate_text(found: Gate) -> str:
    lines = [f"{'pass' if check.passed else 'FAIL'}  {visible(check.reason)}" for check in found.checks]
    return "\n".join([visible(_verdict(found)), *lines])


def _verdict(found: Gate) -> str:
    return f"{'Passed' if found.passed else 'Failed'}: {found.run} against {found.baseline}"


def scorecard_html(card: Scorecard) -> str:
    """A row for each run's headline and for what its benchmark tells beside it."""
    from evenkeel.report.scorecard_page import title

    rows = [
        [entry.benchmark, entry.name, *_line(entry.headline), share(entry.headline.figure.coverage)]
        for entry in card.entries
    ]
    for place, entry in reversed(list(enumerate(card.entries, 1))):
        rows[place:place] = [["", "", *_line(line), ""] for line in entry.facts]
    heads = ["benchmark", "run", "figure", "value", "95% interval", "coverage"]
    return _html(title(card), card.notes, [Shown("", heads, rows)])


def scorecard_text(card: Scorecard) -> str:
    from evenkeel.report.scorecard_page import show_scorecard

    return _printed(lambda console: show_scorecard(console, card))


def plan_html(plan: Plan) -> str:
    """A row for each kind of request."""
    rows = [
        [kind, f"{n:,}", f"{plan.tokens_in.get(kind, 0):,}", f"≤ {written:,}" if written else "–"]
        for kind, n in plan.requests.items()
        for written in [plan.tokens_out.get(kind, 0)]
    ]
    cost = [f"At most about ${plan.usd:,.2f}."] if plan.usd is not None else []
    heads = ["kind", "requests", "tokens in", "tokens out"]
    return _html("What a run would ask, estimated", cost, [Shown("", heads, rows)])


def _headline(run: Run) -> tuple[str, list[str]]:
    layout: Layout = benchmark_class(run.spec.benchmark).layout
    found = run.summary.get(layout.headline, run.headline)
    ends = ", ".join(f"{n:,} {status}" for status, n in found.statuses.items())
    return f"{layout.headline_title} of {run.spec.subject}: {value(found)}", [
        f"95% interval {interval(found) or 'not known'}",
        f"over {counted(found, layout)}, coverage {share(found.coverage)} ({ends})",
    ]


def _cell(found: Figure | None) -> str:
    """A value with the bounds of its interval, and its coverage where that is not whole."""
    if found is None or found.value is None:
        return "–"
    bounds = f" ({interval(found)})" if interval(found) else ""
    partly = f", {share(found.coverage)} covered" if found.coverage < 1 else ""
    return f"{value(found)}{bounds}{partly}"


def _line(line: Line) -> list[str]:
    beside = ", ".join(part for part in (interval(line.figure), p_value(line.figure)) if part)
    return [line.title, value(line.figure), beside or "–"]


def _number(amount: float | None, unit: Unit) -> str:
    return "–" if amount is None else number(amount, unit)


def _html(title: str, lines: Sequence[str], tables: Sequence[Shown] = ()) -> str:
    return environment().get_template("notebook.html").render(title=title, lines=lines, tables=tables)


def _printed(show: Callable[[Console], None]) -> str:
    """What would be printed at a terminal, without colour."""
    from rich.console import Console

    with io.StringIO() as file:
        show(Console(file=file, width=120, force_terminal=False, no_color=True))
        return file.getvalue().strip("\n")
