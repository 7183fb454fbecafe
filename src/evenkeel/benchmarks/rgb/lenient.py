"""Whether an answer stands in a text, word by word."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from evenkeel.benchmarks.rgb.phrases import phrases
from evenkeel.benchmarks.rgb.wording import HAN, Word, plain, words

RECALL = 0.8
"""The share of an answer's words that must be there for it to be given by overlap."""
OVERLAPPING = 3
"""Words that an answer needs before overlap is tried."""


class Target(NamedTuple):
    """An answer to look for."""

    words: tuple[Word, ...]
    joined: str
    capitals: bool
    """A word of one or two capitals, which must be written so: US is not us."""
    alone: bool
    """Yes, no, or a single Han character: counts only as a clause of its own, or at the end of one."""
    han: bool
    asked: frozenset[str] | None = None
    """The words of the question; None where it is not known."""


def target(answer: str, query: str = "") -> Target:
    found = words(plain(answer))
    joined = "".join(word.joined for word in found)
    letters = re.sub(r"[\W\d_]", "", answer)
    return Target(
        found,
        joined,
        capitals=joined.isalpha() and len(joined) <= 2 and letters.isupper() and letters.isascii(),
        alone=joined in phrases().bare or bool(re.fullmatch(f"[{HAN}]", joined)),
        han=bool(re.search(f"[{HAN}]", joined)),
        asked=frozenset(word.text for word in words(plain(query))) if query else None,
    )


def found(sought: Target, text: Sequence[Word]) -> str:
    """How the answer is given: by its `words`, by `overlap`, or not at all."""
    if any(True for _ in occurrences(sought, text)):
        return "words"
    return "overlap" if overlaps(sought, text) else ""


def without(rivals: Iterable[Target], text: Sequence[Word]) -> list[Word]:
    """The text with every occurrence of the rivals blanked out."""
    kept = list(text)
    for rival in rivals:
        for start, end in occurrences(rival, text):
            kept[start:end] = [word._replace(text="\0", cased="\0") for word in kept[start:end]]
    return kept


def occurrences(sought: Target, text: Sequence[Word]) -> Iterator[tuple[int, int]]:
    """Where the answer stands as whole words in a row, spelt with or without gaps, and is not ruled out."""
    for start in range(len(text)):
        spelt = ""
        for end in range(start, len(text)):
            spelt += text[end].joined
            if not sought.joined.startswith(spelt):
                break
            if spelt == sought.joined:
                if _stands(sought, text, start, end + 1):
                    yield start, end + 1
                break


def overlaps(sought: Target, text: Sequence[Word]) -> bool:
    """Whether most of a longer answer's words stand together, in any order.

    At least RECALL of the words (middle initials aside) in one sentence, with nothing but function words
    between them, all numbers of the answer among them; and where a word is missing, no other stands beside
    them in its place: San Francisco is not San Diego. Chinese answers are not tried: that many characters
    are shared by a hospital and a court of the same town.
    """
    if len(sought.words) < OVERLAPPING or sought.han:
        return False
    wanted = Counter(word.text for word in sought.words if not _slight(word))
    numbers = [word.text for word in sought.words if word.number]
    for start, first in enumerate(text):
        left, end = wanted.copy(), start
        if left[first.text] < 1:
            continue
        for place in range(start, len(text)):
            word = text[place]
            if word.sentence != first.sentence or not (left[word.text] > 0 or _slight(word)):
                break
            if left[word.text] > 0:
                left[word.text] -= 1
                end = place + 1
        missing = sum(left.values())
        enough = missing <= (1 - RECALL) * sum(wanted.values()) and not any(left[n] for n in numbers)
        if (
            enough
            and not _ruled_out(sought, text, start, end)
            and not (missing and _has_neighbour(text, start, end))
        ):
            return True
    return False


def _slight(word: Word) -> bool:
    """A function word or an initial."""
    return word.text in phrases().function_words or (len(word.text) == 1 and "a" <= word.text <= "z")


