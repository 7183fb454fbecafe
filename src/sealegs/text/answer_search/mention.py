"""An answer in a text, word by word: in any spelling, or by a surname or a number alone.

    expected = parts([["4 years", "48 months"], "Ada Lock"])
    find_answer("Lock served four years.", expected, "Who served, and for how long?")

has a `Match` for each of the two parts. It says that a text mentions an answer, and not whether the text
gives it as its own: "not Ada Lock" mentions her. English, Chinese and Korean spellings are made equal
(`normalization`, `spelling`, `korean`); texts in other languages are compared by their words as they are.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from sealegs.text.answer_search.equivalents import spellings
from sealegs.text.answer_search.korean import is_noun_ending
from sealegs.text.answer_search.normalization import HAN, Word, plain, words
from sealegs.text.answer_search.numbers import HAN_NUMERALS
from sealegs.text.answer_search.spelling import SPELLING, asks_for_person, simplified

Answer: TypeAlias = tuple[tuple[str, ...], ...]
"""Parts that must all be given; of a part, any one of its alternatives."""
RawAnswer: TypeAlias = str | list[str | list[str]]
"""An answer as files write it: a text, a list of parts, or a list of lists of alternatives."""
LONGEST_REPLY_CHARS = 20_000
"""Characters of a text that are read, half of them from its end: more is a model that does not stop."""
LONGEST_PREFIX = 4
"""Words beside a name of a person that may belong to it: the particles of Ludwig van der Rohe, an initial."""
_NO_KINDS = HAN_NUMERALS.union("年月日时多远")
"""Characters of a question that are no kind of thing, and may end a name: 岳延年 is not 岳延."""
UNITS = frozenset(SPELLING.units.values())


class Match(NamedTuple):
    """Where a text has a part of an answer."""

    alternative: int
    """Which alternative of the part, by its index."""
    start: int
    end: int
    """Of its words in the text."""


def parts(answer: RawAnswer | None) -> Answer:
    """An answer as parts, each with its alternatives."""
    listed = [answer] if isinstance(answer, str) else answer or []
    return tuple((part,) if isinstance(part, str) else tuple(part) for part in listed)


def check_answer(name: str, answer: RawAnswer) -> None:
    """Raise ValueError where a field holds no answer."""
    listed = parts(answer)
    if not listed or not all(listed):
        raise ValueError(f"the field '{name}' is an empty list")
    if not all(alternative.strip() for part in listed for alternative in part):
        raise ValueError(f"the field '{name}' holds an empty text")


def find_answer(text: str, answer: Answer, query: str = "") -> list[Match | None]:
    """Where a text mentions each part of an answer; None for a part that is not there.

    A surname alone counts only where `query` asks for a person. Reasoning before the answer is read like
    everything else: leave it out before.
    """
    listed = text_words(text)
    return [given(part, listed, (), plain_query(query)) for part in simplified_answer(answer)]


def text_words(text: str) -> tuple[Word, ...]:
    """The words of a text as answers are compared with them."""
    # A character may unfold to many, so that a text is cut once more.
    return words(ends(simplified(plain(ends(text).replace("_", " ")))))


@lru_cache(maxsize=1024)
def plain_query(query: str) -> str:
    return ends(simplified(plain(ends(query))))


@lru_cache(maxsize=4096)
def simplified_answer(answer: Answer) -> Answer:
    return tuple(tuple(simplified(alternative) for alternative in part) for part in answer)


def ends(text: str) -> str:
    """The two ends of a text without end."""
    return (
        text
        if len(text) <= LONGEST_REPLY_CHARS
        else f"{text[: LONGEST_REPLY_CHARS // 2]}\n{text[-LONGEST_REPLY_CHARS // 2 :]}"
    )


def given(
    part: Iterable[str], text: Sequence[Word], rivals: Answer, query: str, *, equal: bool = False
) -> Match | None:
    """Where an alternative of a part is, in any spelling or by the surname or the number alone; or None.

    A mention of a rival is not one of the part: "Palm Springs" does not give "Springs". With `equal` that
    holds for an equal rival too: what is right is never taken for the false answer.
    """
    rival_targets = [target(other, query) for others in rivals for other in others]
    for number, alternative in enumerate(part):
        for sought in (target(spelling, query) for spelling in asked_spellings(alternative, query)):
            masked = _masked(sought, text, rival_targets, equal=equal)
            place = next(mentions(sought, masked), None)
            place = place or _surname(sought, masked, query)
            place = place or (None if is_title(alternative) else _number_alone(sought, masked, query))
            place = place or _with_middle_names(sought, masked, query)
            if place is not None:
                return Match(number, *place)
        listed = [given([name], text, rivals, query, equal=equal) for name in _enumerated(alternative)]
        if listed and all(listed):
            return Match(number, *listed[0][1:])  # type: ignore[index]
    return None


def _enumerated(alternative: str) -> list[str]:
    """The names of an answer that lists several: "Ana, Bo and Cy", 陈冬、刘洋."""
    if "、" in alternative:
        return alternative.split("、")
    names = re.split(r",? (?:and|&) |, ", alternative)
    several = len(names) > 2 or all(name[:1].isupper() for name in names)
    return names if several and re.search(r" (?:and|&) ", alternative) else []


@lru_cache(maxsize=4096)
def asked_spellings(alternative: str, query: str) -> tuple[str, ...]:
    """The spellings of an answer, and those that the question allows: 宁波 for 宁波市 where a city (城市) is
    asked for, 弗莱明 for 亚历山大·弗莱明 where a person is. A numeral stays: 木卫 is not 木卫四."""
    listed = spellings(alternative)
    if re.search(f"·[{HAN}]{{2,}}$", alternative) and asks_for_person(query):
        listed = (*listed, alternative.rpartition("·")[2])
    for length, shortest in ((1, 3), (2, 5)):
        kind = alternative[-length:]
        if re.fullmatch(f"[{HAN}]{{{shortest},}}", alternative) and kind in query:
            listed = listed if _NO_KINDS.intersection(kind) else (*listed, alternative[:-length])
    return listed


def _masked(sought: Target, text: Sequence[Word], rivals: Iterable[Target], *, equal: bool) -> Sequence[Word]:
    """A text without the mentions of rivals that contain the answer."""
    masked = text
    for rival in rivals:
        if sought.joined in rival.joined and (equal or sought.joined != rival.joined):
            masked = list(masked)
            for start, end in mentions(rival, text):
                masked[start:end] = [word._replace(text="\0", cased="\0") for word in masked[start:end]]
    return masked


def is_title(answer: str) -> bool:
    """Whether a number that an answer begins with is a word of a title: "One Locksmith Too Many"."""
    return answer[:1].isalpha() and all(word[:1].isupper() for word in answer.split())


def _number_alone(sought: Target, text: Sequence[Word], query: str) -> tuple[int, int] | None:
    """Where an answer of a number and its unit is given by the number alone: before the end of a clause, a
    preposition or a word of the question."""
    number, *unit = sought.words or (None,)
    if number is None or not number.number or not 0 < len(unit) < 4:
        return None
    if any(word.number or word.text == "%" for word in unit):
        return None
    for start, end in mentions(target(number.cased, query), text):
        if end == len(text) or text[end].clause != text[start].clause:
            return start, end
        if text[end].text in SPELLING.prepositions or text[end].text in (sought.asked or ()):
            return start, end
    return None


def _with_middle_names(sought: Target, text: Sequence[Word], query: str) -> tuple[int, int] | None:
    """Where a person that the question asks for is given with one or two names more between the two known."""
    if len(sought.words) != 2 or sought.han or not asks_for_person(query):
        return None
    first, last = (word.text for word in sought.words)
    for start, word in enumerate(text):
        for end in (start + 2, start + 3) if word.text == first else ():
            name = text[start : end + 1]
            capitals = all(part.cased[:1].isupper() and part.clause == word.clause for part in name)
            if len(name) == end + 1 - start and name[-1].text == last and capitals:
                return start, end + 1
    return None


def _surname(sought: Target, text: Sequence[Word], query: str) -> tuple[int, int] | None:
    """Where a person that the question asks for is given by the surname alone, or with initials before it."""
    if len(sought.words) < 2 or not asks_for_person(query) or any(word.number for word in sought.words):
        return None
    if sought.han or any(True for _ in mentions(sought, text)):
        return None
    particle = sought.words[1].text
    last = [] if particle == "of" else [sought.words[-1]]  # Henry of Navarre is not called Navarre
    first = [sought.words[0]] if particle in SPELLING.particles else []
    for known_by in (*last, *first):
        for start, end in mentions(target(known_by.cased, query), text):
            if not _repeats(query, text, start, end) and _is_whole_name(sought, text, start, end):
                return start, end
    return None


def _is_whole_name(sought: Target, text: Sequence[Word], start: int, end: int) -> bool:
    """Whether one name of a person is not part of another person's: Karl van Beethoven, Ludwig van Halen."""
    own = {word.text for word in sought.words}
    allowed = own.union(SPELLING.titles, SPELLING.prepositions, sought.asked or ())
    particles = set(SPELLING.particles) - ({"of"} - own)
    initials = "".join(word.text[0] for word in sought.words[:-1])
    clause = text[start].clause
    before = [word for word in text[max(0, start - LONGEST_PREFIX) : start] if word.clause == clause]
    after = [word for word in text[end : end + LONGEST_PREFIX] if word.clause == clause]
    while before and before[-1].text in particles:
        before.pop()
    if before and before[-1].text in initials:
        before.pop()
    if not before and not after:
        return True
    following = next((word for word in after if word.text not in particles), None)
    named = bool(before) and before[-1].cased[:1].isupper() and before[-1].text not in allowed
    continued = following is not None and following.cased[:1].isupper()
    return text[start].cased[:1].isupper() and not named and not continued


