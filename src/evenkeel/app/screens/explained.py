"""What every metric means: its formula, its source, what to be careful about."""

from __future__ import annotations

import msgspec
import streamlit as st

import evenkeel as ek
from evenkeel.app import choose, show
from evenkeel.app.settings import Settings


def page(settings: Settings) -> None:
    show.title("Explained")
    name = choose.benchmark(list(ek.list_benchmarks()))
    layout = ek.list_benchmarks()[name].layout
    show.heading(layout.question)
    if layout.cautions:
        show.text("\n".join(f"• {choose.with_titles(caution)}" for caution in layout.cautions), "warn")
    if layout.citation:
        show.text(layout.citation, "soft")
    for entry in ek.explained(name):
        with st.container(border=True):
            show.metric(msgspec.structs.replace(entry, caution=choose.with_titles(entry.caution)))
