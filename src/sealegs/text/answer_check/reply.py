"""A reply with the answers in it marked, as `wording` reads it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from sealegs.text.answer_check.wording import ClassifiedReply, read
from sealegs.text.answer_search.mention import (
    Answer,
    Match,
    asked_spellings,
    mentions,
    target,
    text_words,
)
from sealegs.text.answer_search.normalization import Word
from sealegs.text.answer_search.spelling import simplified

_BLANK = re.compile(r"(?<=[\w*])[ \t]*[:：→][* \t]{0,8}(?:[-–—?？∅…]{1,8}|\.{3})[ \t]*$", re.MULTILINE)
_BLANK_CELL = re.compile(r"(?<=\w)[ \t]*\|[ \t]*(?:[✗❌✘?？—–]|-{1,2})[ \t]*(?=\|)")
_TITLE = re.compile(
    '《(?P<han>[^《》\n]{1,40})》|(?<![*\\w])[*"\u201c](?!No|Insufficient|Information|Document)'
    "(?P<latin>[A-Z][\\w'\u2019]*"
    "(?: (?:(?:of|the|and|in|to|a|for|from|on|at|with|by) ){0,2}[A-Z][\\w'\u2019]*){1,6})"
    '[*"\u201d](?![*\\w])'
)
"""A title in its marks; in Latin letters of words with capitals, in italics or quotation marks."""
_OFFER = re.compile(
    r"(?<=[.!?。！？\n])\s*(?:(?:Would|Do|Shall|Should|Can|Could|May) (?:you|I|we)\b"
    r"|(?:请问|是否|您|你|需要|要不要|希望)[^。！？?\n]{0,12}我)[^.。！？?\n]{1,200}[?？]"
)
_REPEATED = re.compile(
    r"\b(?:If [^.!?\n]{1,150}, |Otherwise,? )(?:then |please |just |simply |you (?:should|must) ){0,2}"
    r"(?:write|say|reply|respond|answer|state)(?: with| that)?:? "
    r"(?:[\"\u201c'][^\"\u201d\n]{1,200}[\"\u201d']?|(?:that|you|so|I)\b[^.!?\n]{0,200})"
    r"|(?:not|n't) (?:contain|include|have) (?:the|this|that) (?:\w+ )?(?:sentence|statement|quote):? "
    r"[\"\u201c][^\"\u201d\n]{1,200}[\"\u201d]?"
    r"|(?:如果|若)[^。！？\n]{1,60}，请?(?:先|直接)?(?:写|说|回答|回复)[“\"][^”\"\n]{1,80}[”\"]?"
)
"""What is only repeated: an instruction what to write, and a sentence that a text is said not to have."""
_STRUCK = re.compile(r"~~[^~\n]{1,200}~~")
_CROSS = re.compile(r"(?<=[\w*])[ \t]{0,8}[❌✗✘][ \t]*(?=\||$)", re.MULTILINE)
_CROSS_THEN_CHECK = re.compile(r"(?<=[\w*])[ \t]{0,8}[❌✗✘](?=[^❌✗✘\n]{1,200}[✅✔✓])")
_CROSS_BEFORE = re.compile(
    r"^[ \t>*-]{0,8}[❌✗✘][ \t]*(?![^\n]*(?:[Dd]oc|\b[Nn]ot?\b|文档))(?P<wrong>[^❌✗✘✅✔✓:：\n]{1,40}?)"
    r"[ \t]*\n?[ \t>*-]{0,8}[✅✔✓][ \t]*",
    re.MULTILINE,
)


class NamedAnswer(NamedTuple):
    """An answer, and where a reply has its parts."""

    answer: Answer
    matches: Sequence[Match | None]


NO_ANSWER = NamedAnswer((), ())
OTHER_PART = "m"


def reply_words(text: str) -> tuple[Word, ...]:
    """The words of a reply, with marks that stand for words written out."""
    return text_words(_marks_read(text))


def read_reply(
    text: str,
    listed: Sequence[Word],
    query: str,
    right: NamedAnswer,
    false: NamedAnswer,
    others: NamedAnswer = NO_ANSWER,
) -> ClassifiedReply:
    """The classes of a reply's words, with the right answer and the false one marked. `others`: further parts
    of the answer, which are no values beside this one."""
    spans = answer_spans(others, listed, OTHER_PART, query) | answer_spans(false, listed, "K", query)
    spans |= answer_spans(right, listed, "G", query)
    marked = (match["han"] or match["latin"] for match in _TITLE.finditer(simplified(text)))
    titles = tuple((title,) for title in marked if title not in query)
    if titles:
        taken = {place for start, (end, _) in spans.items() for place in range(start, end)}
        named = answer_spans(NamedAnswer(titles, ()), listed, "M", query)
        spans |= {start: span for start, span in named.items() if taken.isdisjoint(range(start, span[0]))}
    return read(listed, query, spans)


def answer_spans(
    named: NamedAnswer, listed: Sequence[Word], letter: str, query: str
) -> dict[int, tuple[int, str]]:
    """The mentions of an answer: the end and the letter of the longest by its start."""
    spans: dict[int, tuple[int, str]] = {}
    targets = [
        target(spelling, query)
        for part in named.answer
        for alternative in part
        for spelling in asked_spellings(alternative, query)
    ]
    # What was found in another way, as a surname alone is, is marked wherever it is.
    found = [listed[match.start : match.end] for match in named.matches if match]
    targets += [target(" ".join(word.cased for word in words), query) for words in found]
    for sought in dict.fromkeys(targets):
        for start, end in mentions(sought, listed):
            spans[start] = max(spans.get(start, (0, letter)), (end, letter))
    return spans


def _marks_read(text: str) -> str:
    """A text with marks that stand for words written out ("Year: ?", "1998 ❌"), without those struck out,
    what the reply offers to do, and what it only repeats ("If they do not, write that you cannot tell")."""
    text = _STRUCK.sub(" ", _REPEATED.sub("", _OFFER.sub("", text)))
    text = _BLANK_CELL.sub(": unknown", _BLANK.sub(": unknown", text))
    text = _CROSS_BEFORE.sub(r"Wrong: \g<wrong>\nRight: ", text)
    return _CROSS.sub(" wrong", _CROSS_THEN_CHECK.sub(" wrong; ", text))
