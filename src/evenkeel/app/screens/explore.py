"""The samples of one run: filtered, sorted, paged, each with its benchmark's own view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import streamlit as st

import evenkeel as ek
from evenkeel.app import choose, data, processes, show
from evenkeel.app.settings import Settings
from evenkeel.page.format import interval, share, value, visible
from evenkeel.page.metrics import declaration

if TYPE_CHECKING:
    import polars as pl

    from evenkeel.harness.stored.marks import Verdict
    from evenkeel.harness.stored.samples import Samples

PAGE = 50
VERDICTS: tuple[Verdict, ...] = ("wrong", "right", "")
MOST_VALUES = 40
"""Values of a tag that can be chosen among: one with more is an id."""
ALL, WORST, FAILED = "All samples", "Worst first", "Failed"
AS_ASKED = ""


def page(settings: Settings) -> None:
    show.title("Explore")
    run = choose_run(settings)
    if run is None:
        return
    _headline(run)
    parts = {
        "Samples": lambda: _samples(run, read_only=settings.read_only),
        "Figures": lambda: figures(run),
        "Settings": lambda: show.result(ek.settings(run)),
    }
    show.tabs(parts, key="explore")


def _headline(run: ek.Run) -> None:
    """The run in one line, or in one for each subject."""
    title = ek.list_benchmarks()[run.spec.benchmark].layout.headline_title
    names = run.subjects or (run.spec.subject,)
    for name, figure in zip(names, run.headlines.values(), strict=True):
        parts = [f"{title} of {name}: {value(figure)}", f"95% interval {interval(figure) or 'not known'}"]
        show.text(", ".join([*parts, f"coverage {share(figure.coverage)}"]))


def choose_run(settings: Settings) -> ek.Run | None:
    """The run in the address of the page, or the one that is chosen here."""
    runs = {run.name: run for run in data.list_runs(settings)}
    listed = {name: run for name, run in runs.items() if run.state != "broken"}
    beginning = [] if settings.read_only else [process.name for process in processes.started(settings, "run")]
    names = [*(name for name in beginning if name not in runs), *listed]
    asked = st.query_params.get("run", "")
    if asked and asked not in names:
        problem = runs[asked].problem if asked in runs else f"{asked!r} is not the name of a run here."
        show.text(problem, "error")
    if not names:
        show.text(f"No run in {settings.shown_runs} can be read.", "warn")
        return None
    name = choose.of_address("Run", names, "run")
    if name not in listed or listed[name].state != "finished":
        progress(settings, name)
        return None
    return ek.open_run(settings.runs, name)


@st.fragment(run_every=1)
def progress(settings: Settings, name: str) -> None:
    """How far a run is that is not finished; one that was started here can be stopped and resumed."""
    listed = {run.name: run for run in data.list_runs(settings)}
    run = listed.get(name)
    if run is not None and run.state == "finished":
        st.rerun()
    process = next((each for each in processes.started(settings, "run") if each.name == name), None)
    if process is not None and not settings.read_only:
        show.text(
            "Samples appear here when the run is finished. It keeps going if you close this page.", "soft"
        )
        with show.problems():
            processes.card(process)
    elif run is not None and run.state == "running":
        show.text(f"{name} is in progress: its samples appear here when it is finished.")
        if (state := ek.read_progress(run.path)) is not None and state.total:
            st.progress(min(1.0, state.done / state.total))
            show.text(f"{state.phase}: {state.done:,} of {state.total:,}, {state.failed:,} failed", "soft")
    else:
        show.text(
            f"{name} is not finished, and no process is writing it. To resume it, run the command that "
            f"started it again, with --out {name}: what was answered is not asked again.",
            "warn",
        )


def _samples(run: ek.Run, *, read_only: bool) -> None:
    samples = data.samples(run)
    rows = _chosen(samples, ek.list_benchmarks()[run.spec.benchmark].metrics)
    if not rows:
        show.text("No sample fits these filters.", "soft")
        return
    pages = -(-len(rows) // PAGE)
    number = 1
    if pages > 1:
        number = int(st.number_input(f"Page, of {pages:,}", 1, pages, 1))
    shown = rows[(number - 1) * PAGE : number * PAGE]
    show.text(f"Showing {len(rows):,} of {len(samples):,} samples. Select a row for details.", "soft")
    event: Any = st.dataframe(
        _table(samples, shown),
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key=f"samples-{hash(run.path)}-{number}-{st.session_state.get('steps', 0)}",
        placeholder="",
        column_config={name: st.column_config.TextColumn(width="medium") for name in ("question", "answer")},
        alt="The samples of the run with their texts, values and tags",
    )
    selected = event.selection.rows
    row = _current(samples, rows, shown[selected[0]] if selected else None)
    _view(run, samples, row, read_only=read_only)


def _table(samples: Samples, rows: Sequence[int]) -> pl.DataFrame:
    """A row for each sample: its id, the start of its texts, its values, its tags."""
    import polars as pl

    frame = samples.frame_of(rows)
    texts = [(each.question, each.answer) for each in samples.in_short(rows)]
    columns = {"question": [first for first, _ in texts], "answer": [answer for _, answer in texts]}
    opening = pl.DataFrame({name: list(map(visible, each)) for name, each in columns.items() if any(each)})
    valued = [name for name in samples.values if frame[name].null_count() < len(frame)]
    others = [*samples.tag_columns.values(), "failed", "group"]
    return pl.concat([frame.select("sample"), opening, frame.select(*valued, *others)], how="horizontal")


def _chosen(samples: Samples, metrics: Sequence[ek.Metric]) -> list[int]:
    """The numbers of the rows that pass the filters, in the chosen order."""
    search, which = st.columns([3, 2], vertical_alignment="bottom")
    words = search.text_input("Search in questions and answers", on_change=_from_the_first)
    view = which.segmented_control(
        "Show",
        [ALL, WORST, FAILED],
        default=ALL,
        on_change=_from_the_first,
        help="Worst first: by the headline value. Failed: a request was not answered, or not scored.",
    )
    with st.expander("Filter by category, sort by another value"):
        tags = _wanted_tags(samples)
        order, descending = _order(samples)
    if view == WORST and samples.values:
        order = samples.values[0]
        descending = _lower_is_better(metrics, order)
    return samples.select(
        outcome="error" if view == FAILED else None,
        tags=tags,
        search=words,
        sort=order,
        descending=descending,
    )


def _wanted_tags(samples: Samples) -> dict[str, list[str]]:
    choices = {tag: values for tag, values in samples.tags.items() if 1 < len(values) <= MOST_VALUES}
    picked = {
        tag: st.multiselect(
            choose.plain(visible(tag)),
            values,
            format_func=visible,
            key=f"tag-{tag}",
            on_change=_from_the_first,
        )
        for tag, values in choices.items()
    }
    return {tag: values for tag, values in picked.items() if values}


def _order(samples: Samples) -> tuple[str, bool]:
    """A column to sort by, and whether from its highest value."""
    sort, direction = st.columns(2, vertical_alignment="bottom")
    others = [name for name in samples.columns if name not in samples.values]
    name = sort.selectbox(
        "Sort by",
        [AS_ASKED, *samples.values, *others],
        format_func=lambda name: visible(name) or "as asked",
        on_change=_from_the_first,
    )
    orders = ["lowest first", "highest first"]
    return name, direction.selectbox("Order", orders, on_change=_from_the_first) == orders[1]


def _from_the_first() -> None:
    """Show the first of the samples that are chosen anew."""
    st.query_params.pop("sample", None)
    _forget_row()


def _lower_is_better(metrics: Sequence[ek.Metric], column: str) -> bool:
    metric = declaration(metrics, column)
    return metric is not None and metric.better == "lower"


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
    _forget_row()
    st.rerun()


def _forget_row() -> None:
    """Show another table, in which no row is chosen."""
    st.session_state["steps"] = st.session_state.get("steps", 0) + 1


def _id(samples: Samples, row: int) -> str:
    return samples.index.ids[row]


def _view(run: ek.Run, samples: Samples, row: int, *, read_only: bool) -> None:
    show.result(samples.view(row))
    scored = [name for name in samples.values if samples.valued(name)[row]]
    _mark(run, _id(samples, row), scored, read_only=read_only)


def _mark(run: ek.Run, sample: str, metrics: Sequence[str], *, read_only: bool) -> None:
    """What a person thinks of the verdicts on this sample."""
    marks = [mark for mark in run.marks() if mark.sample == sample]
    for mark in marks:
        words = f"Marked {mark.verdict}" + (f" ({mark.metric})" if mark.metric else "")
        show.text(f"{words}: {mark.comment}" if mark.comment else words, "warn")
    if read_only:
        return
    with st.form(f"mark-{sample}"):
        st.markdown("**Is a verdict wrong?** Marks are saved beside the run and can be exported.")
        metric = st.selectbox(
            "Which", [*metrics, ""], format_func=lambda name: visible(name) or "the score as a whole"
        )
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
    download.download_button(
        "Report (HTML)",
        lambda: ek.render(run).encode(),
        f"{run.path.name}.html",
        "text/html",
        on_click="ignore",
    )
    for grid in ek.tables(run):
        show.result(grid)
    for drawn in data.charts(run):
        show.picture(drawn)
