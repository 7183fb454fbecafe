"""The lenient check: what a careful reader would say of an answer.

The right answer and the false one are sought word by word, and do not count where the text denies them;
rejections and reports of errors are sought as phrases.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from evenkeel.benchmarks.rgb import rejection
from evenkeel.benchmarks.rgb.files import Answer
from evenkeel.benchmarks.rgb.rejection import PHRASES
from evenkeel.text.normalization import HAN, Word, plain, words

LONGEST = 20_000
"""Characters of an answer that are read: more is a model that does not stop."""
RECALL = 0.8
"""The share of an answer's words that must be there for it to be given by overlap."""
OVERLAPPING = 3
"""Words that an answer needs before overlap is tried."""


class Verdict(Struct, frozen=True):
    """What the lenient check says of one answer."""

    parts: tuple[int, ...]
    """1 for every part of the right answer that is given, 0 for the others."""
    right: bool
    """All parts are given; at noise 1, where no document has the answer: it was rejected."""
    rejected: bool
    """It says that the documents do not answer the question."""
    detected: bool
    """It says that the documents are in error."""
    states_fake: bool
    """It names the false answer too, if only to report it."""
    how: str
    """What decided: words, overlap, strong rejection, weak rejection, false answer, not found."""

    @property
    def corrected(self) -> bool:
        """An error was reported and the right answer given."""
        return self.detected and self.right and all(self.parts)


def lenient(
    prediction: str, answer: Answer, *, fake: Answer = (), noise: float = 0.0, query: str = ""
) -> Verdict:
    """The verdict on one answer.

    The answer is sought in the whole text, except that after a strong rejection only what follows a
    "however" counts. A weak rejection ("the documents do not mention it") counts in the opening sentence
    and where no answer is given, right, false or guessed. A weak report of an error ("inconsistent") counts
    unless the false answer is given and the right one is not. Of a text without end, its two ends are read.
    With the question it can distinguish a denied answer ("Ada did not win") from one of whom something else
    is denied.
    """
    text = _ends(plain(_ends(prediction)))  # a character may unfold to many
    hits = rejection.rejections(text)
    strong = next((hit for hit in reversed(hits) if hit.strong), None)
    all_words = words(text)
    counted = words(rejection.after_turn(text[strong.end :])) if strong else all_words
    ways = [_given(part, counted, fake, query) for part in answer]
    states_fake = bool(fake) and all(_given(part, all_words, answer, query, equal=True) for part in fake)
    misled = states_fake and _settles_for_fake(text, answer, fake, query)
    right = all(ways) and not misled
    weak = (
        not any(ways)
        and not states_fake
        and bool(hits)
        and hits[0].sentence <= rejection.opening(text)
        and not rejection.guesses(text, hits)
    )
    rejected = strong is not None or weak
    if right:
        how = "overlap" if "overlap" in ways else "words"
    elif misled:
        how = "false answer"
    else:
        how = "strong rejection" if strong else "weak rejection" if weak else "not found"
    return Verdict(
        parts=tuple(int(bool(way)) for way in ways),
        right=rejected if noise == 1 else right,
        rejected=rejected,
        detected=any(hit.strong or right or not states_fake for hit in rejection.errors(text)),
        states_fake=states_fake,
        how=how,
    )


