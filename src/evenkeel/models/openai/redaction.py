"""Secrets removed from what a server sends, however it spells them.

A server may repeat a key with JSON, percent or HTML escapes, in base64, in another case, with line breaks
inside, or only half of it. So a reply is searched in a plain form, without escapes, case and punctuation,
and what matches there is replaced in the reply itself.
"""

from __future__ import annotations

import base64
import re
import string
from array import array
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

REPLACEMENT = b"[key]"
SHORTEST_SECRET = 8
"""A shorter key is a placeholder (`none`, `EMPTY`); removing it would damage ordinary answers."""
SHORTEST_RANDOM = 12
"""Letters and digits from which on a secret with both counts as random, and is found in any spelling."""
LONG = 20
"""From which on it may be letters alone: no answer holds them all in this order by chance."""
SHORTEST_PART, LONGEST_PART = 9, 16
"""Letters and digits of a secret that are replaced alone: half of it, between these bounds."""
ENCODED_PART = 24

ESCAPE = re.compile(
    rb"[\\%&](?:"  # the first byte alone decides at most places, which is quick
    # A run of backslashes is read from its first one, and once: a model may write nothing else.
    rb"(?<=\\)(?<!\\\\)\\*+(?:(?:u00|u\{0*|x)([0-7][0-9a-f])\}?|[nrtbf])"
    rb"|(?<=%)(?:25)*([0-7][0-9a-f])"
    rb"|(?<=&)(?:\#x0*([0-9a-f]{2})|\#0*([0-9]{2,3})|[a-z]{2,8});"
    rb")",
    re.IGNORECASE,
)
KEY_WORD = re.compile(
    r"(?:^|[^a-z])(?:sk|pk|rk|ak|gsk|hf|xai|api|key|pat|ghp|secret|token|tok|pass(?:word)?|bearer|auth)(?:[^a-z]|$)"
    r"|secret|token|passw|credential|apikey",
    re.IGNORECASE,
)
RUN = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{20,}",
    re.IGNORECASE,
)
_ALPHANUMERIC = set((string.ascii_letters + string.digits).encode())


class _Form(NamedTuple):
    """A plain form of a text: which bytes remain, and as what."""

    table: bytes
    dropped: bytes
    remains: bytes
    """1 at every byte that remains."""


def _form(table: bytes, dropped: bytes) -> _Form:
    return _Form(table, dropped, bytes(byte not in dropped for byte in range(256)))


LOOSE = _form(bytes(range(256)).lower(), bytes(set(range(256)) - _ALPHANUMERIC))
"""Letters and digits alone, in lower case."""
EXACT = _form(bytes(range(256)), b"\\")


class _Spelling(NamedTuple):
    """One spelling of a secret, in a plain form."""

    text: bytes
    shortest: int
    """How much of it is enough."""
    blocks: list[tuple[int, bytes]]
    """Parts with their offsets: whatever holds `shortest` bytes of the text holds one of these whole."""


