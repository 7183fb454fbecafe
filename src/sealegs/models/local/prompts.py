"""Requests as token ids: the prompt of a text to generate, and what can be scored and generated at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jinja2 import TemplateError

from sealegs.models.local.causal import FALLBACK_STOP, Causal
from sealegs.models.local.generation import TokenisedPrompt, seed_of
from sealegs.models.local.loglikelihood import TokenisedPair, pair_of
from sealegs.models.local.responses import failed, too_long, too_long_response
from sealegs.models.reasoning import opens_reasoning
from sealegs.types import Generate, LogLikelihood, Request, Response

TAIL = 16
"""Tokens at the end of a chat's prompt that may hold the tag of an open block of reasoning."""


class ScoredPrompt(NamedTuple):
    """A continuation to score, and a text to generate greedily in its place: one reading serves both."""

    loglikelihood: LogLikelihood
    generate: Generate
    pair: TokenisedPair
    prompt: TokenisedPrompt


def scored_prompts(causal: Causal, window: Sequence[Request]) -> list[ScoredPrompt]:
    """What can be scored and generated at once, after the same prefix, unless tokens merge across the
    boundary."""
    by_prefix: dict[str, list[LogLikelihood]] = {}
    for request in window:
        if isinstance(request, LogLikelihood):
            by_prefix.setdefault(request.prefix, []).append(request)
    pairs = []
    for request in window:
        if not isinstance(request, Generate) or not isinstance(request.prompt, str):
            continue
        if request.sampling.temperature or request.schema:
            continue
        after = by_prefix.get(request.prompt)
        scored = after.pop(0) if after else None
        pair = pair_of(causal, scored.prefix, scored.continuation) if scored else None
        if scored and pair and pair.target and not pair.merged and not too_long(causal, len(pair.ids)):
            prompt = prompt_of(causal, request)
            if isinstance(prompt, TokenisedPrompt):
                pairs.append(ScoredPrompt(scored, request, pair, prompt))
    return pairs


def prompt_of(causal: Causal, request: Generate) -> TokenisedPrompt | Response:
    """A request as token ids with its sampling, or how it ends before it begins."""
    sampling, stop, text = request.sampling, request.sampling.stop, request.prompt
    if isinstance(text, str):
        ids = causal.tokenise(text)
    else:
        try:
            ids = causal.chat(text)
        except TemplateError as error:
            return failed(f"the chat template refuses this chat: {error}")
        if causal.tokenizer.chat_template is None:
            stop = (*stop, FALLBACK_STOP)
    if not ids:
        if causal.start_id is None:
            return failed("an empty prompt, and no start token to condition on")
        ids = [causal.start_id]
    if too_long(causal, len(ids) + 1):
        return too_long_response(causal, len(ids))
    room = causal.context - len(ids) if causal.context else sampling.max_tokens
    return TokenisedPrompt(
        ids=tuple(ids),
        temperature=sampling.temperature,
        top_p=sampling.top_p if causal.top_p is None else causal.top_p,
        top_k=causal.top_k or 0,
        seed=seed_of(request),
        max_tokens=min(sampling.max_tokens, room),
        stop=tuple(filter(None, stop)),
        thinking=not isinstance(text, str) and opens_reasoning(causal.text(ids[-TAIL:])),
        schema=request.schema,
        words=sampling.words,
    )
