"""Log-probabilities of a text from a server that gives the prompt back with one for each token."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from evenkeel.models.boundary import find_boundary
from evenkeel.models.openai.protocol import completion
from evenkeel.types import LogLikelihood, Logprobs, Response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Spans: TypeAlias = list[tuple[int, int]]

OUTSIDE = (-1, -1)
"""The span of a token that is not in the text, such as `<s>`."""
SPELLING = "the server's tokens do not spell the prompt"


class Unsound(ValueError):
    """Echoed prompt log-probabilities that cannot be used, and why."""


class Echo(NamedTuple):
    """A prompt as the server gave it back, without what it generated or appended."""

    tokens: list[str]
    logprobs: list[float | None]
    spans: Spans | None
    """Where each token begins and ends in the prompt, in bytes of UTF-8; None where the server shows parts
    of characters in a form that does not tell."""
    tokens_in: int | None


def read_echo(data: bytes, text: str) -> Echo:
    """The prompt's tokens in `text`, without those that the server generated after it."""
    choice, tokens_in, _ = completion(data)
    given = choice.logprobs
    if given is None or not given.tokens or not given.token_logprobs:
        raise Unsound("the server returned no prompt logprobs")
    tokens, logprobs = given.tokens, given.token_logprobs
    if len(tokens) != len(logprobs):
        raise Unsound("the server returned another number of logprobs than of tokens")
    spans = _spans(text, tokens)
    if spans is None:
        # Tokens may show parts of characters as U+FFFD; a text that does so as a whole was never read.
        if choice.text and text not in choice.text:
            raise Unsound(SPELLING)
        generated = len(choice.text or "") > len(text) if tokens_in is None else tokens_in == len(tokens) - 1
        kept = _spelled(text.encode(), tokens[:-1] if generated else tokens)
    else:
        kept = len(spans)
    return Echo(tokens[:kept], logprobs[:kept], spans, tokens_in)


def _spans(text: str, tokens: list[str]) -> Spans | None:
    """Where the tokens are in `text`, in bytes: each is whole, or its bytes are given.

    The server's offsets are not asked: they may count characters, UTF-16 or bytes, with a start token or
    without, and where a part of a character is shown as U+FFFD nothing tells which.
    """
    data = text.encode()
    for spell in (_as_shown, _as_stored):
        if spans := _laid_along(data, tokens, spell):
            return spans
    if any(map(_is_part, tokens)):
        return None
    raise Unsound(SPELLING)


def _laid_along(data: bytes, tokens: list[str], spell: Callable[[str], Iterator[bytes]]) -> Spans | None:
    """The spans of tokens that spell the text one after the other; those that come after it are left out."""
    spans: Spans = []
    at = 0
    for token in tokens:
        if at == len(data) and at:
            break
        piece = next((piece for piece in spell(token) if piece and data.startswith(piece, at)), None)
        if piece is None and not at:  # some tokenizers put a space before the first word
            bare = (piece.removeprefix(b" ") for piece in spell(token))
            piece = next((piece for piece in bare if piece and data.startswith(piece)), None)
        if piece is not None:
            spans.append((at, at + len(piece)))
            at += len(piece)
        elif not at:
            spans.append(OUTSIDE)  # a special token before the text, such as <s>
        elif not token:
            spans.append((at, at))  # part of the character that the next token shows whole (vLLM)
        else:
            return None
    return spans if at == len(data) and at else None


def _as_shown(token: str) -> Iterator[bytes]:
    """The bytes that a token may stand for: its text, or the bytes that it names."""
    yield token.encode()
    if "▁" in token:  # SentencePiece
        yield token.replace("▁", " ").encode()
    if named := re.fullmatch(r"<0x([0-9A-Fa-f]{2})>", token):
        yield bytes.fromhex(named[1])
    if token.startswith("bytes:"):  # OpenAI
        parts = re.split(r"\\x([0-9a-f]{2})", token.removeprefix("bytes:"))
        yield b"".join(bytes.fromhex(part) if i % 2 else part.encode() for i, part in enumerate(parts))
    if token:
        yield b" " + token.encode()  # decoded alone, a word loses its space


def _as_stored(token: str) -> Iterator[bytes]:
    """The bytes of a token as byte-level vocabularies write it: `Ġship`."""
    known = _byte_letters()
    yield bytes(known[letter] for letter in token) if all(letter in known for letter in token) else b""


