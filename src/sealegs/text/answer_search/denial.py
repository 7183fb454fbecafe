"""An answer that a text states, and does not deny right where it names it.

"It is not Rome but Paris." names Rome and denies it. A denial is a word next to the answer in its clause:
before it in English and Chinese (not, never, rather than; 不是, 并非), after it in Korean (아니다). One that
is farther away denies something else: "century years not divisible by 400" gives 400.
"""

from __future__ import annotations

from collections.abc import Sequence

from sealegs.text.answer_search.mention import (
    Answer,
    Match,
    given,
    plain_query,
    simplified_answer,
    text_words,
)
from sealegs.text.answer_search.normalization import Word

MOST_DENIALS = 20
"""Denied mentions of one part that are passed over; a text with more of them does not state it."""
_BEFORE = ("not", "never", "isnt", "wasnt", "arent", "neither", "nor", "rather than", "instead of")
_BETWEEN = {"in", "at", "from", "actually", "really", "simply", "exactly", "quite", "called", "even"}
"""What may stand between a denial and the answer."""
_HAN_BEFORE = ("不是", "并非", "而非", "不叫", "不为", "绝非", "不等于")
_KOREAN_AFTER = ("아니", "아닌", "아닙", "아닐")
_SUBJECT = {"이", "가", "은", "는", "도"}
"""Particles that are words of their own after numbers and Latin letters."""


def stated_answer(text: str, answer: Answer, query: str = "") -> list[Match | None]:
    """Where a text states each part of an answer; None for one that is not there, or only denied."""
    listed = text_words(text)
    return [_stated(part, listed, plain_query(query)) for part in simplified_answer(answer)]


def _stated(part: Sequence[str], listed: Sequence[Word], query: str) -> Match | None:
    seen = list(listed)
    for _ in range(MOST_DENIALS):
        match = given(part, seen, (), query)
        if match is None or not is_denied(listed, match):
            return match
        hidden = slice(match.start, match.end)
        seen[hidden] = [word._replace(text="\0", cased="\0") for word in seen[hidden]]
    return None


def is_denied(listed: Sequence[Word], match: Match) -> bool:
    """Whether a text denies what it names at a place."""
    clause = listed[match.start].clause
    before = [word.text for word in listed[max(0, match.start - 4) : match.start] if word.clause == clause]
    while before and before[-1] in _BETWEEN:
        before.pop()
    if " ".join(before[-1:]) in _BEFORE or " ".join(before[-2:]) in _BEFORE:
        return True
    if "".join(before).endswith(_HAN_BEFORE):
        return True
    after = [word.text for word in listed[match.end : match.end + 2] if word.clause == clause]
    if after and after[0] in _SUBJECT:
        after = after[1:]
    return bool(after) and after[0].startswith(_KOREAN_AFTER)
