"""The log-probability of every token of a continuation, and what the model would write in its place.

A greedy text of the same length needs no second reading. The continuation serves as its draft, as in
speculative decoding (Leviathan et al. 2023): its tokens are kept as long as they are the likeliest, the
first that differs is replaced, and only what comes after it is still to be generated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import torch
from jinja2 import TemplateError
from torch import Tensor

from sealegs.models.boundary import find_boundary
from sealegs.models.local.causal import Causal
from sealegs.models.local.generation import Generation, TokenisedPrompt, add_token, continue_rows, generate
from sealegs.models.local.steps.sampling import Sampler
from sealegs.types import Generate, LogLikelihood, Logprobs, Request

ROWS = 32
"""Rows whose log-probabilities are computed at once: those of a whole batch would double its memory."""


@dataclass(frozen=True)
class TokenisedPair:
    """A tokenised prefix + continuation."""

    ids: tuple[int, ...]
    """All token ids, with at least one before the target."""
    target: int
    """How many at the end are the continuation's."""
    merged: bool
    last_word: int
    """How many the prefix's last word has."""


def pair_of(causal: Causal, prefix: str, continuation: str) -> TokenisedPair | None:
    """The tokens of prefix + continuation, and where the continuation begins among them.

    None where an empty prefix leaves nothing to condition on, for the tokenizer has neither a start nor an
    end token.
    """
    whole, before = causal.tokenise(prefix + continuation), causal.tokenise(prefix)
    last_word = len(before) - len(causal.tokenise(_leading_words(prefix)))
    start, merged = find_boundary(before, whole)
    target = len(whole) - start
    if target == len(whole) and whole:
        if causal.start_id is None:
            return None
        whole = [causal.start_id, *whole]
    return TokenisedPair(tuple(whole), target, merged, last_word)


def texts_of(causal: Causal, request: Request) -> list[tuple[str, bool]]:
    """What will be tokenised for a request, and whether it is after the tokenizer's own start token."""
    match request:
        case LogLikelihood(prefix=prefix, continuation=continuation):
            return [(prefix + continuation, True), (prefix, True), (_leading_words(prefix), True)]
        case Generate(prompt=str() as prompt):
            return [(prompt, True)]
        case Generate(prompt=messages):
            with suppress(TemplateError):  # which its answer will name
                return [causal.chat_text(tuple(messages))]
    return []


def _leading_words(prefix: str) -> str:
    """A text without its last word and the space before it."""
    *before, _ = prefix.rstrip().rsplit(maxsplit=1) or [""]
    return "".join(before)


@torch.inference_mode()
def loglikelihoods(causal: Causal, pairs: Sequence[TokenisedPair]) -> list[Logprobs]:
    """Read all pairs at once; logits are computed only where a target token is predicted.

    The last token need not be read, so that choices of one token after the same prefix cost one reading.
    """
    distinct = list(dict.fromkeys(pair.ids[:-1] for pair in pairs))
    row_of = {ids: row for row, ids in enumerate(distinct)}
    rows = [row_of[pair.ids[:-1]] for pair in pairs]
    keep = [0] * len(distinct)
    for row, pair in zip(rows, pairs, strict=True):
        keep[row] = max(keep[row], pair.target)
    reading = causal.read(distinct, keep, use_cache=False)
    return _logprobs(causal, pairs, rows, reading.logits)


@torch.inference_mode()
def loglikelihood_and_generate(
    causal: Causal,
    batch: Sequence[tuple[TokenisedPair, TokenisedPrompt]],
    emit: Callable[[int, tuple[Logprobs, Generation]], None] | None = None,
) -> list[tuple[Logprobs, Generation]]:
    """The log-probabilities of each pair, and a greedy text after its prefix, from one reading of both.

    A pair's ids are its prompt's ids and then the target's. The last token is not read, as for
    log-probabilities alone.
    """
    pairs, prompts = [pair for pair, _ in batch], [prompt for _, prompt in batch]
    reading = causal.read([pair.ids[:-1] for pair in pairs], [pair.target for pair in pairs])
    logprobs = _logprobs(causal, pairs, range(len(pairs)), reading.logits)
    generations = [Generation() for _ in pairs]
    likeliest = reading.logits.argmax(-1).tolist()
    places, tokens = [], []
    for pair, prompt, generation, choices in zip(pairs, prompts, generations, likeliest, strict=True):
        draft = pair.ids[len(pair.ids) - pair.target :]
        choices = choices[len(choices) - pair.target :]
        used = 0
        while used < pair.target - 1 and choices[used] == draft[used]:
            if not add_token(causal, prompt, generation, choices[used]):
                break
            used += 1
        tokens.append(choices[used])
        places.append(len(pair.ids) - pair.target + used)
    state = reading.state(range(len(pairs)), places)
    if state is None:  # nothing can be left out of what the model has read
        return list(zip(logprobs, generate(causal, prompts), strict=True))
    sampler, next_tokens = Sampler(prompts, causal.device), torch.tensor(tokens, device=causal.device)

    def ended(row: int) -> None:
        if emit is not None:
            emit(row, (logprobs[row], generations[row]))

    continue_rows(causal, prompts, generations, state, sampler, next_tokens, ended)
    return list(zip(logprobs, generations, strict=True))


def _logprobs(
    causal: Causal, pairs: Sequence[TokenisedPair], rows: Sequence[int], logits: Tensor
) -> list[Logprobs]:
    """Log-probabilities of each pair's target, which the last logits of the pair's row predict."""
    longest = logits.shape[1]
    targets = torch.tensor([[0] * (longest - p.target) + list(p.ids[-p.target :]) for p in pairs])
    targets, lines = targets.to(logits.device), torch.tensor(rows, device=logits.device)
    chosen = []
    for start in range(0, len(pairs), ROWS):  # a GPU is not waited for in between
        part = slice(start, start + ROWS)
        every = logits[lines[part]].float().log_softmax(-1)
        chosen.append(every.gather(-1, targets[part, :, None])[..., 0])
    return [
        Logprobs(
            tuple(map(causal.token_text, pair.ids[-pair.target :])),
            tuple(values[longest - pair.target :]),
            merged=pair.merged,
            last_word=pair.last_word,
            start=causal.start,
        )
        for pair, values in zip(pairs, torch.cat(chosen).tolist(), strict=True)
    ]