def _repeats(query: str, text: Sequence[Word], start: int, end: int) -> bool:
    """Whether a surname is said with the words that it has in the question, where it names something else:
    "the Pellow orchard", "a life of Darwin"."""
    asked = f" {' '.join(word.text for word in words(query))} "
    phrases = [text[start : end + 1]] if end < len(text) else []
    phrases += [text[start - 2 : end]] if start > 1 else []
    return any(
        len({word.clause for word in phrase}) == 1 and f" {' '.join(word.text for word in phrase)} " in asked
        for phrase in phrases
    )


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
    other_units: frozenset[str]
    """Before which two numbers are no score: units that the question does not ask for."""


@lru_cache(maxsize=4096)
def target(answer: str, query: str = "") -> Target:
    listed = words(plain(answer))
    joined = "".join(word.joined for word in listed)
    letters = re.sub(r"[\W\d_]", "", answer)
    asked = frozenset(word.text for word in words(plain(query)))
    is_score = len(listed) == 2 and all(word.number for word in listed)
    return Target(
        listed,
        joined,
        capitals=joined.isalpha() and len(joined) <= 2 and letters.isupper() and letters.isascii(),
        alone=joined in SPELLING.bare or bool(re.fullmatch(f"[{HAN}]", joined)),
        han=bool(re.search(f"[{HAN}]", joined)),
        asked=asked if query else None,
        other_units=frozenset(SPELLING.measures) - asked if is_score else frozenset(),
    )


