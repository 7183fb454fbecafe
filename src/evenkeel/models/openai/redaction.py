"""Secrets removed from what a server sends: as they are, and as servers encode them."""

from __future__ import annotations

import base64
import json
import re
import urllib.parse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

REPLACEMENT = b"[key]"
SHORTEST_SECRET = 8
"""A shorter key is a placeholder (`none`, `EMPTY`); removing it would damage ordinary answers."""
LONG = 20
"""Letters and digits from which on a text is unlike words; 12 where there is a digit among them."""
KEY_WORD = re.compile(
    r"(?:^|[^a-z])(?:sk|pk|rk|ak|gsk|hf|xai|api|key|pat|ghp|tok|pass|bearer|auth)(?:[^a-z]|$)"
    r"|secret|token|passw|credential|apikey",
    re.IGNORECASE,
)
RUN = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{20,}",
    re.IGNORECASE,
)


class Redaction:
    """Replaces secrets in bytes: exact, JSON-escaped, percent-encoded or in base64."""

    def __init__(self, secrets: Iterable[str]) -> None:
        spellings = {
            spelling
            for secret in secrets
            if len(secret) >= SHORTEST_SECRET
            for spelling in _spellings(secret)
            if len(spelling) >= SHORTEST_SECRET
        }
        self._spellings = sorted(spellings, key=len, reverse=True)

    def __call__(self, data: bytes) -> bytes:
        for spelling in self._spellings:
            data = data.replace(spelling, REPLACEMENT)
        return data

    def text(self, text: str) -> str:
        return self(text.encode(errors="replace")).decode(errors="replace")


def _spellings(secret: str) -> Iterator[bytes]:
    raw = secret.encode(errors="surrogateescape")
    yield raw
    for text in (json.dumps(secret), json.dumps(secret, ensure_ascii=False)):
        yield text[1:-1].encode(errors="replace")
    for quoted in (urllib.parse.quote(raw, safe=""), urllib.parse.quote(raw), urllib.parse.quote_plus(raw)):
        yield quoted.encode()
        yield re.sub("%..", lambda match: match[0].lower(), quoted).encode()
    for before in range(3):  # behind so many other bytes; what those decide is left out
        whole = len(raw) - (len(raw) + before) % 3
        encoded = base64.b64encode(b"\0" * before + raw[:whole])[(0, 2, 3)[before] :]
        yield encoded
        yield encoded.translate(bytes.maketrans(b"+/", b"-_"))


def is_random(text: str) -> bool:
    """Whether a text is unlike words, so that no answer holds it by chance."""
    plain = re.sub(r"[^A-Za-z0-9]", "", text)
    letters = len(re.findall(r"[A-DF-Za-df-z]", plain))  # 1e-05 is a number
    return letters > 1 and (len(plain) >= LONG or (len(plain) >= 12 and any(map(str.isdigit, plain))))


def looks_like_key(segment: str) -> bool:
    """Whether a segment of a path is a key, and not the name of a model, a deployment or a version: it says
    so itself, or has a long run of letters and digits, of which no word consists."""
    return is_random(segment) and bool(KEY_WORD.search(segment) or RUN.search(segment))
