"""One run: its verdict and warnings, its samples with the details beside them, its figures, its settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import streamlit as st

import evenkeel as ek
from evenkeel.app import choose, data, processes, show
from evenkeel.app.settings import Settings
from evenkeel.page.format import capitalised, counted, interval_words, tag_name, tag_value, value, visible

if TYPE_CHECKING:
    from evenkeel.api.launch import Started
    from evenkeel.api.so_far import SoFar
    from evenkeel.harness.stored.listing import ListedRun
    from evenkeel.harness.stored.marks import Verdict
    from evenkeel.harness.stored.samples import Samples
    from evenkeel.page.layout import Layout

PAGE = 500
"""Samples of a table."""
ROW_HEIGHT = 72
"""Pixels: four lines. Streamlit does not wrap texts in rows that are much lower."""
VERDICTS: tuple[Verdict, ...] = ("wrong", "right", "")
MOST_VALUES = 40
"""Values of a tag that can be chosen among: one with more is an id."""
ORDERS = ("as asked", "worst first", "best first")
RIGHT, WRONG = "✓", "✗"
RESULTS = {RIGHT: "green", WRONG: "red", "cut off": "orange", "no answer": "gray", "error": "violet"}
"""What the first column of the table says of a sample, and in which colour."""
COLUMN_CONFIG = {
    "Result": st.column_config.MultiselectColumn(
        options=list(RESULTS), color=list(RESULTS.values()), width=105
    ),
    "Question": st.column_config.Column(width=130),
    "Setting": st.column_config.Column(width=90),
    "Expected": st.column_config.Column(width=85),
    "Answer": st.column_config.Column(width=120),
}


def page(settings: Settings) -> None:
    show.title("Explore")
    name = choose_run(settings)
    if name is None:
        return
    show.tab_title(name)
    listed = {run.name: run for run in data.list_runs(settings)}
    if name not in listed or listed[name].state != "finished":
        progress(settings, name)
        return
    run = ek.open_run(settings.runs, name)
    _verdict(run)
    parts = {
        "Samples": lambda: _samples(run, read_only=settings.read_only),
        "Figures": lambda: figures(run),
        "Settings": lambda: show.result(ek.settings(run)),
    }
    show.tabs(parts, key="part")


def _verdict(run: ek.Run) -> None:
    """The run in one sentence, what may mislead, and its headline between the worst and the best."""
    show.text(run.verdict, "strong")
    for note in ek.notes_of(run):
        if note.warning:
            show.text(note.text.replace("--max-tokens", f"“{choose.title('max_tokens')}”"), "warn")
    picture = ek.scorecard([run]).overview().grids[0]
    show.result(msgspec.structs.replace(picture, title="", lead=""))


def choose_run(settings: Settings) -> str | None:
    """The run in the address of the page, or the one that is chosen here."""
    runs = {run.name: run for run in data.list_runs(settings)}
    beginning = [] if settings.read_only else [process.name for process in processes.started(settings, "run")]
    names = [name for name in beginning if name not in runs]
    names += [name for name, run in runs.items() if run.state != "broken"]
    asked = st.query_params.get("run", "")
    if asked and asked not in names:
        problem = runs[asked].problem if asked in runs else f"{asked!r} is not the name of a run here."
        show.text(problem, "error")
    if not names:
        show.text(f"There is no run in {settings.shown_runs} yet.", "warn")
        return None
    # Without a first value the address keeps the name also where it is that of the newest run.
    chosen = st.selectbox(
        "Run",
        names,
        index=None,
        placeholder=visible(names[0]),
        key="run",
        bind="query-params",
        format_func=visible,
        on_change=_forget,
    )
    return chosen or names[0]


def _forget() -> None:
    """Another run, or other samples of it: none is chosen among them."""
    st.query_params.pop("sample", None)
    st.session_state["steps"] = st.session_state.get("steps", 0) + 1


@st.fragment(run_every=1)
def progress(settings: Settings, name: str) -> None:
    """How far a run is that is not finished, and how to stop or resume it."""
    run = next((run for run in data.list_runs(settings) if run.name == name), None)
    if run is not None and run.state == "finished":
        st.rerun()
    folder = Path(run.path) if run is not None else settings.runs / name
    process = next((each for each in ek.started(folder.parent) if Path(each.path).name == folder.name), None)
    with show.problems():
        part = ek.so_far(run.path) if run is not None else None
        _sentence(run, part, process)
        if process is not None and not settings.read_only:
            processes.card(process)
        elif run is not None and run.state == "unfinished":
            show.text(f"To resume it, run the command that started it again, with --out and {name}.", "soft")
        if part is not None and part.latest:
            _latest(part)


def _sentence(run: ListedRun | None, part: SoFar | None, process: Started | None) -> None:
    """`Not finished: 8 of 24 prompts answered. Accuracy 12% so far (95% interval 2% to 28%).`"""
    state = "Starting" if run is None else "In progress" if run.state == "running" else "Not finished"
    if process is not None and not process.active:
        state = processes.ended_as(process).capitalize()
    if run is None or part is None:
        show.text(f"{state}.", "strong")
        return
    layout = ek.list_benchmarks()[run.benchmark].layout
    samples = counted(part.samples, layout.counted[0])
    words = f"{state}: {part.answered:,} of {'the first ' if part.more else ''}{samples} answered."
    figure = part.headline
    if figure is not None and figure.value is not None:
        words += f" {part.title} {value(figure)} so far ({interval_words(figure)})."
    elif state == "In progress":
        words += " The score follows when all are answered."
    show.text(words, "strong")


def _latest(part: SoFar) -> None:
    """The samples as they arrive."""
    results: dict[float | None, list[str]] = {1.0: [RIGHT], 0.0: [WRONG]}
    columns: dict[str, list[Any]] = {
        "Result": [results.get(each.correct, []) for each in part.latest],
        "Question": [visible(each.question) for each in part.latest],
        "Expected": [visible(each.expected) for each in part.latest],
        "Answer": [visible(each.answer) for each in part.latest],
    }
    show.clickable(
        {name: cells for name, cells in columns.items() if any(cells)},
        len(part.latest),
        key="so-far",
        alt="The samples that were answered so far, the latest first",
        column_config=COLUMN_CONFIG,
    )


# Samples


def _samples(run: ek.Run, *, read_only: bool) -> None:
    samples = data.samples(run)
    rows = _chosen(samples, run.layout)
    if not rows:
        show.text("No samples match these filters.", "soft")
        return
    row = _asked(samples, rows)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _table(run, samples, rows, row)
    with right:
        _steps(samples, rows, row)
        with st.container(height=show.TALLEST):
            show.result(samples.view(row))
            _mark(run, samples, row, read_only=read_only)


def _chosen(samples: Samples, layout: Layout) -> list[int]:
    """The numbers of the rows that pass the filters, in the chosen order."""
    counts = {name: int(rows.sum()) for name, rows in samples.outcomes.items()}
    if not counts["right"] + counts["wrong"]:
        del counts["right"], counts["wrong"]
    listed = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    show.text(f"{counted(len(samples), 'samples')}{': ' if listed else ''}{listed}", "soft")
    if samples.decided_by:
        show.text(f"Right or wrong is the answer of {samples.decided_by}, which no method exceeds.", "soft")
    # The address has the labels that were chosen, so that no number can be in them.
    pills, search, order = st.columns([4, 4, 2], vertical_alignment="bottom")
    view = pills.pills(
        "Show only",
        [name for name, count in counts.items() if count],
        selection_mode="multi",
        key="show",
        bind="query-params",
        format_func=capitalised,
        on_change=_forget,
    )
    words = search.text_input(
        "Search in questions and answers", key="search", bind="query-params", on_change=_forget
    )
    sort = order.selectbox("Order", ORDERS, key="order", bind="query-params", on_change=_forget)
    decisive = [name for name in layout.correct_metrics if name in samples.values]
    values = [*decisive, *samples.values][: sort != ORDERS[0]]
    falling = layout.metrics[0].better == "lower"
    return samples.select(
        outcome=view,
        tags=_wanted_tags(samples),
        search=words,
        sort="".join(values),
        descending=falling if sort == "worst first" else not falling,
    )


def _wanted_tags(samples: Samples) -> dict[str, list[str]]:
    choices = {tag: values for tag, values in samples.tags.items() if 1 < len(values) <= MOST_VALUES}
    if not choices:
        return {}
    with st.expander("Filter by category"):
        picked = {
            tag: st.multiselect(
                choose.plain(visible(capitalised(tag_name(tag)))),
                values,
                format_func=lambda text: visible(tag_value(text)),
                key=f"by-{tag}",
                bind="query-params",
                on_change=_forget,
            )
            for tag, values in choices.items()
        }
    return {tag: values for tag, values in picked.items() if values}


def _asked(samples: Samples, rows: Sequence[int]) -> int:
    """The row of the sample in the address, or the first; what cannot be shown is said."""
    name = st.query_params.get("sample", "")
    row = samples.row_of(name)
    if name and row is None:
        show.text(f"This run has no sample {name!r}. The first one is shown instead.", "error")
    elif name and row not in rows:
        show.text(f"Sample {name!r} does not match these filters. The first match is shown instead.", "warn")
    return row if row is not None and row in rows else rows[0]


def _table(run: ek.Run, samples: Samples, rows: Sequence[int], row: int) -> None:
    position = rows.index(row)
    first = position // PAGE * PAGE
    shown = rows[first : first + PAGE]
    key = f"samples-{hash(run.path)}-{first}-{st.session_state.get('steps', 0)}"

    def select() -> None:
        if cells := st.session_state[key].selection.cells:
            st.query_params["sample"] = samples.index.ids[shown[cells[0][0]]]

    st.dataframe(
        _columns(samples, shown, run.layout.metrics[0]),
        hide_index=True,
        on_select=select,
        selection_mode="single-cell",
        selection_default={"selection": {"cells": [(position - first, "Question")]}},
        key=key,
        placeholder="",
        height=min(show.TALLEST, 37 + ROW_HEIGHT * len(shown)),
        row_height=ROW_HEIGHT,
        column_config=COLUMN_CONFIG,
        alt="The samples of the run with their results, questions and answers",
    )
    span = f"{first + 1:,}–{first + len(shown):,} of {len(rows):,}"
    show.text(f"Showing {span}. Select a row for details.", "soft")


def _columns(samples: Samples, rows: Sequence[int], headline: ek.Metric) -> dict[str, list[Any]]:
    """Result, question, expected, answer; then the headline, where it is not the result, tags and id."""
    texts = samples.in_short(rows)
    columns: dict[str, list[Any]] = {
        "Result": [_result(samples, row) for row in rows],
        "Question": [visible(text.question) for text in texts],
        "Setting": [visible(text.setting) for text in texts],
        "Expected": [visible(text.expected) for text in texts],
        "Answer": [visible(text.answer) for text in texts],
    }
    for name, values in samples.index.values.items():
        metric, _, subject = name.partition("@")
        if metric == headline.name and (subject or headline.unit != "share"):
            numbers = values[list(rows)].tolist()
            columns[visible(subject or headline.title)] = [None if cell != cell else cell for cell in numbers]
    for tag, cells in samples.index.tags.items():
        title = visible(capitalised(tag_name(tag)))
        if len(samples.tags[tag]) > 1 and title not in columns:
            columns[title] = [cells[row] for row in rows]
    columns["Sample"] = [visible(samples.index.ids[row]) for row in rows]
    return {name: cells for name, cells in columns.items() if any(cell not in ("", []) for cell in cells)}


def _result(samples: Samples, row: int) -> list[str]:
    correct = samples.correct[row]
    result = [] if correct != correct else [RIGHT] if correct == 1 else [WRONG]
    return result + [name for name in ("cut off", "no answer", "error") if samples.outcomes[name][row]]


def _steps(samples: Samples, rows: Sequence[int], row: int) -> None:
    """Which sample is shown, and steps to its neighbours."""
    position = rows.index(row)

    def step(by: int) -> None:
        _forget()
        st.query_params["sample"] = samples.index.ids[rows[position + by]]

    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Previous", on_click=step, args=(-1,), disabled=position == 0, shortcut="p")
        st.button("Next", on_click=step, args=(1,), disabled=position == len(rows) - 1, shortcut="n")
        show.text(f"{position + 1:,} of {len(rows):,}: {samples.index.ids[row]}", "soft")


def _mark(run: ek.Run, samples: Samples, row: int, *, read_only: bool) -> None:
    """What a person thinks of the verdicts on this sample."""
    sample = samples.index.ids[row]
    metrics = [name for name in samples.values if samples.valued(name)[row]]
    marks = [mark for mark in run.marks() if mark.sample == sample]
    for mark in marks:
        words = f"Marked {mark.verdict}" + (f" ({mark.metric})" if mark.metric else "")
        show.text(f"{words}: {mark.comment}" if mark.comment else words, "warn")
    if read_only:
        return
    with st.form(f"mark-{sample}"):
        st.markdown("**Is a verdict wrong?** Marks are saved with the run and included in its exports.")
        metric = st.selectbox(
            "Which",
            [*metrics, ""],
            format_func=lambda name: show.metric_title(run.spec.benchmark, name) or "the overall score",
        )
        verdict = st.selectbox("The verdict is", VERDICTS, format_func=lambda name: name or "not marked")
        comment = st.text_input("Comment")
        if st.form_submit_button("Save the mark"):
            run.mark(sample, verdict=verdict, metric=metric, comment=comment)
            st.rerun()


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
