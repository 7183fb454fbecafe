"""A linear classifier of replies: does one decline, report an error, give the right answer that is in it?

It reads n-grams of two rows: the letters of the reply's word classes (`wording`), and its words, where
answers, names, numbers and words of the question are masked, so that what counts is how a thing is said.
Sentences are read without their filling words too, for what belongs together is often far apart. The n-grams
are hashed into a table of weights, which `tools/train_check.py` learns from the labelled replies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from evenkeel.benchmarks.rgb.check.wording import Reading, Token
from evenkeel.files.package_data import data_path

BITS = 17
"""The n-grams share 2 ** BITS weights."""
LETTERS = (1, 2, 3, 4, 5)
WORDS = (1, 2, 3)
ENDS = (1, 2, 3)
"""The lengths of n-grams: of letters, of words, and of both in the first and the last sentence."""
FILLING = frozenset("wzxBpWoO,")
"""The letters of words that only fill a sentence."""
TELLING = (3, 4)
REACH = 4
"""Of the other letters of a sentence: the lengths of n-grams, and how far apart the two of a pair may be."""
CLEAR = 3.5
"""The score from which a reply declines though it gives the answer, and gives it though it declines."""
FLAGS = 4
"""Weights behind those of the n-grams: of the flags, and a constant."""
DECISIONS = ("rejected", "detected", "right")

Weights: TypeAlias = dict[str, NDArray[np.float32]]


class Flags(NamedTuple):
    """What was looked up in the reply, not how it is worded."""

    states_fake: bool
    some_parts: bool
    all_parts: bool


class Scores(NamedTuple):
    rejected: float
    detected: float
    right: float


class Decisions(NamedTuple):
    rejected: bool
    detected: bool
    right: bool
    """All parts of the right answer are in it, and it gives them as its answer."""


def scores(reading: Reading, flags: Flags) -> Scores:
    """How far the wording speaks for each decision: above 0 it does."""
    indices, values = features(reading, flags)
    table = weights()
    return Scores(*(float(table[decision][indices] @ values) for decision in DECISIONS))


def decide(reading: Reading, flags: Flags) -> Decisions:
    rejected, detected, right = scores(reading, flags)
    # Few replies decline and give the answer: unless both are clear, what is said more clearly holds.
    is_right = flags.all_parts and right > min(max(0, rejected), CLEAR)
    declines = rejected > (CLEAR if is_right else 0)
    return Decisions(declines, detected > 0, is_right)


def telling_sentence(reading: Reading, flags: Flags, decision: str) -> str:
    """The words of the sentence that by itself speaks most for a decision."""
    sentences: dict[int, list[Token]] = {}
    for token in reading.tokens:
        if token.start < token.end:
            sentences.setdefault(reading.words[token.start].sentence, []).append(token)

    def score(number: int) -> float:
        return float(getattr(scores(Reading(sentences[number], reading.words), flags), decision))

    telling = max(sentences, key=score, default=0)
    return " ".join(word.cased for word in reading.words if word.sentence == telling)


def features(reading: Reading, flags: Flags) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """The positions of the weights that a reply needs, and what each is multiplied by: for an n-gram
    1 + log(count), over the length of the vector of these, so that a long reply counts like a short one."""
    counts = Counter(crc32(gram.encode()) % 2**BITS for gram in ngrams(reading))
    scores = 1 + np.log(np.fromiter(counts.values(), np.float32, len(counts)))
    scores /= np.sqrt(scores @ scores) if len(scores) else 1
    indices = np.array([*counts, *range(2**BITS, 2**BITS + FLAGS)], np.intp)
    return indices, np.concatenate([scores, np.array([*flags, 1], np.float32)])


def ngrams(reading: Reading) -> Iterator[str]:
    letters, masked = list(reading.letters), _masked(reading)
    for tag, row, lengths in (("c", letters, LETTERS), ("w", masked, WORDS)):
        yield from _ngrams(tag, [".", *row, "."], lengths)
        sentences = _sentences(row)
        yield from _ngrams(f"{tag}f", ["^", *sentences[0], "$"], ENDS)
        yield from _ngrams(f"{tag}l", ["^", *sentences[-1], "$"], ENDS)
    yield from _telling(letters)


def _telling(letters: Sequence[str]) -> Iterator[str]:
    """N-grams and pairs of a sentence's letters without those of its filling words."""
    for sentence in _sentences(letters):
        row = [letter for letter in sentence if letter not in FILLING]
        yield from _ngrams("t", row, TELLING)
        for start, first in enumerate(row):
            for second in row[start + 1 : start + 1 + REACH]:
                yield f"p{first}{second}"


def _ngrams(tag: str, row: Sequence[str], lengths: Sequence[int]) -> Iterator[str]:
    for length in lengths:
        for start in range(len(row) - length + 1):
            yield tag + "\x1f".join(row[start : start + length])


def _masked(reading: Reading) -> list[str]:
    """The words of a reply, a phrase as one; what is its content, and not its wording, as a single letter."""
    row: list[str] = []
    for token in reading.tokens:
        first = reading.words[token.start] if token.start < len(reading.words) else None
        if token.letter in ".,GKQM#" or first is None:
            row.append(token.letter)
        else:
            row.append("_".join(word.text for word in reading.words[token.start : token.end]))
    return row


def _sentences(row: Sequence[str]) -> list[list[str]]:
    sentences: list[list[str]] = [[]]
    for item in row:
        if item == ".":
            sentences.append([])
        else:
            sentences[-1].append(item)
    return [sentence for sentence in sentences if sentence] or [[]]


@cache
def weights() -> Weights:
    with np.load(data_path(__package__, "weights.npz"), allow_pickle=False) as file:
        return {decision: file[decision].astype(np.float32) for decision in DECISIONS}
