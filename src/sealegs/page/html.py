"""HTML from the templates of the package: escaped throughout, with filters that write figures."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from sealegs.page import format as text
from sealegs.page.grid import Cell, Content, Overview, beside, plain_cell
from sealegs.page.scale import Scale, numbered


def render(template: str, **values: Any) -> str:
    """A template by its path in the package: `report/page.html`."""
    return _environment().get_template(template).render(**values)


def overview_page(overview: Overview) -> str:
    """An overview as a page of its own."""
    return render("report/overview.html", title=overview.title, overview=overview)


def compile_templates() -> None:
    """Compile all templates of the package, so that the first page does not wait for it."""
    for name in _environment().list_templates(["html"]):
        _environment().get_template(name)


@cache
def _environment() -> Environment:
    """Everything that is put into a template is escaped, and a missing value is an error."""
    environment = Environment(
        loader=PackageLoader("sealegs", ""),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (
        *(text.capitalised, text.escape_controls, text.interval_words, text.share, text.spaces_shown),
        *(text.number, text.signed, text.statuses, text.value, beside, cell, classes, numbered, sentence),
    )
    environment.filters.update({each.__name__: each for each in filters})
    environment.policies["json.dumps_function"] = _dumped
    environment.tests["scale"] = lambda content: isinstance(content, Scale)
    environment.globals.update(floor=text.FLOOR, base="report/base.html")
    return environment


def _dumped(value: Any, **_: Any) -> str:
    """JSON for `tojson`, which escapes what could end a script."""
    return msgspec.json.encode(value).decode()


FLAG = re.compile("--[a-z][a-z0-9-]*")


def sentence(words: str) -> Markup:
    """An escaped text in which no flag of a command is broken at the end of a line."""
    escaped = str(escape(text.escape_controls(words)))
    return Markup(FLAG.sub(r'<span style="white-space: nowrap">\g<0></span>', escaped))  # noqa: S704


WORDS = 30
"""Letters of a cell beyond which it is broken into lines."""
PLAIN = Markup("")


def classes(words: str, left: bool = False, style: str = "", parts: bool = False) -> Markup:
    """The attribute of a cell that says how it looks; in Python, as there are thousands of cells."""
    style = style if style in ("soft", "warn") else ""
    names = ("left" if left else "", "parts" if parts else "", "words" if len(words) > WORDS else "", style)
    present = " ".join(filter(None, names))
    return Markup(f' class="{present}"') if present else PLAIN  # noqa: S704  # of names that are ours


def cell(content: Content) -> Cell:
    return content if isinstance(content, Cell) else Cell(plain_cell(content))
