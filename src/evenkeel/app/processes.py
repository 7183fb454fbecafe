"""The runs and builds that were started here: how far each is, stopping one, resuming one."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

import evenkeel as ek
from evenkeel.app import choose, show
from evenkeel.app.settings import Settings
from evenkeel.page.format import counted, duration, visible

if TYPE_CHECKING:
    from evenkeel.api.launch import Kind, Started

MOST_LISTED = 8
"""Processes of a list, the newest first."""


def started(settings: Settings, kind: Kind) -> list[Started]:
    return [process for process in ek.started(settings.runs) if process.kind == kind]


def list_runs(settings: Settings) -> None:
    """Links to the newest runs that were started here, each to its own page."""
    show.heading("Your runs")
    runs = started(settings, "run")
    if not runs:
        show.text("No runs yet. Runs keep going if you close this page.", "soft")
    for process in runs[:MOST_LISTED]:
        st.page_link(
            st.session_state["pages"]["explore"],
            label=choose.plain(f"{process.name}: {ended_as(process)}"),
            query_params={"run": process.name},
        )


def card(process: Started) -> None:
    """How far a process is, and what can be done about it."""
    if process.active:
        show.text("Runs keep going if you close this page.", "soft")
        _progress(process)
        if process.state != "stopping" and st.button("Stop", key=f"stop-{process.name}"):
            _attempt(lambda: ek.stop(process.path))
    elif process.state == "finished":
        show.text("Finished", "soft")
    else:
        _ended_early(process)


def _ended_early(process: Started) -> None:
    """A process that stopped or failed, and how to resume it."""
    state = ended_as(process)
    words = f"{state.capitalize()}. Resuming won't repeat what was answered."
    show.text(words, "error" if state == "failed" else "warn")
    if tail := process.log_tail(12):
        show.preformatted(tail)
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Resume", key=f"again-{process.name}", type="primary"):
            _attempt(lambda: ek.start_again(process))
        if st.button("Dismiss", key=f"dismiss-{process.name}"):
            ek.dismiss(process)
            show.go("new-run" if process.kind == "run" else "build")
        if process.kind == "run":
            form = st.session_state.get(f"form-{process.name}", {"benchmark": process.task.benchmark})
            st.page_link(st.session_state["pages"]["new-run"], label="Change the settings", query_params=form)
    with st.expander("Resume at the terminal"):
        show.preformatted(shlex.join(process.command))


def ended_as(process: Started) -> str:
    """Whether a run that was begun at a terminal failed or was stopped there, only that terminal says."""
    return "stopped" if process.state == "failed" and not process.log_tail(1) else process.state


def _attempt(act: Callable[[], object]) -> None:
    """Do what a button asks for. A problem is beside the page, which is drawn again every second."""
    try:
        act()
    except (ek.EvenkeelError, OSError) as error:
        st.toast(choose.plain(visible(str(error))), duration="infinite")
    else:
        st.rerun(scope="fragment")


def _progress(process: Started) -> None:
    """A bar; beside it the rate, the errors and the time left."""
    state = ek.read_progress(process.path)
    if process.state == "stopping":
        st.progress(state.done / max(state.total, state.done, 1) if state else 0.0, text="Stopping…")
        return
    if state is None or not state.total:
        st.progress(0.0, text="Starting: loading models")
        show.text(process.log_tail(1), "soft")
        return
    left = f", about {duration(state.seconds_left)} left" if state.seconds_left is not None else ""
    st.progress(
        min(1.0, state.done / state.total), text=f"{state.done:,} of {counted(state.total, 'requests')}{left}"
    )
    spent = f", ${state.usd:,.4f} spent" if state.usd else ""
    pace = f"{state.rate:,.1f} requests per second" if state.done or not state.waiting else state.waiting
    show.text(
        f"{state.phase}: {pace}, {state.failed:,} failed{spent}",
        "warn" if state.failed else "soft",
    )
    if not state.done:
        show.text(process.log_tail(1), "soft")
