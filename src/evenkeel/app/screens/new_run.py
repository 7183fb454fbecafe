"""Start a run: choose what to ask, see its size and cost, start it as a process of its own."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import streamlit as st

import evenkeel as ek
from evenkeel.app import choose, data, processes, show
from evenkeel.app.settings import Settings
from evenkeel.page.format import capitalised, counted, duration

if TYPE_CHECKING:
    from evenkeel.api.plan import Plan

WORDS = {
    "starter": "The starter set comes with Evenkeel and is generated on first use.",
    "published": "Download the published set first: evenkeel data fetch {}",
}
"""Data that is not a file. A folder of such a name is offered as `./starter`."""
SIZES = {"Quick": 5, "Standard": 50, "Full": None}
"""Questions of each language; None for all."""
COLUMNS = re.compile(r"(?<=\S) {2,}")
"""Between the columns of a text that is written for the terminal."""
AT_ONCE = 64
"""Requests at once to a server, as a run sends them."""


def page(settings: Settings) -> None:
    show.title("New run")
    if not st.query_params and "form" in st.session_state:  # it was filled in before another page was opened
        show.go("new-run", **st.session_state["form"])
    left, right = st.columns([3, 2], gap="large")
    with left, show.problems():
        _form(settings)
    with right:
        processes.list_runs(settings)


def _form(settings: Settings) -> None:
    classes = ek.list_benchmarks()
    name = choose.benchmark(list(classes))
    benchmark = classes[name]
    show.text(benchmark.layout.question, "soft")
    chosen: dict[str, Any] = {"benchmark": name}
    if benchmark.subject == "model":
        chosen["model"] = choose.model(settings)
    chosen |= _data(settings, name) | _size()
    if benchmark.about:
        show.text(COLUMNS.sub(": ", benchmark.about).strip("\b\n"), "small")
    chosen |= choose.options(benchmark.Options, settings, key=f"run-{name}", shown=2)
    chosen |= _limits()
    st.session_state["form"] = {key: st.query_params.get_all(key) for key in st.query_params}
    _start(settings, chosen)


def _size() -> dict[str, Any]:
    """How many questions, in which languages."""
    size = st.segmented_control(
        "Size", list(SIZES), default="Quick", required=True, key="size", bind="query-params"
    )
    show.text(
        f"Questions per language: Quick {SIZES['Quick']}, Standard {SIZES['Standard']}, Full all.", "small"
    )
    languages = st.text_input(
        "Languages", placeholder="all, or codes such as en,ko", key="lang", bind="query-params"
    )
    chosen = {"lang": languages.strip(), "limit": SIZES[size]}
    return {name: value for name, value in chosen.items() if value}


# Data


def _data(settings: Settings, benchmark: str) -> dict[str, Any]:
    files = _data_sets(settings, benchmark)
    key = f"data-{benchmark}"
    picked = choose.file("Data", settings, list(WORDS), files, key=key)
    if picked and picked not in WORDS and (problem := _data_problem(benchmark, picked, _version(picked))):
        show.text(f"{benchmark} cannot read this: {problem}", "error")
        if st.session_state.get(f"{key}-upload") is not None:  # it is not offered anywhere
            Path(picked).unlink(missing_ok=True)
        picked = None
    elif picked in WORDS:
        show.text(WORDS[picked].format(benchmark), "small")
    return {"data": picked}


def _data_sets(settings: Settings, benchmark: str) -> dict[str, Path]:
    """The data sets that a benchmark can read."""
    return {
        f"./{name}" if name in WORDS else name: path
        for name, path in settings.data_sets().items()
        if not _data_problem(benchmark, str(path), _version(path))
    }


def _version(data: str | Path) -> tuple[tuple[str, int, int], ...]:
    """Changes with the files of a data set."""
    path = Path(data)
    if data in WORDS:
        return ()
    files = sorted(each for each in (path.iterdir() if path.is_dir() else [path]) if each.is_file())
    return tuple((each.name, each.stat().st_mtime_ns, each.stat().st_size) for each in files)


@st.cache_data(max_entries=1000, show_spinner="Looking through the data sets…")
def _data_problem(benchmark: str, path: str, version: tuple[tuple[str, int, int], ...]) -> str:
    return ek.data_problem(benchmark, path)


# Cost


def _limits() -> dict[str, Any]:
    """What the run may cost, and what tokens cost."""
    names = {
        "price_in": "Input price (US$ per million tokens)",
        "price_out": "Output price (US$ per million tokens)",
        "max_usd": "Budget (US$, 0 = unlimited)",
    }
    with st.expander("Prices and budget"):
        amounts = {
            name: column.number_input(label, 0.0, step=0.1, key=name, bind="query-params")
            for column, (name, label) in zip(st.columns(3), names.items(), strict=True)
        }
    return {name: amount for name, amount in amounts.items() if amount}


def _start(settings: Settings, chosen: dict[str, Any]) -> None:
    """What the run would ask and cost, and the button that starts it."""
    if missing := [name for name in ("model", "data") if chosen.get(name, "") is None]:
        show.text(f"Choose the {' and the '.join(missing)} first.", "soft")
        return
    plan = _plan(msgspec.json.encode(chosen, order="deterministic"), _version(chosen["data"]))
    _show_plan(settings, plan, chosen)
    if st.button("Start the run", type="primary"):
        settings.runs.mkdir(parents=True, exist_ok=True)
        name = ek.start(settings.runs, **chosen).name
        st.session_state[f"form-{name}"] = st.session_state["form"]
        show.go("explore", run=name)


@st.cache_data(max_entries=100, show_spinner="Counting requests…")
def _plan(settings: bytes, version: tuple[tuple[str, int, int], ...]) -> Plan:
    return ek.dry_run(**msgspec.json.decode(settings))


def _show_plan(settings: Settings, plan: Plan, chosen: dict[str, Any]) -> None:
    requests = sum(plan.requests.values())
    parts = [counted(requests, "requests"), _expected_time(settings, requests, chosen), _cost(plan)]
    show.text(capitalised(", ".join(parts)), "strong")
    with st.expander("Tokens and prices"):
        show.result(plan)


def _expected_time(settings: Settings, requests: int, chosen: dict[str, Any]) -> str:
    """By the latency of a tested connection, else by the pace of an earlier run of this model."""
    model = chosen.get("model")
    trial = st.session_state.get("trials", {}).get(model)
    if trial is not None and trial.latency_s is not None:
        seconds = math.ceil(requests / AT_ONCE) * trial.latency_s
        return f"about {duration(seconds)} or more"
    longest = getattr(ek.list_benchmarks()[chosen["benchmark"]].Options(), "max_tokens", None)
    for listed in data.finished(settings):
        if requests and listed.benchmark == chosen["benchmark"]:
            spec = ek.load_run(listed.path).spec
            same = spec.models.get("model", {}).get("spec") == model
            as_long = spec.options.get("max_tokens") == chosen.get("max_tokens", longest)
            if same and as_long and (pace := ek.pace(listed.path)):
                return f"about {duration(requests / pace)} at the pace of {listed.name}"
    return "time unknown until the first answers"


def _cost(plan: Plan) -> str:
    if plan.usd is not None:
        return f"at most about ${plan.usd:,.2f}"
    return "cost unknown: no prices given" if plan.unpriced else "runs locally: free"
