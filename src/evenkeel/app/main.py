"""The app's script, which Streamlit runs for every visit: navigation, and one module a page."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import streamlit as st

from evenkeel.app import show
from evenkeel.app.screens import build, compare, explained, explore, new_run, runs, scorecard
from evenkeel.app.settings import Settings

STYLE = """<style>
:where(.evenkeel table) { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.evenkeel { --paper: light-dark(#ffffff, #171614); --line: color-mix(in srgb, currentColor 20%, transparent);
}
.evenkeel .scroll table { display: table; }
:where(.evenkeel caption) { text-align: left; font-weight: 600; padding: .4rem 0; white-space: nowrap; }
:where(.evenkeel th, .evenkeel td) { padding: .3rem .7rem; text-align: right; white-space: nowrap; border: 0;
  border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
:where(.evenkeel th:first-child, .evenkeel .left) { text-align: left; }
:where(.evenkeel td.words, .evenkeel th.words) { white-space: normal; min-width: 14rem; }
.evenkeel .warn { color: light-dark(#a3231a, #ff8a7e); font-weight: 600; }
.evenkeel p { margin: .3rem 0; overflow-wrap: anywhere; }
@media (max-width: 640px) {
  :where(.evenkeel th, .evenkeel td) { padding: .25rem .35rem; }
  :where(.evenkeel th, .evenkeel caption) { white-space: normal; }
  .evenkeel td small { display: block; }
  :where(.evenkeel td.words, .evenkeel th.words) { min-width: 7.5rem; }
}
[data-testid="stMainBlockContainer"] { padding: 3.2rem clamp(1rem, 3vw, 3rem) 4rem; }
[data-selected="true"] p { color: light-dark(#1c2126, #f0f2f4); }
{tables}
h1 { font-size: 1.9rem !important; padding: .2rem 0 !important; margin: 0 !important; }
h2 { font-size: 1.3rem !important; padding: .6rem 0 0 !important; margin: 0 !important; }
</style>""".replace("{tables}", files("evenkeel.page").joinpath("tables.css").read_text(encoding="utf-8"))

LOGO = Path(__file__).with_name("logo.svg")


def main() -> None:
    st.set_page_config(page_icon="⚓", layout="wide")
    st.html(STYLE)
    st.html(show.HISTORY, unsafe_allow_javascript=True)
    st.logo(LOGO, size="large")
    settings = Settings.of_environment()
    pages = {
        "runs": st.Page(lambda: runs.page(settings), title="Runs", default=True),
        "new-run": _writing_page("New run", "new-run", new_run.page, settings),
        "explore": st.Page(lambda: explore.page(settings), title="Explore", url_path="explore"),
        "compare": st.Page(lambda: compare.page(settings), title="Compare", url_path="compare"),
        "build": _writing_page("Build", "build", build.page, settings),
        "scorecard": st.Page(lambda: scorecard.page(settings), title="Scorecard", url_path="scorecard"),
        "explained": st.Page(lambda: explained.page(settings), title="Explained", url_path="explained"),
    }
    # The default page is at `/` alone.
    runs_address = st.Page(lambda: show.go("runs"), title="Runs", url_path="runs", visibility="hidden")
    st.session_state["pages"] = pages
    chosen = st.navigation([*pages.values(), runs_address])
    with show.problems():
        chosen.run()


def _writing_page(title: str, address: str, page: Callable[[Settings], None], settings: Settings) -> st.Page:
    """A page that writes into the runs folder; in a read-only app one that says that it does not."""
    if settings.read_only:
        return st.Page(lambda: show.read_only(title), title=title, url_path=address, visibility="hidden")
    return st.Page(lambda: page(settings), title=title, url_path=address)


main()
