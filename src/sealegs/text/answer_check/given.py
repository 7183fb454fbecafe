"""Which value a reply gives as its answer: "It's Toronto, which is bigger than Ottawa" gives Toronto.

The right answer (`G`) is one value; another one is a name, a number or words of its kind, or the false one
(`K`). A clause that denies the right answer (`denials`) does not count. What any other clause does with a
value has one of four degrees:

- it *gives* it: marked as the answer ("the correct year is 1992", "Answer:"), as what was asked for ("the
  host is Oslo", "it is Oslo"), as a conclusion ("so Oslo"), or at first alone or in the question's words;
- it *states* it: in the words of the question anywhere else, where it may be about another matter;
- it *names* it, and no more;
- it *sets it aside*: on documents, in a clause that concedes or that another one opposes; as what the reply
  said or considered; as of another matter; or as what another value is compared with or comes before.

A clause behind it may also turn from a right answer that is only named: to the one that was asked about, to
what documents support of two, or to a value alone, where the right one was only asked for or remarked on.

The right answer is not the reply's where another value is given, and the right one only named or set aside,
or where another value is stated, and the right one only set aside. Each is asked of one clause, by patterns
of its letters (`wording` has them), and of comparisons in Chinese and Korean by patterns of its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from sealegs.text.answer_check.clauses import HALF_QUESTION, Clause, TokenSpan, ends_sentence
from sealegs.text.answer_check.denials import called_no_answer, denial
from sealegs.text.answer_check.roles import other_role
from sealegs.text.answer_check.value_forms import MARKER, VALUES, ValueKind, value_forms
from sealegs.text.answer_check.wording import HAN_WORD, ClassifiedReply, ReplyToken
from sealegs.text.answer_search.korean import HANGUL

MOST_TOKENS, NEAR = 60, 4
"""Tokens of a clause that are read, and clauses of its sentence before it."""
NO_DENIALS: Mapping[int, TokenSpan] = MappingProxyType({})
YEAR = 4
"""Digits of one."""
_ANSWER = ("answer", "答案", "답")
_DIFFERENT = ("different", "separate", "不同")
_ASKING = frozenset(("is", "was", "are", "were", "could", "might", "would", "can", "may"))
_SEEMING = ("seem", "look", "appear", "似乎", "看起来", "好像", "看似")
_LABEL = re.compile("[bgxmrTtup]*aB?")
_SUBJECT = re.compile("[bgxmrw]*[QHJ][QHJxmjw]*")
"""What was asked for, before the value: "Host city: Paris"."""
_GIVES_RIGHT = re.compile(
    f"{MARKER}G|[aV][xm]*G|GB[xm]*[aT]|G(?:B[xm]*[wW][xm]*q|UB)|r[^n]*G|(?:^|[^#])Q[^nb#M]*G"
)
_IS_RIGHT = re.compile("[brTtu]*(?:(?:j[xmt]*B?|B|[QH][QHxm]*B?)[xm]*|m*|x)G[xmdHQ]*")
_STATES_NOTHING = re.compile("[GneyLNfgE=V~Y]|(?<!T)d(?!T)|^b?[xm]*[oE#IjM]m*c")
"""What no clause has that gives another answer: the right one, a negation, a document, an error, a belief,
another matter, and those who say something."""
_FALSE_FIRST = re.compile("[IbxmVrHJpBiwaTS]{0,2}K[IxBmVjQwH#]{0,4}$")
_CONCEDED = re.compile("(?:^|,)[bxm]*(?:[gyYf]|[BT]*e)(?:(?!,b)[^G])*[do](?:(?!,b)[^G])*G|d[^G]*,g[^G]*G")
_TOLD = re.compile("d[^Gn]*G|G[^n]*d")
_OWN = re.compile("p[^Gun]*[cwa][^Gun]*G")
_OPPOSED = re.compile("[bg],?j|[bg]|j,b|e(?=,|$)")
_OF_ANOTHER = re.compile("G[^Gn,]*[E=]|G[^Gn,]*,[bg]?[jWcmZ][^Gn]*[E=]")
_OF_OTHERS = re.compile("d[^,]*[E=][^,]*,[xm]*(?:[OW]j|jmB)[^,]*G")
"""Some documents are about another matter, "where it's York"."""
_OF_ANOTHER_IN_HAN = re.compile("G[^Gn]*[E=o]")

# The words of a clause, with the right answer between < and >.
_COMPARED = re.compile(
    r"(?:比(?!分)|超过|[早晚高低大小长短多少]于)\w{0,4}<|(?:其次|第 ?[23二三]).{0,8}<|^<[^>]*>的\S{1,3}$"
    r"|[与和同跟]<[^>]*>[一共]?(?:同|共|起|并列)|>(?:位居|位列|排|名列)\S{0,3}第"
    r"|(?:(?:두|세|2|3) ?번째|그다음)\S{0,3} (?:\S+ ){0,2}<|>(?:그 )?뒤를|>(?:두|세|2|3) ?번째"
)
_COMPARED_INSIDE = re.compile(
    r"보다 >|<\d\S* >(?:\S+ ){0,2}\S+보다 |[와과] >(?:함께|달리) |의 >\S{1,5}[던인] "
    r"|>[동서남북]쪽에 있는 |>[以之][东西南北]"
)
"""With another value behind it in the same clause."""


class Given(NamedTuple):
    """The clauses that name the right answer without denying it, and why it is not the reply's answer."""

    clauses: Sequence[int]
    denied: TokenSpan | None
    """The first denial of it."""
    other: TokenSpan | None
    """The clause that gives another answer, where none of the others gives the right one."""


