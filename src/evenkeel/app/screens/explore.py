"""The samples of one run: filtered, sorted, paged, each with its benchmark's own view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import streamlit as st

import evenkeel as ek
from evenkeel.app import choose, data, show
from evenkeel.app.settings import Settings
from evenkeel.page.format import visible

if TYPE_CHECKING:
    from evenkeel.run.stored.marks import Verdict
    from evenkeel.run.stored.samples import Samples

PAGE = 50
VERDICTS: tuple[Verdict, ...] = ("wrong", "right", "")
MOST_VALUES = 40
"""Values of a tag that can be chosen among: one with more is an id."""


def page(settings: Settings) -> None:
    show.title("Explore")
    run = choose_run(settings)
    if run is None:
        return
    show.result(run)
    parts = {
        "Samples": lambda: _samples(run, read_only=settings.read_only),
        "Figures": lambda: figures(run),
        "Settings": lambda: show.result(ek.settings(run)),
    }
    show.tabs(parts, key="explore")


def choose_run(settings: Settings) -> ek.Run | None:
    """The run in the address of the page, or the one that is chosen here."""
    runs = {run.name: run for run in data.list_runs(settings)}
    listed = {name: run for name, run in runs.items() if run.state != "broken"}
    asked = st.query_params.get("run", "")
    if asked and asked not in listed:
        problem = runs[asked].problem if asked in runs else f"{asked!r} is not the name of a run here."
        show.text(problem, "error")
        asked = ""
    if not listed:
        show.text(f"There is no run in {settings.runs} that can be read.", "warn")
        return None
    names = list(listed)
    name = st.selectbox("Run", names, index=names.index(asked) if asked in listed else 0, format_func=visible)
    st.query_params["run"] = name
    if listed[name].state != "finished":
        progress(settings, name)
        return None
    return ek.open_run(settings.runs, name)


@st.fragment(run_every=2)
def progress(settings: Settings, name: str) -> None:
    """How far a run is that is not finished."""
    listed = {run.name: run for run in data.list_runs(settings)}
    run = listed.get(name)
    if run is not None and run.state == "finished":
        st.rerun()
    if run is None or run.state != "running":
        show.text(
            f"{name} is not finished, and no process is writing it. Run the same command again to go on: "
            f"what was answered is kept.",
            "warn",
        )
        return
    show.text(f"{name} is in progress: its samples can be seen when it is finished.")
    if (state := ek.read_progress(run.path)) is not None and state.total:
        st.progress(min(1.0, state.done / state.total))
        show.text(f"{state.phase}: {state.done:,} of {state.total:,}, {state.failed:,} failed", "soft")


def _samples(run: ek.Run, *, read_only: bool) -> None:
    samples = data.samples(run)
    rows = _chosen(samples)
    if not rows:
        show.text("No sample fits these filters.", "soft")
        return
    pages = -(-len(rows) // PAGE)
    number = 1
    if pages > 1:
        number = int(st.number_input(f"Page, of {pages:,}", 1, pages, 1))
    shown = rows[(number - 1) * PAGE : number * PAGE]
    show.text(f"{len(rows):,} of {len(samples):,} samples. Choose a row to see the whole of it.", "soft")
    event: Any = st.dataframe(
        samples.frame[shown],
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key=f"samples-{run.path}-{number}-{st.session_state.get('steps', 0)}",
        placeholder="",
        alt="The samples of the run with their tags and values",
    )
    selected = event.selection.rows
    row = _current(samples, rows, shown[selected[0]] if selected else None)
    _view(run, samples, row, read_only=read_only)


def _chosen(samples: Samples) -> list[int]:
    """The numbers of the rows that pass the filters, in the chosen order."""
    search, failed, sort, direction = st.columns([6, 2, 4, 3], vertical_alignment="bottom")
    words = search.text_input("Search in questions and answers")
    only_failed = failed.checkbox("Failed only")
    columns = ["", *samples.frame.columns]
    order = sort.selectbox("Sort by", columns, format_func=lambda name: visible(name) or "as asked")
    descending = direction.selectbox("Order", ["lowest first", "highest first"]) == "highest first"
    tags = {}
    choices = {tag: values for tag, values in samples.tags.items() if 1 < len(values) <= MOST_VALUES}
    if choices:
        with st.expander("Filter by category"):
            for tag, values in choices.items():
                if picked := st.multiselect(choose.plain(visible(tag)), values, key=f"tag-{tag}"):
                    tags[tag] = picked
    return samples.select(
        failed=True if only_failed else None, tags=tags, search=words, sort=order, descending=descending
    )


def _current(samples: Samples, rows: Sequence[int], selected: int | None) -> int:
    """The sample to show, with steps to its neighbours: the one chosen, that of the address, or the first."""
    asked = samples.row_of(st.query_params.get("sample", ""))
    known = asked if asked is not None and asked in rows else rows[0]
    row = known if selected is None else selected
    st.query_params["sample"] = _id(samples, row)
    position = rows.index(row)
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Previous sample", disabled=position == 0):
            _open(samples, rows[position - 1])
        if st.button("Next sample", disabled=position == len(rows) - 1):
            _open(samples, rows[position + 1])
        show.text(f"{position + 1:,} of {len(rows):,}", "soft")
    return row


def _open(samples: Samples, row: int) -> None:
    st.query_params["sample"] = _id(samples, row)
    st.session_state["steps"] = st.session_state.get("steps", 0) + 1  # another table, without a chosen row
    st.rerun()


def _id(samples: Samples, row: int) -> str:
    return str(samples.frame["sample"][row])


def _view(run: ek.Run, samples: Samples, row: int, *, read_only: bool) -> None:
    show.result(samples.view(row))
    _mark(run, _id(samples, row), samples.values, read_only=read_only)


def _mark(run: ek.Run, sample: str, metrics: Sequence[str], *, read_only: bool) -> None:
    """What a person thinks of the verdicts on this sample."""
    marks = [mark for mark in run.marks() if mark.sample == sample]
    for mark in marks:
        words = f"Marked {mark.verdict}" + (f" ({mark.metric})" if mark.metric else "")
        show.text(f"{words}: {mark.comment}" if mark.comment else words, "warn")
    if read_only:
        return
    with st.form(f"mark-{sample}"):
        st.markdown("**Is a verdict wrong?** Marks are kept beside the run and can be exported.")
        metric = st.selectbox("Metric", list(metrics), format_func=visible)
        verdict = st.selectbox("The verdict is", VERDICTS, format_func=lambda name: name or "not marked")
        comment = st.text_input("Comment")
        if st.form_submit_button("Save the mark"):
            run.mark(sample, verdict=verdict, metric=metric, comment=comment)
            st.rerun()
    if marks := run.marks():
        lines = b"".join(msgspec.json.encode(mark) + b"\n" for mark in marks)
        st.download_button("Download all marks", lines, file_name="marks.jsonl", mime="application/jsonl")


def figures(run: ek.Run) -> None:
    """The pictures and tables of a run."""
    meaning, download = st.columns(2)
    with meaning:
        show.explained(run.spec.benchmark)
    report = run.path / "report.html"
    if report.is_file() and not report.is_symlink():
        download.download_button("Report (HTML)", report.read_bytes, f"{run.path.name}.html", "text/html")
    for drawn in data.charts(run):
        show.heading(drawn.title)
        if drawn.chart is not None:
            st.altair_chart(drawn.chart, alt=visible(drawn.title))
        if drawn.note:
            show.text(drawn.note, "soft")
    for grid in ek.tables(run):
        show.result(grid)
