"""How results are shown in a notebook and by `repr`: the tables of the pages, in a small block of HTML.

The block is escaped like the pages: model output is text, there is no script and nothing is loaded. Importing
this module registers the renderers; what they use is imported when one is first called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from evenkeel.errors import EvenkeelError
from evenkeel.page.notebook import RENDERERS, Renderer

if TYPE_CHECKING:
    from evenkeel.analysis.comparison import Comparison
    from evenkeel.analysis.gate import Gate
    from evenkeel.analysis.leaderboard import Leaderboard
    from evenkeel.harness.budget import Plan
    from evenkeel.harness.folder import Run
    from evenkeel.page.explained import Explained
    from evenkeel.page.tables import Grid
    from evenkeel.page.view import View
    from evenkeel.report.pictures import Drawn
    from evenkeel.report.scorecard import Scorecard
    from evenkeel.report.suite import SuiteResult


def run_html(run: Run) -> str:
    """The headline with its interval and coverage, and the benchmark's first table."""
    from evenkeel.harness.registry import benchmark_class
    from evenkeel.page.format import counts, interval, share, statuses, value
    from evenkeel.page.tables import arrange
    from evenkeel.report.templates import render

    try:
        benchmark = benchmark_class(run.spec.benchmark)
        layout, figure, notes = benchmark.layout, run.headline, benchmark.notes(run.spec, run.summary)
        several = len(run.headlines) > 1  # the table has a figure for each
    except EvenkeelError as error:  # not finished, or not a run of this version
        return render("notebook.html", title=str(run.path), lines=[str(error)], grids=[])
    grids = [grid for table in layout.tables if (grid := arrange(run.summary, table))]
    lines = [
        *([] if several else [f"95% interval {interval(figure) or 'not known'}"]),
        f"over {counts(figure, layout)}, coverage {share(figure.coverage)} ({statuses(figure)})",
        *(f"⚠ {note.text}" for note in notes if note.warning),
        f"Report: {run.path / 'report.html'}",
    ]
    title = f"{layout.headline_title} of {run.spec.subject}" + ("" if several else f": {value(figure)}")
    return render("notebook.html", title=title, lines=lines, grids=grids[:1])


def comparison_html(comparison: Comparison) -> str:
    from evenkeel.report.comparison import comparison_tables, footnote, heading, run_lines
    from evenkeel.report.templates import render

    lines = [*run_lines(comparison), *comparison.differs, *comparison.notes, footnote(comparison)]
    return render(
        "notebook.html", title=heading(comparison), lines=lines, grids=comparison_tables(comparison)
    )


def comparison_text(comparison: Comparison) -> str:
    from evenkeel.report.comparison import show_comparison
    from evenkeel.report.terminal.tables import printed

    return printed(lambda console: show_comparison(console, comparison))


def gate_html(gate: Gate) -> str:
    from evenkeel.report.gate import gate_table, verdict
    from evenkeel.report.templates import render

    return render("notebook.html", title=verdict(gate), lines=[], grids=[gate_table(gate)])


def gate_text(gate: Gate) -> str:
    from evenkeel.page.format import visible
    from evenkeel.report.gate import gate_lines, verdict

    return "\n".join([visible(verdict(gate)), *gate_lines(gate)])


def scorecard_html(card: Scorecard) -> str:
    from evenkeel.report.scorecard import tables, title
    from evenkeel.report.templates import render

    return render("notebook.html", title=title(card), lines=card.notes, grids=tables(card))


def scorecard_text(card: Scorecard) -> str:
    from evenkeel.report.scorecard import show_scorecard
    from evenkeel.report.terminal.tables import printed

    return printed(lambda console: show_scorecard(console, card))


def leaderboard_html(board: Leaderboard) -> str:
    from evenkeel.report.comparison import board_lines, board_table
    from evenkeel.report.templates import render

    grids = [board_table(board)] if board.rows else []
    return render("notebook.html", title=board.title, lines=[], grids=grids, below=board_lines(board))


def leaderboard_text(board: Leaderboard) -> str:
    from evenkeel.report.comparison import show_leaderboard
    from evenkeel.report.terminal.tables import printed

    return printed(lambda console: show_leaderboard(console, board))


