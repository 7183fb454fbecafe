"""Korean in the search for an answer: what is written on to a noun, and numbers and dates.

An answer is followed by particles (조사) and by the copula without a gap: 질소는, 질소입니다, 질소이며. Which
forms there are depends on whether the noun ends in a consonant: 달이 and 해가, 달입니다 and 해입니다.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache

from msgspec import Struct

from sealegs.files.package_data import read_json

HANGUL = r"\uac00-\ud7a3"
_FIRST, _LAST = 0xAC00, 0xD7A3
FINALS = 28
"""Ways in which a syllable can end, of which the first is a vowel."""
RIEUL = 8
"""The one that ends in ㄹ: it takes 로, as vowels do."""


class NounEndings(Struct, frozen=True, forbid_unknown_fields=True):
    """What is written on to a noun."""

    any: tuple[str, ...]
    """Particles after whatever the noun ends in."""
    after_consonant: tuple[str, ...]
    after_vowel: tuple[str, ...]
    copula: tuple[str, ...]
    """What follows 이, the stem of the copula, which may be dropped after a vowel."""
    contracted: tuple[str, ...]
    """The same after a vowel, run together."""
    joined: tuple[str, ...]
    """Forms in which 이 has taken up what follows."""
    place_kinds: tuple[str, ...]
    """What a place is, behind a name of two syllables or more: 서울특별시 is 서울."""


_ENDINGS = read_json(__package__, "korean.json", type=NounEndings)
_EVERYWHERE = frozenset((*_ENDINGS.any, *_ENDINGS.joined, *(f"이{ending}" for ending in _ENDINGS.copula)))
_CONSONANT = frozenset(_ENDINGS.after_consonant)
_VOWEL = frozenset((*_ENDINGS.after_vowel, *_ENDINGS.copula, *_ENDINGS.contracted))


def is_noun_ending(stem: str, rest: str) -> bool:
    """Whether `rest`, written on to a Korean noun, leaves it the same noun: a particle, the copula, or what a
    place is."""
    code = ord(stem[-1]) if stem else 0
    if not _FIRST <= code <= _LAST:
        return False
    final = (code - _FIRST) % FINALS
    if rest in _EVERYWHERE or (final in (0, RIEUL) and rest.startswith("로") and rest in _VOWEL):
        return True
    if rest in (_CONSONANT if final else _VOWEL):
        return True
    kinds = [kind for kind in _ENDINGS.place_kinds if len(stem) > 1 and rest.startswith(kind)]
    return any(rest == kind or is_noun_ending(kind[-1], rest.removeprefix(kind)) for kind in kinds)


def place_names(place: str) -> list[str]:
    """A place without what it is: 서울 for 서울특별시. One syllable may be a part of the name."""
    kinds = [kind for kind in _ENDINGS.place_kinds if len(kind) > 1 and place.endswith(kind)]
    return [name for kind in kinds if len(name := place.removesuffix(kind)) > 1]


@lru_cache(maxsize=4096)
def noun(word: str) -> str:
    """A Korean noun without what is written on to it: 수도 of 수도는."""
    ends = (end for end in range(1, len(word)) if is_noun_ending(word[:end], word[end:]))
    return word[: next(ends, len(word))]


# Numbers

_DIGITS = {"공": 0, "륙": 6, **{digit: number for number, digit in enumerate("영일이삼사오육칠팔구")}}
_UNITS = {"십": 10, "백": 100, "천": 1000, "만": 10**4, "억": 10**8, "조": 10**12}
_COUNTED = "개|도|퍼센트|프로|년|월|일|명|번|시|분|초|세|살|미터|킬로|센티|원|달러|켈빈|배|층|회|점|%"
"""What a number in words is followed by: without it 이십 may be a part of another word."""
_FIGURE, _UNIT = "".join(_DIGITS), "".join(_UNITS)
_SPELT = re.compile(
    rf"(?<![{HANGUL}\d])(?!만일)[{_FIGURE}]?[{_UNIT}][{_FIGURE}{_UNIT}]{{0,20}}(?=\s?(?:{_COUNTED}))"
)
_SCALED = re.compile(
    r"(?<![\d.])(?:\d{1,15}(?:\.\d{1,15})?[천백십]?[조억만천백](?:\s(?=\d))?){1,6}(?:\d{1,4}(?!\d))?"
)
"""1억 2천만, 10만 5000, 3.5만."""
_PERCENT = re.compile(rf"(?<=\d) ?(?:퍼센트|프로(?![{HANGUL}]))")
_PART = re.compile(r"\d+(?:\.\d+)?|\D")


def arabic(text: str) -> str:
    """A text with its Korean numbers as digits: 이백육 개 as 206 개, 1억 2천만 as 120000000, 78퍼센트 as 78%.

    A number in words counts before what can be counted.
    """
    text = _SCALED.sub(lambda match: _value(match[0]), text)
    text = _SPELT.sub(lambda match: _value(match[0]), text)
    return _PERCENT.sub("%", text)


def _value(number: str) -> str:
    """The number that digits, words for digits and units write together."""
    total = section = Decimal(0)
    figure: Decimal | None = None
    for part in _PART.findall(number.replace(" ", "")):
        unit = _UNITS.get(part)
        if unit is None:
            figure = Decimal(_DIGITS.get(part, part))
        elif unit < 10**4:
            section, figure = section + (1 if figure is None else figure) * unit, None
        else:
            section += figure or 0
            total, section, figure = total + (section or 1) * unit, Decimal(0), None
    return f"{(total + section + (figure or 0)).normalize():f}"
