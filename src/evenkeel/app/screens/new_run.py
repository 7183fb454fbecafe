"""Start a run: choose, count what it would ask and cost, start it as a process of its own, watch it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import msgspec
import streamlit as st

import evenkeel as ek
from evenkeel.app import choose, show
from evenkeel.app.settings import Settings

if TYPE_CHECKING:
    from evenkeel.api.launch import Started

ACTIVE = ("starting", "running")
WORDS = ("starter", "published")
"""Data that is not a file. A folder of such a name is offered as `./starter`."""
SHOWN = 5
"""Processes that are listed, the newest first."""


def page(settings: Settings) -> None:
    show.title("New run")
    form, watched = st.columns([3, 2], gap="large")
    with form, show.problems():
        _form(settings)
    with watched:
        show.heading("Started here")
        watch(settings, "run")


def _form(settings: Settings) -> None:
    classes = ek.benchmarks()
    name = st.selectbox("Benchmark", list(classes))
    benchmark = classes[name]
    show.text(benchmark.layout.question, "soft")
    chosen: dict[str, Any] = {"benchmark": name}
    if benchmark.subject == "model":
        chosen["model"] = choose.model(settings, key="model")
    chosen |= _data(settings, benchmark)
    with st.expander("Options of the benchmark"):
        chosen |= choose.options(benchmark.Options, settings, key=f"options-{name}")
    chosen |= _limits()
    _count_and_start(settings, chosen)


def _data(settings: Settings, benchmark: type[ek.Benchmark]) -> dict[str, Any]:
    """Which data, in which languages, how much of it."""
    sets = {f"./{name}" if name in WORDS else name: path for name, path in settings.data_sets().items()}
    data, lang, limit = st.columns([2, 1, 1])
    picked = data.selectbox("Data", [*WORDS, *sets])
    languages = lang.text_input(
        "Languages", placeholder="all", help="Codes separated by commas, such as en,ko"
    )
    most = limit.number_input("Questions", min_value=0, value=8, help="Of each language or set; 0 for all")
    return {
        "data": str(sets[picked]) if picked in sets else picked,
        **({"lang": languages} if languages.strip() else {}),
        **({"limit": int(most)} if most else {}),
    }


def _limits() -> dict[str, Any]:
    """What the run may cost, and what tokens cost."""
    with st.expander("Prices and limits"):
        first, second, third = st.columns(3)
        prices = {
            "price_in": first.number_input("$ per million tokens read", min_value=0.0, step=0.1),
            "price_out": second.number_input("$ per million tokens written", min_value=0.0, step=0.1),
        }
        most = third.number_input("Stop before this many $", min_value=0.0, step=0.5)
    return {name: price for name, price in prices.items() if price} | ({"max_usd": most} if most else {})


def _count_and_start(settings: Settings, chosen: dict[str, Any]) -> None:
    """The dry run comes first: only what was counted can be started."""
    key = msgspec.json.encode(chosen, order="deterministic")
    ready = chosen.get("model", "") is not None
    if st.button("Count requests and cost", disabled=not ready):
        with st.spinner("Counting…"):
            st.session_state["plan"] = (key, ek.dry_run(**chosen))
    counted, plan = st.session_state.get("plan", (None, None))
    if counted != key:
        show.text("Count first: what a run asks and costs is shown before it is started.", "soft")
        return
    show.result(plan)
    if st.button("Start the run", type="primary"):
        settings.runs.mkdir(parents=True, exist_ok=True)
        started = ek.start(settings.runs, **chosen)
        del st.session_state["plan"]
        st.toast(choose.plain(f"Started {started.name}"))
        st.rerun()


@st.fragment(run_every=1)
def watch(settings: Settings, kind: str) -> None:
    """The processes that were started here, with how far each is."""
    processes = [each for each in ek.started(settings.runs) if each.kind == kind][:SHOWN]
    if not processes:
        show.text("Nothing yet. A process goes on when this page is closed.", "soft")
    for process in processes:
        with st.container(border=True), show.problems():
            _process(settings, process)


def _process(settings: Settings, process: Started) -> None:
    show.text(process.name)
    if process.state in ACTIVE:
        _progress(process)
        if st.button("Stop", key=f"stop-{process.name}"):
            ek.stop(process.path)
    elif process.state == "finished":
        show.text("finished", "soft")
        if process.kind == "run" and st.button("Explore", key=f"open-{process.name}"):
            show.go("explore", run=process.name)
    else:
        show.text(
            f"{process.state}. What was answered is kept.", "warn" if process.state == "stopped" else "error"
        )
        show.preformatted(process.log_tail(12))
        if st.button("Go on", key=f"again-{process.name}"):
            _check_command(settings, process)
            ek.start_again(process)
            st.rerun(scope="fragment")
        show.text("The same at the terminal:", "soft")
        show.preformatted(shlex.join(["evenkeel", *process.command[4:]]))


def _check_command(settings: Settings, process: Started) -> None:
    """The command of a process is read from a file, which may ask for no more than the page."""
    benchmark, *arguments, _ = process.command[5:]
    if benchmark not in ek.benchmarks():
        raise ek.UsageError(f"'{benchmark}' is not a benchmark. Available: {', '.join(ek.benchmarks())}.")
    for argument in arguments:
        name, _, value = argument.partition("=")
        if not name.startswith("--") or name[2:] in choose.NAMING_MODELS:
            raise ek.UsageError(f"'{argument}' is not an argument that this page gives.")
        choose.checked(value, settings)


def _progress(process: Started) -> None:
    state = ek.read_progress(process.path)
    if state is None or not state.total:
        st.progress(0.0, text="starting: models are being loaded")
        show.text(process.log_tail(1), "soft")
        return
    left = f", about {state.seconds_left:,.0f} s left" if state.seconds_left is not None else ""
    st.progress(min(1.0, state.done / state.total), text=f"{state.done:,} of {state.total:,}{left}")
    show.text(
        f"{state.phase}: {state.rate:,.1f} a second, {state.failed:,} failed",
        "warn" if state.failed else "soft",
    )
    if not state.done:
        show.text(process.log_tail(1), "soft")
