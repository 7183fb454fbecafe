"""The clauses of a reply as rows of letters, and the tokens that a decision is quoted by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from sealegs.text.answer_check.wording import ClassifiedReply, asked_forms, form

HALF_QUESTION = 0.35
"""The share of the question's words that a clause repeats from which it may answer."""
LONG_CLAUSE = 16
"""Tokens of a clause that is not quoted as a whole."""


class TokenSpan(NamedTuple):
    """Tokens of a reply by which something was decided, from the first to behind the last."""

    start: int
    end: int


class Clause(NamedTuple):
    """The letters of one clause, and where its tokens are."""

    letters: str
    start: int
    sentence: int
    asked: frozenset[str]
    """The question's words that are in it."""
    repeats: float
    """Their share of the question's words."""


def clauses(reading: ClassifiedReply, query: str) -> list[Clause]:
    """The clauses of a reply: between punctuation marks, and from a word of contrast on."""
    asked = asked_forms(query)
    listed: list[Clause] = []
    start = sentence = 0
    for position, token in enumerate([*reading.tokens, None]):
        if token is None or token.letter in ".,bg" or _begins_another(reading, position):
            if position > start:
                tokens = reading.tokens[start:position]
                repeated = frozenset(
                    form(word.text)
                    for part in tokens
                    if part.letter in "QJH"
                    for word in reading.words[part.start : part.end]
                )
                letters = "".join(part.letter for part in tokens)
                share = len(repeated) / max(1, len(asked))
                listed.append(Clause(letters, start, sentence, repeated, share))
            start = position + (token is not None and token.letter in ".,")
            sentence += token is not None and token.letter == "."
    return listed


def _begins_another(reading: ClassifiedReply, position: int) -> bool:
    """Whether "and I" begins a clause of its own."""
    if position < 2 or reading.tokens[position].letter != "p":
        return False
    before = reading.tokens[position - 1]
    return reading.words[before.start].text == "and"


def ends_sentence(listed: Sequence[Clause], number: int) -> bool:
    """Whether a clause is the last one of its sentence."""
    return number + 1 == len(listed) or listed[number + 1].sentence != listed[number].sentence


def quote(clause: Clause, match: re.Match[str] | None) -> TokenSpan:
    """The clause by which something was decided; of a long one, what a rule found in it."""
    start, end = match.span() if match and len(clause.letters) > LONG_CLAUSE else (0, len(clause.letters))
    return TokenSpan(clause.start + start, clause.start + max(end, start + 1))
