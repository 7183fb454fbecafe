"""The runs and builds that were started here: how far each is, stopping one, going on with one."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

import evenkeel as ek
from evenkeel.app import choose, show
from evenkeel.app.settings import Settings

if TYPE_CHECKING:
    from evenkeel.api.launch import Kind, Started

MOST_ENDED = 5
"""Processes that are listed after those that run, the newest first."""


def beside(settings: Settings, kind: Kind, form: Callable[[], None]) -> None:
    """A form on the left; on the right what was started with it."""
    left, right = st.columns([3, 2], gap="large")
    with left, show.problems():
        form()
    with right:
        show.heading("Started here")
        watch(settings, kind)


def announce(process: Started) -> None:
    """Say that a process was started, and draw the page again with it."""
    st.toast(choose.plain(f"Started {process.name}"))
    st.rerun()


@st.fragment(run_every=1)
def watch(settings: Settings, kind: Kind) -> None:
    """Every process that runs, and the newest of the others."""
    processes = [each for each in ek.started(settings.runs) if each.kind == kind]
    ended = [each for each in processes if not each.active]
    shown = [*(each for each in processes if each.active), *ended[:MOST_ENDED]]
    if not shown:
        show.text("Nothing was started yet.", "soft")
    show.text("What is started here goes on when this page or the app is closed.", "soft")
    for process in shown:
        with st.container(border=True), show.problems():
            _process(settings, process)
    if hidden := len(processes) - len(shown):
        show.text(f"{hidden:,} older ones are not shown.", "soft")


def _process(settings: Settings, process: Started) -> None:
    show.text(process.name)
    if problem := st.session_state.get(_problem_key(process), ""):
        show.text(problem, "error")
    if process.active:
        _progress(process)
        if process.state != "stopping" and st.button("Stop", key=f"stop-{process.name}"):
            _attempt(process, lambda: ek.stop(process.path))
    elif process.state == "finished":
        show.text("Finished", "soft")
        if process.kind == "run" and st.button("Explore", key=f"open-{process.name}"):
            show.go("explore", run=process.name)
    else:
        _ended_early(settings, process)


def _ended_early(settings: Settings, process: Started) -> None:
    """A process that stopped or failed, and how to go on with it."""
    answers = "The answers so far are kept: going on asks only for the others."
    if process.state == "stopped":
        show.text(f"Stopped. {answers}", "warn")
    else:
        show.text(f"Failed. {answers}", "error")
        show.preformatted(process.log_tail(12))
    if st.button("Go on", key=f"again-{process.name}"):
        _attempt(process, lambda: ek.start_again(process))
    with st.expander("At the terminal"):
        show.preformatted(shlex.join(process.command))
        if process.state == "stopped":
            show.preformatted(process.log_tail(12))


def _attempt(process: Started, act: Callable[[], object]) -> None:
    """Do what a button asks for. A problem is kept: these lines are drawn again every second."""
    st.session_state.pop(_problem_key(process), None)
    try:
        act()
    except (ek.EvenkeelError, OSError) as error:
        st.session_state[_problem_key(process)] = str(error)
    st.rerun(scope="fragment")


def _problem_key(process: Started) -> str:
    """Of a problem that lasts as long as the process is in the same state."""
    return f"problem-{process.name}-{process.state}"


def _progress(process: Started) -> None:
    """A bar; beside it the rate, the errors and the time left."""
    state = ek.read_progress(process.path)
    if process.state == "stopping":
        st.progress(state.done / max(state.total, state.done, 1) if state else 0.0, text="Stopping…")
        return
    if state is None or not state.total:
        st.progress(0.0, text="Starting: models are being loaded")
        show.text(process.log_tail(1), "soft")
        return
    left = f", about {_duration(state.seconds_left)} left" if state.seconds_left is not None else ""
    st.progress(min(1.0, state.done / state.total), text=f"{state.done:,} of {state.total:,} requests" + left)
    spent = f", ${state.usd:,.4f} spent" if state.usd else ""
    show.text(
        f"{state.phase}: {state.rate:,.1f} requests a second, {state.failed:,} failed{spent}",
        "warn" if state.failed else "soft",
    )
    if not state.done:
        show.text(process.log_tail(1), "soft")


def _duration(seconds: float) -> str:
    """`40 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 5400 else f"{seconds / 3600:,.1f} h"
