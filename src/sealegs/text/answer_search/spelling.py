"""What two spellings of one answer may differ in besides numbers and dates: traditional characters, units.

`spelling.json` has the lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

from msgspec import Struct

from sealegs.files.package_data import read_json
from sealegs.text.answer_search.normalization import plain
from sealegs.text.answer_search.numbers import NUMBER_WORDS


class Spelling(Struct, frozen=True, forbid_unknown_fields=True):
    """The words by which answers are compared."""

    simplified: dict[str, str]
    """Traditional characters, and the simplified ones in the same order."""
    units: dict[str, str]
    """Other spellings of a unit."""
    titles: tuple[str, ...]
    """What may be before a surname that is given alone."""
    bare: tuple[str, ...]
    """Answers that count only as a clause by themselves: "no" is also in "no information"."""
    copula: tuple[str, ...]
    """What may be before an answer that counts only alone."""
    particles: tuple[str, ...]
    """What joins the names of a person, who may be known by the first alone: Rembrandt van Rijn."""
    prepositions: tuple[str, ...]
    """What may follow a number that is given without its unit."""
    measures: tuple[str, ...]
    """What makes two numbers a range, and no score: 31 to 23 km."""
    after_alone: tuple[str, ...]
    """What may be behind an answer of one Han character."""
    persons: tuple[str, ...]
    """Words of a question that asks for a person."""
    roles: tuple[str, ...]
    """What a person is, behind "which" and "what"."""


_FIGURE, _CURRENCY = "[\\d零一二两三四五六七八九十]", "[$€£¥]"
_NUMBER = rf"(?:{_FIGURE}|\b(?:{'|'.join(sorted(NUMBER_WORDS))})\b)"
_SCORE = re.compile(
    rf"({_NUMBER})(?:(?: (?:goal|point|vote|game|set)s?)? (?:to|against|v(?:s|ersus)?\.?) |\s?比\s?)"
    rf"(?={_CURRENCY}?{_NUMBER})",
    re.IGNORECASE,
)
"""Three goals to one, 31 vs. 23, 三比零; and ranges, which are written alike."""
_CODE = re.compile(r"\b(?:EUR|USD|GBP|CHF|CNY|RMB|JPY) ?(?=\d)")
_HOURS = re.compile(r"(?<![\w.:/])(\d{1,3}) ?h(?: ?(\d\d?) ?m(?:in)?|([0-5]\d))(?![a-z\d])", re.IGNORECASE)
"""5h15 and 5 h 15 min."""
_AND_SMALLER = re.compile(
    r"\b(year|hour|minute)s?(?:,? and|,)? (?=[\w-]+ (?:month|minute|second)s?\b)",
    re.IGNORECASE,
)
_RANGE = re.compile(rf"\bbetween ({_CURRENCY}?\d[\d.,]*) and (?={_CURRENCY}?\d)", re.IGNORECASE)
SPELLING = read_json(__package__, "spelling.json", type=Spelling)


def simplified(text: str) -> str:
    """A text with its traditional characters as simplified ones, and units and scores in one spelling."""
    if not text.isascii():
        text = re.sub(rf"一(?=比{_FIGURE})|(?<=比)一", "1", simplified_characters(text))
    text = _RANGE.sub(r"\1-", _CODE.sub("$", text))
    text = _SCORE.sub(r"\1–", text)
    text = re.sub(
        r"(?<![A-Za-z\d_.,])(\d+(?:\.\d+)?)k(?![A-Za-z\d_])", r"\1 thousand ", text, flags=re.IGNORECASE
    )
    text = re.sub(r"(?<![上下前后])半年", "6个月", text)
    text = re.sub(r"\bhalf a year\b", "6 months", text, flags=re.IGNORECASE)
    text = re.sub(rf"(?<={_FIGURE})个(?=小时|钟头|星期|世纪)", "", text)
    text = _HOURS.sub(r"\1 hours \2\3 minutes", text)
    text = _units().sub(lambda match: SPELLING.units[match[0].lower()], text)
    return _AND_SMALLER.sub(r"\1s ", text).replace("两小时", "2小时")


def simplified_characters(text: str) -> str:
    """A text with every traditional character as a simplified one, and as long as before."""
    return text.translate(_simplification())


@lru_cache(maxsize=1024)
def asks_for_person(query: str) -> bool:
    return bool(_persons().search(plain(query)))


@cache
def _persons() -> re.Pattern[str]:
    latin, other = _by_script(SPELLING.persons)
    roles = rf"\b(?:which|what)(?: \w+)? (?:{'|'.join(SPELLING.roles)})\b"
    return re.compile(rf"\b(?:{latin})\b|{other}|{roles}", re.IGNORECASE)


@cache
def _simplification() -> dict[int, str]:
    return {
        ord(old): new
        for olds, news in SPELLING.simplified.items()
        for old, new in zip(olds, news, strict=True)
    }


@cache
def _units() -> re.Pattern[str]:
    latin, other = _by_script(SPELLING.units)
    return re.compile(
        rf"(?<![a-zA-Z])(?:{latin})(?![a-zA-Z])"
        rf"|(?:(?<=[\d零一二两三四五六七八九十百千万亿])|(?<=\d[ -]))(?:{other})",
        re.IGNORECASE,
    )


def _by_script(phrases: Iterable[str]) -> tuple[str, str]:
    """The phrases in Latin letters, and the others with those of one or two letters, as alternatives of a
    pattern, the longest first."""
    ordered = sorted(phrases, key=len, reverse=True)
    latin = [re.escape(phrase) for phrase in ordered if phrase[0].isascii() and len(phrase) > 2]
    short = [f"{phrase}(?![a-zA-Z])" for phrase in ordered if phrase.isascii() and len(phrase) <= 2]
    other = [re.escape(phrase) for phrase in ordered if not phrase[0].isascii()] + short
    return "|".join(latin), "|".join(other)
