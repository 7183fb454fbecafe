"""JSON objects found inside a text, and JSON whose escapes are halves of characters."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

Expected: TypeAlias = Literal["first key", "key", "colon", "first value", "value", "comma"]

_TOKEN = re.compile(
    r"""[ \t\n\r]*+(?:
      (?P<string>"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+")
    | (?P<plain>-?(?:Infinity|(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?)|NaN|true|false|null)
    | (?P<sign>[{}\[\],:])
    )""",
    re.VERBOSE,
)
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def objects(text: str) -> Iterator[Any]:
    """The JSON objects in a text, one after the other. Prose has braces too: they are passed over.

    Of an object that breaks off, those inside it that are whole are given. The time is linear in the text:
    an object that was met inside another is not read again, and what is in a string of one reading is
    outside of strings in the next, so that no place is read more than twice.
    """
    ends: dict[int, int] = {}
    place = text.find("{")
    while place >= 0:
        if place not in ends:
            _scan(text, place, ends)
        end = ends[place]
        if end:
            # A number of thousands of digits, or lists nested as deeply, are no verdict.
            with contextlib.suppress(ValueError, RecursionError):
                yield json.loads(without_halves(text[place:end]))
        place = text.find("{", end or place + 1)


def without_halves(text: str) -> str:
    """JSON in which every `\\ud800` without its other half is U+FFFD: no file could hold it as text."""
    return _ESCAPE.sub(lambda found: "\\ufffd" if found["half"] else found[0], text)


class _Open(NamedTuple):
    """An object or list that is being read."""

    start: int
    closes: str


def _scan(text: str, place: int, ends: dict[int, int]) -> None:
    """Note where the object at `place`, and every object in it, ends; 0 for one that is not whole."""
    stack: list[_Open] = []
    expected: Expected = "value"
    while token := _TOKEN.match(text, place):
        kind, place = token.lastgroup, token.end()
        sign = token["sign"] if kind == "sign" else ""
        if sign == "{" and expected in ("value", "first value"):
            known = ends.get(place - 1)
            if known == 0:
                break
            if known is None:
                stack.append(_Open(place - 1, "}"))
                expected = "first key"
                continue
            place = known
        elif sign == "[" and expected in ("value", "first value"):
            stack.append(_Open(place - 1, "]"))
            expected = "first value"
            continue
        elif sign and sign == stack[-1].closes and expected in ("first key", "first value", "comma"):
            closed = stack.pop()
            if sign == "}":
                ends[closed.start] = place
            if not stack:
                return
        elif sign == "," and expected == "comma":
            expected = "key" if stack[-1].closes == "}" else "value"
            continue
        elif sign == ":" and expected == "colon":
            expected = "value"
            continue
        elif kind == "string" and expected in ("key", "first key"):
            expected = "colon"
            continue
        elif sign or expected not in ("value", "first value"):
            break
        expected = "comma"
    ends.update((part.start, 0) for part in stack if part.closes == "}")
