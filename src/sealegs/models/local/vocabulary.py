"""The bytes that each token of a tokenizer spells, and which tokens spell the beginning of a text.

Tokenizers write their tokens in three ways: byte by byte (`Ġ` is a space), with a mark for spaces and perhaps
`<0x0A>` for single bytes (SentencePiece), or with a mark for what continues a word (WordPiece). What a token
spells is read from the tokenizer's description; nothing is decoded by trial.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
SPACE = "▁"
"""SentencePiece's mark for a space."""


class Vocabulary:
    """The tokens that spell text, in the order of their bytes. Special tokens spell none."""

    def __init__(self, spellings: Mapping[int, bytes]) -> None:
        import numpy as np

        ordered = sorted((text, token) for token, text in spellings.items() if text)
        self.spellings = {token: text for text, token in ordered}
        self._texts = [text for text, _ in ordered]
        self._ids = np.array([token for _, token in ordered], dtype=np.intp)
        self._by_text: defaultdict[bytes, list[int]] = defaultdict(list)
        for text, token in ordered:
            self._by_text[text].append(token)
        self._longest = max(map(len, self._texts), default=0)

    def spell(self, ids: list[int]) -> bytes:
        """What tokens spell together; special tokens add nothing."""
        return b"".join(self.spellings.get(token, b"") for token in ids)

    def beginning_with(self, text: bytes) -> NDArray[np.intp]:
        """The tokens whose bytes begin with a text: those that spell it, and those that go on after it."""
        following = _successor(text)
        end = len(self._texts) if following is None else bisect_left(self._texts, following)
        return self._ids[bisect_left(self._texts, text) : end]

    def within(self, text: bytes) -> Iterator[tuple[int, int]]:
        """The tokens that spell a part of a text from its beginning and not the whole, with their lengths."""
        for length in range(1, min(self._longest + 1, len(text))):
            for token in self._by_text.get(text[:length], ()):
                yield token, length


def _successor(text: bytes) -> bytes | None:
    """The first text after all that begin with this one; None where there is none."""
    stem = text.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def read_vocabulary(backend: Any) -> Vocabulary | None:
    """The vocabulary of a tokenizer of the package `tokenizers`; None where the bytes of its tokens are not
    known, for it writes them in none of the ways named above."""
    description = msgspec.json.decode(backend.to_str())
    spell = _speller(description)
    if spell is None:
        return None
    tokens: dict[str, int] = backend.get_vocab(with_added_tokens=True)
    plain: set[str] = set()
    if spell is _byte_level:  # the letters of added tokens stand for themselves, not for bytes
        plain = tokens.keys() - backend.get_vocab(with_added_tokens=False).keys()
    special = {added["id"] for added in description["added_tokens"] if added["special"]}
    special.add(unknown_token(backend, description))
    return Vocabulary(
        {
            token: text.encode() if text in plain else spell(text)
            for text, token in tokens.items()
            if token not in special
        }
    )


def unknown_token(backend: Any, description: Mapping[str, Any] | None = None) -> int | None:
    """The token for what a tokenizer has no token for; None where it has none for that."""
    model = (description or msgspec.json.decode(backend.to_str()))["model"]
    if model.get("unk_token") is not None:
        token: int | None = backend.token_to_id(model["unk_token"])
        return token
    number: int | None = model.get("unk_id")
    return number


def _speller(description: Mapping[str, Any]) -> Callable[[str], bytes] | None:
    """How a token's text becomes bytes, by what the tokenizer itself decodes with."""
    model = description["model"]
    decoders = {part["type"]: part for part in _parts(description["decoder"])}
    splits = {part["type"] for part in _parts(description["pre_tokenizer"])}
    if "ByteLevel" in decoders or "ByteLevel" in splits:
        return _byte_level
    if wordpiece := decoders.get("WordPiece"):
        return lambda text: _continuing(text, wordpiece["prefix"])
    marks = [part["replacement"] for part in (decoders.get("Metaspace"),) if part]
    replace = decoders.get("Replace")
    marks += [replace["pattern"].get("String", "")] if replace and replace["content"] == " " else []
    if not marks and "ByteFallback" not in decoders:
        return None
    fallback = "ByteFallback" in decoders or bool(model.get("byte_fallback"))
    return lambda text: _marked(text, marks[0] if marks else SPACE, fallback=fallback)


def _parts(component: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """A component of a tokenizer's description, or the components of a sequence."""
    if component is None:
        return []
    members = component.get("decoders") or component.get("pretokenizers") or ()
    return [part for member in members for part in _parts(member)] or [component]


def _byte_level(text: str) -> bytes:
    letters = byte_letters()
    if all(letter in letters for letter in text):
        return bytes(letters[letter] for letter in text)
    return text.encode()  # a token that was added as plain text


@cache
def byte_letters() -> dict[str, int]:
    """GPT-2's letter for each byte: printable ones stand for themselves, the others for U+0100 and on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (byte for byte in range(256) if byte not in set(printable))
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


def _continuing(text: str, prefix: str) -> bytes:
    return text[len(prefix) :].encode() if text.startswith(prefix) else f" {text}".encode()


def _marked(text: str, mark: str, *, fallback: bool) -> bytes:
    if fallback and (byte := BYTE.fullmatch(text)):
        return bytes([int(byte[1], 16)])
    return text.replace(mark, " ").encode()