def mentions(sought: Target, text: Sequence[Word]) -> Iterator[tuple[int, int]]:
    """Where the answer is as whole words in a row, spelt with or without gaps."""
    spelt, starts = _spelt(tuple(text))
    place = spelt.find(sought.joined) if sought.joined else -1
    while place >= 0:
        start, end = (bisect_left(starts, offset) for offset in (place, place + len(sought.joined)))
        whole = starts[start] == place and _ends_word(sought, spelt[place : starts[end]])
        if whole and _counts(sought, text, start, end):
            yield start, end
        place = spelt.find(sought.joined, place + (len(sought.joined) if whole else 1))


def _ends_word(sought: Target, word: str) -> bool:
    """Whether what a text has from a mention to the end of its last word is the answer and no more."""
    return word == sought.joined or is_noun_ending(sought.joined, word[len(sought.joined) :])


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
    if after and after.text in sought.other_units and after.clause == text[end - 1].clause:
        return False
    if sought.capitals and not all(word.cased.isupper() for word in text[start:end]):
        return False
    if sought.alone:
        clause = text[start].clause
        ends = after is None or after.clause != clause
        begins = start == 0 or text[start - 1].clause != clause
        follows = {*SPELLING.after_alone, *(sought.asked or ())}
        ends = ends or (sought.han and after is not None and after.text in follows)
        if not (ends and (begins or text[start - 1].text in SPELLING.copula)):
            return False
    return True