def _has_neighbour(text: Sequence[Word], start: int, end: int) -> bool:
    beside = [text[place] for place in (start - 1, end) if 0 <= place < len(text)]
    return any(word.clause == text[start].clause and not _slight(word) for word in beside)


def _stands(sought: Target, text: Sequence[Word], start: int, end: int) -> bool:
    after = text[end] if end < len(text) else None
    if text[start].glued or (after and after.glued and after.text not in ("%", "‰")):
        return False
    if after and text[end - 1].number and after.text in ("%", "‰"):
        return False
    if sought.capitals and not all(word.cased.isupper() for word in text[start:end]):
        return False
    if sought.alone and not _alone(text, start, end):
        return False
    return not _ruled_out(sought, text, start, end)


def _alone(text: Sequence[Word], start: int, end: int) -> bool:
    clause = text[start].clause
    ends = end == len(text) or text[end].clause != clause
    begins = start == 0 or text[start - 1].clause != clause
    return ends and (begins or text[start - 1].text in phrases().copula)


def _ruled_out(sought: Target, text: Sequence[Word], start: int, end: int) -> bool:
    """Whether the clause says that it is not this: "not held in …", "… did not", 不是…, …不是."""
    clause = text[start].clause
    before = [word.text for word in text[max(0, start - 6) : start] if word.clause == clause]
    after = [word.text for word in text[end : end + 6] if word.clause == clause]
    for gap, ahead, behind in zip((" ", ""), _negation_ahead(), _negation_behind(), strict=True):
        if ahead.search(gap.join(before)):
            return True
        found = behind.match(gap.join(after))
        if found and (found["whole"] or _denies_what_is_asked(found, sought.asked)):
            return True
    return False


def _denies_what_is_asked(found: re.Match[str], asked: frozenset[str] | None) -> bool:
    """Whether the verb behind "did not" is the one asked for, or none follows: who "did not attend" may
    have won. Where the question is not known, every verb is taken for it."""
    verb, rest = found["verb"], found["rest"]
    if asked is None or not verb or re.match(r" (?:it|so|this|that)\b", rest):
        return True
    return any(_akin(verb, word) for word in asked if word not in phrases().function_words)


def _akin(verb: str, word: str) -> bool:
    """The same word in another form: host and hosted by their beginning, win and won by their consonants."""
    if min(len(verb), len(word)) < 3:
        return verb == word
    bare, other = (re.sub("[aeiou]", "", text) for text in (verb, word))
    return verb[:4] == word[:4] or bare == other


@cache
def _negation_ahead() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """In English and in Chinese: a negation up to three words (or Han characters) before an answer, unless a
    word next to it takes it back."""
    no, yet = phrases().not_the_answer, phrases().affirms_after_all
    return (
        re.compile(rf"\b(?:{'|'.join(no.en)})(?: (?!(?:{'|'.join(yet.en)})\b)\S+){{0,3}}$"),
        re.compile(rf"(?:{'|'.join(no.zh)})[^{''.join(yet.zh)}]{{0,3}}$"),
    )


@cache
def _negation_behind() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """The same right behind an answer: one that denies the `whole` of it ("is not"), or one of a `verb`, a
    word or a Han character, past any adverb."""
    whole, verb, yet = phrases().ruled_out_after, phrases().verb_denied_after, phrases().affirms_after_all
    adverbs = phrases().adverbs
    return (
        re.compile(
            rf"(?:(?P<whole>{'|'.join(whole.en)})|(?:{'|'.join(verb.en)}))\b(?! (?:{'|'.join(yet.en)})\b)"
            rf"(?: (?:{'|'.join(adverbs.en)}))* ?(?P<verb>\S*)(?P<rest>.*)"
        ),
        re.compile(
            rf"(?:(?P<whole>{'|'.join(whole.zh)})|(?:{'|'.join(verb.zh)}))(?![{''.join(yet.zh)}])"
            rf"(?:{'|'.join(adverbs.zh)})*(?P<verb>.?)(?P<rest>.*)"
        ),
    )
