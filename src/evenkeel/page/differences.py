"""Where a text differs from another, word by word, in bounded time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from evenkeel.page.view import Beside, Span, Text

MOST_WORDS = 2_000
"""Words of a text that are compared: the time grows with the product of both numbers."""
_WORD = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    r"\U00020000-\U0003134f]"  # scripts without spaces between words: letter by letter
    r"|[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    r"\U00020000-\U0003134f]+|[^\w\s]"
)


class Word(NamedTuple):
    """A word, a punctuation mark, or a letter of a script without spaces, and where it is."""

    text: str
    start: int
    end: int


class Differences(NamedTuple):
    """Which words of a text are not in another, in the same order."""

    ranges: list[tuple[int, int]]
    """Where they are: from, and up to, a character."""
    shared: float
    """The share of the words that are in both, of all words of both."""
    whole: bool
    """False where only the first MOST_WORDS words of a text were compared."""


def located_words(text: str, most: int = MOST_WORDS, start: int = 0, end: int | None = None) -> list[Word]:
    """The first words of a text, at most so many."""
    words = []
    for match in _WORD.finditer(text, start, len(text) if end is None else end):
        if len(words) == most:
            break
        words.append(Word(match[0], match.start(), match.end()))
    return words


def matching(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int, int]]:
    """Runs of equal items of the longest common subsequence: where each begins in both, and its length."""
    from rapidfuzz.distance import Indel

    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(item, len(numbers)) for item in items] for items in (first, second)]
    blocks = Indel.opcodes(*rows).as_matching_blocks()
    return [(block.a, block.b, block.size) for block in blocks if block.size]


@lru_cache(maxsize=8)
def _first_words(text: str, letters: bool) -> list[Word]:
    """One more than are compared, and kept: several texts are compared with the same one."""
    if letters:
        return [Word(letter, at, at + 1) for at, letter in enumerate(text[: MOST_WORDS + 1])]
    return located_words(text, MOST_WORDS + 1)


def differences(text: str, other: str, *, letters: bool = False) -> Differences:
    """The words of `text` that are not in `other`, or its letters."""
    words, others = _first_words(text, letters), _first_words(other, letters)
    whole = max(len(words), len(others)) <= MOST_WORDS
    words, others = words[:MOST_WORDS], others[:MOST_WORDS]
    equal = [False] * len(words)
    for start, _, size in matching([word.text for word in words], [word.text for word in others]):
        equal[start : start + size] = [True] * size
    ranges: list[tuple[int, int]] = []
    for position, word in enumerate(words):
        if equal[position]:
            continue
        if ranges and position and not equal[position - 1]:
            ranges[-1] = (ranges[-1][0], word.end)
        else:
            ranges.append((word.start, word.end))
    total = len(words) + len(others)
    return Differences(ranges, 2 * sum(equal) / total if total else 1.0, whole)


def marked(ranges: Sequence[tuple[int, int]], kind: str, title: str) -> tuple[Span, ...]:
    return tuple(Span(start, end, kind, title) for start, end in ranges)


def side_by_side(
    heading: str, first: tuple[str, str], second: tuple[str, str], *, letters: bool = False
) -> Beside:
    """Two texts, each with its name, with the words (or letters) marked that the other does not have."""
    columns = []
    for (name, text), (other_name, other) in ((first, second), (second, first)):
        result = differences(text, other, letters=letters)
        unit = "letters" if letters else "words"
        note = "" if result.whole else f"Compared: the first {MOST_WORDS:,} {unit}."
        spans = marked(result.ranges, "differs", f"not in {other_name}")
        columns.append(Text(name, text, spans, note=note))
    return Beside(heading, tuple(columns))
