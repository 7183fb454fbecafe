"""Typos in the words of a frame, never in what decides the answer.

A typo changes one place inside a word (the first and the last letter stay as they are), and a word gets one
typo at the most.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache

from msgspec import Struct, structs

from evenkeel.benchmarks.miron.make.frames import Draft, Span, read_bank
from evenkeel.make.grammar import pick, shuffled

LONG = 4
"""Letters from which a word is preferred: shorter ones are hard to read with a typo in them."""


class Keys(Struct, frozen=True):
    """What lies beside a letter on the keyboard, and what looks like it in the other alphabet."""

    neighbours: dict[str, str]
    lookalikes: dict[str, str]
    avoid: tuple[str, ...] = ()
    """What a typo must not bring about: parts of rude words."""


@cache
def keys(lang: str) -> Keys:
    found: Keys = read_bank(lang, "noise", Keys)
    return structs.replace(found, avoid=tuple(read_bank(lang, "sounds")["avoid"]))


def swap(word: str, at: int, keys: Keys, rng: random.Random) -> str | None:
    """capital → captial; the last letter keeps its place."""
    one, two = word[at], word[at + 1]
    return None if one == two or at + 2 == len(word) else word[:at] + two + one + word[at + 2 :]


def drop(word: str, at: int, keys: Keys, rng: random.Random) -> str | None:
    """capital → captal"""
    return word[:at] + word[at + 1 :]


def double(word: str, at: int, keys: Keys, rng: random.Random) -> str | None:
    """capital → cappital"""
    return word[: at + 1] + word[at:]


def neighbour(word: str, at: int, keys: Keys, rng: random.Random) -> str | None:
    """capital → capotal"""
    beside = keys.neighbours.get(word[at])
    return word[:at] + pick(beside, rng) + word[at + 1 :] if beside else None


def case(word: str, at: int, keys: Keys, rng: random.Random) -> str | None:
    """capital → capItal"""
    return word[:at] + word[at].swapcase() + word[at + 1 :]


def lookalike(word: str, at: int, keys: Keys, rng: random.Random) -> str | None:
    """capital → cаpital, with a Cyrillic а"""
    alike = keys.lookalikes.get(word[at])
    return word[:at] + alike + word[at + 1 :] if alike else None


EDITS: Mapping[str, Callable[[str, int, Keys, random.Random], str | None]] = {
    "swap": swap,
    "drop": drop,
    "double": double,
    "neighbour": neighbour,
    "case": case,
    "lookalike": lookalike,
}


def typo(word: str, kind: str, keys: Keys, rng: random.Random, words: Collection[str] = ()) -> str | None:
    """The word with one edit of a kind somewhere inside, or None where there is no place for it.

    A typo must not make another of the `words`: "three" is no typo of "there".
    """
    for at in shuffled(range(1, len(word) - 1), rng):
        edited = EDITS[kind](word, at, keys, rng)
        if edited and edited not in words and not _rude(edited, word, keys):
            return edited
    return None


def _rude(edited: str, word: str, keys: Keys) -> bool:
    return any(part in edited.lower() and part not in word.lower() for part in keys.avoid)


def noisy(
    draft: Draft, kinds: Sequence[str], keys: Keys, rng: random.Random, words: Collection[str]
) -> tuple[str, tuple[str, ...]] | None:
    """The prefix with an edit of each kind, and the kinds from left to right; None where they do not fit."""
    by_length = sorted(shuffled(draft.free, rng), key=lambda span: span[1] - span[0] < LONG)
    edits: dict[Span, tuple[str, str]] = {}
    for kind in kinds:
        for span in by_length:
            word = draft.prefix[slice(*span)]
            if span not in edits and (edited := typo(word, kind, keys, rng, words)):
                edits[span] = kind, edited
                break
        else:
            return None
    prefix, end = "", 0
    for span, (_, edited) in sorted(edits.items()):
        prefix += draft.prefix[end : span[0]] + edited
        end = span[1]
    return prefix + draft.prefix[end:], tuple(kind for _, (kind, _) in sorted(edits.items()))
