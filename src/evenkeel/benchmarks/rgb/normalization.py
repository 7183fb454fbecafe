"""Numbers and dates in one way of writing, whichever of the many a text uses, in English and Chinese."""

from __future__ import annotations

import re
from decimal import Decimal

from msgspec import Struct

from evenkeel.files.package_data import read_json

DATE, DATE_END = "\u27e6", "\u27e7"
"""Around each part of a date in the text that `digits` gives back."""


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    """The words for numbers and months."""

    units: tuple[str, ...]
    teens: tuple[str, ...]
    tens: tuple[str, ...]
    scales: dict[str, int]
    uncounting: tuple[str, ...]
    """Before "one": it counts nothing."""
    han_digits: dict[str, int]
    han_units: dict[str, int]
    han_counters: dict[str, str]
    """What must follow 一 and 两 where they stand alone, or else they count nothing (一个, 之一)."""
    months: tuple[str, ...]


_TABLE = read_json(__package__, "numbers.json", type=_Table)
_UNITS, _TEENS, _TENS = _TABLE.units, _TABLE.teens, _TABLE.tens
_VALUES = (
    {word: value for value, word in enumerate(_UNITS + _TEENS)}
    | {word: 10 * value for value, word in enumerate(_TENS, 2)}
    | {"a": 1}
)


LONGEST = 100
"""Characters of the longest number that is read as one; a longer run of digits or numerals stays as it is."""
_LIKE_ASCII = str.maketrans({"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k"})
"""What a pattern that ignores case takes for ASCII: I with a dot, dotless i, long s, the Kelvin sign."""


def _folded(word: str) -> str:
    """A word that a pattern found, as the tables have it: "fıve" is found as "five"."""
    return word.translate(_LIKE_ASCII).lower()


def digits(text: str) -> str:
    """A text with its numbers as plain digits and the parts of its dates marked."""
    for step in (_separators, _han_numbers, _dates, _scales):
        text = step(text)
    text = _SPELT.sub(_spelt, text)
    return re.sub(r"(?<!\s)\s*\b(?:percent|per cent|pct)\b", "%", text, flags=re.IGNORECASE)


# --- numbers ----------------------------------------------------------------------------------------


def _written(value: Decimal) -> str:
    return f"{value.normalize():f}"


def _separators(text: str) -> str:
    """1,000 as 1000."""
    return re.sub(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?!\d)", lambda m: m[0].replace(",", ""), text)


_SMALL = rf"(?:(?:{'|'.join(_TENS)})(?:[\s-](?:{'|'.join(_UNITS[1:])}))?|{'|'.join(_TEENS + _UNITS)})"
_GROUP = rf"(?:(?:{_SMALL}|a)\s+hundred(?:\s+(?:and\s+)?{_SMALL})?|{_SMALL})\b"
_BIG = r"(?:thousand|million|billion|trillion)\b"
_SPELT = re.compile(
    rf"\b(?:(?:{_GROUP}|a)\s+{_BIG}(?:,?\s+(?:and\s+)?(?={_GROUP}))?)+(?:{_GROUP})?|\b{_GROUP}", re.IGNORECASE
)
_SCALED = re.compile(
    r"(?<!\d)(?P<figure>\d+(?:\.\d+)?)[\s-]?(?P<scale>hundred|thousand|million|billion|trillion|mn|bn)\b"
    r"|(?<=[$€£¥])(?P<amount>\d+(?:\.\d+)?)\s?(?P<letter>[kmb])\b",
    re.IGNORECASE,
)


_NOT_COUNTED = re.compile(r" (?:of|who|that|which)\b")


def _scales(text: str) -> str:
    """10.4 billion as 10400000000."""

    def scaled(match: re.Match[str]) -> str:
        figure = match["figure"] or match["amount"]
        if len(figure) > LONGEST:
            return match[0]
        return _written(Decimal(figure) * _TABLE.scales[_folded(match["scale"] or match["letter"])])

    return _SCALED.sub(scaled, text)


def _spelt(match: re.Match[str]) -> str:
    """Twenty-one as 21. "One of them", "no one" and "the only one" count nothing and stay words."""
    spelt = _folded(match[0])
    before = match.string[max(0, match.start() - 12) : match.start()].lower().split()
    after = _NOT_COUNTED.match(match.string, match.end())
    if spelt == "one" and (after or (before and before[-1] in _TABLE.uncounting)):
        return match[0]
    total = group = 0
    for word in re.findall(r"[a-z]+", spelt):
        if word == "hundred":
            group *= 100
        elif word in _TABLE.scales:
            total, group = total + group * _TABLE.scales[word], 0
        elif word != "and":
            group += _VALUES[word]
    return str(total + group)


_HAN_RUN = re.compile(
    r"(?<![几数])(?:\d+(?:\.\d+)?|[〇零一二两三四五六七八九十百千万亿])+(?:点[〇零一二三四五六七八九]+[万亿]?)?"
)


