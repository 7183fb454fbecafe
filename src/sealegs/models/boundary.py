"""Where a continuation begins among the tokens of prefix + continuation: one rule for every backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

PROBES = ("", "a", "1", "?", "я", "中")
"""Texts whose last tokens differ: what all of them end with, the tokenizer appended."""


class Boundary(NamedTuple):
    start: int
    """The first of the continuation's tokens, as an index into the tokens of prefix + continuation."""
    merged: bool
    """Whether the prefix alone has other tokens than at the beginning of prefix + continuation."""


def find_boundary(prefix: Sequence[Any], whole: Sequence[Any]) -> Boundary:
    """The published rule: the continuation begins after as many tokens as the prefix alone has.

    `prefix` holds the tokens of the prefix tokenised alone, `whole` those of prefix + continuation, both as
    ids or both as texts, both with the same start token (or none), and both without a token that the
    tokenizer appends to every text. Then, as MIRON's published script has it:

        start  = min(len(prefix), len(whole))
        target = whole[start:]                      the tokens that are scored
        merged = whole[:len(prefix)] != prefix      reported beside the figures, never corrected

    So where a token straddles the boundary, it counts for the continuation only as far as `whole` has more
    tokens than `prefix`: "Par" + "is" is one token each, alone and together, and leaves no target at all
    (confidence 0); "ship" + "s, then" as `ship` and `ships , then` leaves `, then`. A log-probability is
    that of the token after all that comes before it in `whole`, not after the prefix as tokenised alone.
    """
    return Boundary(min(len(prefix), len(whole)), list(whole[: len(prefix)]) != list(prefix))


def appended_tokens(tokenise: Callable[[str], Sequence[int]]) -> tuple[int, ...]:
    """What a tokenizer puts after every text by itself: `</s>`, `[SEP]`, or nothing.

    After a prefix it would be conditioned on, and what is generated would come after the text's end.
    """
    reversed_ids = [ids[::-1] for text in PROBES if (ids := tokenise(text))]
    shared = takewhile(lambda column: len(set(column)) == 1, zip(*reversed_ids, strict=False))
    return tuple(column[0] for column in shared)[::-1]


def without_appended(ids: Sequence[int], appended: Sequence[int]) -> list[int]:
    """The tokens of a text without those that the tokenizer appended."""
    end = len(ids) - len(appended)
    return list(ids[:end] if appended and tuple(ids[end:]) == tuple(appended) else ids)
