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
from evenkeel.page.format import harmless, visible

if TYPE_CHECKING:
    from evenkeel.harness.stored.listing import ListedRun

NO_RUN = "none"


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
        _downloads(runs)


# Choosing


def _chosen(settings: Settings, finished: Sequence[ListedRun]) -> list[ek.Run]:
    """A model, and one of its runs of each benchmark: that of the most samples, unless another is chosen. A
    quick look at a part, such as one ability, does not take the place of the whole."""
    classes = ek.list_benchmarks()
    known = [run for run in finished if run.benchmark in classes]
    tested = [run for run in known if classes[run.benchmark].subject == "model"]
    models = list(dict.fromkeys(run.model for run in tested))
    model = (
        st.selectbox("Model", models, key="model", bind="query-params", format_func=visible) if models else ""
    )
    names = [name for name in classes if any(run.benchmark == name for run in known)]
    chosen = []
    with st.expander("Which run of each benchmark"):
        for name in names:
            candidates = [
                run for run in known if run.benchmark == name and (run not in tested or run.model == model)
            ]
            candidates.sort(key=lambda run: run.headline.n if run.headline else 0, reverse=True)
            run = _run_of(settings, name, candidates, model, tests_model=classes[name].subject == "model")
            if run is not None:
                chosen.append(ek.open_run(settings.runs, run.name))
    return chosen


def _run_of(
    settings: Settings, benchmark: str, candidates: Sequence[ListedRun], model: str, *, tests_model: bool
) -> ListedRun | None:
    """The run of one benchmark. Of one that compares methods: the latest in which the model has a role."""
    if not candidates:
        show.text(f"{benchmark}: there is no finished run of this model.", "soft")
        return None
    by_label = {_label(run): run for run in candidates}
    labels = [*by_label, NO_RUN]
    usual = next(
        (
            label
            for label, run in by_label.items()
            if tests_model or not model or _has_role(settings, run, model)
        ),
        NO_RUN,
    )
    label = st.selectbox(
        choose.plain(benchmark), labels, index=labels.index(usual), key=f"run-{benchmark}-{model}"
    )
    return by_label.get(label)


def _has_role(settings: Settings, run: ListedRun, model: str) -> bool:
    roles = ek.open_run(settings.runs, run.name).spec.models.values()
    return any(role.get("name") == model for role in roles)


def _label(run: ListedRun) -> str:
    return visible(f"{run.created[:16].replace('T', ' ')} · {run.model} · {run.name}")


# Downloads: each is made when it is clicked


def _downloads(runs: Sequence[ek.Run]) -> None:
    with st.container(horizontal=True):
        st.download_button(
            "Download the page (HTML)",
            lambda: card_page(runs),
            "scorecard.html",
            "text/html",
            on_click="ignore",
        )
        st.download_button(
            "Download all figures (CSV)",
            lambda: figures(runs),
            "figures.csv",
            "text/csv",
            on_click="ignore",
        )


def card_page(runs: Sequence[ek.Run]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        ek.scorecard(runs, out=Path(folder, "scorecard.html"))
        return Path(folder, "scorecard.html").read_bytes()


def figures(runs: Sequence[ek.Run]) -> str:
    """Every figure of the runs, one per row, with no text that a spreadsheet takes for a formula."""
    import polars as pl

    frame = ek.load_runs(*(run.path for run in runs))
    texts = pl.col(pl.String).map_elements(harmless, return_dtype=pl.String)
    return show.without_folder(frame.with_columns(texts).write_csv())
