"""Start a run: choose, count what it would ask and cost, start it as a process of its own."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import streamlit as st

import evenkeel as ek
from evenkeel.app import choose, processes, show
from evenkeel.app.settings import Settings

WORDS = ("starter", "published")
"""Data that is not a file. A folder of such a name is offered as `./starter`."""
COLUMNS = re.compile(r"(?<=\S) {2,}")
"""Between the columns of a text that is written for the terminal."""
LONGEST = 240
"""Characters of what is wrong with a data set."""


def page(settings: Settings) -> None:
    show.title("New run")
    left, right = st.columns([3, 2], gap="large")
    with left, show.problems():
        _form(settings)
    with right:
        processes.list_runs(settings)


def _form(settings: Settings) -> None:
    classes = ek.list_benchmarks()
    name = st.selectbox("Benchmark", list(classes))
    benchmark = classes[name]
    show.text(benchmark.layout.question, "soft")
    chosen: dict[str, Any] = {"benchmark": name}
    if benchmark.subject == "model":
        chosen["model"] = choose.model(settings, key="model")
    chosen |= _data(settings, name)
    with st.expander("Options of the benchmark"):
        if benchmark.about:
            show.text(COLUMNS.sub(": ", benchmark.about).strip("\b\n"), "small")
        chosen |= choose.options(benchmark.Options, settings, key=f"options-{name}")
    chosen |= _limits()
    _count_and_start(settings, chosen)


def _data(settings: Settings, benchmark: str) -> dict[str, Any]:
    """Which data, in which languages, how much of it."""
    files, problems = _data_sets(settings, benchmark)
    picked = choose.file("Data", settings, files, default="starter", words=WORDS, key=f"data-{benchmark}")
    if picked and picked not in WORDS and (problem := _data_problem(benchmark, picked, _version(picked))):
        show.text(f"The benchmark {benchmark} cannot read this: {_shortened(problem, settings)}", "error")
        picked = None
    elif picked:
        show.text(_described(benchmark, picked), "small")
    if problems:
        with st.expander(f"Not listed, because this benchmark cannot read it ({len(problems)})"):
            show.text("\n".join(f"• {problem}" for problem in problems), "small")
    lang, limit = st.columns(2)
    languages = lang.text_input("Languages", placeholder="all, or codes such as en,ko")
    most = limit.number_input("Questions of each language (0 for all)", min_value=0, value=8)
    return {
        "data": picked,
        **({"lang": languages} if languages.strip() else {}),
        **({"limit": int(most)} if most else {}),
    }


def _data_sets(settings: Settings, benchmark: str) -> tuple[dict[str, Path], list[str]]:
    """The data sets that a benchmark can read; and of the others, why it cannot."""
    files, problems = {}, []
    for name, path in settings.data_sets().items():
        if problem := _data_problem(benchmark, str(path), _version(path)):
            problems.append(_shortened(problem, settings))
        else:
            files[f"./{name}" if name in WORDS else name] = path
    return files, problems


def _version(path: str | Path) -> tuple[tuple[str, int, int], ...]:
    """Changes with the files of a data set."""
    path = Path(path)
    files = sorted(each for each in (path.iterdir() if path.is_dir() else [path]) if each.is_file())
    return tuple((each.name, each.stat().st_mtime_ns, each.stat().st_size) for each in files)


@st.cache_data(max_entries=1000, show_spinner="Looking through the data sets…")
def _data_problem(benchmark: str, path: str, version: tuple[tuple[str, int, int], ...]) -> str:
    return ek.data_problem(benchmark, path)


def _shortened(problem: str, settings: Settings) -> str:
    """With the names that the page shows, and not those of folders of the machine."""
    for folder in (settings.built, settings.data):
        problem = problem.replace(f"{folder}{os.sep}", "")
    return problem if len(problem) <= LONGEST else f"{problem[:LONGEST]}…"


def _described(benchmark: str, picked: str) -> str:
    """What was picked as data, in a sentence."""
    if picked == "starter":
        return "The starter set comes with Evenkeel and is made on first use."
    if picked == "published":
        return f"The published set must be on this machine: evenkeel data fetch {benchmark}"
    size = sum(size for *_, size in _version(picked))
    return f"{Path(picked).name}: {size / 1000:,.0f} kB"


def _limits() -> dict[str, Any]:
    """What the run may cost, and what tokens cost."""
    with st.expander("Prices and limits"):
        first, second, third = st.columns(3)
        prices = {
            "price_in": first.number_input("US$ per million tokens read", min_value=0.0, step=0.1),
            "price_out": second.number_input("US$ per million tokens written", min_value=0.0, step=0.1),
        }
        most = third.number_input("Budget (US$, 0 = unlimited)", min_value=0.0, step=0.5)
    return {name: price for name, price in prices.items() if price} | ({"max_usd": most} if most else {})


def _count_and_start(settings: Settings, chosen: dict[str, Any]) -> None:
    """The dry run comes first: only what was counted can be started."""
    missing = [name for name in ("model", "data") if chosen.get(name, "") is None]
    key = msgspec.json.encode(chosen, order="deterministic")
    if st.button("Count requests and cost", disabled=bool(missing)):
        with st.spinner("Counting…"):
            st.session_state["plan"] = (key, ek.dry_run(**chosen))
    counted, plan = st.session_state.get("plan", (None, None))
    if missing:
        show.text(f"Choose the {' and the '.join(missing)} first.", "soft")
        return
    if counted != key:
        show.text("See the size and cost before you start.", "soft")
        return
    show.text(f"Data: {chosen['data'] if chosen['data'] in WORDS else Path(chosen['data']).name}", "soft")
    show.result(plan)
    if st.button("Start the run", type="primary"):
        settings.runs.mkdir(parents=True, exist_ok=True)
        started = ek.start(settings.runs, **chosen)
        del st.session_state["plan"]
        show.go("explore", run=started.name)
