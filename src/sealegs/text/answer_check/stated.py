"""An expected answer that a text gives as its own, where no false answer is known."""

from __future__ import annotations

from collections.abc import Sequence

from sealegs.text.answer_check.claimed import claimed
from sealegs.text.answer_check.clauses import Clause, TokenSpan, clauses
from sealegs.text.answer_check.given import read_given
from sealegs.text.answer_check.reply import (
    NO_ANSWER,
    OTHER_PART,
    NamedAnswer,
    answer_spans,
    read_reply,
    reply_words,
)
from sealegs.text.answer_check.wording import ClassifiedReply
from sealegs.text.answer_search.mention import Answer, Match, given, plain_query, simplified_answer
from sealegs.text.answer_search.normalization import Word


def stated_answer(text: str, answer: Answer, query: str = "") -> list[str | None]:
    """The words by which a text gives each part of an answer; None for a part that is not in it, or that it
    denies wherever it names it."""
    listed, query, parts = reply_words(text), plain_query(query), simplified_answer(answer)
    matches = [given(part, listed, (), query) for part in parts]
    if not any(matches):
        return [None] * len(parts)
    return [_words_given(text, listed, query, parts, matches, number) for number in range(len(parts))]


def _words_given(
    text: str,
    listed: Sequence[Word],
    query: str,
    parts: Answer,
    matches: Sequence[Match | None],
    number: int,
) -> str | None:
    """The words by which a text gives one part. Another value that it gives is none where the same clause has
    another part."""
    part = NamedAnswer((parts[number],), [matches[number]])
    beside = NamedAnswer((*parts[:number], *parts[number + 1 :]), (*matches[:number], *matches[number + 1 :]))
    reading = read_reply(text, listed, query, part, NO_ANSWER, beside)
    rows = clauses(reading, query)
    said = read_given(reading, rows)
    other = said.other or claimed(reading, rows, query)
    of_others = answer_spans(beside, listed, OTHER_PART, query)
    if other and of_others.keys().isdisjoint(_words_of(other, reading)):
        return None
    places = {place for n in said.clauses for place in _words_of(_span(rows[n]), reading)}
    spans = answer_spans(part, listed, "G", query)
    start = min((start for start in spans if start in places), default=None)
    return None if start is None else " ".join(word.cased for word in listed[start : spans[start][0]])


def _span(clause: Clause) -> TokenSpan:
    return TokenSpan(clause.start, clause.start + len(clause.letters))


def _words_of(span: TokenSpan, reading: ClassifiedReply) -> Sequence[int]:
    """The places of some tokens' words in the text."""
    tokens = reading.tokens[span.start : span.end]
    return range(tokens[0].start, tokens[-1].end)
