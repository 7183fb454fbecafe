"""Whether a reply names the right answer only in another role than was asked for.

"Jaws was directed by Ben Moor, whereas Ada Lock wrote the script" gives Ben Moor: his name is among words of
the question, and hers among others. The parts of a reply are its clauses, and the halves of one that "and"
joins before another verb ("it began in 1912 and ended in 1914").
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator, Sequence, Set
from itertools import pairwise
from typing import NamedTuple

from sealegs.text.answer_check.clauses import HALF_QUESTION, Clause
from sealegs.text.answer_check.value_forms import VALUES, ValueKind
from sealegs.text.answer_check.wording import HAN_WORD, ClassifiedReply, ReplyToken, form
from sealegs.text.answer_search.normalization import Word

_GIVES_NONE = re.compile("[GneyLNfFlvA~YgE=o]")
_IS_MARKED = re.compile("[arTthu]")
_ONLY_NAMED = re.compile("[bxm]*d#?c[xm]*G(?:[xm]*G)*")
"""The right answer as what a document has, and no more."""


class _Part(NamedTuple):
    number: int
    """Of its clause."""
    row: str
    tokens: Sequence[ReplyToken]
    asked: frozenset[str]
    """The question's words that are in it."""


def other_role(
    reading: ClassifiedReply, listed: Sequence[Clause], naming: Sequence[int], kind: ValueKind
) -> int | None:
    """The clause that gives another value in more of the question's words than the clauses of `naming` have,
    all of which say something else of the right answer. None where the reply speaks of errors."""
    parts = [part for number, clause in enumerate(listed) for part in _parts(reading, number, clause)]
    named = set(naming)
    right = [part for part in parts if "G" in part.row and part.number in named]
    telling = [part.row for part in right if not _ONLY_NAMED.fullmatch(part.row)]
    reported = any(re.search("[eyXC]", part.row) for part in parts)
    if (
        reported
        or not telling
        or not all(re.search("[wO]", row) and not _IS_MARKED.search(row) for row in telling)
    ):
        return None
    asked = frozenset[str]().union(*(part.asked for part in right))
    own = {word.text for part in right for word in _words(reading, part.tokens, "G")}
    for part in parts:
        if not _GIVES_NONE.search(part.row) and _says_more(part, asked):
            after = bisect(naming, part.number)
            turned = after < len(naming) and _turns(listed, naming[after], part.number)
            if turned or _gives_other(reading, part, listed[part.number], kind, asked, own):
                return None if turned else part.number
    return None


def _parts(reading: ClassifiedReply, number: int, clause: Clause) -> Iterator[_Part]:
    """A clause, or its halves."""
    tokens = reading.tokens[clause.start : clause.start + len(clause.letters)]
    joints = [
        n
        for n in range(1, len(tokens) - 1)
        if (reading.words[tokens[n].start].text == "and" and tokens[n + 1].letter in "wBQ")
        or tokens[n - 1].letter + tokens[n].letter in ("KG", "#G")  # "in 1912. 1914 is when ..."
    ]
    for start, end in pairwise([0, *joints, len(tokens)]):
        part = tokens[start:end]
        asked = frozenset(form(word.text) for word in _words(reading, part, "Q"))
        yield _Part(number, "".join(token.letter for token in part), part, asked)


def _words(reading: ClassifiedReply, tokens: Sequence[ReplyToken], letters: str) -> Iterator[Word]:
    """The words of the tokens of some letters."""
    for token in tokens:
        if token.letter in letters:
            yield from reading.words[token.start : token.end]


def _says_more(part: _Part, asked: Set[str]) -> bool:
    """Whether a part has more words of the question than those: all of them and others, or twice as many
    characters."""
    doubled = len(part.asked) >= 2 * len(asked) and all(map(HAN_WORD.match, part.asked))
    return part.asked > asked or (doubled and not part.asked <= asked)


def _gives_other(
    reading: ClassifiedReply, part: _Part, clause: Clause, kind: ValueKind, asked: Set[str], own: Set[str]
) -> bool:
    """Whether a part gives the false answer, or another value in no words but the question's, one of which is
    no name."""
    match = VALUES[kind].search(part.row)
    if "K" in part.row:
        return True
    if not match or (clause.repeats < HALF_QUESTION and "j" not in clause.letters):
        return False
    value = {word.text for word in _words(reading, part.tokens[slice(*match.span())], "#Mw")}
    rest = re.sub("d#", "d", part.row[: match.start()] + part.row[match.end() :])
    unit = {text for text in value if not text[-1].isdigit()}
    if re.search("[wO#]", rest) or value <= own or (kind == "number" and not unit <= own):
        return False
    words = _words(reading, part.tokens, "Q")
    return bool({form(word.text) for word in words if not word.cased[:1].isupper()} - asked)


def _turns(listed: Sequence[Clause], number: int, other: int) -> bool:
    """Whether a clause turns from one before that tells what documents say."""
    before, sentence = listed[number - 1], listed[other].sentence
    near = (clause for clause in listed[max(0, other - 2) : other + 1] if clause.sentence == sentence)
    if not any("d" in clause.letters for clause in near):
        return False
    follows = number == other + 1 or listed[number].sentence != before.sentence
    return bool(re.fullmatch("[bg]", before.letters)) or (listed[number].letters[0] == "b" and follows)
