"""No page of the app, and nothing that a notebook shows, holds a key of the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("streamlit")
from streamlit.testing.v1 import AppTest

import evenkeel as ek
from harness.test_canary import CANARY, Echo, leaks
from pages import PAGE

SCREENS = Path(ek.__file__).parent / "app" / "screens"


def everything(test: AppTest) -> bytes:
    """All that a page sends to the browser, error pages included."""
    elements: list[Any] = list(test._tree)
    return "\n".join(str(getattr(element, "proto", "")) for element in elements).encode()


def displayed(script: str, **query: list[str]) -> bytes:
    test = AppTest.from_string(script, default_timeout=120)
    for name, value in query.items():
        test.query_params[name] = value
    return everything(test.run())


def test_a_key_is_on_no_page_and_in_no_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("EVENKEEL_APP_RUNS", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    options: dict[str, Any] = {"ability": "noise", "noise_rates": "0", "limit": 2, "progress": False}
    with Echo() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        runs = [ek.run("rgb", "openai:m", out=tmp_path / name, **options) for name in "ab"]
    assert server.received > 3
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "spec.json").write_text("{")
    assert leaks(displayed(f"import streamlit as st\nst.write('{CANARY}')"))
    names = sorted(path.stem for path in SCREENS.glob("[a-z]*.py"))
    assert len(names) >= 6
    pages = {name: displayed(PAGE.format(name=name), runs=["a", "b"]) for name in names}
    pages["an error"] = displayed(PAGE.format(name="explore"), runs=["broken"])
    assert b"[key]" in b"".join(pages.values())  # what the server repeated is on a page
    shown = {"run": runs[0]._repr_html_(), "compare": ek.compare(*runs)._repr_html_(), "repr": repr(runs[0])}
    pages |= {name: text.encode() for name, text in shown.items()}
    assert {name: spelling for name, page in pages.items() if (spelling := leaks(page))} == {}