def _ends(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}\n{text[-LONGEST // 2 :]}"


def _settles_for_fake(text: str, answer: Answer, fake: Answer, query: str) -> bool:
    """Whether what is called the answer is the false one and not the right one, though both are named."""
    settled = words(rejection.given_as_answer(text))
    return all(_given(part, settled, answer, query, equal=True) for part in fake) and not all(
        _given(part, settled, fake, query) for part in answer
    )


def _given(
    part: Iterable[str], text: Sequence[Word], rivals: Answer, query: str, *, equal: bool = False
) -> str:
    """How an alternative of a part is given: by its `words`, by `overlap`, or not at all.

    A mention of a rival is not one of the part: "Palm Springs" does not give "Springs". With `equal` that
    holds for an equal rival too: what is right is never taken for the false answer.
    """
    for alternative in part:
        sought = target(alternative, query)
        masked = list(text)
        for rival in (target(other, query) for others in rivals for other in others):
            if sought.joined in rival.joined and (equal or sought.joined != rival.joined):
                for start, end in occurrences(rival, text):
                    masked[start:end] = [word._replace(text="\0", cased="\0") for word in masked[start:end]]
        if any(True for _ in occurrences(sought, masked)):
            return "words"
        if _overlaps(sought, masked):
            return "overlap"
    return ""


# An answer in a text, word by word


class Target(NamedTuple):
    """An answer to look for."""

    words: tuple[Word, ...]
    joined: str
    capitals: bool
    """A word of one or two capitals, which must be written so: US is not us."""
    alone: bool
    """Yes, no, or a single Han character: counts only as a clause by itself, or at the end of one."""
    han: bool
    asked: frozenset[str] | None
    """The words of the question; None where it is not known."""


@lru_cache(maxsize=4096)
def target(answer: str, query: str = "") -> Target:
    listed = words(plain(answer))
    joined = "".join(word.joined for word in listed)
    letters = re.sub(r"[\W\d_]", "", answer)
    return Target(
        listed,
        joined,
        capitals=joined.isalpha() and len(joined) <= 2 and letters.isupper() and letters.isascii(),
        alone=joined in PHRASES.bare or bool(re.fullmatch(f"[{HAN}]", joined)),
        han=bool(re.search(f"[{HAN}]", joined)),
        asked=frozenset(word.text for word in words(plain(query))) if query else None,
    )


def occurrences(sought: Target, text: Sequence[Word]) -> Iterator[tuple[int, int]]:
    """Where the answer is as whole words in a row, spelt with or without gaps, and is not ruled out."""
    for start in range(len(text)):
        spelt = ""
        for end in range(start, len(text)):
            spelt += text[end].joined
            if not sought.joined.startswith(spelt):
                break
            if spelt == sought.joined:
                if _counts(sought, text, start, end + 1):
                    yield start, end + 1
                break


def _counts(sought: Target, text: Sequence[Word], start: int, end: int) -> bool:
    """Whether the words at a position are the answer, and not a part of something else."""
    after = text[end] if end < len(text) else None
    percent = after is not None and after.text in ("%", "‰")
    if text[start].glued or (after and after.glued and not percent):
        return False
    if percent and text[end - 1].number:
        return False
    if sought.capitals and not all(word.cased.isupper() for word in text[start:end]):
        return False
    if sought.alone:
        clause = text[start].clause
        ends = after is None or after.clause != clause
        begins = start == 0 or text[start - 1].clause != clause
        if not (ends and (begins or text[start - 1].text in PHRASES.copula)):
            return False
    return not _is_ruled_out(sought, text, start, end)


def _overlaps(sought: Target, text: Sequence[Word]) -> bool:
    """Whether most of a longer answer's words are together, in any order.

    At least RECALL of the words (middle initials aside) in one sentence, with nothing but function words
    between them, all numbers of the answer among them; and where a word is missing, no other is beside
    them in its place: San Francisco is not San Diego. Chinese answers are not tried: that many characters
    are shared by a hospital and a court of the same town.
    """
    if len(sought.words) < OVERLAPPING or sought.han:
        return False
    needed = Counter(word.text for word in sought.words if not _is_slight(word))
    numbers = [word.text for word in sought.words if word.number]
    for start, first in enumerate(text):
        if needed[first.text] < 1:
            continue
        missing, end = needed.copy(), start
        for position in range(start, len(text)):
            word = text[position]
            if word.sentence != first.sentence or not (missing[word.text] > 0 or _is_slight(word)):
                break
            if missing[word.text] > 0:
                missing[word.text] -= 1
                end = position + 1
        if missing.total() > (1 - RECALL) * needed.total() or any(missing[number] for number in numbers):
            continue
        neighbours = [text[position] for position in (start - 1, end) if 0 <= position < len(text)]
        replaced = any(word.clause == first.clause and not _is_slight(word) for word in neighbours)
        if not (missing.total() and replaced) and not _is_ruled_out(sought, text, start, end):
            return True
    return False


def _is_slight(word: Word) -> bool:
    """A function word or an initial."""
    return word.text in PHRASES.function_words or (len(word.text) == 1 and "a" <= word.text <= "z")


# An answer that the text denies

_NO, _YET, _ADVERBS = PHRASES.not_the_answer, PHRASES.affirms_after_all, PHRASES.adverbs
_WHOLE, _VERB = PHRASES.ruled_out_after, PHRASES.verb_denied_after
_BEFORE = (
    re.compile(rf"\b(?:{'|'.join(_NO.en)})(?: (?!(?:{'|'.join(_YET.en)})\b)\S+){{0,3}}$"),
    re.compile(rf"(?:{'|'.join(_NO.zh)})[^{''.join(_YET.zh)}]{{0,3}}$"),
)
"""In English and in Chinese: a negation up to three words (or Han characters) before an answer, unless a
word next to it takes it back."""
_BEHIND = (
    re.compile(
        rf"(?:(?P<whole>{'|'.join(_WHOLE.en)})|(?:{'|'.join(_VERB.en)}))\b(?! (?:{'|'.join(_YET.en)})\b)"
        rf"(?: (?:{'|'.join(_ADVERBS.en)}))* ?(?P<verb>\S*)(?P<rest>.*)"
    ),
    re.compile(
        rf"(?:(?P<whole>{'|'.join(_WHOLE.zh)})|(?:{'|'.join(_VERB.zh)}))(?![{''.join(_YET.zh)}])"
        rf"(?:{'|'.join(_ADVERBS.zh)})*(?P<verb>.?)(?P<rest>.*)"
    ),
)
"""The same right behind an answer: one that denies the `whole` of it ("is not"), or one of a `verb`, a word
or a Han character, past any adverb."""


def _is_ruled_out(sought: Target, text: Sequence[Word], start: int, end: int) -> bool:
    """Whether the clause says that it is not this: "not held in …", "… did not", 不是…, …不是."""
    clause = text[start].clause
    before = [word.text for word in text[max(0, start - 6) : start] if word.clause == clause]
    after = [word.text for word in text[end : end + 6] if word.clause == clause]
    for gap, before_pattern, behind_pattern in zip((" ", ""), _BEFORE, _BEHIND, strict=True):
        if before_pattern.search(gap.join(before)):
            return True
        behind = behind_pattern.match(gap.join(after))
        if behind and (behind["whole"] or _denies_what_is_asked(behind, sought.asked)):
            return True
    return False


def _denies_what_is_asked(behind: re.Match[str], asked: frozenset[str] | None) -> bool:
    """Whether the verb behind "did not" is the one asked for, or none follows: who "did not attend" may
    have won. Where the question is not known, every verb is taken for it."""
    verb = behind["verb"]
    if asked is None or not verb or re.match(r" (?:it|so|this|that)\b", behind["rest"]):
        return True
    return any(_is_akin(verb, word) for word in asked if word not in PHRASES.function_words)


def _is_akin(verb: str, word: str) -> bool:
    """The same word in another form: host and hosted by their beginning, win and won by their consonants."""
    if min(len(verb), len(word)) < 3:
        return verb == word
    consonants = [re.sub("[aeiou]", "", text) for text in (verb, word)]
    return verb[:4] == word[:4] or consonants[0] == consonants[1]
