"""Where in a reply, as it was written, the words are that the lenient check reads.

The check reads a text in which numbers, dates, spellings and gaps are made equal. Its words are put beside
those of the reply, and a word that was changed lies between those around it.
"""

from __future__ import annotations

from collections.abc import Sequence

from evenkeel.benchmarks.rgb.check.lenient import LONGEST
from evenkeel.benchmarks.rgb.check.normalization import Word
from evenkeel.benchmarks.rgb.check.wording import simplified
from evenkeel.page.differences import Word as LocatedWord
from evenkeel.page.differences import located_words, matching
from evenkeel.text.word_splitting import normalized

MOST_WORDS = 3_000
"""Words of a reply that are located; marks in the rest of it are left out."""


def locate(reply: str, words: Sequence[Word]) -> list[tuple[int, int]]:
    """From where to where each of the first words goes in the reply."""
    pieces = _pieces(reply)
    words = words[:MOST_WORDS]
    blocks = matching([word.text for word in words], [_folded(piece.text) for piece in pieces])
    # The pieces that each word is made of: one where they are equal, all between equal ones otherwise.
    bounds: list[tuple[int, int]] = []
    position = piece = 0
    for start, piece_start, size in [*blocks, (len(words), len(pieces), 0)]:
        bounds += [(piece, piece_start)] * (start - position)
        bounds += [(piece_start + offset, piece_start + offset + 1) for offset in range(size)]
        position, piece = start + size, piece_start + size
    ends = [0, *(word.end for word in pieces)]
    return [
        (pieces[first].start, pieces[last - 1].end) if first < last else (ends[first], ends[first])
        for first, last in bounds
    ]


def _pieces(reply: str) -> list[LocatedWord]:
    """The words of a reply as they are written: of one without end, those of its two ends."""
    if len(reply) <= LONGEST:
        return located_words(reply, MOST_WORDS)
    half = LONGEST // 2
    return located_words(reply, MOST_WORDS, end=half) + located_words(reply, MOST_WORDS, len(reply) - half)


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else simplified(normalized("NFKC", text)).lower()


def joined(ranges: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """One range over several; None where there is nothing in it."""
    filled = [(start, end) for start, end in ranges if start < end]
    if not filled:
        return None
    return min(start for start, _ in filled), max(end for _, end in filled)
