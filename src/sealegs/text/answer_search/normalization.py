"""A text as words that can be compared, however it was written.

Unicode forms, case, accents, punctuation and articles are made equal; numbers become digits (1,000 and one
thousand, 二十一 and 21, 10.4 billion and 104亿); dates become year, month and day. Chinese is compared
character by character, so that no word list is needed, and Korean without its particles (`korean`); letters
and numbers are compared whole, so that 70 is not found in 170 nor "no" in "know".
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from sealegs.files.package_data import read_json
from sealegs.text.answer_search.clock import DATE, DATE_END, clock_times, day_ranges
from sealegs.text.answer_search.korean import HANGUL, arabic
from sealegs.text.answer_search.places import other_names
from sealegs.text.word_splitting import normalized

HAN = r"\u3400-\u9fff"
LOOK_BACK = 200
"""As many characters before a word or phrase are read for what it means there."""
LONGEST_NUMBER = 100
"""Characters of the longest number that is read as one; a longer run of digits stays as it is."""


# Words


class Word(NamedTuple):
    """One word, number, part of a date, or Han character."""

    text: str
    cased: str
    """As it was written, to distinguish US from us."""
    clause: int
    sentence: int
    glued: bool
    """Written on to the word before it, as the 4 of PS4."""

    @property
    def number(self) -> bool:
        return self.text[-1].isdigit()

    @property
    def joined(self) -> str:
        """To compare spellings with and without a gap (Spider-Man, Spiderman), yet never 1 70 with 170."""
        return f" {self.text} " if self.number else self.text


def plain(text: str) -> str:
    """One form for characters, apostrophes, contractions, mark-up and gaps; the words stay as they are."""
    text = normalized("NFKC", text)
    text = re.sub(r"[\u2018\u2019\u02bc]", "'", text)
    text = re.sub(rf"[*`#_{DATE}{DATE_END}]+", "", text)
    text = re.sub(r"\bcan(?:'t| not)\b", "cannot", text, flags=re.IGNORECASE)
    text = re.sub(r"\bwon't\b", "will not", text, flags=re.IGNORECASE)
    text = re.sub(r"n't\b", " not", text, flags=re.IGNORECASE)
    text = re.sub(rf"(?<=[{HAN}])[ \t]+(?=[{HAN}])|(?<=\d)[ \t]+(?=[万亿])", "", text)
    return re.sub(r"[^\S\n]+", " ", text).strip()


_SENTENCE_END = (
    r"[。!?;\n]+|(?<!\b[A-Za-z])\.(?=\s*$|\s+[^a-z0-9\s])|(?<=[a-z]{4})(?<!prox)\.(?=\s+\d)"
    r"|(?<=\d [gmst])\.(?=\s+[A-Z])"  # a unit is no initial
)


_TOKEN = re.compile(
    rf"{DATE}(?P<date>[^{DATE_END}]+){DATE_END}"
    rf"|(?P<number>(?:(?<![^\s(:])-)?\d+(?:\.\d+)*)"
    rf"|(?P<word>[{HAN}%‰]|[{HANGUL}]+|(?:(?![{HAN}{HANGUL}])[^\W\d_])+)"
    rf"|(?P<end>{_SENTENCE_END})|(?P<pause>[,:()、—]|(?<=\s)[–-](?=\s))",
)
_LETTER, _LETTER_OR_DIGIT = rf"[^\W\d_{HAN}{HANGUL}]", rf"[^\W_{HAN}{HANGUL}]"
_GLUED = {
    "number": re.compile(rf"(?<={_LETTER_OR_DIGIT})|(?<={_LETTER}-)|(?<=\d:)|(?<=[第제])"),
    "word": re.compile(rf"(?<=\d)(?={_LETTER})"),
}
"""What a number or word runs on from: the 4 of PS4, the 19 of COVID-19, the 30 of 10:30, the s of 1990s,
the 3 of 第3 and 제3."""
_SMALL_LETTER = re.compile(" [a-z]")


def words(text: str) -> tuple[Word, ...]:
    """The words of a plain text, without articles and punctuation."""
    text = _unaccented(text)
    text = re.sub(r"\b[A-Za-z][.·](?:\s?[A-Za-z][.·])+", lambda m: re.sub(r"[.·\s]", "", m[0]), text)
    text = digits(re.sub(r"'s\b|(?<=\w)'(?=\w)", "", text))
    listed: list[Word] = []
    clause = sentence = 0
    for token in _TOKEN.finditer(text):
        kind, cased = str(token.lastgroup), token[token.lastgroup or 0]
        if kind in ("end", "pause"):
            clause += 1
            sentence += kind == "end"
        elif not _is_article(token):
            word = re.sub(r"\.0+$", "", cased) if kind == "number" else cased.lower()
            glued = kind in _GLUED and bool(_GLUED[kind].match(text, token.start()))
            listed.append(Word(word, cased, clause, sentence, glued))
    return tuple(listed)


def _is_article(token: re.Match[str]) -> bool:
    """The, an and a; but not a capital A inside a sentence, as in "vitamin A"."""
    word, text = token["word"] or "", token.string
    if word == "A":
        before = text[max(0, token.start() - LOOK_BACK) : token.start()]
        begins = not before.rstrip(" \"'(") or before.rstrip()[-1:] in ".!?:\n"
        return begins and bool(_SMALL_LETTER.match(text, token.end()))
    return word.lower() in ("the", "an") or word == "a"


_LETTERS_ALIKE = str.maketrans("ðÐđĐøØłŁ", "dDdDoOlL")
"""Letters whose mark Unicode does not part from them."""


def _unaccented(text: str) -> str:
    if text.isascii():
        return text
    letters = (
        char for char in normalized("NFKD", text.translate(_LETTERS_ALIKE)) if not unicodedata.combining(char)
    )
    return unicodedata.normalize("NFC", "".join(letters))


# Numbers


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
NUMBER_WORDS = frozenset((*_UNITS, *_TEENS, *_TENS))
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
        text = _ORDINAL_DAY.sub(lambda m: str(1 + _NUMBERS.ordinals.index(_folded(m["day"]))), text)
        patterns = _DATES
    else:
        patterns = _DATES_IN_DIGITS if _DIGIT.search(text) else []
    for pattern in patterns:
        text = pattern.sub(_date, text)
    text = day_ranges(text)
    if not _SPELT_WORDS.isdisjoint(_LETTERS.findall(_folded(text))):
        text = _SPELT.sub(_spelt, text)
    text = _SCALED.sub(_scaled, text)
    return re.sub(r"(?<!\s)\s*\b(?:percent|per cent|pct)\b", "%", text, flags=re.IGNORECASE)


def _ungrouped(match: re.Match[str]) -> str:
    """48 312 as 48312."""
    return match[0].replace(" ", "")


def _folded(word: str) -> str:
    """A word that a pattern matched, as the tables have it: "fıve" is matched as "five"."""
    return word.translate(_LIKE_ASCII).lower()


def _decimal(value: Decimal) -> str:
    return f"{value.normalize():f}"


def _scaled(match: re.Match[str]) -> str:
    """10.4 billion as 10400000000."""
    figure = match["figure"] or match["amount"] or match["short"]
    if len(figure) > LONGEST_NUMBER:
        return match[0]
    return _decimal(
        Decimal(figure) * _NUMBERS.scales[_folded(match["scale"] or match["letter"] or match["capital"])]
    )


def _spelt(match: re.Match[str]) -> str:
    """Twenty-one as 21, two point five as 2.5. "One of them", "no one" and "the only one" count nothing and
    stay words."""
    spelt, _, decimals = _folded(match[0]).partition(" point")
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
    return _decimal(value)


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


# Other spellings of an answer

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
    ordinals = _NUMBERS.ordinals
    if regnal := _REGNAL.search(answer):
        listed.append(f"{answer[: regnal.start()]}{ordinals[_ROMAN[regnal[1].lower()] - 1]}")
    listed.append(_ORDINAL.sub(lambda m: ordinals[int(m[1]) - 1] if 0 < int(m[1]) <= 31 else m[0], answer))
    listed.append(_ORDINAL_WORD.sub(lambda m: _ordinal(ordinals.index(_folded(m[0])) + 1), answer))
    figures = digits(answer)
    if length := _LENGTH.fullmatch(figures):
        number = Decimal(length["number"][:LONGEST_NUMBER])
        is_km = length["unit"] == "km"
        listed.append(f"{_decimal(number * 1000)} m" if is_km else f"{_decimal(number / 1000)} km")
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


# Dates

_MONTH = rf"(?P<m>{'|'.join(rf'{name[:3]}(?:{name[3:]})?' for name in _MONTHS)}|sept)\.?"
_DAY = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<y>[12]\d{3})"
_START = r"(?<![A-Za-z\d])"
"""Not inside a word or a number; it may be next to Chinese characters."""
_ORDINALS = "|".join(sorted(_NUMBERS.ordinals, key=len, reverse=True))
_ORDINAL_WORD = re.compile(rf"\b(?:{_ORDINALS})\b", re.IGNORECASE)
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
    number = int(month) if month.isdigit() else 1 + [name[:3] for name in _MONTHS].index(_folded(month[:3]))
    if not (1 <= number <= 12 and 1 <= day <= 31):
        return match[0]
    parts = {"y": groups.get("y", ""), "m": f"m{number}", "d": f"d{day}"}
    return f" {''.join(f'{DATE}{text}{DATE_END}' for name, text in parts.items() if name in groups)} "
