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


def page(settings: Settings) -> None:
    show.title("Build")
    with show.problems():
        _form(settings)
    processes.watch_builds(settings)
    show.heading("Review a data set")
    with show.problems():
        _choose_and_review(settings)


# Building


def _form(settings: Settings) -> None:
    builders = _builders()
    name = choose.benchmark(list(builders))
    show.text("From your own texts, or a generated set if you give none.", "soft")
    chosen = choose.options(builders[name].Options, settings, key=f"build-{name}")
    if st.button("Build", type="primary"):
        settings.runs.mkdir(parents=True, exist_ok=True)
        started = ek.start_build(settings.runs, name, **chosen)
        st.session_state["review"] = started.name
        st.rerun()


def _builders() -> dict[str, Any]:
    """The builders of the benchmarks that have one."""
    builders = {}
    for name, benchmark in ek.list_benchmarks().items():
        try:
            builders[name] = benchmark.builder()
        except ek.UsageError:
            continue
    return builders


# Reviewing


def _choose_and_review(settings: Settings) -> None:
    names = data_sets(settings)
    with st.container():  # a fragment that draws nothing would take the place of what comes after it
        _await(settings, list(names))
    if not names:
        show.text("What you build can be reviewed here, row by row.", "soft")
        return
    asked = st.session_state.get("review", "")
    name = st.selectbox(
        "Data set", list(names), index=list(names).index(asked) if asked in names else 0, format_func=visible
    )
    path = names[name]
    review = _review(str(path), _version(path))
    review.refresh()
    _show(review, name)


def data_sets(settings: Settings) -> dict[str, Path]:
    """What was built here and is complete, newest first."""
    if not settings.built.is_dir():
        return {}
    unfinished = {each.name for each in ek.started(settings.runs) if each.active}
    folders = [
        path
        for path in settings.built.iterdir()
        if path.is_dir() and not path.is_symlink() and path.name not in unfinished
        if not path.name.startswith(".") and path != settings.uploads and _version(path)
    ]
    return {path.name: path for path in sorted(folders, key=lambda path: (-path.stat().st_ctime, path.name))}


@st.fragment(run_every=2)
def _await(settings: Settings, shown: list[str]) -> None:
    """Draw the page again when a build has ended."""
    if set(data_sets(settings)) != set(shown):
        st.rerun()


def _version(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Changes with the files that a review reads; empty where there are none."""
    try:
        files = ek.review(folder).files
    except ek.EvenkeelError:
        return ()
    return tuple((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in files)


@st.cache_resource(max_entries=4, show_spinner="Reading the rows…")
def _review(path: str, version: tuple[tuple[str, int, int], ...]) -> Review:
    review = ek.review(path)
    len(review.rows)  # read them now
    return review


def _show(review: Review, name: str) -> None:
    counts = review.counts()
    total = len(review.rows)
    decided = total - counts["undecided"]
    st.progress(
        decided / total if total else 0.0,
        text=f"{total:,} rows: {counts['accepted']:,} accepted, {counts['rejected']:,} rejected, "
        f"{counts['undecided']:,} undecided",
    )
    if not total:
        return
    key = f"row-{name}"
    if st.session_state.get(key, 1) > total:  # the data set was replaced by a smaller one
        st.session_state[key] = total
    index = int(st.session_state.get(key, 1)) - 1
    _buttons(review, key, index)
    if problem := st.session_state.pop("review-problem", ""):
        show.text(problem, "error")
    with st.container(border=True):
        show.result(review.view(index))
    _export(review, name)


def _buttons(review: Review, key: str, index: int) -> None:
    """First what is decided most often; each has a key of the keyboard."""
    last = len(review.rows) - 1
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for label, verdict, shortcut in (
            ("Accept", "accepted", "a"),
            ("Reject", "rejected", "x"),
            ("Undecided", "undecided", "u"),
        ):
            st.button(
                label,
                key=f"{key}-{verdict}",
                type="primary" if review.verdict(index) == verdict != "undecided" else "secondary",
                on_click=_decide,
                args=(review, key, index, verdict),
                shortcut=shortcut,
            )
        st.button(
            "Previous", on_click=_go, args=(key, index - 1), disabled=index == 0, shortcut="p", key=f"{key}-p"
        )
        st.button(
            "Next", on_click=_go, args=(key, index + 1), disabled=index == last, shortcut="n", key=f"{key}-n"
        )
        undecided = review.next_undecided(index)
        st.button(
            "Next undecided",
            on_click=_go,
            args=(key, undecided),
            disabled=undecided is None,
            shortcut="j",
            key=f"{key}-j",
        )
        st.number_input(f"Row, of {last + 1:,}", 1, last + 1, key=key, width=160)


def _go(key: str, index: int | None) -> None:
    if index is not None:
        st.session_state[key] = index + 1


def _decide(review: Review, key: str, index: int, verdict: Verdict) -> None:
    """Save a decision, and show the next row that has none."""
    try:
        review.decide(index, verdict)
    except (ek.EvenkeelError, OSError) as error:
        st.session_state["review-problem"] = str(error)
        return
    if verdict != "undecided":
        _go(key, review.next_undecided(index))


# Exporting


def _export(review: Review, name: str) -> None:
    counts = review.counts()
    undecided = st.checkbox(
        f"Include {counts['undecided']:,} undecided rows", disabled=not counts["undecided"]
    )
    count = counts["accepted"] + (counts["undecided"] if undecided else 0)
    if st.button("Save as a data set", disabled=not count):
        with show.problems():
            review.export(undecided=undecided)
            show.text(f"Saved as {name}/accepted: choose it as data of a new run.")
