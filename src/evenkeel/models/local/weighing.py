"""The log-probability of every token of a continuation, in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from evenkeel.models.local.causal import Causal
from evenkeel.types import Weighed


@dataclass(frozen=True)
class Pair:
    """A tokenised prefix + continuation."""

    ids: tuple[int, ...]
    """All of them, with at least one before the target."""
    target: int
    """How many at the end are the continuation's."""
    merged: bool


def pair_of(causal: Causal, prefix: str, continuation: str) -> Pair | None:
    """Where the continuation begins: after as many tokens as the prefix alone has (the published rule).

    Tokens that merge across the boundary are counted, not mended: `merged` says so. None where an empty
    prefix leaves nothing to condition on, for the tokenizer has neither a start nor an end token.
    """
    whole, before = causal.tokenise(prefix + continuation), causal.tokenise(prefix)
    merged = whole[: len(before)] != before
    target = max(0, len(whole) - len(before))
    if target == len(whole) and whole:
        if causal.start_id is None:
            return None
        whole = [causal.start_id, *whole]
    return Pair(tuple(whole), target, merged)


@torch.inference_mode()
def weigh(causal: Causal, pairs: Sequence[Pair]) -> list[Weighed]:
    """Read all pairs at once; logits are made only where a target token is predicted."""
    ids, mask = causal.pad([pair.ids for pair in pairs])
    longest = max(pair.target for pair in pairs)
    logits = causal.forward(ids, mask, keep=longest + 1, use_cache=False).logits
    weighed = []
    for row, pair in enumerate(pairs):
        targets = ids[row, ids.shape[1] - pair.target :]
        # One row at a time: a batch of float32 log-probabilities would double the memory of the logits.
        said = logits[row, logits.shape[1] - pair.target - 1 : -1].float().log_softmax(-1)
        logprobs = said.gather(-1, targets[:, None])[:, 0].tolist()
        texts = tuple(causal.tokenizer.decode([token]) for token in targets.tolist())
        weighed.append(Weighed(texts, tuple(logprobs), pair.merged))
    return weighed
