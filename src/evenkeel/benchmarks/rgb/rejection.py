"""Where an answer rejects the question or reports an error: phrases in two languages and two tiers.

A phrase does not count where the words before it deny or suppose it ("there are no factual errors", "if
there are factual errors"). A strong rejection that concerns only some documents, or that a main clause
overrides ("although there is insufficient information, …"), is taken for a weak one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from msgspec import Struct

from evenkeel.files.package_data import read_json
from evenkeel.text.normalization import HAN, LOOK_BACK, sentence_starts

FINAL = 4
"""As many times in one sentence "the answer is" is followed up: the first, and the last three."""


class ByLanguage(Struct, frozen=True, forbid_unknown_fields=True):
    en: tuple[str, ...]
    zh: tuple[str, ...]


class Tiers(Struct, frozen=True, forbid_unknown_fields=True):
    strong: ByLanguage
    weak: ByLanguage


class Phrases(Struct, frozen=True, forbid_unknown_fields=True):
    """The bank. In a phrase `*` stands for up to three words or eight Han characters, `#` for a number."""

    rejection: Tiers
    error: Tiers
    denial: ByLanguage
    denial_beside: tuple[str, ...]
    """Single characters that deny only what directly follows them."""
    clause_break: ByLanguage
    concession: ByLanguage
    scope: ByLanguage
    """What limits a statement to some of the documents."""
    turn: ByLanguage
    """After a rejection: an answer comes after all."""
    guess: ByLanguage
    """An answer is given, however unsure."""
    final: ByLanguage
    """What follows is given as the answer."""
    apology: ByLanguage
    not_the_answer: ByLanguage
    """Before an answer: it is named only to be ruled out."""
    ruled_out_after: ByLanguage
    """Behind an answer: the same."""
    verb_denied_after: ByLanguage
    """Behind an answer: the same, if the verb that follows is the one asked for."""
    adverbs: ByLanguage
    """What may be between such a negation and its verb."""
    affirms_after_all: ByLanguage
    """Next to a negation: nothing is ruled out ("not only", "not until")."""
    bare: tuple[str, ...]
    """Answers that count only as a clause by themselves: "no" is also in "no information"."""
    copula: tuple[str, ...]
    function_words: tuple[str, ...]


PHRASES = read_json(__package__, "phrases.json", type=Phrases)


class Hit(NamedTuple):
    """A phrase that counts: its position, its sentence, and how strong it is."""

    start: int
    end: int
    sentence: int
    strong: bool


def rejections(text: str) -> list[Hit]:
    """The rejections in a plain text, in its order."""
    return [
        hit._replace(strong=hit.strong and not _is_limited(before))
        for hit, before in _undenied(text, PHRASES.rejection, words_between=2, characters_between=2)
    ]


def errors(text: str) -> list[Hit]:
    """The reports of an error in the documents, in the order of a plain text."""
    return [hit for hit, _ in _undenied(text, PHRASES.error, words_between=4, characters_between=6)]


def opening(text: str) -> int:
    """The number of the first sentence that is not merely an apology."""
    starts = sentence_starts(text)
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(text)], strict=True)):
        if end - start >= 40 or not _pattern(PHRASES.apology).search(text, start, end):
            return number
    return 0


def after_turn(text: str) -> str:
    """What a text says after a "however"; nothing where there is none."""
    turn = _pattern(PHRASES.turn).search(text)
    return text[turn.end() :] if turn else ""


def guesses(text: str, rejected: Sequence[Hit]) -> bool:
    """Whether an answer is ventured behind the first rejection; "the answer is unknown" ventures none."""
    starts = [hit.start for hit in rejected]
    ends = list(accumulate((hit.end for hit in rejected), max))  # of all that begin no later
    for guess in _pattern(PHRASES.guess).finditer(text, rejected[0].end):
        begun = bisect_right(starts, guess.end() + 5)
        if not begun or ends[begun - 1] <= guess.start():
            return True
    return False


def given_as_answer(text: str) -> str:
    """What follows "the answer is", to the end of the sentence each time."""
    ends = [*sentence_starts(text)[1:], len(text)]
    by_sentence: defaultdict[int, list[int]] = defaultdict(list)
    for match in _pattern(PHRASES.final).finditer(text):
        by_sentence[ends[bisect_right(ends, match.start())]].append(match.end())
    return "\n".join(
        text[start:end]
        for end, starts in by_sentence.items()
        for start in (starts if len(starts) <= FINAL else [starts[0], *starts[1 - FINAL :]])
    )


def _undenied(
    text: str, tiers: Tiers, *, words_between: int, characters_between: int
) -> list[tuple[Hit, str]]:
    """Every phrase that nothing before it denies, with what its sentence says before it."""
    starts = sentence_starts(text)
    denial = _denial(words_between, characters_between)
    hits = []
    for tier in (tiers.strong, tiers.weak):
        for match in _pattern(tier).finditer(text):
            sentence = bisect_right(starts, match.start()) - 1
            before = text[max(starts[sentence], match.start() - LOOK_BACK) : match.start()]
            if not denial.search(_clause(before)):
                hits.append((Hit(match.start(), match.end(), sentence, tier is tiers.strong), before))
    return sorted(hits)


def _is_limited(before: str) -> bool:
    """Whether a rejection is one of some documents only, or a mere concession."""
    limited = _pattern(PHRASES.scope).search(before)
    return bool(limited or _pattern(PHRASES.concession).search(_clause(before)))


def _clause(before: str) -> str:
    """The end of a text from its last pause on."""
    pauses = [pause.end() for pause in _pattern(PHRASES.clause_break).finditer(before)]
    pauses += [pause.end() for pause in re.finditer(r"[,:、]", before)]
    return before[max(pauses, default=0) :]


@cache
def _denial(words_between: int, characters_between: int) -> re.Pattern[str]:
    return re.compile(
        rf"{_any(PHRASES.denial.en)}(?:\W+\w+){{0,{words_between}}}\W*$"
        rf"|{_any(PHRASES.denial.zh)}.{{0,{characters_between}}}$|{_any(PHRASES.denial_beside)}$",
        re.IGNORECASE,
    )


@cache
def _pattern(phrases: ByLanguage) -> re.Pattern[str]:
    return re.compile(f"{_any(phrases.en)}|{_any(phrases.zh)}", re.IGNORECASE)


def _any(phrases: Iterable[str]) -> str:
    """One of the phrases, the longest that fits."""
    return f"(?:{'|'.join(_regex(phrase) for phrase in sorted(phrases, key=len, reverse=True))})"


def _regex(phrase: str) -> str:
    regex = re.escape(phrase).replace(r"\#", r"[\d一二三四五六七八九十]+")
    if re.search(f"[{HAN}]", phrase):
        return regex.replace(r"\*", r"[^。!?;,\n]{0,8}")
    regex = regex.replace(r"\*\ ", r"(?:(?!(?:no|not|never)\b)[^\s.!?;,]+\s+){0,3}").replace(r"\ ", r"\s+")
    end = r"(?!\w)" if phrase[-1].isalnum() else ""
    return rf"(?<!\w){regex}{end}"
