"""Where a reply names the right answer only beside another one that it gives.

"It's Toronto, which is bigger than Ottawa" gives Toronto. What follows a clause with another value gives no
answer where it is a relative clause, a comparison, a rank ("followed by Ottawa") or a word on somebody else
("a friend of Shakespeare"); and what comes before "but it was Marlowe" is conceded. In the patterns the bar
is the end of the right answer's words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sealegs.text.answer_check.clauses import Clause
from sealegs.text.answer_check.wording import ClassifiedReply, value_letters

_COMPARED = re.compile(
    r"\b(?:than|followed(?: \w+){0,2} by|(?:ahead|in front) of|behind|compared (?:with|to)|unlike"
    r"|not far from|(?:close|next) to)(?: \w+){0,4} $"
    r"|(?:比(?!分)|超过|[早晚高低大小长短多少]于)\w{0,4}$"
)
"""Behind which another value is what the one given is compared with."""
_RELATIVE = re.compile(
    r"^(?:and )?(?:(?:with|of|to|by|from|for|in|after|before) )?(?:which|who|whose|whom|where)\b"
)
_NAMED = re.compile(r"\b(?:called|named|known as|namely|(?:is|was|are|were)(?: in)?) $")
_TIMED = re.compile(
    r"^(?:only |just )?(?:\d+ )?(?:year|month|day|week|decade|centur)\w* .{0,20}\b(?:than|before|after)\b"
)
_OF_SOMEBODY = re.compile(r"^\w+ (?:\w+ )?of $")
_ORDINAL = r"(?:second|third|fourth|fifth|next|第 ?[2-5二三四五]|(?:두|세|네|[2-5]) ?번째)"
_RANKED_BEFORE = re.compile(
    rf"\b{_ORDINAL}(?: \w+){{0,3}} (?:is|was|by|place) $"
    r"|(?:其次|第 ?[23二三]).{0,8}$|(?:(?:두|세|2|3) ?번째|그다음)\S{0,3} (?:\S+ ){0,2}$"
)
_RANKED_AFTER = re.compile(
    rf"\|(?:is |was |comes |came |ranks |takes )(?:only |in )?{_ORDINAL}\b"
    r"|\|(?:位居|位列|排|名列)\S{0,3}第|\|(?:그 )?뒤를|\|(?:두|세|2|3) ?번째"
)
_COMPARED_AFTER = re.compile(
    r"보다 \||^\d\S* \|(?:\S+ ){0,2}\S+보다 |[와과] \|(?:함께|달리) |의 \|\S{1,5}[던인] "
    r"|\|[동서남북]쪽에 있는 |\|[以之][东西南北]"
)
_WITH = re.compile(r"\|[一共]?(?:同|共|起|并列)")
"""与弗莱明同获."""
_PLACED = re.compile(r"\b(?:in|at|on|from|near|of)(?: \w+){1,2} $")
_HIS = re.compile(r"\|的\S{1,4}$")
"""弗莱明的同事, behind another person."""
_CONCEDED = re.compile("^b[xmt]*(?:j[mtB]*|[QHmxJ]+[mt]*B[mt]*)(?:[cQw]x)?[M#w]$")
"""A contrast that gives another value: "but it was written by Marlowe"."""
_CONCEDED_IN_KOREAN = re.compile(r"라고 \|$")
_GIVEN_UP = re.compile("[GngLlfFYe~]")
"""What names the right answer, or is denied, believed by others or conceded."""
_LEADING = re.compile("^[bgxmVrtSTauj]+")
_TRAILING = re.compile("[xmHQjIoP]+$")


def given_beside(rows: Sequence[Clause], reading: ClassifiedReply, query: str) -> set[int]:
    """The clauses that name the right answer only beside another one that the reply gives."""
    beside: set[int] = set()
    last = None
    """The last clause before that gives another value."""
    for number, clause in enumerate(rows):
        after = rows[number + 1] if number + 1 < len(rows) else None
        if "G" not in clause.letters:
            last = clause if _is_value(clause.letters, reading, query) else last
        elif _is_conceded(clause, after, reading, query) or (
            last is not None and _is_beside(clause, last, rows[number - 1], reading, query)
        ):
            beside.add(number)
    return beside


def _is_conceded(clause: Clause, after: Clause | None, reading: ClassifiedReply, query: str) -> bool:
    """Whether the next clause gives another answer ("often attributed to Shakespeare, but it was Marlowe"),
    or this one does at its end (오타와보다 큰 토론토입니다)."""
    named = _around(clause, reading)[1]
    letters = clause.letters
    if _COMPARED_AFTER.search(named) and letters[-1] in "wM#":
        return True
    contrast = after.letters if after else ""
    if contrast[:1] == "b" and _CONCEDED_IN_KOREAN.search(named):
        return True
    hedged = re.search("^[^nbG]*[wc][^nbG]*G", letters)
    return bool(hedged and _CONCEDED.search(contrast)) and _is_value(contrast, reading, query)


def _is_beside(clause: Clause, last: Clause, previous: Clause, reading: ClassifiedReply, query: str) -> bool:
    """Whether a clause only says more of the other value of the last one."""
    before, named = _around(clause, reading)
    opening = clause.letters[: clause.letters.index("G")]
    if re.search("[nb]", opening):
        return False
    if (_RANKED_BEFORE.search(before) or _RANKED_AFTER.search(named)) and not re.search(_ORDINAL, query):
        return True
    compared = _COMPARED.search(before)
    if _COMPARED_AFTER.search(named) or (compared and opening[0] in "jI"):
        return True
    if last.sentence != clause.sentence:
        return False
    if compared and not re.search("M.*B", opening):
        return True
    if _TIMED.search(before) or (before[-1:] in tuple("与和同跟") and _WITH.search(named)):
        return True
    of_another = opening[:1] in tuple("wm") and _OF_SOMEBODY.search(before)
    if previous is last and (of_another or (not before and _HIS.search(named))):
        return True
    placed = "#" not in last.letters and _PLACED.search(_text(last, reading, 0, len(last.letters)))
    return bool(_RELATIVE.search(before)) and not (_NAMED.search(before) or "Q" in opening or placed)


def _is_value(letters: str, reading: ClassifiedReply, query: str) -> bool:
    """Whether a clause gives another value of the kind that is asked for."""
    if _GIVEN_UP.search(letters):
        return False
    values = "M#" if "M" in letters and not reading.han else value_letters(query, han=reading.han)
    core = _TRAILING.sub("", _LEADING.sub("", letters))
    return bool(core) and (core[-1] in values or core[0] in values)


def _around(clause: Clause, reading: ClassifiedReply) -> tuple[str, str]:
    """The words of a clause before the right answer, and from it on with a bar behind it."""
    place, end = clause.letters.index("G"), len(clause.letters)
    name, behind = _text(clause, reading, place, place + 1), _text(clause, reading, place + 1, end)
    return _text(clause, reading, 0, place), f"{name}|{behind}"


def _text(clause: Clause, reading: ClassifiedReply, first: int, last: int) -> str:
    """The words of a clause's tokens."""
    tokens = reading.tokens[clause.start + first : clause.start + last]
    words = (word.text for token in tokens for word in reading.words[token.start : token.end])
    return "".join(word if "\u3400" <= word[0] <= "\u9fff" else f"{word} " for word in words)
