"""One model's runs of all benchmarks on one card, with everything on it to download."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import streamlit as st

import evenkeel as ek
from evenkeel.app import choose, data, show
from evenkeel.app.settings import Settings
from evenkeel.page.format import harmless, visible

if TYPE_CHECKING:
    import polars as pl

    from evenkeel.harness.stored.listing import ListedRun

NO_RUN = "none"
LARGE = 30_000_000
"""Bytes of records that take a while to draw: such a run is drawn when it is asked for."""
MIME = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "html": "text/html",
    "png": "image/png",
    "svg": "image/svg+xml",
}


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
        _pictures(runs)


# Choosing


def _chosen(settings: Settings, finished: Sequence[ListedRun]) -> list[ek.Run]:
    """A model, and one of its runs of each benchmark: the latest, unless another is chosen."""
    classes = ek.list_benchmarks()
    known = [run for run in finished if run.benchmark in classes]
    tested = [run for run in known if classes[run.benchmark].subject == "model"]
    models = list(dict.fromkeys(run.model for run in tested))
    model = st.selectbox("Model", models, key="model", bind="query-params", format_func=visible) if models else ""
    names = [name for name in classes if any(run.benchmark == name for run in known)]
    chosen = []
    with st.expander("Which run of each benchmark"):
        for name in names:
            candidates = [
                run for run in known if run.benchmark == name and (run not in tested or run.model == model)
            ]
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
        _download("Download the page (HTML)", "scorecard", "html", lambda: _card_page(runs))
        _download("All figures (CSV)", "figures", "csv", lambda: _table(figures(runs), "csv"))
        _download("All figures (Parquet)", "figures", "parquet", lambda: _table(figures(runs), "parquet"))
    with st.expander("Download the samples of each run"):
        for run in runs:
            name = run.spec.benchmark
            with st.container(horizontal=True, vertical_alignment="center"):
                show.text(f"{name}: {run.path.name}")
                _download("CSV", f"{name}-samples", "csv", _samples(run, "csv"), key=str(hash(run.path)))
                _download(
                    "Parquet", f"{name}-samples", "parquet", _samples(run, "parquet"), key=str(hash(run.path))
                )


def _download(label: str, name: str, form: str, make: Callable[[], bytes], *, key: str = "") -> None:
    st.download_button(
        label,
        make,
        file_name=f"{name}.{form}",
        mime=MIME[form],
        key=f"download-{name}-{form}-{key}",
        on_click="ignore",
    )


def _card_page(runs: Sequence[ek.Run]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        ek.scorecard(runs, out=Path(folder, "scorecard.html"))
        return Path(folder, "scorecard.html").read_bytes()


def _samples(run: ek.Run, form: Literal["csv", "parquet"]) -> Callable[[], bytes]:
    def make() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            [path] = ek.export(run, to=form, out=Path(folder, f"samples.{form}"))
            return path.read_bytes()

    return make


def figures(runs: Sequence[ek.Run]) -> pl.DataFrame:
    """Every figure of the runs, one a row."""
    import polars as pl

    rows = [
        {
            "benchmark": run.spec.benchmark,
            "model": run.spec.subject,
            "run": run.path.name,
            "metric": figure.metric,
            "scope": " ".join(f"{tag}={value}" for tag, value in figure.scope.items()),
            "value": figure.value,
            "low": figure.low,
            "high": figure.high,
            "n": figure.n,
            "groups": figure.clusters,
            "coverage": figure.coverage,
            "unit": figure.unit,
            "method": figure.method,
            "p": figure.p,
        }
        for run in runs
        for figure in run.summary.values()
    ]
    numbers = dict.fromkeys(("value", "low", "high", "coverage", "p"), pl.Float64)
    return pl.DataFrame(rows, schema_overrides=numbers, infer_schema_length=None)


def _table(frame: pl.DataFrame, form: Literal["csv", "parquet"]) -> bytes:
    """A text that a spreadsheet would take for a formula is defused in CSV."""
    import polars as pl

    target = io.BytesIO()
    if form == "csv":
        frame.with_columns(pl.col(pl.String).map_elements(harmless, return_dtype=pl.String)).write_csv(target)
    else:
        frame.write_parquet(target)
    return target.getvalue()


# Pictures


def _pictures(runs: Sequence[ek.Run]) -> None:
    show.heading("Pictures")
    by_name = {run.spec.benchmark: run for run in runs}
    small = [name for name, run in by_name.items() if (run.path / "records.jsonl").stat().st_size < LARGE]
    name = st.segmented_control(
        "Benchmark", list(by_name), default=small[0] if small else None, label_visibility="collapsed"
    )
    if not name:
        show.text("Choose a benchmark to draw its pictures.", "soft")
        return
    show.explained(name)
    pictures = data.charts(ek.load_run(by_name[name].path))
    for number, drawn in enumerate(pictures, 1):
        _picture(drawn, f"{name}-{number}")
    if not pictures:
        show.text("This run has nothing to draw.", "soft")


def _picture(drawn: Any, name: str) -> None:
    with st.container(border=True):
        show.picture(drawn)
        if drawn.chart is None:
            return
        with st.container(horizontal=True):
            _download("PNG", name, "png", drawn.to_png)
            _download("SVG", name, "svg", lambda: drawn.to_svg().encode())
