"""What is wrong with a value, in words for a person, and the name that was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, NamedTuple

import msgspec

KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "nothing",
}
LIMITS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
LONGEST = 60
"""Characters of a value that a message repeats."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """` Did you mean 'mirae'?`, to put behind a message; nothing where no known name is close."""
    by_case = {one.casefold(): one for one in known}
    close = get_close_matches(name.casefold(), by_case, n=1)
    return f" Did you mean '{by_case[close[0]]}'?" if close else ""


def sentence(text: str) -> str:
    """A text with a full stop, where nothing else ends it."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


class Fault(NamedTuple):
    """What a value should be, and which one it is."""

    problem: str
    path: tuple[str | int, ...]
    """From the outermost value inwards; `...` stands for a key that is not known."""

    @property
    def field(self) -> str:
        """`field 'questions[3].domain'`; nothing for the outermost value."""
        steps = "".join(f"[{s}]" if isinstance(s, int) or s == "..." else f".{s}" for s in self.path)
        return f"field '{steps.lstrip('.')}'" if steps else ""


def explain(error: msgspec.ValidationError, raw: Any) -> Fault:
    """The first thing that is wrong with a decoded value, from msgspec's error about it."""
    message, _, where = str(error).partition(" - at ")
    steps = re.findall(r"\[(\d+|\.\.\.)\]|\.([^.\[\]`]+)", where)
    path = tuple((int(index) if index.isdigit() else index) if index else name for index, name in steps)
    return Fault(_problem(message, _at(raw, path)), path)


_NOTHING = object()
_PROBLEMS = (
    (r"Expected `(?P<kind>[^`]+)`, got `(?P<got>[^`]+)`.*", "expected {kind}, got {value}"),
    (r"Expected `(?:int|float)` (?P<limit>[<>]=?) (?P<bound>\S+)", "must be {limit} {bound}"),
    (
        r"Expected `array` of (?:at (?:least|most) )?length (?P<limit>[<>]=?) (?P<bound>\d+)",
        "must have {limit} {bound} entries",
    ),
    (r"Expected `str` of length (?P<limit>[<>]=?) (?P<bound>\d+)", "must have {limit} {bound} characters"),
    (r"Object missing required field `(?P<name>[^`]+)`", "the field '{name}' is missing"),
    (r"Object contains unknown field `(?P<name>[^`]+)`", "the field '{name}' is not known"),
    (r"Invalid enum value .*", "{value} is not one of the values that are allowed"),
    (r"(?:Number|Integer value) out of range", "the number is too large"),
)


def _problem(message: str, value: Any) -> str:
    for pattern, wording in _PROBLEMS:
        if found := re.fullmatch(pattern, message, re.DOTALL):
            parts = found.groupdict()
            kind = " or ".join(KINDS.get(part, part) for part in parts.get("kind", "").split(" | "))
            got = parts.get("got", "")
            named = KINDS.get(got, got or "this") if value is _NOTHING else shown(value)
            bound = parts.get("bound", "").removesuffix(".0")
            limit = LIMITS.get(parts.get("limit", ""), "")
            return wording.format(**{**parts, "kind": kind, "value": named, "limit": limit, "bound": bound})
    return message  # of our own making: a struct's own check


def shown(value: Any) -> str:
    """A value in a message: short, and in one line."""
    if value is None:
        return "nothing"
    if isinstance(value, dict | list | tuple):
        return "an object" if isinstance(value, dict) else "a list"
    text = repr(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else ""
    try:
        text = text or str(value)
    except ValueError:  # an int of thousands of digits
        return "a number that is too large"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _at(raw: Any, path: Iterable[str | int]) -> Any:
    """The value at a path; `_NOTHING` where it cannot be followed."""
    for step in path:
        try:
            raw = raw[step]
        except (KeyError, IndexError, TypeError):
            return _NOTHING
    return raw
