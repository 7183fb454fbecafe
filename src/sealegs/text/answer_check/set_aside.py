"""Where a reply names the right answer only to set it aside, and gives another: "Although document 1 says
York, the correct answer is Leeds".

No phrase decides, but where the two stand. Another value of the same kind is the answer of a reply that marks
it so ("Answer:", "the correct year is"), says it in the words of the question, or begins with it alone. The
right one is set aside in a clause on documents that concedes or that another one opposes, in what the reply
says that it said or considered, and where it is said to be of another matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from sealegs.text.answer_check.clauses import HALF_QUESTION, Clause, TokenSpan, ends_sentence
from sealegs.text.answer_check.wording import ClassifiedReply, ReplyToken

_Kind: TypeAlias = Literal["number", "name", "word", "han"]

MOST_TOKENS, NEAR = 60, 4
"""Tokens of a clause that can set an answer aside or give another, and clauses of its sentence before it."""
_ANSWER = ("answer", "答案", "정답")
_DIFFERENT = ("different", "separate", "不同")
_SEEMING = ("seem", "look", "appear", "似乎", "看起来", "好像", "看似")
_MARKER = "(?:a|[Tt][xmaHQw#]{0,8}?)[xm]*B[xmj]*"
_LABEL = re.compile("[bgxmrTtu]*aB?")
_RIGHT_MARKED = re.compile(f"{_MARKER}G|GB[xm]*[aT]")
_NO_STATEMENT = re.compile("[GnedyLNfgE=V]|^b?[xm]*[oE#IjM]m*c")
"""What no clause has that gives another answer: the right one, a negation, a document, an error, a belief,
another matter, and those who say something."""
_CONCEDED = re.compile("(?:^|,)[bxm]*[gyYf][^G]*[do][^G]*G|d[^G]*,g[^G]*G")
_TOLD = re.compile("d[^Gn]*G|G[^n]*d")
_OWN = re.compile("p[^Gun]*[cwa][^Gun]*G")
_OPPOSED = re.compile("[bg],?j|[bg]|j,b")
_OF_ANOTHER = re.compile("G[^Gn,]*[E=]|G[^Gn,]*,[bg]?[jWcmZ][^Gn]*[E=]")
_OF_ANOTHER_IN_HAN = re.compile("G[^Gn]*[E=o]")


def set_aside(reading: ClassifiedReply, listed: Sequence[Clause], given: Sequence[int]) -> TokenSpan | None:
    """The clause that gives another answer, where all that have the right one, `given`, set it aside."""
    if not given or len(listed) == 1:
        return None
    reply = _Reply(reading, listed, given)
    marked = [n for n in range(len(listed)) if reply.marks(n)]
    others = marked or [n for n in range(len(listed)) if reply.states(n)]
    if not others or any(reply.marks_right(n) for n in given):
        return None
    most = 1.0 if marked else max(listed[n].repeats for n in others)
    for number in given:
        before = bool(marked) and number < marked[0] and not reply.is_plain(number)
        more = HALF_QUESTION <= listed[number].repeats > most
        if more or not (before or reply.is_aside(number, others)):
            return None
    clause = listed[others[-1]]
    return TokenSpan(clause.start, clause.start + len(clause.letters))


class _Patterns(NamedTuple):
    """Where clauses have another value of a kind, each with the group `value`."""

    marked: tuple[re.Pattern[str], ...]
    """ "The correct year is 1992", "Oslo is the answer"."""
    labelled: re.Pattern[str]
    """Behind "Answer:"."""
    stated: tuple[re.Pattern[str], ...]
    """At the end of a clause, or before a word of the question."""
    of_subject: re.Pattern[str]
    """ "The festival is in Oslo"."""
    alone: re.Pattern[str]


class _Reply:
    """The clauses of a reply, and which of them give another answer or set the right one aside."""

    def __init__(self, reading: ClassifiedReply, listed: Sequence[Clause], given: Sequence[int]) -> None:
        self.reading, self.listed = reading, listed
        self.tokens = [list(_read_again(reading, clause)) for clause in listed]
        self.rows = ["".join(token.letter for token in tokens[:MOST_TOKENS]) for tokens in self.tokens]
        named = [token for n in given for token in self.tokens[n] if token.letter == "G"]
        self.right = [word for token in named for word in reading.words[token.start : token.end]]
        self.kind: _Kind = "han" if reading.han else "name"
        if any(word.number for word in self.right):
            self.kind = "number"
        elif not reading.han and all(word.cased[:1].islower() for word in self.right):
            self.kind = "word"
        self.patterns = _patterns(self.kind, han=reading.han)
        self.of_another = _OF_ANOTHER_IN_HAN if reading.han else _OF_ANOTHER

    def marks(self, number: int) -> bool:
        """Whether a clause gives another value as the answer, in so many words or under a label."""
        if _NO_STATEMENT.search(self.rows[number].removeprefix("b")):
            return False
        if any(self._has_other(number, pattern) for pattern in self.patterns.marked):
            return True
        under_label = self.patterns.labelled, self.patterns.stated[0]
        return self._is_labelled(number) and any(self._has_other(number, pattern) for pattern in under_label)

    def marks_right(self, number: int) -> bool:
        """Whether a clause gives the right answer as the answer."""
        row = self.rows[number]
        marked = _RIGHT_MARKED.search(row) or self._is_labelled(number)
        return bool(marked) and not re.search("[nedyLg]", row)

    def states(self, number: int) -> bool:
        """Whether a clause gives another value in the words of the question, or begins the reply with it."""
        row, repeats = self.rows[number], self.listed[number].repeats
        if number == 0 and self._has_other(0, self.patterns.alone):
            return ends_sentence(self.listed, 0) or self.rows[1] == "d"
        matter = "o" if self.reading.han else "(?<!#)w.*(?<!#)w"
        if _NO_STATEMENT.search(row) or re.search(matter, row):
            return False
        opposes = number > 0 and repeats > 0 and bool(_CONCEDED.search(self._sentence(number - 1)))
        if repeats < HALF_QUESTION and not opposes:
            return self._has_other(number, self.patterns.of_subject)
        return any(self._has_other(number, pattern) for pattern in self.patterns.stated)

    def is_plain(self, number: int) -> bool:
        """Whether a clause gives the right answer as its own: alone, or in the words of the question."""
        if number == 0 and re.fullmatch("[xm]*G[xmd]*", self.rows[0]):
            return True
        led = re.search("[dpgyYfL]", self._sentence(number)) or self.of_another.search(self.rows[number])
        return self.listed[number].repeats >= HALF_QUESTION and not led

    def is_aside(self, number: int, others: Sequence[int]) -> bool:
        """Whether a clause only sets the right answer aside. `others`: those that give another one."""
        row, behind = self.rows[number], number + 1
        if self.is_plain(number):
            return False
        if _CONCEDED.search(self._sentence(number)) or _OWN.search(row):
            return True
        after = ",".join(self.rows[behind : behind + 2])
        if self.of_another.search(row if ends_sentence(self.listed, number) else f"{row},{after}"):
            return True
        if not (_TOLD.search(row) or self._seems(number)) or re.search("n[^q]*$", after):
            return False
        opposed = _OPPOSED.match(after)
        if not opposed:
            return False
        return opposed[0].endswith("j") or not {behind, behind + 1}.isdisjoint(others)

    def _seems(self, number: int) -> bool:
        """Whether a clause says only that the right answer looks like one."""
        tokens = [token for token in self.tokens[number] if token.letter in "Bmc"]
        return any(self.reading.words[token.start].text.startswith(_SEEMING) for token in tokens)

    def _sentence(self, number: int) -> str:
        """A sentence up to the end of a clause."""
        near = range(max(0, number - NEAR), number + 1)
        sentence = self.listed[number].sentence
        return ",".join(self.rows[n] for n in near if self.listed[n].sentence == sentence)

    def _is_labelled(self, number: int) -> bool:
        return number > 0 and bool(_LABEL.fullmatch(self.rows[number - 1]))

    def _has_other(self, number: int, pattern: re.Pattern[str]) -> bool:
        """Whether a clause has a value where a pattern expects it, and not a part of the right answer."""
        match = pattern.fullmatch(self.rows[number])
        if not match:
            return False
        tokens = self.tokens[number][slice(*match.span("value"))]
        own = [token for token in tokens if token.letter in "KMw#"]
        words = {word.text for token in own for word in self.reading.words[token.start : token.end]}
        right = {word.text for word in self.right}
        if self.reading.han or self.kind == "number":
            return not words <= right
        return words.isdisjoint(right) and len("".join(words)) > 1  # no letter of a choice


@cache
def _patterns(kind: _Kind, *, han: bool) -> _Patterns:
    value, other = {
        "number": ("#+[wQ]?", "[^G#]*"),
        "name": ("M(?:x?M)*", "[^GM#]*"),
        "word": ("w{1,3}", "[^GM#]*"),
        "han": ("(?:M|[wQHmxP]*w[wQHmxP]*)", "[^G]*"),
    }[kind]
    value = f"(?P<value>K|{value})"
    first = (
        value.replace("K|", "K|w|") if kind == "name" else value
    )  # the capital of a sentence tells nothing
    last, linking = "[xmHQ]*", "[Bw]" if kind == "number" else "B"
    return _Patterns(
        marked=(
            re.compile(f"{other}{_MARKER}{value}{other}"),
            re.compile(f"[bxmjB]*{first}B[xm]*[aT][xmaHQ#w]{{0,3}}"),
        ),
        labelled=re.compile(f"[bxmB]*{value}[xmdHQ]*"),
        stated=(
            re.compile(f"{other}[BQxw{'c' if han else ''}][xm]*{value}{last}"),
            re.compile(f"[bxmj]*B?{value}[mxJ]*w?[QB]{other}"),
        ),
        of_subject=re.compile(f"[bxm]*[QH][QHxm]*{linking}[xm]*{value}{last}"),
        alone=re.compile(f"[xm]*{value}[xmd]*"),
    )


def _read_again(reading: ClassifiedReply, clause: Clause) -> Iterator[ReplyToken]:
    """The tokens of a clause without the numbers of documents and the words of a class in a title ("The
    Hollow Almanac"); whatever ends in "answer" is one."""
    tokens = reading.tokens[clause.start : clause.start + len(clause.letters)]
    for number, token in enumerate(tokens):
        beside = {
            other.letter for other in (*tokens[max(0, number - 1) : number], *tokens[number + 1 : number + 2])
        }
        named = reading.words[token.start : token.end]
        text = "".join(word.text for word in named)
        if token.letter == "#" and "d" in beside:
            continue
        if number and "M" in beside and token.letter not in "GKQMp#" and named[-1].cased[:1].isupper():
            continue
        if token.letter != "G" and text.endswith(_ANSWER):
            yield token._replace(letter="a")
        else:
            yield token._replace(letter="E") if text in _DIFFERENT else token
