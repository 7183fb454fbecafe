"""A metric explained: what it says, its formula, where that is from, and what to be careful about."""

from __future__ import annotations

from msgspec import Struct

from evenkeel.page.notebook import Displayed


class Explained(Displayed, Struct, frozen=True, kw_only=True):
    """One metric of a benchmark, in words."""

    name: str
    """As it is declared; `*` matches any text: `rejected_*`."""
    title: str
    what: str
    formula: str
    """On one line, as the code computes it, and how its interval is made."""
    source: str
    careful: str
