"""All runs of a folder, and a leaderboard of each benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

import streamlit as st

import evenkeel as ek
from evenkeel.app import data, show
from evenkeel.app.settings import Settings
from evenkeel.page.format import interval, share, value, visible

if TYPE_CHECKING:
    from evenkeel.harness.stored.listing import ListedRun
    from evenkeel.types import Figure


def page(settings: Settings) -> None:
    show.title("Runs")
    listed = data.list_runs(settings)
    if not listed:
        _explain_empty(settings)
        return
    if any(run.state == "running" for run in listed) and not settings.read_only:
        st.page_link(st.session_state["pages"]["new-run"], label="Watch the runs in progress")
    shown = _filter(listed)
    finished = [run for run in shown if run.state == "finished"]
    show.tabs(
        {"All runs": lambda: _table(shown), "Leaderboards": lambda: _leaderboards(finished)}, key="part"
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
    chosen = benchmark.multiselect("Benchmark", names)
    models = model.multiselect("Model", sorted({visible(run.model) for run in listed if run.model}))
    first = since.date_input("Created after", value=None, max_value=date.today())
    return [
        run
        for run in listed
        if (not chosen or run.benchmark in chosen)
        and (not models or visible(run.model) in models)
        and (first is None or run.created[:10] >= first.isoformat())
    ]


def _table(listed: list[ListedRun]) -> None:
    """A row for each run, or for each subject of one that sets several side by side."""
    titles = {
        (name, metric.name): metric.title
        for name, benchmark in ek.list_benchmarks().items()
        for metric in benchmark.layout.metrics
    }
    rows = [(run, row) for run in listed for row in _rows(run, titles)]
    if not listed:
        show.text("No run is like this. Choose other filters.", "soft")
        return
    counted = "1 run" if len(listed) == 1 else f"{len(listed):,} runs"
    show.text(f"{counted}. Select one to see its samples.", "soft")
    event: Any = st.dataframe(
        [row for _, row in rows],
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key="runs",
        alt="All runs with their headline, interval and coverage",
    )
    if event.selection.rows:
        show.go("explore", run=rows[event.selection.rows[0]][0].name)
    if broken := [run.problem for run in listed if run.state == "broken"]:
        show.text("\n".join(["Cannot be read:", *broken]), "warn")


def _rows(run: ListedRun, titles: Mapping[tuple[str, str], str]) -> list[dict[str, str]]:
    figures: dict[str, Figure | None] = {**run.subjects} or {run.model: run.headline}
    return [
        {
            "Created (UTC)": run.created[:16].replace("T", " "),
            "Benchmark": visible(run.benchmark),
            "Model or method": visible(name),
            "Metric": titles.get((run.benchmark, run.metric), run.metric),
            "Headline": value(figure) if figure else "",
            "95 % interval": interval(figure, short=True),
            "Coverage": share(figure.coverage) if figure else "",
            "State": run.state,
            "Run": visible(run.name),
        }
        for name, figure in figures.items()
    ]


def _leaderboards(listed: list[ListedRun]) -> None:
    if not listed:
        show.text("None of these runs is finished: a leaderboard shows finished runs.", "soft")
        return
    for board in data.leaderboards(listed):
        show.result(board)
        if board.benchmark:
            show.explained(board.benchmark, [board.metric])
