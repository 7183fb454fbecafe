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
_WORD_BEGIN, _WORD_END = re.compile("[A-Za-z0-9]+"), re.compile("[A-Za-z0-9]+$")
_SHORT = {"not": "(?:not|n't)", "cannot": "can(?:not| not|'t)", "will": "w(?:ill|o)"}
"""Words that may be contracted."""


def quotation(text: str, words: Sequence[Word], start: int, end: int) -> str:
    """The words from `start` to `end` as the text has them; all of a short text where they are not found."""
    listed = words[start : min(end, start + MOST_WORDS)]
    folded = _folded(text)
    # What comes before says which of several equal phrases is meant.
    for pattern in (_as_written, _pattern):
        for before in (words[max(0, start - 2) : start], []):
            lead = "".join(pattern(word) + _GAP for word in before)
            match = re.search(f"{lead}(?P<quoted>{_GAP.join(map(pattern, listed))})", folded)
            if match:
                return _whole_words(text, *match.span("quoted"))
    return text.strip()


def _whole_words(text: str, start: int, end: int) -> str:
    """A part of a text with the rest of the words at its ends: "330 m" in "330 metres" is "330 metres"."""
    before, after = _WORD_END.search(text[:start]), _WORD_BEGIN.match(text, end)
    first = before.start() if before and _WORD_BEGIN.match(text, start) else start
    return text[first : after.end() if after and _WORD_END.search(text[:end]) else end]


def _as_written(word: Word) -> str:
    if not word.number:
        return _pattern(word)
    digits = rf"(?<!\d)0?{re.escape(word.text.lstrip('md'))}(?!\d)[年月日号]?"
    return f"(?:{digits}|[a-z]{{3,9}})" if word.text[0] == "m" else digits  # m12 is December


def _pattern(word: Word) -> str:
    if word.number:
        # A number may have been written in words.
        return r"(?<![A-Za-z0-9])[^\n]{1,24}?(?![A-Za-z0-9])"
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
