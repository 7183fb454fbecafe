"""One table, drawn for terminals, pages and Markdown."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from rich.console import Console

from sealegs.page.grid import Cell, Content, Grid, Overview, printed, show_line
from sealegs.page.layout import MOST_MAIN, Layout
from sealegs.page.metrics import Metric
from sealegs.page.scale import Scale
from sealegs.page.tables import all_figures
from sealegs.types import Figure

FIGURE = Figure(
    metric="accuracy", scope={}, value=0.5, low=0.2, high=0.8, unit="share", n=8, clusters=8, coverage=1.0,
    statuses={}, method="Wilson score",
)  # fmt: skip


def test_texts_below_figures_are_shown_wherever_a_table_is_drawn() -> None:
    rows: list[tuple[str, list[Content]]] = [
        ("accuracy", [FIGURE]),
        ("coverage", [Cell("⚠ 80%", "warn")]),
        ("created", ["2026-11-17"]),
        ("unknown", [None]),
    ]
    grid = Grid("rgb", "figure", ["model"], rows)
    for drawn in (repr(grid), grid.to_markdown(), grid.to_html()):
        assert all(text in drawn for text in ("50%", "⚠ 80%", "2026", "–"))
    assert "[20%, 80%]" in repr(grid)


def test_a_value_without_an_interval_is_marked_and_the_reason_given() -> None:
    alone = replace(FIGURE, low=None, high=None, method="", reason="fewer than two independent samples")
    grid = Grid("rgb", "ability", ["accuracy"], [("noise", [FIGURE]), ("rejection", [alone])])
    for drawn in (repr(grid), Overview("", grids=[grid]).to_markdown(), grid.to_html()):
        assert drawn.count("○") == 2  # beside the value, and in the note
        assert "No interval: fewer than two independent samples." in drawn
    assert "○" not in repr(Grid("rgb", "ability", ["accuracy"], [("noise", [FIGURE])]))
    assert "●" in Scale(FIGURE).text()
    assert "○" in Scale(alone).text()
    assert "━" not in Scale(alone).text()


def test_a_table_for_a_paper_has_its_intervals_and_no_command_of_a_name() -> None:
    rows: list[tuple[str, list[Content]]] = [("50 % \\input{x} & a_b", [FIGURE]), ("all", [FIGURE])]
    latex = Grid("", "ability", ["accuracy"], rows).to_latex().splitlines()
    assert latex[0] == r"\begin{tabular}{lr}"
    assert latex[4].startswith(r"50 \% \textbackslash{}input\{x\} \& a\_b & 50\% [")
    assert latex[5] == r"\midrule"
    assert latex[-2:] == [r"\bottomrule", r"\end{tabular}"]


def test_a_line_is_broken_between_words_and_a_path_stays_whole() -> None:
    path = f"/folder{'/part' * 40}"
    lines = printed(lambda console: show_line(console, f"{'word ' * 30}{path}")).splitlines()
    assert [len(line) <= 120 for line in lines] == [True, True, False]
    assert lines[-1].strip() == path


def test_figures_without_a_value_take_no_place_on_the_first_screen() -> None:
    metrics = [Metric(f"m{n}", f"figure {n}", "share", "higher", main=True) for n in range(20)]
    layout = Layout(metrics=tuple(metrics), question="?")
    summary = {each.name: replace(FIGURE, value=None if n < 5 else 0.5) for n, each in enumerate(metrics)}
    first = [f"figure {n}" for n in range(5, 5 + MOST_MAIN)]
    assert layout.first_figures(summary) == first
    other = {each.name: FIGURE for each in metrics}
    assert layout.first_figures(summary, other) == [*first, "figure 1", "figure 2", "figure 3", "figure 4"]


def test_what_does_not_apply_has_no_coverage_to_warn_of() -> None:
    nothing = replace(FIGURE, value=None, n=0, coverage=0.0, method="", reason="nothing to count")
    summary = {
        "a": replace(nothing, statuses={"ok": 8, "error": 0}),
        "b": replace(nothing, statuses={"error": 8}),
    }
    assert [cells[-1] for _, cells in all_figures(summary, ()).rows] == [
        Cell("–", "soft"),
        Cell("⚠ 0%", "warn"),
    ]


def test_a_flag_is_not_broken_at_the_end_of_a_line() -> None:
    drawn = Overview("", warnings=["Try a larger --max-tokens <b>."]).to_html()
    assert '<span style="white-space: nowrap">--max-tokens</span> &lt;b&gt;.' in drawn


def test_a_table_of_two_columns_of_figures_is_stacked_on_a_phone() -> None:
    rows: list[tuple[str, list[Content]]] = [("a long name of a figure", [FIGURE, FIGURE])]
    assert 'class="stacked"' in Grid("", "figure", ["SmolLM2-135M-Instruct", "other"], rows).to_html()


def at_terminal(grid: Grid, width: int) -> list[str]:
    console = Console(width=width, force_terminal=True, no_color=True, color_system=None)
    with console.capture() as captured:
        grid.overview().show(console)
    return captured.get().splitlines()


PARTIAL = replace(FIGURE, value=0.55, coverage=0.64)


@pytest.mark.parametrize(
    ("width", "left", "figures", "parts"),
    [(200, 0, 3, 1), (80, 0, 2, 1), (80, 1, 3, 1), (80, 3, 2, 1), (80, 0, 6, 2), (60, 3, 4, 4)],
)
def test_a_table_fits_a_terminal_by_wrapping_texts_before_it_is_split(
    width: int, left: int, figures: int, parts: int
) -> None:
    texts: list[Content] = ["about 400 clean texts would do", "hf:a/very-long-name-of-a-model"]
    row: list[Content] = [*texts[: max(0, left - 1)], *[PARTIAL] * figures]
    titles = [f"Right, of prompts whose documents hold the answer {n}" for n, _ in enumerate(row)]
    name = "Accuracy (lenient check) of all prompts, ability counterfactual"
    lines = at_terminal(Grid("", "metric", titles, [(name, row)] * 2, left=left), width)
    assert max(map(len, lines)) <= width
    drawn = "\n".join(lines)
    assert drawn.count("55% [20%, 80%]") == drawn.count("(64% covered)") == 2 * figures
    assert sum({*line} == {"─"} for line in lines) == parts


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_figure_and_a_line_among_texts_are_whole(width: int) -> None:
    row: list[Content] = [Scale(FIGURE), FIGURE, "runs/of-a-folder-with-a-long-name"]
    lines = at_terminal(Grid("", "model", ["worst to best", "headline", "run"], [("m", row)], left=4), width)
    drawn = "\n".join(lines)
    assert "50% [20%, 80%]" in drawn
    assert any(re.search("0% [─━]+●[─━]+ 100%", line) for line in lines)


def test_figures_end_below_the_end_of_their_title_and_below_each_other() -> None:
    rows: list[tuple[str, list[Content]]] = [("a", [FIGURE]), ("b", [replace(FIGURE, coverage=0.5)])]
    lines = at_terminal(Grid("", "model", ["accuracy of all of the prompts"], rows), 120)
    head, _, first, last = (line.rstrip() for line in lines)
    assert len(head) == len(last)
    assert first.index("[") == last.index("[")


def test_a_long_name_is_broken_and_does_not_pad_the_other_rows() -> None:
    rows: list[tuple[str, list[Content]]] = [("m" * 600, [FIGURE]), ("short", [FIGURE])]
    lines = at_terminal(Grid("", "model", ["accuracy"], rows), 80)
    assert max(map(len, lines)) <= 80
    assert "".join("".join(lines).split()).count("m" * 60) > 0
    piped = repr(Grid("", "model", ["accuracy"], rows)).splitlines()
    assert len(piped) == 4  # a row is a line where no one looks at it
