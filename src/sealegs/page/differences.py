"""Where a text differs from another, word by word, in bounded time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from sealegs.page.view import Beside, Span, Text

MOST_COMPARED_WORDS = 2_000
"""Words of a text that are compared: the time grows with the product of both numbers."""
_NO_SPACES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003134f"
)
"""Scripts without spaces between words."""
_WORD = rf"([^\W{_NO_SPACES}]+|[{_NO_SPACES}]|[^\w\s])"

_LETTER = "(?s)(.)"


class SplitWords(NamedTuple):
    """Words, punctuation marks, letters of a script without spaces, and where each begins and ends."""

    texts: Sequence[str]
    starts: Sequence[int]
    ends: Sequence[int]


class Differences(NamedTuple):
    """Which words of a text are not in another, in the same order."""

    ranges: list[tuple[int, int]]
    """Where they are: from, and up to, a character."""
    shared: float
    """The share of the words that are in both, of all words of both."""
    whole: bool
    """False where only the first MOST_WORDS words of a text were compared."""


def located_words(text: str, most: int = MOST_COMPARED_WORDS, word: str = _WORD) -> SplitWords:
    """The first words of a text, at most so many."""
    parts = re.split(word, text, maxsplit=most)  # what is between words, and the words
    ends = list(accumulate(map(len, parts)))
    return SplitWords(parts[1::2], ends[:-1:2], ends[1::2])


@lru_cache(maxsize=8)
def _first_words(text: str, letters: bool) -> SplitWords:
    """One more than are compared, and kept: several texts are compared with the same one."""
    return located_words(text, MOST_COMPARED_WORDS + 1, _LETTER if letters else _WORD)


def differences(text: str, other: str, *, letters: bool = False) -> Differences:
    """The words of `text` that are not in `other`, or its letters."""
    return mutual_differences(text, other, letters=letters)[0]


def mutual_differences(first: str, second: str, *, letters: bool = False) -> tuple[Differences, Differences]:
    """Of two texts, the words that the other does not have: what is left of both is the same."""
    from rapidfuzz.distance import Indel

    words, others = (_first_words(text, letters) for text in (first, second))
    whole = max(len(words.texts), len(others.texts)) <= MOST_COMPARED_WORDS
    compared = words.texts[:MOST_COMPARED_WORDS], others.texts[:MOST_COMPARED_WORDS]
    # Runs of equal words of the longest common subsequence; the last one is empty, at the end of both.
    blocks = Indel.opcodes(*compared).as_matching_blocks()
    total, equal = sum(map(len, compared)), sum(block.size for block in blocks)
    share = 2 * equal / total if total else 1.0
    return (
        Differences(_outside(words, [(block.a, block.size) for block in blocks]), share, whole),
        Differences(_outside(others, [(block.b, block.size) for block in blocks]), share, whole),
    )


def _outside(words: SplitWords, blocks: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges of the text between blocks of words, each of which has a start and a size."""
    ranges = []
    position = 0
    for start, size in blocks:
        if position < start:
            ranges.append((words.starts[position], words.ends[start - 1]))
        position = start + size
    return ranges


def marked(ranges: Sequence[tuple[int, int]], kind: str, title: str) -> tuple[Span, ...]:
    return tuple(Span(start, end, kind, title) for start, end in ranges)


def diff_columns(
    heading: str, first: tuple[str, str], second: tuple[str, str], *, letters: bool = False
) -> Beside:
    """Two texts, each with its name, with the words (or letters) marked that the other does not have."""
    results = mutual_differences(first[1], second[1], letters=letters)
    columns = []
    for (name, text), (other, _), result in zip((first, second), (second, first), results, strict=True):
        unit = "letters" if letters else "words"
        note = "" if result.whole else f"Compared: the first {MOST_COMPARED_WORDS:,} {unit}."
        columns.append(Text(name, text, marked(result.ranges, "differs", f"not in {other}"), note=note))
    return Beside(heading, tuple(columns))
