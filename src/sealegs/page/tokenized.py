"""Tokenizers compared on the same texts, as a benchmark gives them to be shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from sealegs.page.grid import Displayed, Grid
from sealegs.page.layout import Bars
from sealegs.types import Summary


class Illustration(NamedTuple):
    """A text, and the tokens that each tokenizer makes of it; None where what they spell is not known."""

    lang: str
    category: str
    text: str
    tokens: list[list[str] | None]


class Tokenized(Displayed, Struct, frozen=True, kw_only=True):
    """The figures of each tokenizer, a few texts as its tokens, and what had to be assumed of some."""

    summaries: dict[str, Summary]
    """By the spec of each tokenizer."""
    names: Sequence[str]
    """What each is called where it is shown."""
    verdict: str
    pictures: Sequence[Bars]
    grids: Sequence[Grid]
    illustrations: Sequence[Illustration]
    notes: Sequence[str]
    cautions: Sequence[str]
