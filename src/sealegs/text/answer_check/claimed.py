"""Whether a reply says in the question's words that the answer is something else.

"Marlowe wrote Hamlet; Shakespeare only acted in it" says of Marlowe what was asked, and of Shakespeare
something else. A clause does so that is nothing but a value and at least two words of the question (or one
and "it"), with more of them than any clause has that names the right answer; and none of those gives that as
the answer ("It is Shakespeare", "The author is Shakespeare").
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sealegs.text.answer_check.clauses import Clause, TokenSpan, ends_sentence
from sealegs.text.answer_check.given import MOST_TOKENS
from sealegs.text.answer_check.wording import ClassifiedReply, asked_forms, asks_yes_or_no, form

_CLAIMED = re.compile("[bxm]*(?:w{1,3}|M)[BQ][BQHJxmj]*")
_GIVES_RIGHT = re.compile(
    "[QHJ][QHJxm]*B[xm]*G|G[xm]*B[xm]*[QHJaT]|j[xm]*B[xm]*G|[raTtu][^n]*G|^[bxmr]*G[xmHQ]*$"
)
_BELONGING = re.compile(r"\b(?:of|with|like|than|as|to|beside) G")
"""Before a value that is only named: "a friend of Shakespeare"."""
_FEWEST = 2


def claimed(reading: ClassifiedReply, listed: Sequence[Clause], query: str) -> TokenSpan | None:
    """The clause that gives another answer in the words of the question, where none gives the right one."""
    if asks_yes_or_no(query):
        return None
    asked = asked_forms(query)
    rows = [_row(reading, clause, asked) for clause in listed]
    naming = [number for number, row in enumerate(rows) if "G" in row]
    if not naming or any(_gives(reading, listed[number], rows[number]) for number in naming):
        return None
    most = max(_FEWEST - 1, *(rows[number].count("Q") for number in naming))
    for number, row in enumerate(rows):
        has_verb = "B" in row or not number or ends_sentence(listed, number - 1)
        if has_verb and _CLAIMED.fullmatch(row) and row.count("Q") + ("j" in row) > most and "Q" in row:
            return TokenSpan(listed[number].start, listed[number].start + len(row))
    return None


def _row(reading: ClassifiedReply, clause: Clause, asked: frozenset[str]) -> str:
    """The letters of a clause, with every word of the question as one."""
    tokens = reading.tokens[clause.start : clause.start + min(len(clause.letters), MOST_TOKENS)]
    return "".join(
        "Q"
        if token.letter in "cwi"
        and all(form(word.text) in asked for word in reading.words[token.start : token.end])
        else token.letter
        for token in tokens
    )


def _gives(reading: ClassifiedReply, clause: Clause, row: str) -> bool:
    """Whether a clause gives the right answer that it names, and does not only name it."""
    tokens = reading.tokens[clause.start : clause.start + len(row)]
    texts = (
        "G" if token.letter == "G" else " ".join(w.text for w in reading.words[token.start : token.end])
        for token in tokens
    )
    return bool(_GIVES_RIGHT.search(row)) and not _BELONGING.search(" ".join(texts))
