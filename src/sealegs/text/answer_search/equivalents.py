"""Other spellings of an answer: Henry the Eighth for Henry VIII, 55000 m for 55 km, Nairobi without Kenya."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache

from sealegs.text.answer_search.normalization import HAN
from sealegs.text.answer_search.numbers import (
    LONGEST_NUMBER,
    ORDINAL_WORD,
    ORDINALS,
    decimal,
    digits,
    folded,
)
from sealegs.text.answer_search.places import other_names

_ROMAN = {"i": 1, "ii": 2, "iii": 3, "iv": 4, "v": 5, "vi": 6, "vii": 7, "viii": 8, "ix": 9, "x": 10,
          "xi": 11, "xii": 12, "xiii": 13, "xiv": 14, "xv": 15, "xvi": 16}  # fmt: skip
_REGNAL = re.compile(rf"(?<=[a-z] )({'|'.join(_ROMAN).upper()})$")
_ORDINAL = re.compile(r"(?<![\d.])(\d{1,2})(?:st|nd|rd|th)\b")
_LENGTH = re.compile(r"(?P<number>\d+(?:\.\d+)?) ?(?P<unit>k?m)")
_PLURAL = re.compile(r"(?P<number>\d+(?:\.\d+)?) (?P<unit>[a-z]{2,}[^s\W])s")
"""4 years, which is also a 4-year contract."""
_PLACE = re.compile(
    r"(?P<name>[A-Z][^\W\d]+(?: [A-Z][^\W\d]+)?), [A-Z][^,\d]*"  # Nairobi, Kenya
    r"|(?:the )?(?P<water>[A-Z]\w+(?: [A-Z]\w+)?) (?:Ocean|River|Desert)"
)
_DYNASTY = re.compile(f"(?P<name>[{HAN}])[朝代]")
_COUNTED = re.compile(r"(?P<number>\d+)(?P<counter>[人名位个项枚])")


@lru_cache(maxsize=4096)
def spellings(answer: str) -> tuple[str, ...]:
    """An answer, and what means the same: Henry the Eighth for Henry VIII, twelfth for 12th and the other
    way round, 55000 m for 55 km, 12名 for 12人."""
    listed = [answer]
    if regnal := _REGNAL.search(answer):
        listed.append(f"{answer[: regnal.start()]}{ORDINALS[_ROMAN[regnal[1].lower()] - 1]}")
    listed.append(_ORDINAL.sub(lambda m: ORDINALS[int(m[1]) - 1] if 0 < int(m[1]) <= 31 else m[0], answer))
    listed.append(ORDINAL_WORD.sub(lambda m: _ordinal(ORDINALS.index(folded(m[0])) + 1), answer))
    figures = digits(answer)
    if length := _LENGTH.fullmatch(figures):
        number = Decimal(length["number"][:LONGEST_NUMBER])
        is_km = length["unit"] == "km"
        listed.append(f"{decimal(number * 1000)} m" if is_km else f"{decimal(number / 1000)} km")
    if plural := _PLURAL.fullmatch(figures):
        listed.append(f"{plural['number']} {plural['unit']}")
    if place := _PLACE.fullmatch(answer):
        listed.append(place["name"] or place["water"])
    if dynasty := _DYNASTY.fullmatch(answer):
        listed += [f"{dynasty['name']}{ending}" for ending in "朝代"]
    listed += other_names(answer)
    if counted := _COUNTED.fullmatch(figures):
        listed += [f"{counted['number']}{counter}" for counter in "人名位个"]
    return tuple(dict.fromkeys(listed))


def _ordinal(number: int) -> str:
    ending = "th" if number in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
