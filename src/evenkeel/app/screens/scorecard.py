"""One model's runs of all benchmarks on one card, to look at and to download."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

import evenkeel as ek
from evenkeel.app import choose, data, show
from evenkeel.app.settings import Settings
from evenkeel.page.format import visible

if TYPE_CHECKING:
    from evenkeel.harness.stored.listing import ListedRun


def page(settings: Settings) -> None:
    show.title("Scorecard")
    finished = data.finished(settings)
    if not finished:
        show.text("A scorecard needs a finished run, and there is none yet.", "warn")
        return
    runs = _chosen(settings, finished)
    if not runs:
        show.text("Choose at least one run.", "soft")
        return
    with show.problems():
        show.result(ek.scorecard(runs))
        show.text("Explore the samples behind it:", "soft")
        with st.container(horizontal=True):
            for run in runs:
                name = run.path.relative_to(settings.runs).as_posix()
                if st.button(choose.plain(visible(name)), key=f"explore-{name}"):
                    show.go("explore", run=name)
        st.download_button(
            "Download the page (HTML)",
            lambda: card_page(runs),
            "scorecard.html",
            "text/html",
            on_click="ignore",
        )


def _chosen(settings: Settings, finished: Sequence[ListedRun]) -> list[ek.Run]:
    """A model and its runs: at first that of the most samples of each benchmark, so that a quick look at a
    part, such as one ability, does not take the place of the whole."""
    classes = ek.list_benchmarks()
    models = list(dict.fromkeys(r.model for r in finished if classes[r.benchmark].subject == "model"))
    model = ""
    if models:
        model = st.selectbox("Model", models, key="model", bind="query-params", format_func=visible)
    candidates = [run for run in finished if not model or run.model == model or _has_role(run, model)]
    candidates.sort(key=lambda run: run.headline.n if run.headline else 0, reverse=True)
    largest = {run.benchmark: run.name for run in reversed(candidates)}
    names = st.multiselect(
        "Runs",
        [run.name for run in candidates],
        default=[largest[name] for name in classes if name in largest],
        format_func=visible,
        key=f"runs-{model}",
    )
    return [ek.open_run(settings.runs, name) for name in names]


def _has_role(run: ListedRun, model: str) -> bool:
    """Whether a model takes part in a run, as in one that compares methods."""
    return any(role.get("name") == model for role in ek.load_run(run.path).spec.models.values())


def card_page(runs: Sequence[ek.Run]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        ek.scorecard(runs, out=Path(folder, "scorecard.html"))
        return Path(folder, "scorecard.html").read_bytes()