def read_given(
    reading: ClassifiedReply, listed: Sequence[Clause], denied: Mapping[int, TokenSpan] = NO_DENIALS
) -> Given:
    """What a reply does with the right answer. `denied`: clauses that are known to deny it."""
    naming = [n for n, clause in enumerate(listed) if "G" in clause.letters]
    denials = {n: span for n in naming if (span := denied.get(n) or denial(listed, n))}
    clauses, other = [n for n in naming if n not in denials], None
    if clauses:
        reply = _Reply(reading, listed, clauses)
        replaced = next(filter(reply.is_replaced, denials), len(listed))
        clauses = reply.naming = [n for n in clauses if n < replaced or reply.gives_right(n)]
        other = _other_answer(reply) if clauses else None
    return Given(clauses, next(iter(denials.values()), None), other)


def _other_answer(reply: _Reply) -> TokenSpan | None:
    """The clause that gives another answer, where none of those with the right one gives that."""
    listed, naming = reply.listed, reply.naming
    before = "".join(reply.rows[: naming[0] + 1])
    more = HALF_QUESTION <= max(listed[n].repeats for n in naming) > listed[0].repeats
    first = _FALSE_FIRST.match(reply.rows[0]) and not (more and re.search("[w#]", reply.rows[0]))
    if first and not re.search("[neyXhtTbrua]", before):
        return _whole(listed[0])
    aside = [n for n in naming if reply.is_aside(n)]
    role = other_role(reply.reading, listed, [n for n in naming if n not in aside], reply.kind)
    if role is not None:
        return _whole(listed[role])
    pairs = [n for n in naming if n not in aside and reply.pairs(n)]
    if aside and pairs and len(aside) + len(pairs) == len(naming):
        return _whole(listed[pairs[-1]])  # "York and Leeds. York is of another list"
    behind = range(naming[-1] + 1, len(listed))
    turning = [n for n in behind if reply.excludes(n)]
    if not turning and any(reply.gives_right(n) for n in naming if n not in aside):
        return None
    turning = turning or [n for n in behind if reply.turns_to(n)]
    if turning:
        return _whole(listed[turning[0]])
    numbers = range(len(listed))
    others = [n for n in numbers if reply.gives(n)]
    if not others and len(aside) == len(naming):
        compared = all(map(reply.is_compared, naming))
        others = list(filter(reply.has_value if compared else reply.states, numbers))
        most = max((listed[n].repeats for n in others), default=0.0)
        if not compared and any(HALF_QUESTION <= listed[n].repeats > most for n in naming):
            return None
    return _whole(listed[others[-1]]) if others else None


