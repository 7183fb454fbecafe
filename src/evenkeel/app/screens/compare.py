"""Two or more runs of one benchmark: paired differences, the samples that changed, both answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

import evenkeel as ek
from evenkeel.app import data, show
from evenkeel.app.settings import Settings
from evenkeel.page.format import visible

if TYPE_CHECKING:
    import polars as pl

    from evenkeel.run.stored.listing import ListedRun

MOST_SHOWN = 200
"""Samples in the list of changes: the largest ones."""


def page(settings: Settings) -> None:
    show.title("Compare")
    finished = data.finished(settings)
    names = sorted({run.benchmark for run in finished})
    several = [name for name in names if sum(run.benchmark == name for run in finished) > 1]
    if not several:
        show.text("A comparison needs two finished runs of one benchmark.", "warn")
        return
    benchmark = st.selectbox("Benchmark", several)
    chosen = _chosen([run for run in finished if run.benchmark == benchmark])
    if len(chosen) < 2:
        show.text("Choose two or more runs.", "soft")
        return
    st.query_params["runs"] = [run.name for run in chosen]
    with show.problems():
        show.result(data.comparison([run.path for run in chosen]))
        show.explained(benchmark)
        _changes(settings, chosen)


def _chosen(listed: list[ListedRun]) -> list[ListedRun]:
    by_name = {run.name: run for run in listed}
    asked = [name for name in st.query_params.get_all("runs") if name in by_name]
    default = asked if len(asked) > 1 else list(by_name)[:2]
    picked = st.multiselect(
        "Runs", list(by_name), default=default, format_func=lambda name: _label(by_name[name])
    )
    return [by_name[name] for name in picked]


def _label(run: ListedRun) -> str:
    return visible(f"{run.model} · {run.created[:16].replace('T', ' ')} · {run.name}")


def _changes(settings: Settings, chosen: list[ListedRun]) -> None:
    """The samples that changed most between two of the runs."""
    show.heading("Samples that changed")
    by_name = {run.name: run for run in chosen}
    first, second, third = st.columns(3)
    a = first.selectbox("From", list(by_name), format_func=lambda name: _label(by_name[name]))
    others = [name for name in by_name if name != a]
    b = second.selectbox("To", others, format_func=lambda name: _label(by_name[name]))
    runs = (ek.open_run(settings.runs, a), ek.open_run(settings.runs, b))
    values = [name for name in data.samples(runs[0]).values if name in data.samples(runs[1]).values]
    if not values:
        show.text("The samples of these runs have no value in common.", "soft")
        return
    metric = third.selectbox("Metric", values, format_func=visible)
    changes = ek.flips(*runs, metric)
    changed = changes.filter(changes["difference"] != 0)
    flipped = int(changed["flipped"].sum())
    words = f"{len(changes):,} samples have a value in both, of which {len(changed):,} changed"
    words += f" and {flipped:,} flipped between 0 and 1" if flipped else ""
    show.text(f"{words}; the largest changes come first.", "soft")
    _beside(runs, changed)


def _beside(runs: tuple[ek.Run, ek.Run], changes: pl.DataFrame) -> None:
    listed = changes.head(MOST_SHOWN)
    if listed.is_empty():
        return
    event: Any = st.dataframe(
        listed.drop("flipped"),
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key="changes",
        height=280,
        alt="Samples with their value in both runs and the difference",
    )
    ids = listed["sample"].to_list()
    selected = event.selection.rows
    index = selected[0] if selected and selected[0] < len(ids) else 0  # a choice among other rows
    current = st.selectbox("Sample", ids, index=index, format_func=visible)
    show.result(ek.both(*runs, current))
