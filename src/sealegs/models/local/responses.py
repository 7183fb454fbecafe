"""What became of a request, as its response."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sealegs.models.reasoning import THINK, split_reasoning
from sealegs.text.answers import BEFORE_TEXT, ending
from sealegs.types import Generate, Logprobs, Response, Status

if TYPE_CHECKING:
    from sealegs.models.local.causal import Causal
    from sealegs.models.local.generation import Generation, TokenisedPrompt
    from sealegs.models.local.loglikelihood import TokenisedPair


def generate_response(request: Generate, prompt: TokenisedPrompt, generation: Generation | None) -> Response:
    if generation is None:
        return does_not_fit(len(prompt.ids))
    ended = generation.ended
    status: Status = "ok" if ended else "truncated"
    if isinstance(request.prompt, str):
        text, reasoning = generation.text, ""
        reason = "" if ended else "length" if text else f"length {BEFORE_TEXT}"
    else:
        opening = THINK if prompt.thinking else ""
        text, reasoning, closed = split_reasoning(opening + generation.text, cut=not ended)
        status, reason = ending(status, text, reasoning, closed=closed, cut="length")
    return Response(
        status=status,
        text=text,
        reasoning=reasoning,
        reason=reason,
        tokens_in=len(prompt.ids),
        tokens_out=generation.tokens,
    )


def logprobs_response(pair: TokenisedPair, logprobs: Logprobs | None) -> Response:
    if logprobs is None:
        return does_not_fit(len(pair.ids))
    if not all(map(math.isfinite, logprobs.values)):  # weights that overflow in half precision, say
        return failed("the model gave a log-probability that is not finite")
    return Response(status="ok", logprobs=logprobs, tokens_in=len(pair.ids), tokens_out=0)


def rank_response(score: float, tokens: int | None = None) -> Response:
    if not math.isfinite(score):
        return failed("the model gave a score that is not finite")
    return Response(status="ok", rank=score, tokens_in=tokens)


def failed(reason: str) -> Response:
    return Response(status="error", reason=reason)


def too_long(causal: Causal, tokens: int) -> bool:
    return causal.context is not None and tokens > causal.context


def too_long_response(causal: Causal, tokens: int) -> Response:
    return failed(f"{tokens} tokens are more than the model's context of {causal.context} holds")


def does_not_fit(tokens: int) -> Response:
    return failed(f"out of memory: a single text of {tokens} tokens does not fit")
