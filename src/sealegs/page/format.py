"""Figures as text: the same digits at the terminal and on the page."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from math import floor
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from sealegs.types import Figure, Unit

if TYPE_CHECKING:
    from sealegs.page.layout import Layout
    from sealegs.page.metrics import Metric

FLOOR = 0.95
"""Coverage below this is shown as a warning."""

FORMATS: dict[Unit, str] = {
    "cosine": ".2f",
    "score": ".1f",
    "points": ".1f",
    "bits": ".2f",
    "signed_bits": ".2f",
    "tokens": ",.0f",
    "count": ".2f",
    "nats": ".2f",
    "correlation": ".2f",
    "value": ".2f",
}

TOO_WIDE = "interval too wide"
"""Stands for an interval that says nothing."""
NO_INTERVAL = "○"
"""Marks a value that has no interval, in tables and on lines; charts draw such a point hollow."""
TIMES = 10
"""How many times the lower limit of an amount the upper one may be, beyond which it says nothing."""
WIDEST: dict[Unit, float] = {"correlation": 1.5, "cosine": 1.5, "share": 1.5, "points": 150}
"""Intervals, of differences for the most part, that are wider than this say nothing."""
MOST_PLACES = 4
"""Decimals of a percentage."""
NONZERO = re.compile("[1-9]")
MINUS = "−"
"""As in headings: a hyphen is no minus. Files for programs have numbers of their own."""


def number(amount: float, unit: Unit) -> str:
    """An amount with as many digits as people read; what rounds to zero has no sign."""
    if unit == "share":
        return _per_cent(amount)
    size = abs(amount)
    close = unit == "cosine" and (0 < size < 0.0995 or 0.995 <= size < 0.9995)
    return _with_minus(f"{amount:{'.3f' if close else FORMATS[unit]}}")


def _with_minus(digits: str) -> str:
    """A number as people write it; what rounds to zero has no sign."""
    return digits.replace("-", MINUS if NONZERO.search(digits) else "")


def decimals(unit: Unit) -> int:
    """How many digits an amount of it has after the point."""
    return len(number(1.0, unit).partition(".")[2])


def _per_cent(amount: float) -> str:
    """A share as per cent, with enough digits to differ from 0% and 100%: 299 of 300 are 99.7%."""
    size = abs(amount)
    for places in range(1 + MOST_PLACES):
        digits = f"{amount:.{places}%}"
        if NONZERO.search(digits) and (size >= 1 or "100" not in digits):
            return _with_minus(digits)
    return f"{round(amount):.0%}"  # exactly 0 or 1, or a rounding error


def duration(seconds: float) -> str:
    """`40 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 5400 else f"{seconds / 3600:,.1f} h"


def rate(per_second: float) -> str:
    """`31/s`, `3.2/s`, `1.8/min`; empty where that would round to nothing."""
    if per_second >= 0.1:
        return f"{per_second:,.0f}/s" if per_second >= 10 else f"{per_second:.1f}/s"
    return f"{60 * per_second:.1f}/min" if 60 * per_second >= 0.1 else ""


IN_POINTS = ("share", "points")


def change(amount: float, unit: Unit, places: int | None = None) -> str:
    """The size of a difference: one of shares is in points, not in per cent of either."""
    places = _places(amount, unit) if places is None else places
    digits = _digits(amount, unit, places).removesuffix("%")
    return f"{digits} point{'' if digits == '1' else 's'}" if unit in IN_POINTS else digits


def signed(amount: float, unit: Unit) -> str:
    """A difference, with its sign: `+0.012`, `−3 points`; without one where it rounds to zero."""
    return _plus(amount, change(amount, unit))


class DifferenceText(NamedTuple):
    """Two values, their difference, and its interval, all with the same number of digits. Without "points":
    those who show several say once that differences of shares are in points."""

    a: str
    b: str
    change: str
    limits: tuple[str, str] | None
    """None where they are unknown, or say nothing."""
    unit: str
    """` points`, or nothing."""


def difference_text(
    a: float, b: float, unit: Unit, limits: tuple[float | None, float | None] = (None, None)
) -> DifferenceText:
    """`45.0%`, `92.5%`, `+47.5`: with the digits of the one that needs most, and with one more where rounding
    would contradict the difference."""
    amount = b - a
    known = [limit for limit in limits if limit is not None]
    places = max(_places(each, unit) for each in (a, b, amount))
    while unit == "share" and places < MOST_PLACES and any(_is_lost(limit, places) for limit in known):
        places += 1
    first, second, rounded = (Decimal(_written(each, unit, places)) for each in (a, b, amount))
    if second - first != rounded and places == max(_places(each, unit) for each in (a, b)) < MOST_PLACES:
        places += 1
    texts = [_plus(each, _digits(each, unit, places).removesuffix("%")) for each in (amount, *known)]
    shown = len(known) == 2 and not is_uninformative(known[0], known[1], unit)
    return DifferenceText(
        _digits(a, unit, places),
        _digits(b, unit, places),
        texts[0],
        (texts[1], texts[2]) if shown else None,
        " points" if unit in IN_POINTS else "",
    )


def _written(amount: float, unit: Unit, places: int) -> str:
    """An amount as it is rounded where it is shown."""
    return f"{amount:.{places}%}"[:-1] if unit == "share" else f"{amount:.{places}f}"


def _digits(amount: float, unit: Unit, places: int) -> str:
    """An amount with so many decimals."""
    return _with_minus(f"{amount:.{places}%}" if unit == "share" else f"{amount:,.{places}f}")


def _places(amount: float, unit: Unit) -> int:
    """How many digits an amount is written with after the point."""
    return len(number(amount, unit).removesuffix("%").partition(".")[2])


def _plus(amount: float, digits: str) -> str:
    return f"+{digits}" if amount > 0 and NONZERO.search(digits) else digits


def number_or_dash(amount: float | None, unit: Unit) -> str:
    """An amount, or a dash where it is unknown."""
    return "–" if amount is None else number(amount, unit)


def value(figure: Figure | None) -> str:
    return "–" if figure is None else number_or_dash(figure.value, figure.unit)


def interval(figure: Figure | None, *, short: bool = False) -> str:
    """`0.85 to 0.87`, or `[0.85, 0.87]` where space is short; empty where it is unknown."""
    if figure is None or figure.value is None or figure.low is None or figure.high is None:
        return ""
    low, high = limits(figure)
    return TOO_WIDE if not low else f"[{low}, {high}]" if short else f"{low} to {high}"


def limits(figure: Figure | None) -> tuple[str, str]:
    """Both ends of an interval, with the digits of the value: `0.06` and `0.60` beside 0.36; empty where it
    is unknown, or says nothing."""
    if figure is None or figure.value is None or figure.low is None or figure.high is None:
        return "", ""
    if is_uninformative(figure.low, figure.high, figure.unit):
        return "", ""
    places = _places(figure.value, figure.unit)
    return _limit(figure.low, figure.unit, places), _limit(figure.high, figure.unit, places)


def _limit(amount: float, unit: Unit, places: int) -> str:
    """An amount with so many decimals; `<1%` and `>99%` where it would otherwise be all or nothing."""
    if unit == "share" and _is_lost(amount, places):
        least = 10.0**-places
        near = f"<{least:.{places}f}%" if amount < 0.5 else f">{100 - least:.{places}f}%"
        return near if amount > 0 else number(amount, unit)
    return _digits(amount, unit, places)


def _is_lost(amount: float, places: int) -> bool:
    """Whether a share with so many decimals is all or nothing, though there is more to it."""

    def is_whole(digits: str) -> bool:
        return not NONZERO.search(digits) or abs(float(digits[:-1])) == 100

    return is_whole(f"{amount:.{places}%}") and not is_whole(f"{amount:.{MOST_PLACES}%}")


def no_interval(figure: Figure | None) -> str:
    """Why a value has no interval, in words; empty where it has one, and without a value."""
    if figure is None or figure.value is None or (figure.low is not None and figure.high is not None):
        return ""
    return figure.reason or "not known"


def interval_words(figure: Figure) -> str:
    """`95% interval 0.85 to 0.87`, `95% interval too wide`, `no 95% interval: nothing to count`."""
    words = interval(figure)
    if words == TOO_WIDE:
        return f"95% {words}"
    reason = no_interval(figure) or figure.reason
    return f"95% interval {words}" if words else f"no 95% interval: {reason}"


def figure_details(figure: Figure) -> list[str]:
    """What is shown beside a value: its interval or the mark for none, p-value, and coverage if partial."""
    if figure.value is None:
        return []
    words = interval(figure, short=True) or NO_INTERVAL
    words = f"({words})" if words == TOO_WIDE else words
    details = list(filter(None, (words, p_value(figure))))
    parts = [*(f"{detail}," for detail in details[:-1]), *details[-1:]]
    return [*parts, f"({share(figure.coverage)} covered)"] if figure.coverage < 1 else parts


def is_uninformative(low: float, high: float, unit: Unit) -> bool:
    """Whether an interval is so wide that its limits are of no use: [2, 11,381], a correlation in [-1, 1]."""
    if unit in WIDEST:
        return high - low > WIDEST[unit]
    return unit in ("tokens", "count", "bits", "nats") and low > 0 and high > TIMES * low


def chance(metric: Metric | None) -> str:
    """`guessing gives 50%`, or nothing where that is not known."""
    if metric is None or metric.chance is None:
        return ""
    return f"guessing gives {number(metric.chance, metric.unit)}"


class Counted(Protocol):
    """Anything with a number of samples and of their groups."""

    @property
    def n(self) -> int: ...
    @property
    def clusters(self) -> int: ...


def counts(figure: Counted, layout: Layout) -> str:
    """How many samples are behind a figure: `280 prompts from 40 questions`, `200 examples`, or, of
    linked samples, `48 triplets, counted as 41 since they overlap`."""
    samples = layout.counted[0]
    if figure.clusters == figure.n:
        return nouns(figure.n, samples)
    if layout.linked and layout.counted[1] == samples:
        return f"{nouns(figure.n, samples)}, counted as {figure.clusters:,} since they overlap"
    return f"{nouns(figure.n, samples)} from {nouns(figure.clusters, layout.groups)}"


def nouns(count: int, plural: str) -> str:
    """`1 question`, `1,200 questions`: a number with its noun."""
    return f"{count:,} {plural.removesuffix('s') if count == 1 else plural}"


def statuses(figure: Figure) -> str:
    """How the requests behind a figure ended: `235 complete, 5 refused, 2 cut off`."""
    return ", ".join(
        f"{count:,} {STATUS_WORDS.get(status, status)}" for status, count in figure.statuses.items()
    )


STATUS_WORDS: Mapping[str, str] = {
    "ok": "complete",
    "truncated": "cut off",
    "unparsed": "no usable answer",
    "refused": "refused",
    "error": "error",
}
"""How requests end, in the words that every table has."""
TAG_WORDS = {"lang": "language"}
"""Tags (`edits`) and values of tags (`padding=neutral`) in words, where a reader would not know them.
Benchmarks add those that their layouts declare (`Layout.words`)."""


def tag_name(tag: str) -> str:
    """A tag in words: `language` for `lang`."""
    return TAG_WORDS.get(tag, tag.replace("_", " "))


def tag_value(text: str, tag: str = "") -> str:
    """The value of a tag in words: `math: arithmetic` for the task `math__arithmetic`."""
    return TAG_WORDS.get(f"{tag}={text}") or text.replace("__", ": ")


def scope_words(scope: Mapping[str, str]) -> str:
    """`language en, task math: arithmetic`"""
    return ", ".join(f"{tag_name(tag)} {tag_value(part, tag)}" for tag, part in scope.items())


def capitalised(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def uncapitalised(text: str) -> str:
    """A title or sentence inside of another; `BLEU` and `F1` stay as they are."""
    return f"{text[:1].lower()}{text[1:]}" if text[1:2].islower() or text[1:2] == " " else text


def p_value(figure: Figure | None) -> str:
    """`p = 0.021`, `p < 0.001 (Holm, 3 tests)`, or nothing for a figure that tests nothing."""
    if figure is None or figure.p is None:
        return ""
    corrected = f" (Holm, {figure.tests} tests)" if figure.tests > 1 else ""
    return f"{p_value_text(figure.p)}{corrected}"


def p_value_text(p: float | None) -> str:
    """`p = 0.021`, `p < 0.001`."""
    return f"p {'' if p is not None and p < 0.001 else '= '}{probability(p)}"


def probability(p: float | None) -> str:
    """`0.021`, `< 0.001`, or a dash where there was no test."""
    return "–" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def share(amount: float) -> str:
    """How much there is of what should be, as per cent; never rounded up, as it may be short of a floor."""
    whole = 0.01 <= amount <= 0.99
    return number(floor(100 * amount + 1e-9) / 100 if whole else amount, "share")


UNCHANGED = "\n\t\u200c\u200d"
"""Line breaks and tabs, and the two joiners that Persian, Indic scripts and emoji are spelt with."""
HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Controls, invisible and direction-changing characters, lone surrogates, and line separators."""


class _Substitutes(dict[int, str]):
    """The text shown for each character, computed when the character first occurs."""

    def __missing__(self, code: int) -> str:
        self[code] = text = _substitute(code)
        return text


def _substitute(code: int) -> str:
    character = chr(code)
    if character in UNCHANGED:
        return character
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    noncharacter = code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
    hidden = noncharacter or unicodedata.category(character) in HIDDEN
    return f"⟦U+{code:04X}⟧" if hidden else character


_SUBSTITUTES = _Substitutes()
FORMULA = re.compile(r"\s*[=+\-@＝＋－＠﹢﹣﹦﹫]|[\t\r\n]")
NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")


def escape_controls(text: str) -> str:
    """Hostile text made harmless: control, invisible and direction-changing characters are shown."""
    # Nearly every text is printable as it is, and asking is much faster than looking at each character.
    printable = text.replace("\n", " ").replace("\t", " ").isprintable()
    return text if printable else text.translate(_SUBSTITUTES)


def spaces_shown(token: str) -> str:
    return escape_controls(token).replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥")


def csv_safe(text: str) -> str:
    """A text cell for a spreadsheet: never a formula, control characters shown and not obeyed.

    What looks like a formula is put behind an apostrophe, which spreadsheets take for "this is text".
    """
    cell = escape_controls(text.replace("\r\n", "\n"))
    return f"'{cell}" if FORMULA.match(cell) and not NUMBER.fullmatch(cell) else cell


INTERVAL = re.compile(r"\\\[[\d−][\d.,%− +\\]*\\\](?!\\\[|[(:])")
"""Limits in brackets, escaped: they are no link, nor the name of one."""


def as_markdown(text: str) -> str:
    """A text for a table of Markdown: nothing in it is read as markup."""
    line = escape_controls(text).replace("\n", "␊").replace("&", "&amp;").replace("<", "&lt;")
    escaped = "".join(f"\\{mark}" if mark in "\\`*_{}[]#+!|~>@" else mark for mark in line)
    return INTERVAL.sub(lambda match: match[0].replace("\\", ""), escaped)


LATEX = {
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"–": "--", "−": "$-$", "○": r"$\circ$", "⚠": "!", "\n": " ", "<": "$<$", ">": "$>$"},
}


def as_latex(text: str) -> str:
    """A text for a table of LaTeX: nothing in it is read as a command."""
    return "".join(LATEX.get(mark, mark) for mark in escape_controls(text))


def as_json(value: Any) -> str:
    """A value as JSON to be read, with every character that a terminal would obey as a \\u escape."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return re.sub(r"[^\x00-\x7e]", lambda match: _json_escape(match[0]), text)


def _json_escape(character: str) -> str:
    if unicodedata.category(character) not in HIDDEN:
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
