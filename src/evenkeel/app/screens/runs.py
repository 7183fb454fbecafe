"""All runs of a folder, and a leaderboard of each benchmark."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import streamlit as st

import evenkeel as ek
from evenkeel.app import data, show
from evenkeel.app.settings import Settings
from evenkeel.page.format import counted, interval, share, visible

if TYPE_CHECKING:
    from evenkeel.harness.stored.listing import ListedRun
    from evenkeel.types import Figure

SCALES = {"share": "%", "cosine": "0 to 1", "score": "of 100"}
"""Beside the number of a headline."""


def page(settings: Settings) -> None:
    show.title("Runs")
    listed = data.list_runs(settings)
    if not listed:
        _explain_empty(settings)
        return
    shown = _filter(listed)
    finished = [run for run in shown if run.state == "finished"]
    show.tabs(
        {"All runs": lambda: _table(shown), "Leaderboards": lambda: _leaderboards(finished)}, key="list"
    )


def _explain_empty(settings: Settings) -> None:
    there = settings.runs.is_dir()
    show.text(
        f"There are no runs in {settings.shown_runs} yet."
        if there
        else f"The folder {settings.shown_runs} does not exist.",
        "warn",
    )
    if settings.read_only:
        show.text("Put run folders into it: this app is read-only.")
        return
    show.text("Start one here, or at the terminal with: evenkeel run mirae --model embedded --limit 2")
    st.page_link(st.session_state["pages"]["new-run"], label="Start a run")


def _filter(listed: list[ListedRun]) -> list[ListedRun]:
    """The runs that the person wants to see."""
    benchmark, model, since = st.columns(3)
    names = sorted({run.benchmark for run in listed if run.benchmark})
    chosen = benchmark.multiselect("Benchmark", names, key="benchmark", bind="query-params")
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
    show.text(f"{counted(len(listed), 'runs')}. Select one to see its samples.", "soft")
    selected = show.clickable(
        {title: [row[title] for _, row in rows] for title in rows[0][1]},
        key="runs-table",
        alt="All runs with their headline, interval and coverage",
        column_config={"Headline": st.column_config.NumberColumn(format="%.3g")},
    )
    if selected is not None:
        show.go("explore", run=rows[selected][0].name)
    if broken := [run.problem for run in listed if run.state == "broken"]:
        show.text("\n".join(["Cannot be read:", *broken]), "warn")


def _rows(run: ListedRun) -> list[dict[str, Any]]:
    """The headline is a number, by which the table is sorted: a share as per cent."""
    figures: dict[str, Figure | None] = {**run.subjects} or {run.model: run.headline}
    benchmark = ek.list_benchmarks().get(run.benchmark)
    title = benchmark.layout.name if benchmark else visible(run.benchmark)
    return [
        {
            "Benchmark": ", ".join(filter(None, (title, run.part))),
            "Headline": _amount(figure),
            "Scale": SCALES.get(figure.unit, figure.unit) if figure else "",
            "95% interval": interval(figure, short=True),
            "Model or method": visible(name),
            "Created (UTC)": run.created[:16].replace("T", " "),
            "Coverage": share(figure.coverage) if figure else "",
            "State": run.state,
            "Run": visible(run.name),
        }
        for name, figure in figures.items()
    ]


def _amount(figure: Figure | None) -> float | None:
    if figure is None or figure.value is None:
        return None
    return 100 * figure.value if figure.unit == "share" else figure.value


def _leaderboards(listed: list[ListedRun]) -> None:
    if not listed:
        show.text("None of these runs is finished: a leaderboard shows finished runs.", "soft")
        return
    for board in data.leaderboards(listed):
        show.result(board)
        if board.benchmark:
            show.explained(board.benchmark, [board.metric])
