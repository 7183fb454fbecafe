"""Pages of the app, driven without a browser."""

from __future__ import annotations

import html
from pathlib import Path

import msgspec
from streamlit.testing.v1 import AppTest

from evenkeel.app.settings import Settings

PAGE = """
import streamlit as st
from evenkeel.app import show
from evenkeel.app.screens import {name} as screen
from evenkeel.app.settings import Settings

st.session_state.setdefault("pages", {{}})
with show.problems():
    screen.page(Settings.of_environment())
"""


def page(name: str, **query: str | list[str]) -> AppTest:
    """A page of the app over the folder in EVENKEEL_APP_RUNS."""
    test = AppTest.from_string(PAGE.format(name=name), default_timeout=60)
    for key, value in query.items():
        test.query_params[key] = value
    test.run()
    assert not test.exception
    return test


def shown(test: AppTest) -> str:
    """All texts of a page that are drawn as HTML, as a person reads them."""
    return html.unescape(source(test))


def source(test: AppTest) -> str:
    """The same as the browser gets it."""
    assert not test.exception
    return "\n".join(str(element.proto.body) for element in test.get("html"))


def press(test: AppTest, label: str) -> AppTest:
    return next(button for button in test.button if button.label == label).click().run()


def settings_of(runs: Path) -> Settings:
    return Settings(runs=runs, models=None, data=None, read_only=False)


def write_rows(folder: Path, prefix: str = "a b", count: int = 1) -> Path:
    """A data set of MIRON."""
    folder.mkdir(parents=True)
    rows = [{"id": n, "prefix": f"{prefix} {n}", "target": " x", "category": "Logic"} for n in range(count)]
    (folder / "miron_en.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    return folder
