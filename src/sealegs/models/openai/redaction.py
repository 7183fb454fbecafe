"""The key that was sent, removed from what a server sends back: as it is, and as servers encode it. And the
names of fields that are for keys, which have no place in an address or a spec."""

from __future__ import annotations

import base64
import json
import re
from functools import cache, cached_property
from html.entities import html5
from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sealegs.types import Response

REPLACEMENT = b"[key]"
FORMS = [re.compile(form) for form in (rb"%[0-9A-Fa-f]{2}", rb"&(?:#|\w+;)", rb"\\u00[2-7]", rb"\\/")]
"""Of a character in another form: where there is none, nothing is compared character by character."""
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
    """Replaces secrets in bytes: as they are or in base64, with any character percent-encoded, escaped as in
    JSON, or as an entity of HTML."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._secrets = [secret for secret in secrets if not is_placeholder(secret)]
        texts = {text for secret in self._secrets for text in _texts(secret)}
        self._texts = sorted((t for t in texts if len(t) >= SHORTEST_SECRET), key=len, reverse=True)
        self._exact = [text.encode(errors="surrogateescape") for text in self._texts]

    def __call__(self, data: bytes) -> bytes:
        for exact in self._exact:
            data = data.replace(exact, REPLACEMENT)
        if self._exact and any(form.search(data) for form in FORMS):
            data = self._encoded.sub(REPLACEMENT, data)
        return data

    @cached_property
    def _encoded(self) -> re.Pattern[bytes]:
        return re.compile(b"|".join(b"".join(map(_character, text)) for text in self._texts))

    def in_response(self, response: Response) -> Response:
        """A response whose texts were put together from parts, none of which held a secret as a whole."""
        secrets = self._secrets
        if secrets and any(secret in response.text or secret in response.reasoning for secret in secrets):
            return replace(response, text=self.text(response.text), reasoning=self.text(response.reasoning))
        return response

    def text(self, text: str) -> str:
        return self(text.encode(errors="replace")).decode(errors="replace")


def _texts(secret: str) -> Iterator[str]:
    """As it is, as forms write its spaces, as a text of JSON, and in base64."""
    yield from (
        secret,
        secret.replace(" ", "+"),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
    )
    raw = secret.encode(errors="surrogateescape")
    for before in range(3):  # behind so many other bytes; what those decide is left out
        whole = len(raw) - (len(raw) + before) % 3
        encoded = base64.b64encode(b"\0" * before + raw[:whole])[(0, 2, 3)[before] :].decode()
        yield encoded
        yield encoded.translate(str.maketrans("+/", "-_"))


@cache
def _character(character: str) -> bytes:
    """A character in every form; in JSON that is a text of other JSON, backslashes are doubled."""
    raw, code = character.encode(errors="surrogateescape"), ord(character)
    units = character.encode("utf-16-be", errors="surrogatepass")
    forms = [
        re.escape(raw),
        b"".join(rb"(?:%%|\\{1,4}u0025)(?i:%02x)" % byte for byte in raw),
        b"".join(rb"\\{1,4}u(?i:%b)" % units[i : i + 2].hex().encode() for i in range(0, len(units), 2)),
        rb"\\{1,4}/" if character == "/" else b"",
        rb"&#(?:0*%d|(?i:x0*%x))(?:;|(?![0-9a-fA-F]))" % (code, code),
        *(b"&%b" % name.encode() for name, text in html5.items() if text == character and name[-1] == ";"),
    ]
    return b"(?:%b)" % b"|".join(filter(None, forms))


def is_placeholder(key: str) -> bool:
    """Whether a key is a word in place of one, for a server that needs none."""
    return len(key) < SHORTEST_SECRET or (key.isalpha() and len(key) <= LONGEST_WORD)


def is_for_key(field: str) -> bool:
    """Whether a field of a query or a JSON object is for a key, by its name."""
    name = re.sub(r"[^a-z]", "", field.lower())
    return name in KEY_FIELDS or name.endswith(KEY_ENDINGS)