def _whole(clause: Clause) -> TokenSpan:
    return TokenSpan(clause.start, clause.start + len(clause.letters))


class _Reply:
    """The clauses of a reply, and what each does with the right answer or another one."""

    def __init__(self, reading: ClassifiedReply, listed: Sequence[Clause], naming: Sequence[int]) -> None:
        self.reading, self.listed, self.naming = reading, listed, naming
        self.tokens = [list(_read_again(reading, clause)) for clause in listed]
        self.rows = ["".join(token.letter for token in tokens[:MOST_TOKENS]) for tokens in self.tokens]
        named = [token for n in naming for token in self.tokens[n] if token.letter == "G"]
        self.right = [word for token in named for word in reading.words[token.start : token.end]]
        self.kind: ValueKind = "han" if reading.han else "name"
        if any(word.number for word in self.right):
            self.kind = "number"
        elif not reading.han and all(re.match(f"[a-z{HANGUL}]", word.cased) for word in self.right):
            self.kind = "word"
        self.forms = value_forms(self.kind, han=reading.han)
        self.of_another = _OF_ANOTHER_IN_HAN if reading.han else _OF_ANOTHER

    # Another value

    def gives(self, number: int) -> bool:
        """Whether a clause gives another value."""
        row, forms, ends = self.rows[number], self.forms, ends_sentence(self.listed, number)
        if _STATES_NOTHING.search(row.removeprefix("b")):
            return False
        if self._has_other(number, forms.giving):
            return True
        of_subject = ends and self.kind in ("name", "number") and self._led(number, _SUBJECT)
        if (of_subject or self._led(number, _LABEL)) and self._has_other(number, forms.labelled):
            return True
        if (ends or self.rows[number + 1][0] in "nY") and self._has_other(number, forms.concluding):
            return True
        if number or (self.reading.han and "K" not in row):
            return number == 0 and self._has_other(0, [forms.it_is])
        in_its_words = forms.stated if self.listed[0].repeats >= HALF_QUESTION else ()
        return self._has_other(0, [forms.alone, *in_its_words]) and (ends or self._goes_on())

    def _goes_on(self) -> bool:
        """Whether the first sentence names the right answer only in what it says more of its first value."""
        first = self.rows[0]
        return (first[0] != "x" or self.kind == "number") and all(
            self.listed[n].sentence == 0
            and self.rows[n][0] != "b"
            and (len(first) == 1 or self.kind != "word")
            and (self.rows[n][0] in "WJY" or not re.search("M.*G", self.rows[n]))
            for n in self.naming
        )

    def states(self, number: int) -> bool:
        """Whether a clause gives another value in the words of the question, or begins the reply with it."""
        row, repeats = self.rows[number], self.listed[number].repeats
        if row[0] in "Bj" and self._has_other(number, [self.forms.it_is]):
            return True
        if number == 0 and self._has_other(0, [self.forms.alone]):
            short = re.fullmatch("[wm#MK]{1,6}", row)
            return bool(short) or ends_sentence(self.listed, 0) or self.rows[1] == "d"
        matter = "o" if self.reading.han else "(?<!#)w.*(?<!#)w"
        if _STATES_NOTHING.search(row) or re.search(matter, row):
            return False
        opposes = number > 0 and repeats > 0 and bool(_CONCEDED.search(self._sentence(number - 1)))
        stated = self.forms.stated if repeats >= HALF_QUESTION or opposes else [self.forms.of_subject]
        return self._has_other(number, stated)

    def turns_to(self, number: int) -> bool:
        """Whether a clause turns to another value from the right one that is named before."""
        last = number + 1 == len(self.listed)
        if self._has_other(number, [self.forms.asked_about]) or (last and self._prefers(number)):
            return True
        if any(re.search("[puL]", self.rows[n]) or self._seems(n) for n in self.naming):
            return self._has_other(number, [self.forms.instead])
        left = last and not self.reading.han and self._is_left(self.naming[-1])
        return left and self._has_other(number, [self.forms.alone])

    def excludes(self, number: int) -> bool:
        """Whether a clause gives another value and says that it alone is the answer: 巴黎才是答案."""
        return self._has_other(number, [self.forms.exclusive])

    def _is_left(self, number: int) -> bool:
        """Whether a sentence only asks for the right answer, or remarks on it: "Is it York?"."""
        if not ends_sentence(self.listed, number):
            return False
        row = self.rows[number]
        asks = self._spoken(self.tokens[number][:1]) <= _ASKING and re.fullmatch("m*(?:Bj|jB)m*G[xmHQ]*", row)
        return bool(asks) or bool(re.fullmatch("[xm]*GB[xm]*w[xmw]*", row))

    def _prefers(self, number: int) -> bool:
        """Whether documents are for one of two values: "Between York and Leeds, the text supports Leeds"."""
        match = self.forms.preferred.fullmatch(self.rows[number])
        if not match or not self._is_other(number, match):
            return False
        value = self._spoken(self.tokens[number][slice(*match.span("value"))])
        return all(value <= self._spoken(self.tokens[n]) for n in self.naming)

    def _spoken(self, tokens: Sequence[ReplyToken]) -> set[str]:
        return {word.text for token in tokens for word in self.reading.words[token.start : token.end]}

    def pairs(self, number: int) -> bool:
        """Whether a clause is only the right answer and another value beside it."""
        return self._has_other(number, self.forms.paired)

    def has_value(self, number: int) -> bool:
        """Whether a clause begins or ends with another value, that the right one may be compared with."""
        row = self.rows[number]
        if "G" in row:
            return bool(_COMPARED_INSIDE.search(self._words(number))) and row[-1] in "wM#Q"
        core = re.sub("^[bgxmVrtSTauj]+|[xmHQjIoP]+$", "", row)
        value = "[K#]w?" if self.kind == "number" else "[MK#w]"
        return not re.search("[nLlfFYe~]", row) and bool(re.search(f"^{value}|{value}$", core))

    def is_replaced(self, number: int) -> bool:
        """Whether another value stands beside a denial of the right one: "it is York, not Leeds"."""
        sentence = self.listed[number].sentence
        near = range(max(0, number - NEAR), min(len(self.listed), number + NEAR))
        beside = [n for n in near if self.listed[n].sentence == sentence or n == number + 1]
        return any(VALUES[self.kind].search(self.rows[n]) for n in beside)

    # The right answer

    def gives_right(self, number: int) -> bool:
        """Whether a clause that does not set the right answer aside gives it."""
        row, ends = self.rows[number], ends_sentence(self.listed, number)
        if _GIVES_RIGHT.search(row) and not re.search("[nedyLg]", row):
            return True
        other_label = "[LN]|^[Mw]+$" if number > 1 else "[LN]"
        led = number and not ends_sentence(self.listed, number - 1)
        if _IS_RIGHT.fullmatch(row) and not (led and re.search(other_label, self.rows[number - 1])):
            return True
        if self._led(number, _LABEL) or self._led(number, _SUBJECT):
            return True
        goes_on = not ends and re.fullmatch("[xmQHJ]*", self.rows[number + 1])  # "Zagreb, capital of Croatia"
        repeats = max(self.listed[n].repeats for n in (number, *([number + 1] if goes_on else [])))
        return repeats >= HALF_QUESTION and not re.search("[dpgyYfLn]", self._sentence(number))

    def is_aside(self, number: int) -> bool:
        """Whether a clause only sets the right answer aside."""
        row, behind = self.rows[number], range(number + 1, min(number + 3, len(self.listed)))
        if self.is_compared(number):
            return True
        if number == 0 and re.fullmatch("[xm]*G[xmd]*", row):
            return False
        if _CONCEDED.search(self._sentence(number)) or _OWN.search(row) or self._is_merely(number):
            return True
        after = ",".join(self.rows[n] for n in behind)
        if _OF_OTHERS.search(self._sentence(number)):
            return True
        if self.of_another.search(row if ends_sentence(self.listed, number) else f"{row},{after}"):
            return True
        if behind and called_no_answer(self.listed, behind[0]) == number:
            return True
        opposed = _OPPOSED.match(after)
        if not opposed or not (_TOLD.search(row) or self._seems(number)) or re.search("n[^q]*$", after):
            return False
        return opposed[0].endswith("j") or any(self.gives(n) or self.states(n) for n in behind)

    def is_compared(self, number: int) -> bool:
        """Whether a clause only compares the right answer with another value, or ranks it behind that."""
        words, after = self._words(number), self.rows[number + 1 : number + 2]
        if words.endswith("라고 >") and after and after[0].startswith("b"):
            return True
        return bool(_COMPARED_INSIDE.search(words) or (number and _COMPARED.search(words)))

    def _is_merely(self, number: int) -> bool:
        """Whether a clause has the right answer alone, and it is merely something else: 杭州只是候选城市."""
        end = self.listed[number].start + len(self.listed[number].letters)
        if number + 1 == len(self.listed) or self.listed[number + 1].start != end:
            return False
        start = self.reading.tokens[end].start
        merely = [word.text for word in self.reading.words[start : start + 2]] == ["只", "是"]
        return merely and bool(re.fullmatch("[bxm]*G[GmQ]*", self.rows[number]))

    def _seems(self, number: int) -> bool:
        """Whether a clause says only that the right answer looks like one."""
        tokens = [token for token in self.tokens[number] if token.letter in "Bmc"]
        return any(self.reading.words[token.start].text.startswith(_SEEMING) for token in tokens)

    # Around a clause

    def _sentence(self, number: int) -> str:
        """A sentence up to the end of a clause."""
        near = range(max(0, number - NEAR), number + 1)
        sentence = self.listed[number].sentence
        return ",".join(self.rows[n] for n in near if self.listed[n].sentence == sentence)

    def _led(self, number: int, label: re.Pattern[str]) -> bool:
        """Whether the clause before is a label of this one."""
        if not number or not label.fullmatch(self.rows[number - 1]):
            return False
        return label is _LABEL or not ends_sentence(self.listed, number - 1)

    def _words(self, number: int) -> str:
        """The words of a clause, the right answer between < and >."""
        clause, text = self.listed[number], ""
        for token in self.reading.tokens[clause.start : clause.start + min(len(clause.letters), MOST_TOKENS)]:
            words = (word.text for word in self.reading.words[token.start : token.end])
            part = "".join(word if HAN_WORD.match(word) else f"{word} " for word in words)
            text += f"<{part}>" if token.letter == "G" and "<" not in text else part
        return text

    def _has_other(self, number: int, patterns: Iterable[re.Pattern[str]]) -> bool:
        """Whether a clause has a value where a pattern expects it, and not a part of the right answer."""
        row = self.rows[number]
        return any(self._is_other(number, match) for each in patterns if (match := each.fullmatch(row)))

    def _is_other(self, number: int, match: re.Match[str]) -> bool:
        tokens = self.tokens[number][slice(*match.span("value"))]
        own = [token for token in tokens if token.letter in "KMw#"]
        words = {word.text for token in own for word in self.reading.words[token.start : token.end]}
        right = {word.text for word in self.right}
        ending = any(word.isdigit() and each.endswith(word) for word in words - right for each in right)
        if not words or words == {"1"} or ending:  # the first of a list, '53 for 1953
            return False
        if self.kind == "number" and any(word[0] == "m" for word in words):  # a date
            return not words <= right and any(word[0] == "m" or len(word) == YEAR for word in right)
        if self.reading.han or self.kind == "number":
            return not words <= right
        return words.isdisjoint(right) and len("".join(words)) > 1  # no letter of a choice


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
