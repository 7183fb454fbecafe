"""An expected answer that a text gives as its own, where no false answer is known."""

from __future__ import annotations

from collections.abc import Sequence

from sealegs.text.answer_check.clauses import Clause, clauses
from sealegs.text.answer_check.given import read_given
from sealegs.text.answer_check.reply import NamedAnswer, answer_spans, read_reply, reply_words
from sealegs.text.answer_check.wording import ClassifiedReply
from sealegs.text.answer_search.mention import Answer, given, plain_query, simplified_answer


def stated_answer(text: str, answer: Answer, query: str = "") -> list[str | None]:
    """The words by which a text gives each part of an answer; None for a part that is not in it, or that it
    denies wherever it names it."""
    listed, query, parts = reply_words(text), plain_query(query), simplified_answer(answer)
    matches = [given(part, listed, (), query) for part in parts]
    if not any(matches):
        return [None] * len(parts)
    reading = read_reply(text, listed, query, NamedAnswer(parts, matches), NamedAnswer((), ()))
    rows = clauses(reading, query)
    said = read_given(reading, rows)
    if said.other:
        return [None] * len(parts)
    places = {place for n in said.clauses for place in _words_of(rows[n], reading)}
    words: list[str | None] = []
    for part, match in zip(parts, matches, strict=True):
        spans = answer_spans(NamedAnswer((part,), [match]), listed, "G", query)
        start = min((start for start in spans if start in places), default=None)
        end = 0 if start is None else spans[start][0]
        words.append(" ".join(word.cased for word in listed[start:end]) if end else None)
    return words


def _words_of(clause: Clause, reading: ClassifiedReply) -> Sequence[int]:
    """The places of a clause's words in the text."""
    tokens = reading.tokens[clause.start : clause.start + len(clause.letters)]
    return range(tokens[0].start, tokens[-1].end)
