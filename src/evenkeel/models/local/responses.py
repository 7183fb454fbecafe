"""What became of a request, as its response."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evenkeel.models.local.constrained import closed_json
from evenkeel.models.reasoning import THINK, split_reasoning
from evenkeel.text.answers import BEFORE_TEXT, ending
from evenkeel.text.word_splitting import has_whole_words
from evenkeel.types import Generate, Logprobs, Response, Sampling, Status

if TYPE_CHECKING:
    from evenkeel.models.local.causal import Causal
    from evenkeel.models.local.generation import Generation, Prompt
    from evenkeel.models.local.loglikelihood import Pair


def generate_response(request: Generate, prompt: Prompt, generation: Generation | None) -> Response:
    if generation is None:
        return does_not_fit(len(prompt.ids))
    written, other, ended = ends_of(request.sampling, prompt, generation)
    status: Status = "ok" if ended else "truncated"
    if isinstance(request.prompt, str):
        text, reasoning = written, ""
        reason = "" if ended else "length" if text else f"length {BEFORE_TEXT}"
    else:
        opening = THINK if prompt.thinking else ""
        text, reasoning, closed = split_reasoning(opening + generation.text, cut=not ended)
        status, reason = ending(status, text, reasoning, closed=closed, cut="length")
    if status == "truncated" and generation.in_schema:
        text = closed_json(text)
    return Response(
        status=status,
        text=text,
        reasoning=reasoning,
        other=other,
        reason=reason,
        tokens_in=len(prompt.ids),
        tokens_out=generation.tokens,
    )


def ends_of(sampling: Sampling, prompt: Prompt, generation: Generation) -> tuple[str, str | None, bool]:
    """A text, the same to its other end where that is known, and whether the text is complete.

    A text that was to have a certain length, and has it, is complete; one that was cut off before it began is
    none.
    """
    length = prompt.mark or (prompt.max_tokens if sampling.length_of and not prompt.clipped else 0)
    if not length:
        return generation.text, None, generation.ended
    up_to_length = generation.marked_text if prompt.mark else generation.text
    ended_before = generation.ended and generation.tokens <= length
    complete = ended_before or (generation.tokens >= length and bool(up_to_length))
    if sampling.marked:
        return generation.text, up_to_length if complete else None, generation.ended
    whole = generation.ended or has_whole_words(generation.text, prompt.words)
    return up_to_length, generation.text if sampling.beyond and whole else None, complete


def logprobs_response(pair: Pair, logprobs: Logprobs | None) -> Response:
    if logprobs is None:
        return does_not_fit(len(pair.ids))
    if not all(map(math.isfinite, logprobs.values)):  # weights that overflow in half precision, say
        return failed("the model gave a log-probability that is not finite")
    return Response(status="ok", logprobs=logprobs, tokens_in=len(pair.ids), tokens_out=0)


def failed(reason: str) -> Response:
    return Response(status="error", reason=reason)


def too_long(causal: Causal, tokens: int) -> bool:
    return causal.context is not None and tokens > causal.context


def too_long_response(causal: Causal, tokens: int) -> Response:
    return failed(f"{tokens} tokens are more than the model's context of {causal.context} holds")


def does_not_fit(tokens: int) -> Response:
    return failed(f"out of memory: a single text of {tokens} tokens does not fit")
