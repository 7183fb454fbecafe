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
    words: list[Word] = []
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
    return mutual_differences(text, other, letters=letters)[0]


def mutual_differences(first: str, second: str, *, letters: bool = False) -> tuple[Differences, Differences]:
    """Of two texts, the words that the other does not have: what is left of both is the same."""
    listed = [_first_words(text, letters) for text in (first, second)]
    whole = max(map(len, listed)) <= MOST_WORDS
    words, others = (each[:MOST_WORDS] for each in listed)
    blocks = matching([word.text for word in words], [word.text for word in others])
    total, equal = len(words) + len(others), sum(size for _, _, size in blocks)
    share = 2 * equal / total if total else 1.0
    return (
        Differences(_outside(words, [(start, size) for start, _, size in blocks]), share, whole),
        Differences(_outside(others, [(start, size) for _, start, size in blocks]), share, whole),
    )


def _outside(words: Sequence[Word], blocks: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges of the text between blocks of words, each of which has a start and a size."""
    ranges = []
    position = 0
    for start, size in [*blocks, (len(words), 0)]:
        if position < start:
            ranges.append((words[position].start, words[start - 1].end))
        position = start + size
    return ranges


def marked(ranges: Sequence[tuple[int, int]], kind: str, title: str) -> tuple[Span, ...]:
    return tuple(Span(start, end, kind, title) for start, end in ranges)


def side_by_side(
    heading: str, first: tuple[str, str], second: tuple[str, str], *, letters: bool = False
) -> Beside:
    """Two texts, each with its name, with the words (or letters) marked that the other does not have."""
    results = mutual_differences(first[1], second[1], letters=letters)
    columns = []
    for (name, text), (other, _), result in zip((first, second), (second, first), results, strict=True):
        unit = "letters" if letters else "words"
        note = "" if result.whole else f"Compared: the first {MOST_WORDS:,} {unit}."
        columns.append(Text(name, text, marked(result.ranges, "differs", f"not in {other}"), note=note))
    return Beside(heading, tuple(columns))
