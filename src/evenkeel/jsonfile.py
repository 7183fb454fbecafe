"""JSON and JSON lines read into types, with errors that name the file, the line and the place in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from evenkeel.errors import DataError

BOM = b"\xef\xbb\xbf"
"""What some editors put before UTF-8."""


def read_json(path: Path, kind: Any = Any) -> Any:
    """A whole JSON file as `kind`."""
    content = _read(path)
    try:
        raw = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(path, f"this is not JSON: {error}.", line=_line(content, str(error))) from None
    return convert(path, raw, kind)


def read_json_lines(path: Path, kind: Any = Any) -> Iterator[Any]:
    """Each line of a JSON-lines file as `kind`, one at a time."""
    return (convert(path, raw, kind, line=number) for number, raw in json_lines(path))


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Each line of a JSON-lines file, decoded, with its number; blank lines are passed over."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror or error}.") from None
    with file:
        for number, line in enumerate(file, 1):
            if line := line.removeprefix(BOM).strip():
                try:
                    yield number, msgspec.json.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    raise DataError(path, f"this line is not JSON: {error}.", line=number) from None


def convert(path: Path, raw: Any, kind: Any, *, line: int | None = None) -> Any:
    """Decoded JSON as `kind`, or a DataError that says what was expected where."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at ")
        raise DataError(path, f"{problem}.", line=line, where=where.strip("`")) from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror or error}.") from None


def _line(content: bytes, message: str) -> int | None:
    """The line of a JSON error, from the byte offset in msgspec's message."""
    offset = re.search(r"byte (\d+)", message)
    return content[: int(offset[1])].count(b"\n") + 1 if offset else None
