"""What files of others do not state: the language of a row, and the clean version of one with typos."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

if TYPE_CHECKING:
    from sealegs.benchmarks.miron.data import Example

SCRIPTS = {
    "en": re.compile(r"[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f]"),
    "ru": re.compile(r"[\u0400-\u052f]"),
}
"""Latin and Cyrillic letters, by the language that they stand for where none is stated."""
NEAR = 0.2
"""Edits between a prefix with typos and its clean version, as a share of the characters."""
FEW = 2
"""Edits that are near however short a prefix is."""
MOST_EDITS = 3
"""Edits in a word, and at most one for each three letters: with more it is another word."""


def script_of(text: str) -> str | None:
    """The language whose script most letters of a text are in; None where there are as many of each."""
    latin, cyrillic = (len(letters.findall(text)) for letters in SCRIPTS.values())
    return None if latin == cyrillic else "en" if latin > cyrillic else "ru"


def language(script: str, stated: str | None) -> str:
    """The language of a row: what its file states, unless the row is written in another script."""
    return script if stated is None or (stated in SCRIPTS and stated != script) else stated


def changed(example: Example) -> bool:
    """Whether it is another example with typos, or changed in another way."""
    return example.category == "Noise" or bool(example.clean_id)


def with_clean_versions(examples: Sequence[Example]) -> list[Example]:
    """The examples, those with typos that name no clean version with the one that their text tells.

    That is the example without typos in the same language, with the same target and the same numbers, from
    whose prefix that with typos differs by a few letters inside of words alone: by fewer than any other.
    """
    clean: defaultdict[tuple[str, str, tuple[str, ...]], list[_Candidate]] = defaultdict(list)
    vocabulary: set[str] = set()
    for example in examples:
        if not changed(example):
            words = example.prefix.split()
            vocabulary.update(_bare(word) for word in words)
            clean[_key(example)].append(_Candidate(example.id, words))
    return [
        replace(example, clean_id=clean_id, clean_by_text=True)
        if example.category == "Noise"
        and not example.clean_id
        and (clean_id := _closest(example.prefix, clean[_key(example)], vocabulary))
        else example
        for example in examples
    ]


class _Candidate(NamedTuple):
    id: str
    words: list[str]


def _key(example: Example) -> tuple[str, str, tuple[str, ...]]:
    return example.lang, example.target, tuple(re.findall(r"\d+", example.prefix))


def _bare(word: str) -> str:
    return re.sub(r"\W+", "", word).casefold()


def _closest(prefix: str, candidates: Sequence[_Candidate], vocabulary: Set[str]) -> str:
    """The id of the only candidate with the closest prefix; empty where there is none near enough."""
    words = prefix.split()
    near = max(FEW, int(NEAR * len(prefix)))
    by_distance: defaultdict[int, list[str]] = defaultdict(list)
    for candidate in candidates:
        if (edits := _edits(words, candidate.words, near, vocabulary)) is not None:
            by_distance[edits].append(candidate.id)
    if not by_distance:
        return ""
    closest = by_distance[min(by_distance)]
    return closest[0] if len(closest) == 1 else ""


def _edits(words: list[str], clean: list[str], near: int, vocabulary: Set[str]) -> int | None:
    """The edits between two prefixes; None where they are too many, or where a word is another word.

    Where a space was lost or added, all between the equal words at both ends is compared as one word.
    """
    from rapidfuzz.distance import OSA

    if len(words) != len(clean):
        shorter = min(len(words), len(clean))
        start = next((i for i in range(shorter) if words[i] != clean[i]), shorter)
        rest = shorter - start
        end = next((i for i in range(rest) if words[-1 - i] != clean[-1 - i]), rest)
        words, clean = (["".join(each[start : len(each) - end])] for each in (words, clean))
    edits = 0
    for word, clean_word in zip(words, clean, strict=True):
        if word == clean_word:
            continue
        bare, most = _bare(word), max(1, min(MOST_EDITS, len(clean_word) // 3))
        edits += (distance := OSA.distance(word, clean_word, score_cutoff=most))
        if distance > most or edits > near or (bare in vocabulary and bare != _bare(clean_word)):
            return None
    return edits
