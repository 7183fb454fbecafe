"""A chromium to drive, and texts that would do harm if they were more than text."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

NASTY = [
    "<script>document.title = 'run'</script>",
    "<img src=x onerror=\"document.title='run'\">",
    "<svg onload=\"document.title='run'\"><circle r=9 /></svg>",
    "</pre></details></main><h1>outside</h1>",
    "<iframe src='http://127.0.0.1:9/frame'></iframe><link rel=stylesheet href=http://127.0.0.1:9/css>",
    "[click](javascript:document.title='run') javascript:document.title='run'",
    "{{ 7 * 7 }} {% for x in y %} ${7*7} <%= 7*7 %>",
    r"$$\href{javascript:alert(1)}{x}$$ \(\def\x{\x\x}\x\)",
    "NUL \x00 bell \x07 escape \x1b[31m delete \x7f next line \x85",
    "left \u202egnirts a\u202c isolate \u2066x\u2069 mark \u200f and \ufeff",
    "<style>* { display: none }</style><base href='http://127.0.0.1:9/'>",
    "&lt;b&gt; &amp;amp; &#60;script&#62; <!-- --> ]]> <![CDATA[",
    "<form action=http://127.0.0.1:9><input autofocus onfocus=\"document.title='run'\"></form>",
    "한국어 中文 Русский العربية 🙂 e\u0301",
    "long " + "x" * 1_000_000,
]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's chromium; without one the test is skipped."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no chromium on this machine")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()
