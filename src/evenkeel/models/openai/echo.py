"""Weighing a text through a server that gives the prompt back with a log-probability for each token."""

from __future__ import annotations

import math
import re
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from evenkeel.models.openai.wire import NO_USAGE, completions, first
from evenkeel.types import Response, Weigh, Weighed

if TYPE_CHECKING:
    from collections.abc import Sequence


class Unsound(ValueError):
    """Echoed prompt log-probabilities that cannot be used, and why."""


class Echo(NamedTuple):
    """A prompt as the server gave it back."""

    tokens: list[str]
    logprobs: list[float | None]
    spans: list[tuple[int, int]]
    """Where each token begins and ends in the prompt, in characters; (-1, -1) for one that is not in it."""
    tokens_in: int | None


def read_echo(data: bytes, text: str) -> Echo:
    """The prompt's tokens in `text`, without those that the server generated after it."""
    reply = completions.decode(data)
    given, usage = first(reply.choices).logprobs, reply.usage or NO_USAGE
    if given is None or not given.tokens or not given.token_logprobs:
        raise Unsound("the server returned no prompt logprobs")
    tokens, logprobs = given.tokens, given.token_logprobs
    if len(tokens) != len(logprobs):
        raise Unsound("the server returned another number of logprobs than of tokens")
    if usage.prompt_tokens == len(tokens) - 1:  # the last one was generated
        tokens = tokens[:-1]
    spans = _spans(text, tokens, given.text_offset or [])
    kept = len(spans)
    return Echo(tokens[:kept], logprobs[:kept], spans, usage.prompt_tokens)


def _spans(text: str, tokens: list[str], offsets: list[int]) -> list[tuple[int, int]]:
    """Where the tokens stand in `text`.

    OpenAI's offsets are right even where a token is part of a character, and are used. SGLang gives -1
    for all. vLLM adds up the lengths of the tokens, a `<s>` in front included: no more than the tokens
    themselves tell, so there the tokens are laid along the text.
    """
    offsets = offsets[: len(tokens)]
    usable = len(offsets) == len(tokens) and offsets[0] == 0 and offsets == sorted(offsets)
    if usable and offsets != list(accumulate(map(len, tokens[:-1]), initial=0)):
        starts = [start for start in offsets if start < len(text)]
        return list(zip(starts, [*starts[1:], len(text)], strict=True))
    return _laid_along(text, tokens)


def _laid_along(text: str, tokens: list[str]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    at = 0
    for i, raw in enumerate(tokens):
        token = raw if "▁" in text else raw.replace("▁", " ")
        if at == 0 and token[:1] == " " and not text.startswith(" "):
            token = token[1:]  # SentencePiece puts a space before the first word
        if at >= len(text):
            break
        if token and text.startswith(token, at):
            spans.append((at, at + len(token)))
        elif _is_fragment(token):
            spans.append((at, _end_of_fragments(text, at, tokens[i:])))
        elif at == 0:
            spans.append((-1, -1))  # a special token before the text, such as <s>
        elif not token:
            spans.append((at, at))  # part of the character that the next token shows whole (vLLM)
        else:
            raise Unsound("the server's tokens do not spell the prompt")
        # Tokens that share the bytes of one stretch get the same span; the stretch ends with the last.
        last = i + 1 == len(tokens) or not _is_fragment(token) or not _is_fragment(tokens[i + 1])
        at = max(at, spans[-1][1]) if last else at
    if at < len(text):
        raise Unsound("the server's tokens do not spell the prompt")
    return spans


def _is_fragment(token: str) -> bool:
    """Whether a token holds only part of a character's bytes, so that its own text cannot be shown."""
    return "\ufffd" in token or token.startswith("bytes:") or bool(re.fullmatch("<0x..>", token))


def _end_of_fragments(text: str, start: int, tokens: list[str]) -> int:
    """Where the next token with a text of its own begins."""
    clean = next((token for token in tokens if not _is_fragment(token)), None)
    found = -1 if clean is None else text.find(clean.replace("▁", " "), start + 1)
    return found if found >= 0 else len(text)


def read_weigh(data: bytes, request: Weigh) -> Response:
    """The continuation's tokens: those that end past the prefix, one that begins inside it included."""
    border = len(request.prefix)
    try:
        echo = read_echo(data, request.prefix + request.continuation)
        chosen = [i for i, (start, end) in enumerate(echo.spans) if start >= border or end > border]
        if not chosen:
            raise Unsound("no token belongs to the continuation")
        straddling = [i for i in chosen if echo.spans[i][0] < border]
        if len(straddling) > 1:
            raise Unsound("prefix and continuation meet among tokens whose text the server does not give")
        logprobs = sound([echo.logprobs[i] for i in chosen])
    except Unsound as why:
        return Response(status="unparsed", reason=str(why))
    tokens = tuple(echo.tokens[i] for i in chosen)
    words = request.prefix.rstrip()
    last = len(words) - len(words.split()[-1]) if words else 0
    weighed = Weighed(
        tokens,
        tuple(logprobs),
        merged=bool(straddling),
        last_word=sum(end > last and start < border for start, end in echo.spans),
        start=echo.tokens[0] if echo.spans[0][0] < 0 else "",
    )
    return Response(status="ok", weighed=weighed, tokens_in=echo.tokens_in)


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
    inside = [value for value, (start, _) in zip(echo.logprobs, echo.spans, strict=True) if start >= 0]
    # Nothing stands before the first token, so that only a model with a <s> can weigh it.
    values = sound(inside[1:] if inside and inside[0] is None else inside)
    if len(values) < 2:
        raise Unsound("the server returned no prompt logprobs")
    if not any(values):
        raise Unsound("the server returned prompt logprobs that are all zero")
    if len(set(values)) == 1:
        raise Unsound("the server returned prompt logprobs that are all equal")
