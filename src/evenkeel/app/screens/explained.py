"""What every metric means: its formula, its source, what to be careful about."""

from __future__ import annotations

import msgspec
import streamlit as st

import evenkeel as ek
from evenkeel.app import choose, show
from evenkeel.app.settings import Settings


def page(settings: Settings) -> None:
    show.title("Explained")
    choice, search = st.columns(2)
    with choice:
        name = choose.benchmark(list(ek.list_benchmarks()))
    words = search.text_input(
        "Search", placeholder="a word, or the name of a metric", key="search", bind="query-params"
    )
    with show.problems():
        _about(name)
        _metrics(name, words.casefold().split())


def _about(name: str) -> None:
    """The benchmark's question, its source, and what it does not measure."""
    layout = ek.list_benchmarks()[name].layout
    show.heading(layout.question)
    if layout.cautions:
        show.text("\n".join(f"• {choose.with_titles(caution)}" for caution in layout.cautions), "warn")
    if layout.citation:
        show.text(layout.citation, "soft")


def _metrics(name: str, words: list[str]) -> None:
    entries = ek.explained(name)
    matching = [entry for entry in entries if all(word in _text(entry) for word in words)]
    show.text(f"{len(matching)} of {len(entries)} metrics", "soft")
    if not matching:
        show.text("No metric has all of these words. Try fewer.", "warn")
    for entry in matching:
        with st.container(border=True):
            show.metric(msgspec.structs.replace(entry, caution=choose.with_titles(entry.caution)))


def _text(entry: ek.Metric) -> str:
    """Everything that is said about a metric, to search in."""
    return f"{entry.name} {entry.title} {entry.meaning} {entry.caution}".casefold()
