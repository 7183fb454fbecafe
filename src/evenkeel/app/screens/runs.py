"""All runs of a folder, and a leaderboard of each benchmark."""

from __future__ import annotations

from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

import evenkeel as ek
from evenkeel.app import choose, data, show
from evenkeel.app.settings import Settings
from evenkeel.page.format import counted, interval, number, share, value, visible

if TYPE_CHECKING:
    from evenkeel.harness.stored.listing import ListedRun
    from evenkeel.types import Figure

STATES = {"running": "in progress", "unfinished": "not finished", "broken": "not readable"}


def page(settings: Settings) -> None:
    show.title("Runs")
    listed = data.list_runs(settings)
    if not listed:
        _explain_empty(settings)
        return
    show.text(summary(listed), "strong")
    shown = _filter(listed)
    finished = [run for run in shown if run.state == "finished"]
    show.tabs(
        {"All runs": lambda: _table(shown), "Leaderboards": lambda: _leaderboards(finished)}, key="list"
    )


def _explain_empty(settings: Settings) -> None:
    if settings.runs.is_dir():
        show.text(f"There are no runs in {settings.shown_runs} yet.", "warn")
    else:
        show.text(f"The folder {settings.shown_runs} does not exist.", "warn")
    if settings.read_only:
        return
    show.text("Start one here, or at the terminal with: evenkeel run mirae --model embedded --limit 2")
    st.page_link(st.session_state["pages"]["new-run"], label="Start a run")


def summary(listed: list[ListedRun]) -> str:
    """`9 runs of 4 models, 1 not finished. Newest result: Consistency (MIRAE) 0.29, model-a (mirae-1).`"""
    models = {run.model for run in listed if run.model and not run.subjects}
    methods = {name for run in listed for name in run.subjects}
    tested = {"models": len(models), "methods": len(methods)}
    words = counted(len(listed), "runs")
    if any(tested.values()):
        words += " of " + " and ".join(counted(count, noun) for noun, count in tested.items() if count)
    states = [run.state for run in listed]
    for state, meaning in STATES.items():
        words += f", {states.count(state):,} {meaning}" if state in states else ""
    newest = next((run for run in listed if run.state == "finished"), None)
    if newest is None:
        return f"{words}."
    best, figure = _figures(newest)[0]
    return f"{words}. Newest result: {_title(newest)} {value(figure)}, {best} ({newest.name})."


def _filter(listed: list[ListedRun]) -> list[ListedRun]:
    """The runs that the person wants to see."""
    benchmark, model, since = st.columns(3)
    chosen = benchmark.multiselect(
        "Benchmark",
        sorted({run.benchmark for run in listed if run.benchmark}),
        format_func=choose.benchmark_title,
        key="benchmarks",
        bind="query-params",
    )
    subjects = sorted({visible(run.model) for run in listed if run.model})
    models = model.multiselect("Model", subjects, key="model", bind="query-params")
    first = since.date_input(
        "Created after", value=None, max_value=date.today(), key="since", bind="query-params"
    )
    return [
        run
        for run in listed
        if (not chosen or run.benchmark in chosen)
        and (not models or visible(run.model) in models)
        and (first is None or run.created[:10] >= first.isoformat())
    ]


def _table(listed: list[ListedRun]) -> None:
    """A row for each run, or for each method of one that compares several."""
    if not listed:
        show.text("No runs match these filters.", "soft")
        return
    rows = [(run, row) for run in listed for row in _rows(run)]
    columns = {title: [row[title] for _, row in rows] for title in rows[0][1]}
    several = " A run of several methods has a row for each." if len(rows) > len(listed) else ""
    show.text(f"Select a row to see its samples.{several}", "soft")
    selected = show.clickable(
        _styled(columns),
        len(rows),
        key="runs-table",
        alt="All runs with their headline, interval and coverage",
    )
    if selected is not None:
        show.go("explore", run=rows[selected][0].name)
    if broken := [run.problem for run in listed if run.state == "broken"]:
        show.text("\n".join(["Cannot be read:", *broken]), "warn")


def _styled(columns: dict[str, list[Any]]) -> Any:
    """The headlines are numbers, by which the table is sorted, with the digits that they have everywhere."""
    import pandas as pd

    figures = columns["Headline"]
    style = pd.DataFrame(columns | {"Headline": [figure and figure.value for figure in figures]}).style
    for unit in {figure.unit for figure in figures if figure}:
        rows = [row for row, figure in enumerate(figures) if figure and figure.unit == unit]
        style = style.format(partial(number, unit=unit), subset=(rows, "Headline"), na_rep="–")
    return style


def _figures(run: ListedRun) -> list[tuple[str, Figure | None]]:
    """The headline of each subject of a run, the best method first."""
    subjects = sorted(run.subjects.items(), key=lambda item: -(item[1].value or 0.0))
    return [*subjects] or [(run.model, run.headline)]


def _title(run: ListedRun) -> str:
    return ", ".join(filter(None, (choose.benchmark_title(run.benchmark), run.part)))


def _rows(run: ListedRun) -> list[dict[str, Any]]:
    return [
        {
            "Benchmark": _title(run),
            "Headline": figure,
            "95% interval": interval(figure, short=True) or (figure.method if figure else ""),
            "Model or method": visible(name),
            "Created (UTC)": run.created[:16].replace("T", " "),
            "Coverage": share(figure.coverage) if figure else "",
            "State": run.state,
            "Run": visible(run.name),
        }
        for name, figure in _figures(run)
    ]


def _leaderboards(listed: list[ListedRun]) -> None:
    """The boards on which there is something to rank."""
    boards = data.leaderboards([ek.load_run(run.path) for run in listed])
    ranked = [board for board in boards if len(board.rows) != 1]
    for board in ranked:
        show.result(board)
    if alone := len(boards) - len(ranked):
        show.text(
            f"Not ranked: {counted(alone, 'runs')} without another of the same data and settings.",
            "soft",
        )
    if not boards:
        show.text("None of these runs is finished: a leaderboard shows finished runs.", "soft")
