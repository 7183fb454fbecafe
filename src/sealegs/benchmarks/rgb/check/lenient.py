"""The lenient check: what a careful reader would say of an answer, by rules that docs/rgb.md lists.

The right answer and the false one are sought word by word (`text/answer_search`). An answer that is
mentioned is right unless the reply denies it or declines; whether it does, and whether it reports an error,
is read from the word classes of its clauses (`text/answer_check`, `decisions`). It is wrong too where it
gives the two values of a question in two parts to each other's part (`exchanged`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sealegs.benchmarks.rgb.check.decisions import Decisions, decide
from sealegs.benchmarks.rgb.check.exchanged import exchanged
from sealegs.benchmarks.rgb.check.quotation import quotation
from sealegs.models.reasoning import split_reasoning
from sealegs.text.answer_check.clauses import TokenSpan
from sealegs.text.answer_check.reply import NamedAnswer, read_reply, reply_words
from sealegs.text.answer_check.restated import said
from sealegs.text.answer_check.wording import ClassifiedReply
from sealegs.text.answer_search.mention import (
    Answer,
    Match,
    ends,
    given,
    plain_query,
    simplified_answer,
)
from sealegs.text.answer_search.yes_no import polarity


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
    listed, query = reply_words(text), plain_query(query)
    answer, fake = simplified_answer(answer), simplified_answer(fake)
    matches = [given(part, listed, fake, query) for part in answer]
    false = [given(part, listed, answer, query, equal=True) for part in fake]
    named = NamedAnswer(answer, matches)
    reading = read_reply(text, listed, query, named, NamedAnswer(fake, false))
    side = _side(text, answer, query)
    mentioned = bool(matches) and all(matches) if side is None else side
    decisions = decide(reading, query, mentioned=mentioned, answered=side is not None)
    if decisions.right and (span := exchanged(reading, query, named)):
        decisions = decisions._replace(right=False, denied=span)
    rejected = decisions.rejected is not None
    return CheckVerdict(
        parts=tuple(
            int((bool(match) or side is True) and (decisions.right or not rejected)) for match in matches
        ),
        right=rejected if noise == 1 else decisions.right,
        rejected=rejected,
        detected=decisions.detected is not None,
        given=decisions.right,
        states_fake=bool(false) and all(false),
        matches=matches,
        false=false,
        words=_DecisionWords(text, reading, decisions),
    )


def _side(text: str, answer: Answer, query: str) -> bool | None:
    """Whether a reply says the right one of yes and no; None where it says, or the answer is, neither."""
    expected = {polarity(alternative) for part in answer for alternative in part} - {None}
    if len(answer) != 1 or len(expected) != 1:
        return None
    verdict = said(text, query)
    return None if verdict is None else verdict in expected


def visible_text(prediction: str) -> str:
    """A reply without its reasoning; a block of reasoning that is not closed stays."""
    text = ends(prediction)
    answer_text, _, closed = split_reasoning(text)
    return answer_text if closed else text


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
