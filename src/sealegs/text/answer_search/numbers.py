"""Numbers and dates of a text in one form.

1,000 and one thousand are 1000, 二十一 is 21, 10.4 billion and 104亿 are 10400000000; March 5, 2024 and
2024年3月5日 are year, month and day.
"""

from __future__ import annotations

import re
from decimal import Decimal

from msgspec import Struct

from sealegs.files.package_data import read_json
from sealegs.text.answer_search.clock import DATE, DATE_END, clock_times, day_ranges
from sealegs.text.answer_search.korean import HANGUL, arabic

LONGEST_NUMBER = 100
"""Characters of the longest number that is read as one; a longer run of digits stays as it is."""


class _NumberWords(Struct, frozen=True, forbid_unknown_fields=True):
    """The words for numbers and months."""

    units: tuple[str, ...]
    teens: tuple[str, ...]
    tens: tuple[str, ...]
    scales: dict[str, int]
    before_one: tuple[str, ...]
    """Words after which "one" counts nothing."""
    han_digits: dict[str, int]
    han_units: dict[str, int]
    han_counters: dict[str, str]
    """What must follow 一 and 两 where they are alone, or else they count nothing (一个, 之一)."""
    months: tuple[str, ...]
    ordinals: tuple[str, ...]
    """The days of a month in words."""


_NUMBERS = read_json(__package__, "numbers.json", type=_NumberWords)
_UNITS, _TEENS, _TENS, _MONTHS = _NUMBERS.units, _NUMBERS.teens, _NUMBERS.tens, _NUMBERS.months
_VALUES = (
    {word: value for value, word in enumerate(_UNITS + _TEENS)}
    | {word: 10 * value for value, word in enumerate(_TENS, 2)}
    | {"a": 1}
)
_ONES, _DIGIT_WORDS = "|".join(_UNITS[1:]), "|".join(_UNITS)
_SMALL = rf"(?:(?:{'|'.join(_TENS)})(?:[\s-](?:{_ONES}))?|{'|'.join(_TEENS)}|{_DIGIT_WORDS})"
_GROUP = rf"(?:(?:{_SMALL}|a)\s+hundred(?:\s+(?:and\s+)?{_SMALL})?|{_SMALL})\b"
_BIG = r"(?:thousand|million|billion|trillion)\b"
_SPELT = re.compile(
    rf"(?:\b(?:(?:{_GROUP}|a)\s+{_BIG}(?:,?\s+(?:and\s+)?(?={_GROUP}))?)+(?:{_GROUP})?|\b{_GROUP})"
    rf"(?: point(?:[\s-](?:{_DIGIT_WORDS})\b)+)?",
    re.IGNORECASE,
)
_SCALED = re.compile(
    r"(?<!\d)(?P<figure>\d+(?:\.\d+)?)[\s-]?(?P<scale>hundred|thousand|million|billion|trillion|mn|bn)\b"
    r"|(?<=[$€£¥])(?P<amount>\d+(?:\.\d+)?)\s?(?P<letter>[kmb])\b"
    r"|(?<![\w.,])(?P<short>\d+(?:\.\d+)?)(?P<capital>(?-i:[MB])\b|[mb](?= (?:euro|dollar|pound|yuan)))",
    re.IGNORECASE,
)
ORDINALS = _NUMBERS.ordinals
NUMBER_WORDS = frozenset((*_UNITS, *_TEENS, *_TENS))
HAN_NUMERALS = frozenset((*_NUMBERS.han_digits, *_NUMBERS.han_units))
_SPELT_WORDS = NUMBER_WORDS | _NUMBERS.scales.keys()
_LETTERS = re.compile("[a-z]+")
_DIGIT, _HANGUL = re.compile(r"\d"), re.compile(f"[{HANGUL}]")
_AFTER_ONE = re.compile(r" (?:of|who|that|which)\b")
_HAN_NUMBER = re.compile(
    r"(?<![几数])(?:\d+(?:\.\d+)?|[〇零一二两三四五六七八九十百千万亿])+(?:点[〇零一二三四五六七八九]+[万亿]?)?"
)
_LIKE_ASCII = str.maketrans({"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k"})
"""What a pattern that ignores case takes for ASCII: I with a dot, dotless i, long s, the Kelvin sign."""


