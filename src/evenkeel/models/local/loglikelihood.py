"""The log-probability of every token of a continuation, and what the model would write in its place.

A greedy text of the same length needs no second reading. The given continuation serves as its draft, as
in speculative decoding (Leviathan et al. 2023): where the likeliest tokens are the given ones they stand,
the first that differs takes its place, and only what comes after it is still to be written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from evenkeel.models.boundary import find_boundary
from evenkeel.models.local.causal import Causal
from evenkeel.models.local.generation import Prompt, State, Written, goes_on, write, write_on
from evenkeel.models.local.kvcache import is_plain
from evenkeel.types import Generate, LogLikelihood, Logprobs, Request

ROWS = 32
"""Rows whose log-probabilities are made at once: those of a whole batch would double its memory."""


@dataclass(frozen=True)
class Pair:
    """A tokenised prefix + continuation."""

    ids: tuple[int, ...]
    """All of them, with at least one before the target."""
    target: int
    """How many at the end are the continuation's."""
    merged: bool
    last_word: int
    """How many the prefix's last word has."""


def pair_of(causal: Causal, prefix: str, continuation: str) -> Pair | None:
    """The tokens of prefix + continuation, and where the continuation begins among them.

    None where an empty prefix leaves nothing to condition on, for the tokenizer has neither a start nor an
    end token.
    """
    whole, before = causal.tokenise(prefix + continuation), causal.tokenise(prefix)
    start, merged = find_boundary(before, whole)
    target = len(whole) - start
    if target == len(whole) and whole:
        if causal.start_id is None:
            return None
        whole = [causal.start_id, *whole]
    return Pair(
        tuple(whole), target, merged, last_word=len(before) - len(causal.tokenise(leading_words(prefix)))
    )


def texts_of(request: Request) -> tuple[str, ...]:
    """What will be tokenised for a request that is no chat."""
    match request:
        case LogLikelihood(prefix=prefix, continuation=continuation):
            return prefix + continuation, prefix, leading_words(prefix)
        case Generate(prompt=str() as prompt, sampling=sampling):
            return prompt, prompt + sampling.length_of
        case _:
            return ()


def leading_words(prefix: str) -> str:
    """A text without its last word and the space before it."""
    *before, _ = prefix.rstrip().rsplit(maxsplit=1) or [""]
    return "".join(before)


@torch.inference_mode()
def loglikelihoods(causal: Causal, pairs: Sequence[Pair]) -> list[Logprobs]:
    """Read all pairs at once; logits are made only where a target token is predicted.

    The last token need not be read, so that choices of one token after the same prefix cost one reading.
    """
    distinct = list(dict.fromkeys(pair.ids[:-1] for pair in pairs))
    place = {ids: row for row, ids in enumerate(distinct)}
    ids, mask = causal.pad(distinct)
    step = causal.forward(ids, mask, keep=max(pair.target for pair in pairs), use_cache=False)
    return _logprobs(causal, pairs, [place[pair.ids[:-1]] for pair in pairs], step.logits)


@torch.inference_mode()
def loglikelihood_and_generate(
    causal: Causal, asked: Sequence[tuple[Pair, Prompt]]
) -> list[tuple[Logprobs, Written]]:
    """LogLikelihood each pair, and write greedily after its prefix, from one reading of both.

    A pair's ids are its prompt's ids and then the target's.
    """
    pairs, prompts = [pair for pair, _ in asked], [prompt for _, prompt in asked]
    ids, mask = causal.pad([pair.ids for pair in pairs])
    longest = max(pair.target for pair in pairs)
    step = causal.forward(ids, mask, keep=1 + longest)
    logprobs = _logprobs(causal, pairs, range(len(pairs)), step.logits[:, :-1])
    if not (causal.skips and is_plain(step.cache)):  # a state from which nothing can be left out
        return list(zip(logprobs, write(causal, prompts), strict=True))
    written = [Written() for _ in asked]
    likeliest = step.logits.argmax(-1).tolist()
    going, tokens = [], [0] * len(asked)
    for row, (pair, prompt) in enumerate(asked):
        draft = (*pair.ids[len(pair.ids) - pair.target :], None)
        for place, said in enumerate(likeliest[row][longest - pair.target :]):
            if not goes_on(causal, prompt, written[row], said):
                break
            if said != draft[place]:
                mask[row, mask.shape[1] - pair.target + place :] = 0  # the rest of the draft is not so
                going.append(row)
                tokens[row] = said
                break
    state = State(step.cache, ids, mask, shrinks=True)
    write_on(causal, prompts, written, state, tokens=tokens, going=going)
    return list(zip(logprobs, written, strict=True))


def _logprobs(causal: Causal, pairs: Sequence[Pair], rows: Sequence[int], logits: Tensor) -> list[Logprobs]:
    """What the logits say of each pair's target, which the last of them predict in the pair's row."""
    longest = logits.shape[1]
    targets = torch.tensor([[0] * (longest - p.target) + list(p.ids[-p.target :]) for p in pairs])
    targets = targets.to(logits.device)
    results = []
    for start in range(0, len(pairs), ROWS):
        part = slice(start, start + ROWS)
        said = logits[list(rows[part])].float().log_softmax(-1)
        chosen = said.gather(-1, targets[part, :, None])[..., 0].tolist()
        for pair, values in zip(pairs[part], chosen, strict=True):
            results.append(
                Logprobs(
                    tuple(map(causal.piece, pair.ids[-pair.target :])),
                    tuple(values[longest - pair.target :]),
                    merged=pair.merged,
                    last_word=pair.last_word,
                    start=causal.start,
                )
            )
    return results