def _han_numbers(text: str) -> str:
    text = _HAN_RUN.sub(_han_number, text)
    text = re.sub(r"百分之(\d+(?:\.\d+)?)", r"\1%", text)
    return re.sub(r"千分之(\d+(?:\.\d+)?)", r"\1‰", text)


def _han_number(match: re.Match[str]) -> str:
    """二十一 as 21. A 一 or 两 that stands alone and counts nothing stays."""
    run = match[0]
    before = match.string[max(0, match.start() - 1) : match.start()]
    after = match.string[match.end() : match.end() + 1]
    counters = _TABLE.han_counters.get(run)
    counts = counters is None or before == "第" or (after and after in counters)
    if run.isascii() or not counts or len(run) > LONGEST:
        return run
    whole, _, decimals = run.partition("点")
    value = _han_value(whole)
    if value is None:
        return run
    if decimals:
        scale = _TABLE.han_units.get(decimals[-1], 1)
        figures = "".join(str(_TABLE.han_digits[char]) for char in decimals if char in _TABLE.han_digits)
        value = (value + Decimal(f"0.{figures}")) * scale
    return _written(value)


def _han_value(run: str) -> Decimal | None:
    """The value of a Chinese numeral, or of digits with 万 and 亿; None where it is none (百度, 万科)."""
    if all(char in _TABLE.han_digits for char in run):
        return Decimal("".join(str(_TABLE.han_digits[char]) for char in run))
    total = section = Decimal(0)
    digit: Decimal | None = None
    for piece in re.findall(r"[\d.]+|.", run):
        unit = _TABLE.han_units.get(piece)
        if unit is None:
            if digit:
                return None
            digit = Decimal(_TABLE.han_digits.get(piece, piece))
        elif unit < 10**4:
            if digit is None and unit > 10:
                return None
            section, digit = section + (1 if digit is None else digit) * unit, None
        else:
            section, digit = section + (digit or 0), None
            if not section + total:
                return None
            total = total + section * unit if section else total * unit
            section = Decimal(0)
    return total + section + (digit or 0)


# --- dates ------------------------------------------------------------------------------------------

_MONTH = rf"(?P<m>{'|'.join(rf'{name[:3]}(?:{name[3:]})?' for name in _TABLE.months)}|sept)\.?"
_DAY = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<y>[12]\d{3})"
_DATES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?<!\d){_YEAR}(?P<sep>[-/.])(?P<m>\d{{1,2}})(?P=sep)(?P<d>\d{{1,2}})(?!\d)",
        rf"(?<!\d){_YEAR} ?年 ?(?P<m>\d{{1,2}}) ?月 ?(?P<d>\d{{1,2}}) ?[日号]",
        rf"(?<!\d){_YEAR} ?年 ?(?P<m>\d{{1,2}}) ?月",
        r"(?<!\d)(?P<m>\d{1,2}) ?月 ?(?P<d>\d{1,2}) ?[日号]",
        r"(?<!\d)(?P<m>\d{1,2}) ?月",
        rf"(?<!\d){_YEAR} ?年",
        rf"\b{_MONTH} {_DAY}(?:, ?| )(?:of )?{_YEAR}\b",
        rf"\b{_DAY} (?:of )?{_MONTH},? (?:of )?{_YEAR}\b",
        rf"\b{_MONTH},? (?:of )?{_YEAR}\b",
        rf"\b{_MONTH} {_DAY}\b(?![.:%]\d)",
        rf"\b{_DAY} (?:of )?{_MONTH}(?!\w)",
        r"(?<!\d)(?P<m>0?\d|1[0-2])/(?P<d>1[3-9]|2\d|3[01])/(?P<y>[12]\d{3})\b",
        r"(?<!\d)(?P<d>1[3-9]|2\d|3[01])/(?P<m>0?\d|1[0-2])/(?P<y>[12]\d{3})\b",
    )
]
_BARE_MONTH = re.compile(
    rf"\b(?P<m>March|May|(?i:{'|'.join(name for name in _TABLE.months if name not in ('march', 'may'))}))\b"
)
"""A month by itself; "march" and "may" with a small letter are other words."""


def _dates(text: str) -> str:
    """March 5, 2024, 5 March 2024, 2024-03-05 and 2024年3月5日 all as the words 2024 m3 d5."""
    for pattern in (*_DATES, _BARE_MONTH):
        text = pattern.sub(_date, text)
    return text


def _date(match: re.Match[str]) -> str:
    found = {name: value for name, value in match.groupdict().items() if value}
    month, day = _month(found.get("m", "1")), int(found.get("d", "1"))
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return match[0]
    shown = {"y": found.get("y", ""), "m": f"m{month}", "d": f"d{day}"}
    return f" {''.join(f'{DATE}{text}{DATE_END}' for name, text in shown.items() if name in found)} "


def _month(text: str) -> int:
    starts = [name[:3] for name in _TABLE.months]
    return int(text) if text.isdigit() else starts.index(_folded(text[:3])) + 1
