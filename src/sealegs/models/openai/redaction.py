"""The key that was sent, removed from what a server sends back: as it is, and as servers encode it. And the
names of fields that are for keys, which have no place in an address or a spec."""

from __future__ import annotations

import base64
import json
import re
import urllib.parse
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sealegs.types import Response

REPLACEMENT = b"[key]"
SHORTEST_SECRET = 8
"""A shorter key is a placeholder (`none`, `EMPTY`); removing it would damage ordinary answers."""
LONGEST_WORD = 19
"""Characters of a key of letters alone that is a placeholder too (`placeholder`, `anything`)."""
KEY_FIELDS = frozenset(["key", "token", "pass", "pwd", "auth", "sig", "code", "jwt", "sas", "bearer"])
KEY_ENDINGS = (
    "apikey", "accesskey", "secretkey", "subscriptionkey", "accesstoken", "authtoken", "apitoken",
    "bearertoken", "sessiontoken", "secret", "password", "passwd", "authorization", "credential",
    "credentials", "signature",
)  # fmt: skip
"""Of a field's name, letters alone: `max_tokens` and `prompt_cache_key` are not for keys."""


class Redaction:
    """Replaces secrets in bytes: exact, percent-encoded or in base64, each JSON-escaped or not."""

    def __init__(self, secrets: Sequence[str]) -> None:
        spellings = {
            spelling
            for secret in secrets
            if not is_placeholder(secret)
            for spelling in _spellings(secret)
            if len(spelling) >= SHORTEST_SECRET
        }
        self._spellings = sorted(spellings, key=len, reverse=True)
        self._secrets = [secret for secret in secrets if not is_placeholder(secret)]

    def __call__(self, data: bytes) -> bytes:
        for spelling in self._spellings:
            data = data.replace(spelling, REPLACEMENT)
        if self._spellings and (b"\\u00" in data or b"\\/" in data):
            data = self._escaped.sub(REPLACEMENT, data)
        return data

    @cached_property
    def _escaped(self) -> re.Pattern[bytes]:
        """The spellings with any character as a JSON encoder may write it: PHP escapes `/`, .NET `+`."""
        return re.compile(b"|".join(b"".join(map(_character, spelling)) for spelling in self._spellings))

    def in_response(self, response: Response) -> Response:
        """A response whose texts were put together from parts, none of which held a secret as a whole."""
        if any(secret in response.text or secret in response.reasoning for secret in self._secrets):
            return replace(response, text=self.text(response.text), reasoning=self.text(response.reasoning))
        return response

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


def _character(code: int) -> bytes:
    """A character, also in JSON that is a text of other JSON, where backslashes are doubled."""
    escaped = rb"|\\{1,4}/" if code == ord("/") else b""
    return rb"(?:%b|\\{1,4}u00(?i:%02x)%b)" % (re.escape(bytes([code])), code, escaped)


def is_placeholder(key: str) -> bool:
    """Whether a key is a word in place of one, for a server that needs none."""
    return len(key) < SHORTEST_SECRET or (key.isalpha() and len(key) <= LONGEST_WORD)


def is_for_key(field: str) -> bool:
    """Whether a field of a query or a JSON object is for a key, by its name."""
    name = re.sub(r"[^a-z]", "", field.lower())
    return name in KEY_FIELDS or name.endswith(KEY_ENDINGS)
