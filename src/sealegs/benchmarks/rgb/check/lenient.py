"""The lenient check: what a careful reader would say of an answer, by rules that docs/rgb.md lists.

The right answer and the false one are sought word by word (`text/answer_search`). An answer that is
mentioned is right unless the reply denies it or declines; whether it does, and whether it reports an error,
is read from the word classes of its clauses (`text/answer_check`, `decisions`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sealegs.benchmarks.rgb.check.decisions import Decisions, decide
from sealegs.benchmarks.rgb.check.quotation import quotation
from sealegs.models.reasoning import split_reasoning
from sealegs.text.answer_check.clauses import TokenSpan
from sealegs.text.answer_check.wording import ClassifiedReply, read
from sealegs.text.answer_search.mention import (
    Answer,
    Match,
    asked_spellings,
    ends,
    given,
    mentions,
    plain_query,
    simplified_answer,
    target,
    text_words,
)
from sealegs.text.answer_search.normalization import Word
from sealegs.text.answer_search.spelling import simplified

_BLANK = re.compile(r"(?<=[\w*])[ \t]*[:：→][* \t]{0,8}(?:[-–—?？∅…]{1,8}|\.{3})[ \t]*$", re.MULTILINE)
_BLANK_CELL = re.compile(r"(?<=\w)[ \t]*\|[ \t]*(?:[✗❌✘?？—–]|-{1,2})[ \t]*(?=\|)")
_TITLE = re.compile("《([^《》\n]{1,40})》")
_STRUCK = re.compile(r"~~[^~\n]{1,200}~~")
_CROSS = re.compile(r"(?<=[\w*])[ \t]{0,8}[❌✗✘][ \t]*(?=\||$)", re.MULTILINE)
_CROSS_THEN_CHECK = re.compile(r"(?<=[\w*])[ \t]{0,8}[❌✗✘](?=[^❌✗✘\n]{1,200}[✅✔✓])")
_CROSS_BEFORE = re.compile(
    r"^[ \t>*-]{0,8}[❌✗✘][ \t]*(?![^\n]*(?:[Dd]oc|\b[Nn]ot?\b|文档))(?P<wrong>[^❌✗✘✅✔✓:：\n]{1,40}?)"
    r"[ \t]*\n?[ \t>*-]{0,8}[✅✔✓][ \t]*",
    re.MULTILINE,
)


class CheckVerdict(NamedTuple):
    """What the lenient check says of one answer, and what it was reached by."""

    parts: tuple[int, ...]
    """1 for every part of the right answer that is there, 0 for the others and where the reply declines."""
    right: bool
    """All parts are given; at noise 1, where no document has the answer: it was rejected."""
    rejected: bool
    """It says that the documents do not answer the question."""
    detected: bool
    """It says that the documents are in error."""
    given: bool
    """All parts are given as the answer, not only named."""
    states_fake: bool
    """It names the false answer too, if only to report it."""
    matches: Sequence[Match | None]
    """Where each part of the right answer is."""
    false: Sequence[Match | None]
    """The same of the false answer."""
    words: Mapping[str, str]
    """The words of the reply that decided: that it is `rejected`, `detected`, that its answer is `denied`."""

    @property
    def corrected(self) -> bool:
        """An error was reported and the right answer given."""
        return self.detected and self.right and all(self.parts)


def lenient(
    prediction: str, answer: Answer, *, fake: Answer = (), noise: float = 0.0, query: str = ""
) -> CheckVerdict:
    """The verdict on one answer.

    The answer is sought in the whole text, in any spelling of its words, numbers and dates. Whether it is
    given as the answer or denied, whether the reply declines and whether it reports an error, rules decide
    from the wording of the clauses. Of a text without end, its two ends are read.
    """
    text = visible_text(prediction)
    listed, query = text_words(_marks_read(text)), plain_query(query)
    answer, fake = simplified_answer(answer), simplified_answer(fake)
    matches = [given(part, listed, fake, query) for part in answer]
    false = [given(part, listed, answer, query, equal=True) for part in fake]
    spans = _spans(fake, false, listed, "K", query) | _spans(answer, matches, listed, "G", query)
    titles = tuple((title,) for title in _TITLE.findall(simplified(text)) if title not in query)
    if titles:
        taken = {place for start, (end, _) in spans.items() for place in range(start, end)}
        named = _spans(titles, (), listed, "M", query)
        spans |= {start: span for start, span in named.items() if taken.isdisjoint(range(start, span[0]))}
    reading = read(listed, query, spans)
    decisions = decide(reading, query, mentioned=bool(matches) and all(matches))
    rejected = decisions.rejected is not None
    return CheckVerdict(
        parts=tuple(int(bool(match) and (decisions.right or not rejected)) for match in matches),
        right=rejected if noise == 1 else decisions.right,
        rejected=rejected,
        detected=decisions.detected is not None,
        given=decisions.right,
        states_fake=bool(false) and all(false),
        matches=matches,
        false=false,
        words=_DecisionWords(text, reading, decisions),
    )


def visible_text(prediction: str) -> str:
    """A reply without its reasoning; a block of reasoning that is not closed stays."""
    text = ends(prediction)
    answer_text, _, closed = split_reasoning(text)
    return answer_text if closed else text


def _marks_read(text: str) -> str:
    """A text with marks that stand for words written out ("Year: ?", "1998 ❌"), without those struck out."""
    text = _STRUCK.sub(" ", text)
    text = _BLANK_CELL.sub(": unknown", _BLANK.sub(": unknown", text))
    text = _CROSS_BEFORE.sub(r"Wrong: \g<wrong>\nRight: ", text)
    return _CROSS.sub(" wrong", _CROSS_THEN_CHECK.sub(" wrong; ", text))


class _DecisionWords(Mapping[str, str]):
    """The words of each decision, looked up only when somebody reads them."""

    def __init__(self, text: str, reading: ClassifiedReply, decisions: Decisions) -> None:
        spans = {name: getattr(decisions, name) for name in ("rejected", "detected", "denied")}
        self._text, self._reading = text, reading
        self._spans: dict[str, TokenSpan] = {name: span for name, span in spans.items() if span}

    def __getitem__(self, name: str) -> str:
        span = self._spans[name]
        tokens = self._reading.tokens[span.start : span.end]
        return quotation(self._text, self._reading.words, tokens[0].start, tokens[-1].end)

    def __iter__(self) -> Iterator[str]:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)


def _spans(
    answer: Answer, matches: Sequence[Match | None], listed: Sequence[Word], letter: str, query: str
) -> dict[int, tuple[int, str]]:
    """The mentions of an answer: the end and the letter of the longest by its start."""
    spans: dict[int, tuple[int, str]] = {}
    targets = [
        target(spelling, query)
        for part in answer
        for alternative in part
        for spelling in asked_spellings(alternative, query)
    ]
    # What was found in another way, as a surname alone is, is marked wherever it is.
    found = [listed[match.start : match.end] for match in matches if match]
    targets += [target(" ".join(word.cased for word in words), query) for words in found]
    for sought in dict.fromkeys(targets):
        for start, end in mentions(sought, listed):
            spans[start] = max(spans.get(start, (0, letter)), (end, letter))
    return spans
