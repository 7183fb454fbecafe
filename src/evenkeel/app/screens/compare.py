"""Two or more runs of one benchmark: paired differences, the samples that changed, both answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import streamlit as st

import evenkeel as ek
from evenkeel.app import data, show
from evenkeel.app.settings import Settings
from evenkeel.page.format import counted, visible

if TYPE_CHECKING:
    from evenkeel.harness.stored.listing import ListedRun
    from evenkeel.report.samples.flips import Flip

MOST_SHOWN = 200
"""Samples in the list of changes: the largest ones."""
NUMBER = st.column_config.NumberColumn(format="%.3g")


def page(settings: Settings) -> None:
    show.title("Compare")
    finished = data.finished(settings)
    if len(finished) < 2:
        show.text("A comparison needs two finished runs of one benchmark.", "warn")
        if not settings.read_only:
            st.page_link(st.session_state["pages"]["new-run"], label="Start a run")
        return
    chosen = _chosen(finished)
    if len(chosen) < 2:
        show.text("Choose two or more runs of one benchmark.", "soft")
        return
    if len({run.benchmark for run in chosen}) > 1:
        runs = ", ".join(f"{run.name} ({run.benchmark})" for run in chosen)
        show.text(f"Only runs of one benchmark can be compared: {runs}", "error")
        return
    show.tab_title(f"Compare {' and '.join(run.name for run in chosen)}")
    with show.problems():
        comparison = data.comparison([ek.load_run(run.path) for run in chosen])
        sides = zip(comparison.runs, chosen, strict=True)  # named as in the list: a reader may be a stranger
        named = tuple(msgspec.structs.replace(side, path=run.name) for side, run in sides)
        show.result(msgspec.structs.replace(comparison, runs=named))
        show.explained(chosen[0].benchmark)
        _changes(settings, chosen)


def _chosen(finished: list[ListedRun]) -> list[ListedRun]:
    """The runs that the address names, or the newest two that were asked the same."""
    by_name = {run.name: run for run in finished}
    names = st.query_params.get_all("runs")
    if absent := [name for name in names if name not in by_name]:
        show.text(f"Not a finished run: {', '.join(absent)}", "warn")
    if not names and "runs" not in st.session_state:
        st.session_state["runs"] = [run.name for run in _newest_pair(finished)]
    picked = st.multiselect("Runs", list(by_name), key="runs", bind="query-params", format_func=visible)
    return [by_name[name] for name in picked]


def _settings(run: ListedRun) -> bytes:
    """What a run was asked with, apart from the model or the methods under test."""
    spec = ek.load_run(run.path).spec
    subject = ek.list_benchmarks()[run.benchmark].subject
    options = {name: value for name, value in spec.options.items() if name != subject}
    return msgspec.json.encode((run.benchmark, options, spec.data.get("sha256")), order="deterministic")


def _newest_pair(listed: list[ListedRun]) -> list[ListedRun]:
    """The newest two runs that were asked the same; empty where none were."""
    by_settings: defaultdict[bytes, list[ListedRun]] = defaultdict(list)
    for run in listed:  # newest first
        by_settings[_settings(run)].append(run)
    return next((runs[:2] for runs in by_settings.values() if len(runs) > 1), [])


# Samples that changed


def _changes(settings: Settings, chosen: list[ListedRun]) -> None:
    """The samples that changed most between two of the runs."""
    show.heading("Samples that changed")
    names = [run.name for run in chosen]
    first, second, third = st.columns(3)
    a = first.selectbox("From", names, format_func=visible)
    b = second.selectbox("To", [name for name in names if name != a], format_func=visible)
    runs = (ek.open_run(settings.runs, a), ek.open_run(settings.runs, b))
    values = [name for name in data.samples(runs[0]).values if name in data.samples(runs[1]).values]
    if not values:
        show.text("These runs have no metric in common.", "soft")
        return
    metric = third.selectbox(
        "Metric", values, format_func=lambda name: show.metric_title(chosen[0].benchmark, name)
    )
    changes = ek.flips(*runs, metric)
    changed = [change for change in changes if change.difference]
    flipped = sum(change.flipped for change in changed)
    words = f"{counted(len(changes), 'samples')} scored in both runs, {len(changed):,} changed"
    words += f", {flipped:,} flipped between 0 and 1" if flipped else ""
    show.text(f"{words}; the largest changes come first. Select a row for details.", "soft")
    if changed:
        _beside(runs, changed[:MOST_SHOWN])


def _beside(runs: tuple[ek.Run, ek.Run], changes: Sequence[Flip]) -> None:
    samples = data.samples(runs[0])
    rows = [samples.row_of(change.sample) or 0 for change in changes]
    row = show.clickable(
        {
            "Question": [visible(text.question) for text in samples.in_short(rows)],
            "From": [change.a for change in changes],
            "To": [change.b for change in changes],
            "Difference": [change.difference for change in changes],
            "Sample": [visible(change.sample) for change in changes],
        },
        len(changes),
        key="changes",
        alt="Samples with their value in both runs and the difference",
        column_config=dict.fromkeys(("From", "To", "Difference"), NUMBER),
    )
    show.result(ek.compare_sample(*runs, changes[row or 0].sample))
