"""Log-probabilities of a text from a server that gives the prompt back with one for each token."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sealegs.errors import ModelUnreachable
from sealegs.models.boundary import find_boundary
from sealegs.models.local.vocabulary import byte_letters
from sealegs.models.openai.dialect import Dialect
from sealegs.models.openai.protocol import COMPLETIONS, Version, completion
from sealegs.models.openai.retry import Call, CallFailed, Client, Fate, fate_of
from sealegs.models.openai.servers import is_wrong_address
from sealegs.models.openai.transport import BROKEN
from sealegs.text.token_estimate import estimate_tokens
from sealegs.types import LogLikelihood, Logprobs, Response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Spans: TypeAlias = list[tuple[int, int]]

Examples: TypeAlias = "Mapping[str, Sequence[LogLikelihood]]"
"""Texts of the data by language."""

PROBE = LogLikelihood(
    prefix="The capital of France is Paris,", continuation=" and the capital of Italy is Rome."
)
LEAST_LOGPROB = -1e5
"""A softmax over 32-bit logits gives no less, but for minus infinity."""
OUTSIDE = (-1, -1)
"""The span of a token that is not in the text, such as `<s>`."""
WITHOUT = " If it fails at log-likelihoods alone, run without them (an option of the benchmark)."
SPELLING = "the server's tokens do not spell the prompt"


class Unsound(ValueError):
    """Echoed prompt log-probabilities that cannot be used, and why."""


class Echo(NamedTuple):
    """A prompt as the server gave it back, without what it generated or appended."""

    tokens: list[str]
    logprobs: list[float | None]
    spans: Spans | None
    """Where each token begins and ends in the prompt, in bytes of UTF-8; None where the server shows parts
    of characters in a form from which that cannot be read."""
    tokens_in: int | None
    version: Version


# Asking


async def loglikelihood(
    client: Client, dialect: Dialect, request: LogLikelihood, *, check: bool = False
) -> Response:
    """The log-probabilities of a continuation, by the published rule; with `check`, for a probe, only if they
    are sound."""
    prefix = request.prefix
    body = partial(dialect.logprobs_body, prefix + request.continuation)
    whole = await client.send(
        Call(
            COMPLETIONS,
            body,
            lambda data: read_loglikelihood(data, request, check=check),
            is_admitted=not check,
        )
    )
    if isinstance(whole, Response):
        return whole
    body = partial(dialect.logprobs_body, prefix)
    call = Call(COMPLETIONS, body, lambda data: read_prefix(data, prefix), is_admitted=False)
    response: Response | None = None
    try:
        before = await client.send(call)
        response = before if isinstance(before, Response) else loglikelihood_after(before, whole, request)
    finally:
        if response is None or response.tokens_in is None:  # the first call is paid for all the same
            client.add_used(whole.tokens_in or estimate_tokens(prefix + request.continuation))
    return response


async def probe_problem(client: Client, dialect: Dialect, examples: Examples | None, address: str) -> str:
    """What is wrong with a server's prompt log-probabilities, in English or in the languages of the examples;
    empty if they are sound.

    A server that refuses this has none; a chat-only server has no such path, but one without such a model
    names the model. A failure that may pass says nothing of what a server can. A language fails where most of
    its examples do, of those that were answered or refused.
    """
    for lang, requests in (examples or {"": [PROBE]}).items():
        answers: list[str] = []
        failure: CallFailed | None = None
        for request in requests:
            try:
                response = await loglikelihood(client, dialect, request, check=True)
                answers.append("" if response.status == "ok" else response.reason)
            except CallFailed as failed:
                if fate_of(failed.error) is Fate.FAIL or is_wrong_address(failed.error):
                    answers.append(str(failed))
                else:
                    failure = failed
        if failure is not None and not answers:
            way = WITHOUT if failure.error.status >= 500 or failure.error.kind == BROKEN else ""
            text = f"{address} does not answer as it should. {failure}".rstrip(".")
            raise ModelUnreachable(f"{text}.{way}") from failure
        problems = list(filter(None, answers))
        if 2 * len(problems) > len(answers):
            return f"{problems[0]} (for text in '{lang}')" if lang else problems[0]
    return ""


# Reading an echo


def read_loglikelihood(data: bytes, request: LogLikelihood, *, check: bool = False) -> Response | Echo:
    """The log-probabilities of the continuation; the echo itself where the prefix alone is needed to find
    its tokens: one belongs to both, or hides where it is, or the prefix ends in blank space, which many
    tokenizers split otherwise where a text follows."""
    try:
        echo = read_echo(data, request.prefix + request.continuation)
        if check:
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
    except Unsound as error:
        return Response(status="unparsed", reason=str(error))


def read_prefix(data: bytes, prefix: str) -> Echo | Response:
    try:
        return read_echo(data, prefix)
    except Unsound as error:
        return Response(status="unparsed", reason=f"of the prefix alone: {error}")


def loglikelihood_after(prefix: Echo, whole: Echo, request: LogLikelihood) -> Response:
    """Those of what comes after as many tokens as the prefix alone has (the published rule)."""
    start, merged = find_boundary(prefix.tokens, whole.tokens)
    try:
        return _response(whole, start, merged=merged, before=prefix, request=request)
    except Unsound as error:
        return Response(status="unparsed", reason=str(error))


def _response(whole: Echo, start: int, *, merged: bool, before: Echo, request: LogLikelihood) -> Response:
    """From the echo of a text, the continuation's first token, and an echo that has the prefix."""
    logprobs = Logprobs(
        tuple(whole.tokens[start:]),
        tuple(_sound(whole.logprobs[start:])),
        merged=merged,
        last_word=_last_word_tokens(before, request.prefix),
        start=_start_token(whole, request.prefix + request.continuation),
    )
    echoes = [whole] if before is whole else [whole, before]
    counts = [echo.tokens_in for echo in echoes if echo.tokens_in is not None]
    tokens_in = sum(counts) if len(counts) == len(echoes) else None
    if before.version.model != whole.version.model:
        named = [echo.version.model or "a model without a name" for echo in (whole, before)]
        raise Unsound(f"its two calls were answered by {' and by '.join(named)}")
    model, fingerprint = whole.version
    return Response(status="ok", logprobs=logprobs, tokens_in=tokens_in, model=model, fingerprint=fingerprint)


