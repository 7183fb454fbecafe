"""What files of others do not state: the language of a row, and the clean version of one with typos."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from evenkeel.benchmarks.miron.files import Example

SCRIPTS = {
    "en": re.compile(r"[A-Za-z\u00c0-\u024f]"),
    "ru": re.compile(r"[\u0400-\u052f]"),
}
"""The letters of each language's script."""
NEAR = 0.2
"""Edits between a prefix with typos and its clean version, as a share of the characters."""
FEW = 2
"""Edits that are near however short a prefix is: two letters that changed places are two."""
MOST_CANDIDATES, LONGEST_PREFIX = 1000, 5000
"""Beyond these a clean version is not searched for: the time is linear in the rows."""


def script_of(text: str) -> str | None:
    """The language whose script most letters of a text are in; None where there are as many of each."""
    counts = {lang: len(letters.findall(text)) for lang, letters in SCRIPTS.items()}
    most = max(counts, key=lambda lang: counts[lang])
    return most if counts[most] > min(counts.values()) else None


def language(script: str, stated: str | None) -> str:
    """The language of a row: what its file states, unless the row is written in the other script."""
    return stated if stated and stated not in SCRIPTS else script


def with_clean_versions(examples: Sequence[Example]) -> list[Example]:
    """The examples, those with typos that name no clean version with the one that their text tells.

    That is the example without typos in the same language, with the same target, whose prefix is fewest
    edits away: near, and nearer than any other.
    """
    clean: defaultdict[tuple[str, str], list[Example]] = defaultdict(list)
    for example in examples:
        if example.category != "Noise":
            clean[example.lang, example.target].append(example)
    return [
        replace(example, clean_id=clean_id, clean_by_text=True)
        if example.category == "Noise"
        and not example.clean_id
        and (clean_id := _closest(example.prefix, clean[example.lang, example.target]))
        else example
        for example in examples
    ]


def _closest(prefix: str, candidates: Sequence[Example]) -> str:
    """The id of the only candidate with the closest prefix; empty where there is none near enough."""
    from rapidfuzz.distance import Levenshtein

    if len(candidates) > MOST_CANDIDATES or len(prefix) > LONGEST_PREFIX:
        return ""
    near = max(FEW, int(NEAR * len(prefix)))
    by_distance: defaultdict[int, list[str]] = defaultdict(list)
    for candidate in candidates:
        if abs(len(candidate.prefix) - len(prefix)) <= near:
            edits = Levenshtein.distance(prefix, candidate.prefix, score_cutoff=near)
            by_distance[edits].append(candidate.id)
    fewest = min(by_distance, default=near + 1)
    return by_distance[fewest][0] if fewest <= near and len(by_distance[fewest]) == 1 else ""
