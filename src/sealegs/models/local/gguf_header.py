"""Is the header of a GGUF file within its file? Readers believe the counts in it, and fill the memory."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from sealegs.errors import UsageError

NUMBERS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a value of each type."""
STRING, ARRAY = 8, 9
TENSOR = 24
"""Bytes that describe a tensor, at least: lengths of its name and shape, type, place."""


def check_gguf(path: Path) -> None:
    """Refuse a file whose counts and lengths reach beyond its end."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            _walk(content)
    except (ValueError, KeyError, struct.error, RecursionError) as error:
        raise UsageError(f"{path} is not a complete GGUF file: {error}.") from None


def _walk(content: mmap.mmap) -> None:
    magic, _, tensors, pairs = struct.unpack_from("<4sIQQ", content)
    if magic != b"GGUF":
        raise ValueError("it does not begin with GGUF")
    place = 24
    for _ in range(pairs):
        place = _after_string(content, place)
        (kind,) = struct.unpack_from("<I", content, place)
        place = _after_value(content, place + 4, kind)
    _check_room(content, place, tensors * TENSOR)


def _after_string(content: mmap.mmap, place: int) -> int:
    (length,) = struct.unpack_from("<Q", content, place)
    return _check_room(content, place + 8, length)


def _after_value(content: mmap.mmap, place: int, kind: int) -> int:
    if kind == STRING:
        return _after_string(content, place)
    if kind != ARRAY:
        return _check_room(content, place, NUMBERS[kind])
    kind, count = struct.unpack_from("<IQ", content, place)
    place += 12
    if kind in NUMBERS:
        return _check_room(content, place, count * NUMBERS[kind])
    for _ in range(count):
        place = _after_value(content, place, kind)
    return place


def _check_room(content: mmap.mmap, place: int, length: int) -> int:
    """Where so many bytes end."""
    if place + length > len(content):
        raise ValueError(f"its header names {place + length:,} bytes, and it has {len(content):,}")
    return place + length
