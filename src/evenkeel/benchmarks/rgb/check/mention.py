"""An answer in a text, word by word: as it is spelt, by most of its words, by a surname or a number alone.

It does not count where the clause denies it ("not held in …", "… did not win").
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Literal, NamedTuple

from evenkeel.benchmarks.rgb.check.wording import PHRASES, asks_for_person
from evenkeel.benchmarks.rgb.files import Answer
from evenkeel.text.normalization import HAN, Word, plain, words

RECALL = 0.8
"""The share of an answer's words that must be there for it to be given by overlap."""
OVERLAPPING = 3
"""Words that an answer needs before overlap is tried."""
MOST_WORDS = 60
"""Words of the longest answer that is sought by overlap."""
UNITS = frozenset(PHRASES.units.values())


class Match(NamedTuple):
    """Where a text gives a part of an answer, and how."""

    how: Literal["words", "overlap"]
    alternative: int
    """Which alternative of the part, by its index."""
    start: int
    end: int
    """Of its words in the text."""


def given(
    part: Iterable[str], text: Sequence[Word], rivals: Answer, query: str, *, equal: bool = False
) -> Match | None:
    """How an alternative of a part is given: by its `words`, by `overlap`, or not at all.

    A mention of a rival is not one of the part: "Palm Springs" does not give "Springs". With `equal` that
    holds for an equal rival too: what is right is never taken for the false answer.
    """
    for number, alternative in enumerate(part):
        sought = target(alternative, query)
        masked = text
        for rival in (target(other, query) for others in rivals for other in others):
            if sought.joined in rival.joined and (equal or sought.joined != rival.joined):
                masked = list(masked)
                for start, end in occurrences(rival, text):
                    masked[start:end] = [word._replace(text="\0", cased="\0") for word in masked[start:end]]
        if whole := next(occurrences(sought, masked), None):
            return Match("words", number, *whole)
        if most := _overlap(sought, masked):
            return Match("overlap", number, *most)
        if short := _surname(sought, masked, query) or _number_alone(sought, masked, query):
            return Match("words", number, *short)
    return None


def _number_alone(sought: Target, text: Sequence[Word], query: str) -> tuple[int, int] | None:
    """Where an answer of a number and its unit is given by the number alone, at the end of a clause."""
    number, *unit = sought.words or (None,)
    if (
        number is None
        or not number.number
        or not 0 < len(unit) < 4
        or any(w.number or w.text == "%" for w in unit)
    ):
        return None
    for start, end in occurrences(target(number.cased, query), text):
        if end == len(text) or text[end].clause != text[start].clause:
            return start, end
    return None


def _surname(sought: Target, text: Sequence[Word], query: str) -> tuple[int, int] | None:
    """Where a person that the question asks for is given by the surname alone."""
    if len(sought.words) < 2 or not asks_for_person(query) or any(word.number for word in sought.words):
        return None
    if sought.han or any(True for _ in mentions(sought, text)):
        return None
    surname = target(sought.words[-1].cased, query)
    allowed = {word.text for word in sought.words} | set(PHRASES.titles) | (sought.asked or frozenset())
    for start, end in occurrences(surname, text):
        before = text[start - 1] if start and text[start - 1].clause == text[start].clause else None
        after = text[end] if end < len(text) and text[end].clause == text[start].clause else None
        named = before is not None and before.cased[:1].isupper() and before.text not in allowed
        if text[start].cased[:1].isupper() and not named and not (after and after.cased[:1].isupper()):
            return start, end
    return None


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
    return (place for place in mentions(sought, text) if not _is_ruled_out(sought, text, *place))


def mentions(sought: Target, text: Sequence[Word]) -> Iterator[tuple[int, int]]:
    """Where the answer is, ruled out or not."""
    spelt, starts = _spelt(tuple(text))
    place = spelt.find(sought.joined) if sought.joined else -1
    while place >= 0:
        start, end = (bisect_left(starts, offset) for offset in (place, place + len(sought.joined)))
        whole = starts[start] == place and starts[end] == place + len(sought.joined)
        if whole and _counts(sought, text, start, end):
            yield start, end
        place = spelt.find(sought.joined, place + (len(sought.joined) if whole else 1))


@lru_cache(maxsize=64)
def _spelt(text: tuple[Word, ...]) -> tuple[str, list[int]]:
    """A text without gaps, and where its words begin and the last one ends."""
    joined = [word.joined for word in text]
    return "".join(joined), [0, *accumulate(map(len, joined))]


def _counts(sought: Target, text: Sequence[Word], start: int, end: int) -> bool:
    """Whether the words at a position are the answer, and not a part of something else."""
    after = text[end] if end < len(text) else None
    percent = after is not None and after.text in ("%", "‰")
    if text[start].glued or (after and after.glued and not percent and after.text not in UNITS):
        return False
    if percent and text[end - 1].number:
        return False
    if sought.capitals and not all(word.cased.isupper() for word in text[start:end]):
        return False
    if sought.alone:
        clause = text[start].clause
        ends = after is None or after.clause != clause
        begins = start == 0 or text[start - 1].clause != clause
        follows = {*PHRASES.after_alone, *(sought.asked or ())}
        ends = ends or (sought.han and after is not None and after.text in follows)
        if not (ends and (begins or text[start - 1].text in PHRASES.copula)):
            return False
    return True


def _overlap(sought: Target, text: Sequence[Word]) -> tuple[int, int] | None:
    """Where most of a longer answer's words are together, in any order.

    At least RECALL of the words (middle initials aside) in one sentence, with nothing but function words
    between them, all numbers of the answer among them; and where a word is missing, no other is beside
    them in its place: San Francisco is not San Diego. Chinese answers are not tried: that many characters
    are shared by a hospital and a court of the same town.
    """
    if not OVERLAPPING <= len(sought.words) <= MOST_WORDS or sought.han:
        return None
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
            return start, end
    return None


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
    if len(before) > 1 and sought.asked and not sought.asked.isdisjoint(PHRASES.contest):
        for rival in (*PHRASES.rivals.en, *PHRASES.rivals.zh):
            parts = rival.split() if rival.isascii() else list(rival)
            if before[-len(parts) :] == parts and not (sought.asked and sought.asked & set(parts)):
                return True
    after = [word.text for word in text[end : end + 6] if word.clause == clause]
    for gap, before_pattern, behind_pattern in zip((" ", ""), _BEFORE, _BEHIND, strict=True):
        if before_pattern.search(gap.join(before)):
            return True
        behind = behind_pattern.match(gap.join(after))
        if behind and (_denies_all(behind, sought.asked) or _denies_what_is_asked(behind, sought.asked)):
            return True
    return False


def _denies_all(behind: re.Match[str], asked: frozenset[str] | None) -> bool:
    """Whether it "is not" the answer, or, where the question does not ask for that, "came second"."""
    whole = behind["whole"]
    if not whole or re.search("not|不是|并非", whole):
        return bool(whole)
    return asked is not None and asked.isdisjoint(whole.split() if whole.isascii() else whole)


def _denies_what_is_asked(behind: re.Match[str], asked: frozenset[str] | None) -> bool:
    """Whether the verb behind "did not" is the one asked for, or none follows: who "did not attend" may
    have won. Where the question is not known, every verb is taken for it."""
    if behind["whole"]:
        return False
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
