"""Times of day and ranges of days in one form: 9 p.m., 9:00 PM, 21:00, 21点 and 晚上9点 are the same."""

from __future__ import annotations

import re

DATE, DATE_END = "\u27e6", "\u27e7"
"""Around each part of a date, and around a time of day, in a text whose numbers are digits."""
_HOUR, _MINUTE = r"(?<![\d:.t])(?P<h>[01]?\d|2[0-4])", r"(?P<min>[0-5]\d)"
_TIMES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_HOUR}(?:[:.]{_MINUTE})? ?(?P<half>[ap])\.?m\b\.?",
        rf"{_HOUR}(?:[:.]{_MINUTE})?(?: o'?clock)? (?:in the|at) (?P<part>morning|afternoon|evening|night)\b",
        rf"{_HOUR}:{_MINUTE}(?![\d:])(?: ?(?:hrs|hours|h)\b)?",
        r"(?P<day>凌晨|清晨|早上|早晨|上午|中午|下午|傍晚|晚上|夜里|夜间|晚)?"
        r"(?<!\d)(?P<h>[01]?\d|2[0-4])[点时](?:(?P<min>[0-5]?\d)分|(?P<thirty>半)|[钟整])?(?!\d)",
    )
]
_MARKED = rf"{DATE}{{}}{DATE_END}"
_Y, _M, _D = (_MARKED.format(part) for part in (r"([12]\d{3})", r"m(\d+)", r"d(\d+)"))
_TO = r"\s*(?:-|–|—|~|to|through|thru|until|till|至|到)\s*(?:the )?"
_SUFFIX = r"(?:st|nd|rd|th)?"
_RANGES = [
    (
        re.compile(rf"(?:{_Y})?{_M}{_D}{_TO}(\d{{1,2}}){_SUFFIX}(?![\d.:%])[日号]?(?:,? ([12]\d{{3}})\b)?"),
        "ymdex",
    ),
    (re.compile(rf"(?<![\d.:–-])(\d{{1,2}}){_SUFFIX}{_TO}(?:{_Y})?{_M}{_D}"), "dyme"),
    (re.compile(rf"(?:{_Y})?{_M}{_D}(?:{_TO}|\s+and\s+)(?:{_Y})?{_M}{_D}"), "ymdxne"),
]
"""Patterns of ranges in a text whose dates are marked, and what their groups are: the year, the month and the
day of the beginning, and the year `x`, the month `n` and the day `e` of the end."""
_LATER = ("p", "afternoon", "evening", "night", "下午", "傍晚", "晚上", "夜里", "夜间", "晚")
_EARLY = ("a", "morning", "凌晨")


def clock_times(text: str) -> str:
    """A text with each time of day as one word, `t21:00`."""
    for pattern in _TIMES:
        text = pattern.sub(_time, text)
    return text


def _time(match: re.Match[str]) -> str:
    groups = match.groupdict()
    hour, minute = int(groups["h"]), int(groups.get("min") or (30 if groups.get("thirty") else 0))
    part = (
        groups.get("half") or groups.get("part") or groups.get("night") or groups.get("day") or ""
    ).lower()
    if part in _LATER and hour < 12:
        hour += 12
    elif part in _EARLY and hour == 12:
        hour = 0
    return f" {DATE}t{hour}:{minute:02d}{DATE_END} "


def day_ranges(text: str) -> str:
    """A text with marked dates, and each range of days as its two days and then the last of them with its
    year, so that the range, with its year or without, and each of its days can be found."""
    if DATE not in text:
        return text
    for pattern, names in _RANGES:
        text = pattern.sub(lambda match, names=names: _range(match, names), text)  # type: ignore[misc]
    return text


def _range(match: re.Match[str], names: str) -> str:
    given = dict(zip(names, match.groups(), strict=True))
    begun, ended = given.get("y"), given.get("x")
    if begun and ended and begun != ended:
        return match[0]
    year, month = [begun or ended or ""], given["m"]
    days = [f"m{month}", f"d{given['d']}", f"m{given.get('n') or month}", f"d{given['e']}"]
    parts = [*year, *days, *year, *days[2:]] if any(year) else days
    return f" {''.join(_MARKED.format(part) for part in parts)} "
