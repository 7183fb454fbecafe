"""Make a data set as a process of its own, review it row by row, write what was accepted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

import evenkeel as ek
from evenkeel.app import choose, processes, show
from evenkeel.app.settings import Settings
from evenkeel.page.format import visible

if TYPE_CHECKING:
    from evenkeel.make.review import Review, Verdict

DECISIONS: tuple[tuple[str, Verdict, str], ...] = (
    ("Accept", "accepted", "a"),
    ("Reject", "rejected", "x"),
    ("Undecided", "undecided", "u"),
)
"""Buttons with their keys of the keyboard."""


def page(settings: Settings) -> None:
    show.title("Build")
    with show.problems():
        _form(settings)
    names = data_sets(settings)
    with st.container():  # a fragment that draws nothing would take the place of what comes after it
        _watch(settings, list(names))
    show.heading("Review a data set")
    if not names:
        show.text("What you build can be reviewed here, row by row.", "soft")
        return
    name = st.selectbox("Data set", list(names), format_func=visible)  # without a key: a new one is shown
    with show.problems():
        _review(ek.review(names[name]), name)


# Building


def _form(settings: Settings) -> None:
    builders = _builders()
    name = choose.benchmark(list(builders))
    show.text("From your own texts, or a generated set if you give none.", "soft")
    chosen = choose.options(builders[name].Options, settings, key=f"build-{name}", shown=6)
    if st.button("Build", type="primary"):
        settings.runs.mkdir(parents=True, exist_ok=True)
        ek.start_build(settings.runs, name, **chosen)


def _builders() -> dict[str, Any]:
    """The builders of the benchmarks that have one."""
    builders = {}
    for name, benchmark in ek.list_benchmarks().items():
        try:
            builders[name] = benchmark.builder()
        except ek.UsageError:
            continue
    return builders


@st.fragment(run_every=1)
def _watch(settings: Settings, shown: list[str]) -> None:
    """The newest builds; the page is drawn again when one has ended."""
    if list(data_sets(settings)) != shown:
        st.rerun()
    for process in processes.started(settings, "build")[: processes.MOST_LISTED]:
        with st.container(border=True), show.problems():
            show.text(process.name)
            processes.card(process)


# Reviewing


def data_sets(settings: Settings) -> dict[str, Path]:
    """What was built here and is complete, newest first."""
    incomplete = {process.name for process in ek.started(settings.runs) if process.state != "finished"}
    folders = [path for path in settings.data_sets().values() if path.parent == settings.built]
    complete = [path for path in folders if path.is_dir() and path.name not in incomplete]
    complete.sort(key=lambda path: path.stat().st_ctime, reverse=True)
    return {path.name: path for path in complete}


def _review(review: Review, name: str) -> None:
    counts = review.counts()
    total = len(review.rows)
    if not total:
        show.text(f"{name} has no rows.", "warn")
        return
    st.progress(
        1 - counts["undecided"] / total,
        text=f"{total:,} rows: {counts['accepted']:,} accepted, {counts['rejected']:,} rejected, "
        f"{counts['undecided']:,} undecided",
    )
    key = f"row-{name}"
    row = int(st.session_state.get(key, 0))
    if not 1 <= row <= total:  # a first look, or the data set was replaced by a smaller one
        row = st.session_state[key] = (review.next_undecided() or 0) + 1
    _buttons(review, key, row - 1)
    with st.container(border=True):
        show.result(review.view(row - 1))
    _export(review, name)


def _buttons(review: Review, key: str, index: int) -> None:
    """What is decided about a row, and steps to others."""
    last = len(review.rows) - 1

    def go(to: int | None) -> None:
        if to is not None:
            st.session_state[key] = to + 1
        st.rerun()

    with st.container(horizontal=True, vertical_alignment="bottom"):
        for label, verdict, shortcut in DECISIONS:
            chosen = review.verdict(index) == verdict != "undecided"
            if st.button(label, type="primary" if chosen else "secondary", shortcut=shortcut):
                review.decide(index, verdict)
                go(review.next_undecided(index) if verdict != "undecided" else None)
        if st.button("Previous", disabled=index == 0, shortcut="p"):
            go(index - 1)
        if st.button("Next", disabled=index == last, shortcut="n"):
            go(index + 1)
        st.number_input(f"Row, of {last + 1:,}", 1, last + 1, key=key, width=160)


def _export(review: Review, name: str) -> None:
    counts = review.counts()
    undecided = st.checkbox(
        f"Include {counts['undecided']:,} undecided rows", disabled=not counts["undecided"]
    )
    count = counts["accepted"] + (counts["undecided"] if undecided else 0)
    if st.button("Save as a data set", disabled=not count):
        review.export(undecided=undecided)
        show.text(f"Saved as {name}/accepted: choose it as data of a new run.")
