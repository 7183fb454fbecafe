"""The exact words of a reply that normalised words stand for."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from sealegs.text.answer_search.normalization import Word
from sealegs.text.answer_search.spelling import simplified_characters

MOST_WORDS = 24
"""Words of a quotation."""
_GAP = r"[\W_]{0,6}(?:(?:the|an|a)\b[\W_]{0,3})?"
_SHORT = {"not": "(?:not|n't)", "cannot": "can(?:not| not|'t)", "will": "w(?:ill|o)"}
"""Words that may be contracted."""


def quotation(text: str, words: Sequence[Word], start: int, end: int) -> str:
    """The words from `start` to `end` as the text has them; all of a short text where they are not found."""
    listed = words[start : min(end, start + MOST_WORDS)]
    folded = _folded(text)
    # What comes before says which of several equal phrases is meant.
    for before in (words[max(0, start - 2) : start], []):
        lead = "".join(_pattern(word) + _GAP for word in before)
        match = re.search(f"{lead}(?P<quoted>{_GAP.join(map(_pattern, listed))})", folded)
        if match:
            return text[match.start("quoted") : match.end("quoted")]
    return text.strip()


def _pattern(word: Word) -> str:
    if word.number:
        return r"[^\n]{1,24}?"  # a number may have been written in words
    text = word.cased.lower()
    return _SHORT.get(text, re.escape(text))


def _folded(text: str) -> str:
    """A text in small letters without accents and in simplified characters, each at its place."""
    if text.isascii():
        return text.lower()
    return simplified_characters("".join(map(_letter, text)))


def _letter(letter: str) -> str:
    if letter in "\u2018\u2019\u02bc":
        return "'"
    plain = unicodedata.normalize("NFKD", letter)[:1].lower()
    return plain if len(plain) == 1 else letter
