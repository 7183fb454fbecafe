"""Results that show themselves at Python's prompt and in a notebook; `report/notebook.py` says how."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T", bound="Displayed")


class Renderer(NamedTuple):
    html: Callable[[Any], str]
    text: Callable[[Any], str] | None = None
    """What `repr` gives; the fields of the class where it is None."""


RENDERERS: dict[str, Renderer] = {}
"""By the name of a class, so that registering a renderer does not import the class."""


class Displayed:
    """Shown as text by `repr` and as a block of HTML in a notebook."""

    __slots__ = ()

    def __repr__(self) -> str:
        renderer = RENDERERS.get(type(self).__name__)
        return renderer.text(self) if renderer and renderer.text else super().__repr__()

    def _repr_html_(self) -> str:
        renderer = RENDERERS.get(type(self).__name__)
        return renderer.html(self) if renderer else f"<pre>{escape(repr(self))}</pre>"


class DisplayedList(list[T]):
    """A list of such results, shown in a notebook one below the other."""

    def _repr_html_(self) -> str:
        return "\n".join(each._repr_html_() for each in self)
