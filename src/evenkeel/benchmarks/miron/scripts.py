"""The language of a row that does not state it: by the letters that it is written in."""

from __future__ import annotations

import re

SCRIPTS = {
    "en": re.compile(r"[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f]"),
    "ru": re.compile(r"[\u0400-\u052f]"),
}
"""Latin and Cyrillic letters, by the language that they stand for where none is stated."""


def script_of(text: str) -> str | None:
    """The language whose script most letters of a text are in; None where there are as many of each."""
    latin, cyrillic = (len(letters.findall(text)) for letters in SCRIPTS.values())
    return None if latin == cyrillic else "en" if latin > cyrillic else "ru"


def language(script: str, stated: str | None) -> str:
    """The language of a row: what its file states, unless the row is written in another script."""
    return script if stated is None or (stated in SCRIPTS and stated != script) else stated
