"""The clauses of a reply as rows of letters, and the tokens that a decision is quoted by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from sealegs.benchmarks.rgb.check.patterns import pattern
from sealegs.benchmarks.rgb.check.wording import ClassifiedReply, asked_forms, form

NEAR = 3
"""Clauses of one sentence that somebody may speak."""
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


def find(tier: str, letters: str) -> re.Match[str] | None:
    """The first place where a rule of a tier holds."""
    return pattern(tier).search(letters)


def ends_sentence(listed: Sequence[Clause], number: int) -> bool:
    """Whether a clause is the last one of its sentence."""
    return number + 1 == len(listed) or listed[number + 1].sentence != listed[number].sentence


def is_spoken(listed: Sequence[Clause], number: int) -> bool:
    """Whether a clause is what somebody says, by "says Ada Lock" behind it or 王明说 at one of its ends."""
    sentence = listed[number].sentence
    for other in listed[number + 1 : number + 1 + NEAR]:
        if other.sentence == sentence and find("said_by", other.letters):
            return True
    after = listed[number + 1 : number + 3]
    if after and find("says", after[0].letters):
        return len(after) == 1 or after[1].sentence != after[0].sentence
    before = listed[number - 1] if number else None
    return before is not None and before.sentence == sentence and bool(find("says", before.letters))


def quote(clause: Clause, tier: str) -> TokenSpan:
    """The clause by which something was decided; of a long one, what the rule found in it."""
    match = find(tier, clause.letters) if len(clause.letters) > LONG_CLAUSE else None
    start, end = match.span() if match else (0, len(clause.letters))
    return TokenSpan(clause.start + start, clause.start + max(end, start + 1))
