"""Drawing what is not ours: everything from a model, a file or a run is text, never Markdown or HTML.

Streamlit reads Markdown in labels, messages and captions. Words that are not written in this package go
through here, or through a result's own renderer, which escapes them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
import streamlit as st

import evenkeel as ek
from evenkeel.app.settings import Settings
from evenkeel.page.format import capitalised, visible
from evenkeel.page.metrics import Metric, declaration

if TYPE_CHECKING:
    from evenkeel.report.pictures import Drawn

Tone: TypeAlias = Literal["plain", "strong", "soft", "small", "warn", "error"]

TALLEST = 640
"""Pixels of a table, and of what is beside it."""
COLOURS: dict[Tone, str] = {"warn": "#d9822b", "error": "#d03b3b"}


HISTORY = """<script>
if (!window.evenkeelHistory) {
  window.evenkeelHistory = true;
  const push = history.pushState.bind(history);
  history.pushState = (state, title, url) =>
    new URL(url, location).pathname === location.pathname
      ? history.replaceState(state, title, url) : push(state, title, url);
}
</script>"""
"""What is chosen on a page is in its address. That is no new page: one press of Back leaves it."""


def result(shown: Any) -> None:
    """A result of the library, as a notebook shows it."""
    block(shown._repr_html_())


def block(html: str) -> None:
    """HTML that the library made, which is escaped."""
    st.html(f'<div class="evenkeel">{without_folder(html)}</div>')


def metric(entry: Metric) -> None:
    """What a metric means: its name for people, the one in files small beside it."""
    names = f"<strong>{escape(capitalised(entry.title))}</strong> <small>{escape(entry.name)}</small>"
    block(f"<p>{names}</p>{msgspec.structs.replace(entry.overview(), title='').to_html()}")


def picture(drawn: Drawn) -> None:
    """A picture of a run with its title and its note."""
    block(drawn._repr_html_())


def text(words: str, tone: Tone = "plain") -> None:
    """A line of words from anywhere."""
    style = "white-space:pre-wrap;overflow-wrap:anywhere;margin:0"
    if tone in COLOURS:
        style += f";border-left:.3rem solid {COLOURS[tone]};padding:.4rem .8rem"
    if tone == "strong":
        style += ";font-size:1.1rem;font-weight:600"
    if tone in ("soft", "small"):
        style += ";opacity:.75"
    if tone == "small":
        style += ";font-size:.85rem;line-height:1.35"
    role = ' role="alert"' if tone == "error" else ""
    st.html(f'<p style="{style}"{role}>{escape(visible(words))}</p>')


def title(words: str) -> None:
    """The title of a page, and of the browser's tab."""
    tab_title(words)
    st.html(f"<h1>{escape(visible(words))}</h1>")


def tab_title(words: str) -> None:
    st.set_page_config(page_title=f"{visible(words)} · Evenkeel")


def heading(words: str) -> None:
    st.html(f"<h2>{escape(visible(words))}</h2>")


def preformatted(words: str) -> None:
    """Lines of a log, as they are."""
    style = "white-space:pre-wrap;overflow-wrap:anywhere;max-height:20rem;overflow:auto;font-size:.85rem"
    st.html(f'<pre style="{style}" tabindex="0">{escape(visible(words))}</pre>')


def clickable(
    table: Any, count: int, *, key: str, alt: str, column_config: Mapping[str, Any] | None = None
) -> int | None:
    """A table of so many rows, of which a click anywhere on a row selects it; the number of that row."""
    event: Any = st.dataframe(
        table,
        hide_index=True,
        on_select="rerun",
        selection_mode="single-cell",
        key=key,
        placeholder="",
        height=min(TALLEST, 37 + 35 * count),
        column_config=column_config,
        alt=alt,
    )
    row = next((row for row, _ in event.selection.cells), None)
    return row if row is not None and row < count else None  # a choice among other rows


def tabs(parts: Mapping[str, Callable[[], None]], *, key: str) -> None:
    """Parts of a page side by side; only the one that is open is computed."""
    tabs = st.tabs(list(parts), key=key, on_change="rerun", bind="query-params")
    for tab, part in zip(tabs, parts.values(), strict=True):
        if tab.open:
            with tab, problems():
                part()


def read_only(words: str) -> None:
    """In the place of a page that a read-only app does not have."""
    title(words)
    text("This app is read-only: it shows runs, but cannot start or build anything.", "warn")
    text("To start runs or build data, serve the folder yourself: evenkeel app --runs FOLDER")
    st.page_link(st.session_state["pages"]["runs"], label="Look at the runs")


def go(page: str, /, **params: str | list[str]) -> None:
    """Go to another page of the app."""
    st.switch_page(st.session_state["pages"][page], query_params=params)


@contextlib.contextmanager
def problems() -> Iterator[None]:
    """An error of Evenkeel ends this part of the page with its own words; any other is a fault of ours."""
    try:
        yield
    except (ek.EvenkeelError, OSError) as error:
        text(without_folder(str(error)), "error")


def without_folder(words: str) -> str:
    """Words in which runs are named as in the list of runs: a reader may be a stranger."""
    return words.replace(f"{Settings.of_environment().runs}{os.sep}", "")


def metric_title(benchmark: str, column: str) -> str:
    """What a value of samples is called: `Accuracy (bm25)` for `accuracy@bm25`."""
    name, _, subject = column.partition("@")
    metric = declaration(ek.list_benchmarks()[benchmark].metrics, name)
    title = capitalised(metric.title) if metric else name
    return visible(f"{title} ({subject})" if subject else title)


def explained(benchmark: str) -> None:
    """What the metrics of a benchmark mean, one click away."""
    with st.popover("What do these figures mean?"):
        for entry in ek.explained(benchmark):
            metric(entry)
