"""JSON, JSON lines, and JSON objects inside a text; errors name the file, the line and the field."""

from __future__ import annotations

import contextlib
import json
import math
import re
import stat
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from sealegs.errors import DataError, explain

BOM = b"\xef\xbb\xbf"
"""The byte order mark that some editors write before UTF-8."""
NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
DEEPEST_JSON_LEVELS = 500
"""Levels of lists and objects in one another that are read. Python's own limit differs by version: 3.14 reads
tens of thousands, with which no function that goes down into a value can deal."""
BUFFER = 2**18
"""Bytes that are read at a time: lines of kilobytes are read three times as fast as with the usual 8 KiB."""


def read_json(path: Path, kind: Any = Any) -> Any:
    """A whole JSON file as `kind`."""
    content = read_bytes(path).removeprefix(BOM)
    try:
        raw = decode(content)
    except NOT_JSON as error:
        offset = re.search(r"byte (\d+)", str(error))
        line = content[: int(offset[1])].count(b"\n") + 1 if offset else None
        raise DataError(path, f"this is not JSON: {_problem(error)}.", line=line) from None
    return convert(path, raw, kind)


def read_json_lines(path: Path, kind: Any) -> Iterator[Any]:
    """Each line of a JSON-lines file as `kind`, one at a time. Fields that `kind` lacks are skipped without
    being decoded, in a fraction of the time; `msgspec.Raw` is a field as it stands in the line.
    """
    decoder = msgspec.json.Decoder(kind)
    with open_file(path) as file:
        for number, line in enumerate(file, 1):
            try:
                yield decoder.decode(check_depth(line))
            except NOT_JSON:  # a blank line, half of a surrogate pair, or an error to be explained
                if line.removeprefix(BOM).strip():
                    yield decode_line_as(path, line, kind, number)


def decode_line_as(path: Path, content: bytes, kind: Any, number: int) -> Any:
    """One line of a JSON-lines file as `kind`, or a DataError that names it and what was expected where."""
    raw = decode_line(path, content, number)
    try:
        return msgspec.json.decode(msgspec.json.encode(raw), type=kind)
    except msgspec.ValidationError as error:
        fault = explain(error, raw)
        raise DataError(path, f"{fault.problem}.", line=number, where=fault.field) from None


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Each line of a JSON-lines file, decoded, with its number; blank lines are skipped."""
    with open_file(path) as file:
        for number, line in enumerate(file, 1):
            if line.removeprefix(BOM).strip():
                yield number, decode_line(path, line, number)


def decode_line(path: Path, line: bytes, number: int) -> Any:
    """One line of a JSON-lines file, decoded, or a DataError that names it."""
    try:
        return decode(line.removeprefix(BOM))
    except NOT_JSON as error:
        raise DataError(path, f"this line is not JSON: {_problem(error)}.", line=number) from None


def convert(path: Path, raw: Any, kind: Any, *, line: int | None = None) -> Any:
    """Decoded JSON as `kind`, or a DataError that says what was expected where."""
    try:
        return msgspec.convert(raw, kind, str_keys=True)  # a key of JSON is a text, also where it counts
    except msgspec.ValidationError as error:
        fault = explain(error, raw)
        raise DataError(path, f"{fault.problem}.", line=line, where=fault.field) from None


def decode(content: bytes) -> Any:
    """JSON as Python values; half of a surrogate pair, which no text can hold, becomes U+FFFD."""
    try:
        return msgspec.json.decode(check_depth(content))
    except msgspec.DecodeError:
        if not re.search(rb"\\u[dD][89a-fA-F]", content):
            raise
        return msgspec.json.decode(replace_half_pairs(content.decode()))


_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in _STEPS)
JsonT = TypeVar("JsonT", bytes, str)


def check_depth(content: JsonT, *, most: float = math.inf) -> JsonT:
    """The same JSON, or RecursionError where it is nested more than DEEPEST levels, ValueError where it has
    more than `most` lists and objects; in linear time.

    Few texts have as many brackets, so that counting these is all that is done.
    """
    data = content.encode(errors="replace") if isinstance(content, str) else content
    if data.count(b"[") + data.count(b"{") > DEEPEST_JSON_LEVELS:
        # Without escapes every other quote ends a string, which is found in a tenth of the time.
        outside = _STRING.sub(b"", data) if b"\\" in data else b"".join(data.split(b'"')[::2])
        brackets = outside.translate(None, _NO_BRACKETS)
        if len(brackets) > 2 * most:
            raise ValueError(f"it has more than {most:,} lists and objects")
        if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > DEEPEST_JSON_LEVELS:
            raise RecursionError(f"nested more than {DEEPEST_JSON_LEVELS} levels deep")
    return content


def indented(value: Any, spaces: int) -> bytes:
    """JSON to be read, all lines but the first moved in by so many spaces more."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2)
    return text.replace(b"\n", b"\n" + b" " * spaces)


