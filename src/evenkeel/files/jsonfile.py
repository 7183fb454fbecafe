"""JSON and JSON lines read into types, with errors that name the file, the line and the place in it."""

from __future__ import annotations

import contextlib
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from evenkeel.errors import DataError
from evenkeel.files.jsontext import without_halves
from evenkeel.messages import explain

BOM = b"\xef\xbb\xbf"
"""What some editors put before UTF-8."""


def read_json(path: Path, kind: Any = Any) -> Any:
    """A whole JSON file as `kind`."""
    content = read_bytes(path).removeprefix(BOM)
    try:
        raw = decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        line = _line(content, error)
        raise DataError(path, f"this is not JSON: {_problem(error)}.", line=line) from None
    return convert(path, raw, kind)


def read_json_lines(path: Path, kind: Any = Any) -> Iterator[Any]:
    """Each line of a JSON-lines file as `kind`, one at a time."""
    return (convert(path, raw, kind, line=number) for number, raw in json_lines(path))


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Each line of a JSON-lines file, decoded, with its number; blank lines are passed over."""
    with open_file(path) as file:
        for number, line in enumerate(file, 1):
            if line := line.removeprefix(BOM).strip():
                try:
                    raw = decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    problem = f"this line is not JSON: {_problem(error)}."
                    raise DataError(path, problem, line=number) from None
                yield number, raw


def convert(path: Path, raw: Any, kind: Any, *, line: int | None = None) -> Any:
    """Decoded JSON as `kind`, or a DataError that says what was expected where."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        fault = explain(error, raw)
        raise DataError(path, f"{fault.problem}.", line=line, where=fault.field) from None


def decode(content: bytes) -> Any:
    """JSON as Python values; half a surrogate pair, which no text can hold, becomes U+FFFD."""
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError:
        if not re.search(rb"\\u[dD][89a-fA-F]", content):
            raise
        return msgspec.json.decode(without_halves(content.decode()))


@contextlib.contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """A data file to read from. A pipe or a device has no end, or can be read only once."""
    try:
        if not path.is_dir() and not stat.S_ISREG(path.stat().st_mode):
            raise DataError(path, "cannot be read: this is a pipe, a device or a socket. Give a file.")
        file = path.open("rb")
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
        return "it is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    if "truncated" in message:
        return "it breaks off before its end"
    if "out of range" in message:
        return "a number in it is too large"
    return message.removeprefix("JSON is malformed: ")


def _line(content: bytes, error: Exception) -> int | None:
    """The line of a JSON error, from the byte offset in msgspec's message."""
    offset = re.search(r"byte (\d+)", str(error))
    return content[: int(offset[1])].count(b"\n") + 1 if offset else None
