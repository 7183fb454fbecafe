"""Times of day in one form: 9 p.m., 9:00 PM, 21:00, 21点 and 晚上9点 are the same."""

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