def described(value: Any) -> str:
    """What a file holds in the place of what was expected."""
    if isinstance(value, dict):
        return f"It is an object with {', '.join(repr(key) for key in list(value)[:6]) or 'nothing'}."
    return f"It is {'a list' if isinstance(value, list) else type(value).__name__}."


def depth(value: Any) -> int:
    """How deep lists and objects are nested; counted level by level, whatever the depth."""
    levels, parts = 0, [value]
    while parts:
        levels += 1
        containers = [part for part in parts if isinstance(part, dict | list)]
        parts = [inner for c in containers for inner in (c.values() if isinstance(c, dict) else c)]
    return levels


@contextlib.contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """A data file to read from. A pipe or a device has no end, or can be read only once."""
    try:
        if not path.is_dir() and not stat.S_ISREG(path.stat().st_mode):
            raise DataError(path, "cannot be read: this is a pipe, a device or a socket. Give a file.")
        file = path.open("rb", buffering=BUFFER)
    except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
        raise _unreadable(path, error) from None
    with file:
        yield file


def read_bytes(path: Path) -> bytes:
    """The whole of a data file."""
    with open_file(path) as file:
        try:
            return file.read()
        except (OSError, MemoryError) as error:
            raise _unreadable(path, error) from None


def _unreadable(path: Path, error: BaseException) -> DataError:
    reason = getattr(error, "strerror", None) or str(error) or "it does not fit into memory"
    return DataError(path, f"cannot be read: {reason}.")


def _problem(error: Exception) -> str:
    """Why something is not JSON, in our words."""
    message = str(error)
    if isinstance(error, RecursionError):
        return f"it is nested more than {DEEPEST_JSON_LEVELS} levels deep"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    if "truncated" in message:
        return "it ends too early"
    if "out of range" in message:
        return "a number in it is too large"
    return message.removeprefix("JSON is malformed: ")


# JSON objects inside a text

_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
MOST_BRACES = 10_000
"""Braces that begin no object, after which a text is not read any further: each may cost time."""


def json_objects(text: str) -> Iterator[Any]:
    """The JSON objects in a text, one after the other; braces of prose are skipped.

    Of an object that is incomplete, the complete ones inside it are given. Nothing is read after one that is
    nested more deeply than Python can follow.
    """
    whole, decoder, failures = replace_half_pairs(text), json.JSONDecoder(), 0
    start = whole.find("{")
    while start >= 0 and failures < MOST_BRACES:
        end = start + 1
        try:
            value, end = decoder.raw_decode(whole, start)
        except ValueError:  # also a number of thousands of digits
            failures += 1
        except RecursionError:  # the same again at every brace inside
            return
        else:
            if depth(value) <= DEEPEST_JSON_LEVELS:
                yield value
        start = whole.find("{", end)


def replace_half_pairs(text: str) -> str:
    """JSON in which every `\\ud800` without its other half is U+FFFD: no file could hold it as text."""
    return _ESCAPE.sub(lambda escape: "\\ufffd" if escape["half"] else escape[0], text)


def repaired(content: bytes) -> bytes:
    """JSON with U+FFFD for every half pair, and null for NaN and infinity, which Python writes so."""
    text = replace_half_pairs(check_depth(content).decode())
    return json.dumps(json.loads(text, parse_constant=lambda _: None), ensure_ascii=False).encode()


def strings_in(value: Any) -> list[str]:
    """Every text in a JSON value, in order, however deep."""
    texts: list[str] = []
    rest = [value]
    while rest:
        part = rest.pop()
        kind = type(part)
        if kind is str:
            texts.append(part)
        elif kind is dict:
            rest += reversed(part.values())
        elif kind is list:
            rest += reversed(part)
    return texts