def digits(text: str) -> str:
    """A text with its numbers as plain digits and the parts of its dates marked."""
    text = re.sub(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?!\d)", lambda m: m[0].replace(",", ""), text)
    text = re.sub(r"(?<![\d.,:/-])(?<!\d )[1-9]\d{0,2}(?: \d{3})+(?![.,:/-]?\d|\s?\d)", _ungrouped, text)
    if _HANGUL.search(text):
        text = arabic(text)
    text = _HAN_NUMBER.sub(_han_number, text)
    text = re.sub(r"百分之(\d+(?:\.\d+)?)", r"\1%", text)
    text = re.sub(r"千分之(\d+(?:\.\d+)?)", r"\1‰", text)
    text = re.sub(r"(?<!\d)(\d{1,9})分之(\d{1,9})", r" \2/\1 ", text)
    text = re.sub(r"(\d{1,2}月\d{1,2}日[^\s\d]{0,4})\((\d{4}年)\)", r"\2\1", text)
    text = clock_times(text)
    if _MONTH_START.search(text):
        text = _ORDINAL_DAY.sub(lambda m: str(1 + _NUMBERS.ordinals.index(folded(m["day"]))), text)
        patterns = _DATES
    else:
        patterns = _DATES_IN_DIGITS if _DIGIT.search(text) else []
    for pattern in patterns:
        text = pattern.sub(_date, text)
    text = day_ranges(text)
    if not _SPELT_WORDS.isdisjoint(_LETTERS.findall(folded(text))):
        text = _SPELT.sub(_spelt, text)
    text = _SCALED.sub(_scaled, text)
    return re.sub(r"(?<!\s)\s*\b(?:percent|per cent|pct)\b", "%", text, flags=re.IGNORECASE)


def _ungrouped(match: re.Match[str]) -> str:
    """48 312 as 48312."""
    return match[0].replace(" ", "")


def folded(word: str) -> str:
    """A word that a pattern matched, as the tables have it: "fıve" is matched as "five"."""
    return word.translate(_LIKE_ASCII).lower()


def decimal(value: Decimal) -> str:
    return f"{value.normalize():f}"


def _scaled(match: re.Match[str]) -> str:
    """10.4 billion as 10400000000."""
    figure = match["figure"] or match["amount"] or match["short"]
    if len(figure) > LONGEST_NUMBER:
        return match[0]
    return decimal(
        Decimal(figure) * _NUMBERS.scales[folded(match["scale"] or match["letter"] or match["capital"])]
    )


def _spelt(match: re.Match[str]) -> str:
    """Twenty-one as 21, two point five as 2.5. "One of them", "no one" and "the only one" count nothing and
    stay words."""
    spelt, _, decimals = folded(match[0]).partition(" point")
    before = match.string[max(0, match.start() - 12) : match.start()].lower().split()
    after = _AFTER_ONE.match(match.string, match.end())
    if spelt == "one" and not decimals and (after or (before and before[-1] in _NUMBERS.before_one)):
        return match[0]
    total = group = 0
    for word in _LETTERS.findall(spelt):
        if word == "hundred":
            group *= 100
        elif word in _NUMBERS.scales:
            total, group = total + group * _NUMBERS.scales[word], 0
        elif word != "and":
            group += _VALUES[word]
    point = "." if decimals else ""
    return f"{total + group}{point}{''.join(str(_VALUES[word]) for word in _LETTERS.findall(decimals))}"


def _han_number(match: re.Match[str]) -> str:
    """二十一 as 21. A 一 or 两 that is alone and counts nothing stays."""
    run = match[0]
    before = match.string[max(0, match.start() - 2) : match.start()]
    after = match.string[match.end() : match.end() + 1]
    counters = _NUMBERS.han_counters.get(run)
    counts = counters is None or before.endswith("第") or before == "分之" or (after and after in counters)
    if run.isascii() or not counts or len(run) > LONGEST_NUMBER:
        return run
    whole, _, decimals = run.partition("点")
    value = _han_value(whole)
    if value is None:
        return run
    if decimals:
        scale = _NUMBERS.han_units.get(decimals[-1], 1)
        figures = "".join(str(_NUMBERS.han_digits[char]) for char in decimals if char in _NUMBERS.han_digits)
        value = (value + Decimal(f"0.{figures}")) * scale
    return decimal(value)


def _han_value(run: str) -> Decimal | None:
    """The number that Chinese numerals and digits write together; None where it is not one (百度, 万科)."""
    if all(char in _NUMBERS.han_digits for char in run):
        return Decimal("".join(str(_NUMBERS.han_digits[char]) for char in run))
    total = section = Decimal(0)
    digit: Decimal | None = None
    for symbol in re.findall(r"[\d.]+|.", run):
        unit = _NUMBERS.han_units.get(symbol)
        if unit is None:
            if digit:
                return None
            digit = Decimal(_NUMBERS.han_digits.get(symbol, symbol))
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


