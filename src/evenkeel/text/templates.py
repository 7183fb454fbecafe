"""Prompts with places to fill in: `{QUERY}`, `{DOCS}`."""

from __future__ import annotations

import re


def filled(template: str, **values: str) -> str:
    """A template with its places filled in one pass, so that braces in a document stay what they are."""
    return re.sub(r"\{([A-Z_]+)\}", lambda place: values.get(place[1], place[0]), template)
