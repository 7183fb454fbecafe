"""The lenient check: what a careful reader would say of an answer.

The right answer and the false one are sought word by word (`mention`). What the reply does with them, and
whether it declines or reports an error, is read from its wording (`classifier`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evenkeel.benchmarks.rgb.check.classifier import Decisions, Flags, decide, telling_sentence
from evenkeel.benchmarks.rgb.check.wording import Reading, read
from evenkeel.models.reasoning import split_reasoning
from evenkeel.text.answer_search.mention import (
    Answer,
    Match,
    ends,
    given,
    mentions,
    plain_query,
    simplified_answer,
    target,
    text_words,
)
from evenkeel.text.answer_search.normalization import Word, spellings


class Verdict(NamedTuple):
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
    matches: Sequence[Match | None]
    """Where each part of the right answer is."""
    false: Sequence[Match | None]
    """The same of the false answer."""
    reading: Reading
    flags: Flags

    @property
    def corrected(self) -> bool:
        """An error was reported and the right answer given."""
        return self.detected and self.right and all(self.parts)

    @property
    def states_fake(self) -> bool:
        """It names the false answer too, if only to report it."""
        return self.flags.states_fake

    def telling_sentence(self, decision: str) -> str:
        """The words of the sentence that speaks most for a decision, `rejected` or `detected`."""
        return telling_sentence(self.reading, self.flags, decision)


def lenient(
    prediction: str, answer: Answer, *, fake: Answer = (), noise: float = 0.0, query: str = ""
) -> Verdict:
    """The verdict on one answer.

    The answer is sought in the whole text, in any spelling of its words, numbers and dates. Whether it is
    given as the answer or only named, whether the reply declines and whether it reports an error, a
    classifier decides from the wording around it. Of a text without end, its two ends are read.
    """
    reading, matches, false = read_reply(prediction, answer, fake, query)
    flags = Flags(bool(false) and all(false), any(matches), bool(matches) and all(matches))
    decisions = decide(reading, flags) if reading.letters else Decisions(False, False, False)
    # Of an answer in other words than the right one's, the classifier sees nothing to doubt.
    right = flags.all_parts and (decisions.right or "G" not in reading.letters)
    return Verdict(
        parts=tuple(int(bool(match) and (right or not decisions.rejected)) for match in matches),
        right=decisions.rejected if noise == 1 else right,
        rejected=decisions.rejected,
        detected=decisions.detected,
        given=right,
        matches=matches,
        false=false,
        reading=reading,
        flags=flags,
    )


def read_reply(
    prediction: str, answer: Answer, fake: Answer, query: str
) -> tuple[Reading, list[Match | None], list[Match | None]]:
    """The classes of a reply, and where each part of the right answer and of the false one is in it."""
    text = ends(prediction)
    answer_text, _, closed = split_reasoning(text)
    listed = text_words(answer_text if closed else text)  # a block that is not closed stays
    query = plain_query(query)
    answer, fake = simplified_answer(answer), simplified_answer(fake)
    spans = _spans(fake, listed, "K", query) | _spans(answer, listed, "G", query)
    matches = [given(part, listed, fake, query) for part in answer]
    false = [given(part, listed, answer, query, equal=True) for part in fake]
    return read(listed, query, spans), matches, false


def _spans(answer: Answer, listed: Sequence[Word], letter: str, query: str) -> dict[int, tuple[int, str]]:
    """The mentions of an answer: the end and the letter of the longest by its start."""
    spans: dict[int, tuple[int, str]] = {}
    alternatives = [alternative for part in answer for alternative in part]
    for spelling in (spelling for alternative in alternatives for spelling in spellings(alternative)):
        for start, end in mentions(target(spelling, query), listed):
            spans[start] = max(spans.get(start, (0, letter)), (end, letter))
    return spans