# Dates

_MONTH = rf"(?P<m>{'|'.join(rf'{name[:3]}(?:{name[3:]})?' for name in _MONTHS)}|sept)\.?"
_DAY = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<y>[12]\d{3})"
_START = r"(?<![A-Za-z\d])"
"""Not inside a word or a number; it may be next to Chinese characters."""
_ORDINALS = "|".join(sorted(_NUMBERS.ordinals, key=len, reverse=True))
ORDINAL_WORD = re.compile(rf"\b(?:{_ORDINALS})\b", re.IGNORECASE)
_ORDINAL_DAY = re.compile(
    rf"\b(?:the )?(?P<day>{_ORDINALS})\b(?= (?:day )?(?:of )?(?:{'|'.join(_MONTHS)})\b)", re.IGNORECASE
)
_BARE_MONTH = (
    rf"(?<![A-Za-z])(?P<m>March|May|(?<=\b[Ii]n )(?:march|may)"
    rf"|(?i:{'|'.join(name for name in _MONTHS if name not in ('march', 'may'))}))(?![A-Za-z])"
)
"""A month by itself; "march" and "may" with a small letter are other words, except after "in"."""
_DATES = [
    *(
        re.compile(pattern, re.IGNORECASE)
        for pattern in (
            rf"(?<!\d){_YEAR}(?P<sep>[-/.])(?P<m>\d{{1,2}})(?P=sep)(?P<d>\d{{1,2}})(?!\d)",
            rf"(?<!\d){_YEAR} ?[年년] ?的?(?P<m>\d{{1,2}}) ?[月월] ?(?P<d>\d{{1,2}}) ?[日号일]",
            rf"(?<!\d){_YEAR} ?[年년] ?(?P<m>\d{{1,2}}) ?[月월]",
            r"(?<!\d)(?P<m>\d{1,2}) ?[月월] ?(?P<d>\d{1,2}) ?[日号일]",
            r"(?<!\d)(?P<m>\d{1,2}) ?[月월]",
            rf"(?<!\d){_YEAR} ?[年년]",
            rf"{_START}{_MONTH} {_DAY}(?:, ?| )(?:of )?{_YEAR}(?!\d)",
            r"(?<![\d.])(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>[12]\d{3})(?![\d.])",
            rf"{_START}{_DAY}-{_MONTH}-{_YEAR}(?!\d)",
            rf"{_START}{_DAY} (?:of )?{_MONTH},? (?:of )?{_YEAR}(?!\d)",
            rf"{_START}{_MONTH},? (?:of )?{_YEAR}(?!\d)",
            rf"\b{_MONTH} {_DAY}\b(?![.:%]\d)",
            rf"\b{_DAY} (?:of )?{_MONTH}(?!\w)",
            r"(?<!\d)(?P<m>0?\d|1[0-2])/(?P<d>1[3-9]|2\d|3[01])/(?P<y>[12]\d{3})\b",
            r"(?<!\d)(?P<d>1[3-9]|2\d|3[01])/(?P<m>0?\d|1[0-2])/(?P<y>[12]\d{3})\b",
            r"(?<![\d/])(?P<m>0?\d|1[0-2])/(?P<d>0?\d|1[0-2])/(?P<y>[12]\d{3})\b",
        )
    ),
    re.compile(_BARE_MONTH),
]
"""In the order in which they are replaced."""
_DATES_IN_DIGITS = [
    pattern for pattern in _DATES if "jan" not in pattern.pattern and "May" not in pattern.pattern
]
_MONTH_START = re.compile("|".join(name[:3] for name in _MONTHS), re.IGNORECASE)


def _date(match: re.Match[str]) -> str:
    """March 5, 2024, 5 March 2024, 2024-03-05 and 2024年3月5日 all as the words 2024 m3 d5."""
    groups = {name: value for name, value in match.groupdict().items() if value}
    month, day = groups.get("m", "1"), int(groups.get("d", "1"))
    number = int(month) if month.isdigit() else 1 + [name[:3] for name in _MONTHS].index(folded(month[:3]))
    if not (1 <= number <= 12 and 1 <= day <= 31):
        return match[0]
    parts = {"y": groups.get("y", ""), "m": f"m{number}", "d": f"d{day}"}
    return f" {''.join(f'{DATE}{text}{DATE_END}' for name, text in parts.items() if name in groups)} "