@cache
def _byte_letters() -> dict[str, int]:
    """The letter that stands for each byte in GPT-2's vocabulary and those made like it."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + i): byte for i, byte in enumerate(others)}


def _is_part(token: str) -> bool:
    """Whether a token holds part of a character, so that its own text cannot be shown."""
    return "\ufffd" in token


def _spelled(data: bytes, tokens: list[str]) -> int:
    """How many tokens are the prompt's, where parts of characters hide their places.

    The tokens shown whole must come in the text one after the other. One at the end that the text does not
    end with was appended: `</s>`, or a token that was generated.
    """
    count = len(tokens)
    while count and not _is_part(tokens[count - 1]) and not _ends_with(data, tokens[count - 1]):
        count -= 1
    at = 0
    for token in tokens[:count]:
        found = -1 if _is_part(token) else min((data.find(p, at) for p in _as_shown(token)), key=_first)
        if found >= 0:
            at = found + len(token.strip().encode())
        elif at and token and not _is_part(token):
            raise Unsound(SPELLING)
    return count


def _ends_with(data: bytes, token: str) -> bool:
    return any(data.endswith(piece) for piece in _as_shown(token))


def _first(place: int) -> float:
    return place if place >= 0 else math.inf


def read_loglikelihood(data: bytes, request: LogLikelihood, *, prove: bool = False) -> Response | Echo:
    """The log-probabilities of the continuation; the echo itself where only the prefix alone can tell
    which tokens are the continuation's: one belongs to both, or hides where it is, or the prefix ends in
    blank space, which many tokenizers split otherwise where a text follows."""
    try:
        echo = read_echo(data, request.prefix + request.continuation)
        if prove:
            check_echo(echo)
        if echo.spans is None:
            return echo
        border = len(request.prefix.encode())
        first = next((i for i, (_, end) in enumerate(echo.spans) if end > border), len(echo.spans))
        # Parts of a character that the next token shows whole are its own.
        while first and border <= echo.spans[first - 1][0]:
            first -= 1
        if first == len(echo.spans):
            raise Unsound("no token belongs to the continuation")
        if echo.spans[first][0] < border or request.prefix[-1:].isspace():
            return echo
        return _response(echo, first, merged=False, before=echo, request=request)
    except Unsound as why:
        return Response(status="unparsed", reason=str(why))


def read_prefix(data: bytes, prefix: str) -> Echo | Response:
    try:
        return read_echo(data, prefix)
    except Unsound as why:
        return Response(status="unparsed", reason=f"of the prefix alone: {why}")


def loglikelihood_after(prefix: Echo, whole: Echo, request: LogLikelihood) -> Response:
    """Those of what comes after as many tokens as the prefix alone has (the published rule)."""
    start, merged = find_boundary(prefix.tokens, whole.tokens)
    try:
        return _response(whole, start, merged=merged, before=prefix, request=request)
    except Unsound as why:
        return Response(status="unparsed", reason=str(why))


def _response(whole: Echo, start: int, *, merged: bool, before: Echo, request: LogLikelihood) -> Response:
    """From the echo of a text, the continuation's first token, and an echo that has the prefix."""
    logprobs = Logprobs(
        tuple(whole.tokens[start:]),
        tuple(sound(whole.logprobs[start:])),
        merged=merged,
        last_word=_last_word(before, request.prefix),
        start=_start(whole, request.prefix + request.continuation),
    )
    echoes = [whole] if before is whole else [whole, before]
    counts = [echo.tokens_in for echo in echoes if echo.tokens_in is not None]
    tokens_in = sum(counts) if len(counts) == len(echoes) else None
    return Response(status="ok", logprobs=logprobs, tokens_in=tokens_in)


def _start(echo: Echo, text: str) -> str:
    """The start token, if the server puts one before every text."""
    if echo.spans is not None:
        return echo.tokens[0] if echo.spans[0] == OUTSIDE else ""
    first, data = echo.tokens[0], text.encode()
    inside = _is_part(first) or any(data.startswith(piece) for piece in _as_shown(first))
    return "" if inside else first


def _last_word(echo: Echo, prefix: str) -> int:
    """How many tokens the prefix's last word has, with the space before it, in an echo that begins so."""
    words = prefix.rstrip()
    if not words:
        return 0
    before = "".join(words.rsplit(maxsplit=1)[:-1])
    if echo.spans is not None:
        start, border = len(before.encode()), len(prefix.encode())
        return sum(end > start and begin < border for begin, end in echo.spans)
    # The word begins with the last token that has a space, those at the end aside.
    end = len(echo.tokens)
    while end and echo.tokens[end - 1].isspace() and prefix[-1].isspace():
        end -= 1
    spaces = [i for i, token in enumerate(echo.tokens[:end]) if re.search(r"\s", token)]
    return len(echo.tokens) - (spaces[-1] if spaces else 0)


def sound(logprobs: Sequence[float | None]) -> list[float]:
    """The values, if each is a log-probability."""
    values = [value for value in logprobs if value is not None]
    if len(values) < len(logprobs):
        raise Unsound("the server returned null for a token that was to be weighed")
    if not all(math.isfinite(value) and value <= 0 for value in values):
        raise Unsound("the server returned values that are not log-probabilities")
    return values


def check_echo(echo: Echo) -> None:
    """Raise `Unsound` unless a whole echoed prompt looks like what a model computes."""
    spans = echo.spans or [(0, 0)] * len(echo.tokens)
    inside = [value for value, span in zip(echo.logprobs, spans, strict=True) if span != OUTSIDE]
    # Nothing stands before the first token, so that only a model with a <s> can weigh it.
    values = sound(inside[1:] if inside and inside[0] is None else inside)
    if len(values) < 2:
        raise Unsound("the server returned no prompt logprobs")
    if not any(values):
        raise Unsound("the server returned prompt logprobs that are all zero")
    if len(set(values)) == 1:
        raise Unsound("the server returned prompt logprobs that are all equal")