def _start_token(echo: Echo, text: str) -> str:
    """The start token, if the server puts one before every text."""
    if echo.spans is not None:
        return echo.tokens[0] if echo.spans[0] == OUTSIDE else ""
    first, data = echo.tokens[0], text.encode()
    inside = _is_part(first) or any(data.startswith(spelling) for spelling in _as_shown(first))
    return "" if inside else first


def _last_word_tokens(echo: Echo, prefix: str) -> int:
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


def _sound(logprobs: Sequence[float | None]) -> list[float]:
    """The values, if each is a log-probability."""
    values = [value for value in logprobs if value is not None]
    if len(values) < len(logprobs):
        raise Unsound("the server returned null for the log-probability of a token")
    if not all(LEAST_LOGPROB <= value <= 0 for value in values):
        raise Unsound("the server returned values that are not log-probabilities")
    return values


def check_echo(echo: Echo) -> None:
    """Raise `Unsound` unless a whole echoed prompt looks like what a model computes."""
    spans = echo.spans or [(0, 0)] * len(echo.tokens)
    inside = [value for value, span in zip(echo.logprobs, spans, strict=True) if span != OUTSIDE]
    # Nothing comes before the first token, so that only a model with a <s> has a value for it.
    values = _sound(inside[1:] if inside and inside[0] is None else inside)
    if len(values) < 2:
        raise Unsound("the server returned no prompt logprobs")
    if not any(values):
        raise Unsound("the server returned prompt logprobs that are all zero")
    if len(set(values)) == 1:
        raise Unsound("the server returned prompt logprobs that are all equal")


def read_echo(data: bytes, text: str) -> Echo:
    """The prompt's tokens in `text`, without those that the server generated after it."""
    choice, tokens_in, _, version = completion(data)
    returned = choice.logprobs
    if returned is None or not returned.tokens or not returned.token_logprobs:
        raise Unsound("the server returned no prompt logprobs")
    tokens, logprobs = returned.tokens, returned.token_logprobs
    if len(tokens) != len(logprobs):
        raise Unsound("the server returned another number of logprobs than of tokens")
    spans = _spans(text, tokens)
    if spans is None:
        # Tokens may show parts of characters as U+FFFD; a text that does so as a whole was never read.
        if choice.text and text not in choice.text:
            raise Unsound(SPELLING)
        generated = len(choice.text or "") > len(text) if tokens_in is None else tokens_in == len(tokens) - 1
        count = _prompt_tokens(text.encode(), tokens[:-1] if generated else tokens)
    else:
        count = len(spans)
    return Echo(tokens[:count], logprobs[:count], spans, tokens_in, version)


# Where tokens are in a text


def _spans(text: str, tokens: list[str]) -> Spans | None:
    """Where the tokens are in `text`, in bytes: each is whole, or its bytes are given.

    The server's offsets are not used: they may count characters, UTF-16 or bytes, with a start token or
    without, and where a part of a character is shown as U+FFFD it is unknown which.
    """
    data = text.encode()
    for spellings in (_as_shown, _as_stored):
        if spans := _laid_along(data, tokens, spellings):
            return spans
    if any(map(_is_part, tokens)):
        return None
    raise Unsound(SPELLING)


def _laid_along(data: bytes, tokens: list[str], spellings: Callable[[str], Iterator[bytes]]) -> Spans | None:
    """The spans of tokens that spell the text one after the other; those that come after it are left out."""
    spans: Spans = []
    at = 0
    for token in tokens:
        if at == len(data) and at:
            break
        part = next((part for part in spellings(token) if part and data.startswith(part, at)), None)
        if part is None and not at:  # some tokenizers put a space before the first word
            bare = (part.removeprefix(b" ") for part in spellings(token))
            part = next((part for part in bare if part and data.startswith(part)), None)
        if part is not None:
            spans.append((at, at + len(part)))
            at += len(part)
        elif not at:
            spans.append(OUTSIDE)  # a special token before the text, such as <s>
        elif not token:
            spans.append((at, at))  # part of the character that the next token shows whole (vLLM)
        else:
            return None
    return spans if at == len(data) and at else None


def _as_shown(token: str) -> Iterator[bytes]:
    """The bytes that a token may mean: its text, or the bytes that it names."""
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
    letters = byte_letters()
    yield bytes(letters[letter] for letter in token) if all(letter in letters for letter in token) else b""


def _is_part(token: str) -> bool:
    """Whether a token holds part of a character, so that its own text cannot be shown."""
    return "\ufffd" in token


def _prompt_tokens(data: bytes, tokens: list[str]) -> int:
    """How many tokens are the prompt's, where parts of characters hide their places.

    The tokens shown whole must come in the text one after the other. One at the end that the text does not
    end with was appended: `</s>`, or a token that was generated.
    """
    count = len(tokens)
    while count and not _is_part(last := tokens[count - 1]) and not data.endswith(tuple(_as_shown(last))):
        count -= 1
    at = 0
    for token in tokens[:count]:
        if _is_part(token):
            continue
        starts = [start for part in _as_shown(token) if (start := data.find(part, at)) >= 0]
        if starts:
            at = min(starts) + len(token.strip().encode())
        elif at and token:
            raise Unsound(SPELLING)
    return count
