"""Results that show themselves: by a renderer that is registered for their class, or by their fields."""

from __future__ import annotations

import pytest
from msgspec import Struct

from evenkeel.page.notebook import RENDERERS, Displayed, Renderer


class Verdict(Displayed, Struct, frozen=True):
    text: str


def test_without_a_renderer_the_fields_are_shown_as_text() -> None:
    verdict = Verdict("<b>")
    assert repr(verdict) == "Verdict(text='<b>')"
    assert verdict._repr_html_() == "<pre>Verdict(text=&#x27;&lt;b&gt;&#x27;)</pre>"


def test_a_registered_renderer_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RENDERERS, "Verdict", Renderer(html=lambda verdict: f"<p>{len(verdict.text)}</p>"))
    assert Verdict("abc")._repr_html_() == "<p>3</p>"
    assert repr(Verdict("abc")) == "Verdict(text='abc')"
    renderer = Renderer(html=lambda verdict: "", text=lambda verdict: f"<{verdict.text}>")
    monkeypatch.setitem(RENDERERS, "Verdict", renderer)
    assert repr(Verdict("abc")) == "<abc>"