class Redaction:
    """Replaces secrets in bytes."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._spellings: dict[_Form, list[_Spelling]] = {LOOSE: [], EXACT: []}
        for secret in dict.fromkeys(secrets):
            raw = secret.encode(errors="surrogateescape")
            if len(raw) >= SHORTEST_SECRET:
                self._add(raw)
        # Whatever holds enough of a spelling holds a part of this size at one of every so many places.
        loose = self._spellings[LOOSE]
        self._size = size = min(((spelling.shortest + 1) // 2 for spelling in loose), default=1)
        self._parts = frozenset(
            spelling.text[i : i + size] for spelling in loose for i in range(len(spelling.text) - size + 1)
        )

    def _add(self, secret: bytes) -> None:
        plain = _plain(secret, LOOSE)
        if _is_random(plain):
            part = max(SHORTEST_PART, min(LONGEST_PART, len(plain) // 2))
            self._spellings[LOOSE].append(_spelling(plain, part))
        else:
            exact = _plain(secret, EXACT)
            self._spellings[EXACT].append(_Spelling(exact, len(exact), [(0, exact)]))
        for encoded in _encoded(secret):
            plain = _plain(encoded, LOOSE)
            if len(plain) >= SHORTEST_RANDOM:
                part = max(ENCODED_PART, len(plain) // 4)
                self._spellings[LOOSE].append(_spelling(plain, min(part, len(plain))))

    def __call__(self, data: bytes) -> bytes:
        if loose := self._spellings[LOOSE]:
            plain, size = _plain(data, LOOSE), self._size
            if not self._parts.isdisjoint(plain[i : i + size] for i in range(0, len(plain), size)):
                data = _replaced(data, LOOSE, loose)
        if exact := self._spellings[EXACT]:
            plain = _plain(data, EXACT)
            if any(spelling.text in plain for spelling in exact):
                data = _replaced(data, EXACT, exact)
        return data

    def text(self, text: str) -> str:
        return self(text.encode(errors="replace")).decode(errors="replace")


def is_random(secret: str) -> bool:
    """Whether a text is unlike words, so that no answer holds it by chance."""
    return _is_random(_plain(secret.encode(errors="surrogateescape"), LOOSE))


def looks_like_key(segment: str) -> bool:
    """Whether a segment of a path is a key, and not the name of a model, a deployment or a version: it says
    so itself, or has a long run of letters and digits, of which no word consists."""
    return is_random(segment) and bool(KEY_WORD.search(segment) or RUN.search(segment))


def _is_random(plain: bytes) -> bool:
    """Whether letters and digits are unlike words and numbers, so that no answer holds them by chance."""
    return _has_letters(plain) and (
        len(plain) >= LONG or (len(plain) >= SHORTEST_RANDOM and _has_digit(plain))
    )


def _is_telling(part: bytes, whole: bytes) -> bool:
    """Whether a part of a secret is not a word or a number that an answer may well hold."""
    return _has_letters(part) and (len(part) * 2 >= len(whole) or _has_digit(part))


def _has_letters(plain: bytes) -> bool:
    return sum(byte in b"abcdfghijklmnopqrstuvwxyz" for byte in plain) > 1  # 1e-05 is a number


def _is_inside_number(plain: bytes, start: int, end: int) -> bool:
    around = plain[max(0, start - 1) : start] + plain[end : end + 1]
    return plain[start:end].isdigit() and any(byte in b"0123456789." for byte in around)


def _has_digit(plain: bytes) -> bool:
    return any(byte in b"0123456789" for byte in plain)


def _encoded(secret: bytes) -> Iterator[bytes]:
    """The secret in hexadecimal, and in base64 behind 0, 1 or 2 other bytes, without what those decide."""
    yield secret.hex().encode()
    for before in range(3):
        whole = len(secret) - (len(secret) + before) % 3
        text = base64.b64encode(b"\0" * before + secret[:whole])
        yield text[(0, 2, 3)[before] :]


def _spelling(plain: bytes, shortest: int) -> _Spelling:
    size = (shortest + 1) // 2
    starts = range(0, len(plain) - size + 1, size)
    return _Spelling(plain, shortest, [(start, plain[start : start + size]) for start in starts])


def _plain(data: bytes, form: _Form) -> bytes:
    return ESCAPE.sub(_unescaped, data).translate(form.table, form.dropped)


def _unescaped(match: re.Match[bytes]) -> bytes:
    hexadecimal = match[1] or match[2] or match[3]
    if hexadecimal:
        return bytes([int(hexadecimal, 16)])
    return bytes([code]) if match[4] and (code := int(match[4])) < 128 else b""


def _replaced(data: bytes, form: _Form, spellings: list[_Spelling]) -> bytes:
    plain, starts, ends = _located(data, form)
    result, at = bytearray(), 0
    for first, last in _merged(span for spelling in spellings for span in _matches(plain, spelling)):
        if form is EXACT and _is_inside_number(plain, first, last):
            continue
        start, end = starts[first], ends[last - 1]
        result += data[at:start]
        if b'"' not in data[start:end]:
            result += REPLACEMENT
        else:  # over several strings, as tokens are given: each stays a string
            for i in range(first, last):
                result += b"*" + data[ends[i] : starts[i + 1] if i + 1 < last else end]
        at = end
    return bytes(result + data[at:])


def _located(data: bytes, form: _Form) -> tuple[bytes, array[int], array[int]]:
    """The plain form of the data, and where in the data each byte of it begins and ends."""
    plain, starts, ends = bytearray(), array("L"), array("L")

    def take(start: int, end: int) -> None:
        part = data[start:end]
        remains = part.translate(form.remains)
        plain.extend(part.translate(form.table, form.dropped))
        starts.extend(compress(range(start, end), remains))
        ends.extend(compress(range(start + 1, end + 1), remains))

    at = 0
    for match in ESCAPE.finditer(data):
        take(at, match.start())
        at = match.end()
        if character := _unescaped(match).translate(form.table, form.dropped):
            plain.extend(character)
            starts.append(match.start())
            ends.append(at)
    take(at, len(data))
    return bytes(plain), starts, ends


def _matches(plain: bytes, spelling: _Spelling) -> Iterator[tuple[int, int]]:
    """Where the spelling is, or enough of it, in plain data."""
    text = spelling.text
    for offset, block in spelling.blocks:
        at = -1
        while (at := plain.find(block, at + 1)) >= 0:
            before = 0
            while before < min(offset, at) and plain[at - before - 1] == text[offset - before - 1]:
                before += 1
            after, longest = len(block), min(len(text) - offset, len(plain) - at)
            while after < longest and plain[at + after] == text[offset + after]:
                after += 1
            size = before + after
            part = text[offset - before : offset + after]
            if size == len(text) or (size >= spelling.shortest and _is_telling(part, text)):
                yield at - before, at + after


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