def suite_html(result: SuiteResult) -> str:
    from evenkeel.report.comparison import board_table
    from evenkeel.report.suite import gate_grid, outcome, unranked
    from evenkeel.report.templates import render

    boards = [replace(board_table(board), title=board.title) for board in result.boards if board.rows]
    others = [grid for grid in (unranked(result), gate_grid(result)) if grid is not None]
    title = f"Leaderboards of {result.name}"
    return render("notebook.html", title=title, lines=[outcome(result)], grids=[*boards, *others])


def suite_text(result: SuiteResult) -> str:
    from evenkeel.report.suite import show_suite
    from evenkeel.report.terminal.tables import printed

    return printed(lambda console: show_suite(console, result))


def explained_html(metric: Explained) -> str:
    from evenkeel.report.templates import render

    return render("explained.html", metric=metric)


def explained_text(metric: Explained) -> str:
    from evenkeel.page.format import visible

    return visible("\n".join(explained_lines(metric)))


def explained_lines(metric: Explained) -> list[str]:
    """A metric as lines of text, for the terminal."""
    parts = [metric.what, f"Formula: {metric.formula}", f"Source: {metric.source}"]
    parts += [f"Careful: {metric.careful}"] if metric.careful else []
    return [f"{metric.name}: {metric.title}", *(f"    {part}" for part in parts)]


def plan_html(plan: Plan) -> str:
    """A row for each kind of request."""
    from evenkeel.page.tables import Grid
    from evenkeel.report.templates import render

    rows = [
        (kind, [f"{count:,}", f"{plan.tokens_in.get(kind, 0):,}", f"≤ {written:,}" if written else "–"])
        for kind, count in plan.requests.items()
        for written in [plan.tokens_out.get(kind, 0)]
    ]
    grid = Grid("", "kind", ["requests", "tokens in", "tokens out"], rows, left=1)  # type: ignore[arg-type]
    if not rows:
        cost = ["Asks no model: costs nothing."]
    elif plan.usd is not None:
        cost = [f"At most about ${plan.usd:,.2f}."]
        cost += [f"Dollars per million tokens: {line}." for line in plan.prices]
    elif plan.unpriced:
        cost = [f"The price of {', '.join(plan.unpriced)} is not known: give price_in and price_out."]
    else:
        cost = ["Its models run on this machine: nothing is paid."] if plan.local else []
    title = "What a run would ask, estimated"
    return render("notebook.html", title=title, lines=cost, grids=[grid] if rows else [])


def grid_html(grid: Grid) -> str:
    from evenkeel.report.templates import render

    return render("notebook.html", title="", lines=[], grids=[grid])


def view_html(view: View) -> str:
    from evenkeel.report.samples.view import view_html

    return view_html(view)


def view_text(view: View) -> str:
    from evenkeel.report.samples.view import view_text

    return view_text(view)


def drawn_html(drawn: Drawn) -> str:
    """The picture as SVG with its title and note; its text and lines have the colours of the notebook."""
    from markupsafe import Markup

    from evenkeel.report.templates import render

    # vl-convert draws the SVG from numbers, our titles and the data's tags, which it escapes.
    svg = Markup(drawn.to_svg()) if drawn.chart is not None else ""
    return render("picture.html", title=drawn.title, svg=svg, note=drawn.note)


def drawn_text(drawn: Drawn) -> str:
    from evenkeel.page.format import visible

    return visible(f"<Drawn {drawn.title}>")


RENDERERS.update(
    Run=Renderer(run_html),
    Comparison=Renderer(comparison_html, comparison_text),
    Gate=Renderer(gate_html, gate_text),
    Scorecard=Renderer(scorecard_html, scorecard_text),
    Plan=Renderer(plan_html),
    Grid=Renderer(grid_html),
    Explained=Renderer(explained_html, explained_text),
    Leaderboard=Renderer(leaderboard_html, leaderboard_text),
    SuiteResult=Renderer(suite_html, suite_text),
    View=Renderer(view_html, view_text),
    Drawn=Renderer(drawn_html, drawn_text),
)
