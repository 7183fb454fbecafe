"""The log-probability of every token of a continuation, and what the model would write in its place.

A greedy text of the same length needs no second reading. The continuation serves as its draft, as in
speculative decoding (Leviathan et al. 2023): its tokens are kept as long as they are the likeliest, the
first that differs is replaced, and only what comes after it is still to be generated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from evenkeel.models.boundary import find_boundary
from evenkeel.models.local.causal import Causal, is_padded
from evenkeel.models.local.generation import (
    Generation,
    Prompt,
    State,
    add_token,
    continue_rows,
    generate,
    state_of,
)
from evenkeel.models.local.steps.caches import is_plain
from evenkeel.models.local.steps.sampling import Sampler
from evenkeel.types import Generate, LogLikelihood, Logprobs, Request

ROWS = 32
"""Rows whose log-probabilities are computed at once: those of a whole batch would double its memory."""

PRECISION_TEXT = (
    "In the harbour below the old town the boats come in at dawn with 27 crates of fish, and the captain "
    "says that nothing on this coast is older than the light on the northern pier"
)
PRECISION_TEXTS = 12
PRECISION_WORDS = 3
"""Words that are scored in each text."""
BESIDE = 4
"""Texts of equal length, with another first token, that each is read together with."""


@dataclass(frozen=True)
class Pair:
    """A tokenised prefix + continuation."""

    ids: tuple[int, ...]
    """All token ids, with at least one before the target."""
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
    last_word = len(before) - len(causal.tokenise(_leading_words(prefix)))
    start, merged = find_boundary(before, whole)
    target = len(whole) - start
    if target == len(whole) and whole:
        if causal.start_id is None:
            return None
        whole = [causal.start_id, *whole]
    return Pair(tuple(whole), target, merged, last_word)


def texts_of(request: Request) -> tuple[str, ...]:
    """What will be tokenised for a request that is not a chat."""
    match request:
        case LogLikelihood(prefix=prefix, continuation=continuation):
            return prefix + continuation, prefix, _leading_words(prefix)
        case Generate(prompt=str() as prompt, sampling=sampling):
            return prompt, prompt + (sampling.length_of or sampling.marked)
        case _:
            return ()


def _leading_words(prefix: str) -> str:
    """A text without its last word and the space before it."""
    *before, _ = prefix.rstrip().rsplit(maxsplit=1) or [""]
    return "".join(before)


@torch.inference_mode()
def loglikelihoods(causal: Causal, pairs: Sequence[Pair]) -> list[Logprobs]:
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
    causal: Causal, batch: Sequence[tuple[Pair, Prompt]]
) -> list[tuple[Logprobs, Generation]]:
    """The log-probabilities of each pair, and a greedy text after its prefix, from one reading of both.

    A pair's ids are its prompt's ids and then the target's.
    """
    pairs, prompts = [pair for pair, _ in batch], [prompt for _, prompt in batch]
    if causal.joins:
        return _read_and_join(causal, pairs, prompts)
    ids, mask = causal.pad([pair.ids for pair in pairs])
    longest = max(pair.target for pair in pairs)
    step = causal.forward(ids, mask, keep=1 + longest, padded=is_padded([pair.ids for pair in pairs]))
    logprobs = _logprobs(causal, pairs, range(len(pairs)), step.logits[:, :-1])
    if not (causal.skips and is_plain(step.cache)):  # a state from which nothing can be left out
        return list(zip(logprobs, generate(causal, prompts), strict=True))
    generations = [Generation() for _ in batch]
    likeliest = step.logits.argmax(-1).tolist()
    tokens, visible = [0] * len(batch), np.ones(mask.shape, np.int64)
    for row, (pair, prompt) in enumerate(batch):
        draft = (*pair.ids[len(pair.ids) - pair.target :], None)
        for index, token in enumerate(likeliest[row][longest - pair.target :]):
            if token != draft[index]:
                visible[row, mask.shape[1] - pair.target + index :] = 0  # the rest of the draft is not used
                tokens[row] = token
                break
            if not add_token(causal, prompt, generations[row], token):
                break
    mask *= torch.from_numpy(visible).to(mask.device)
    state = State(step.cache, ids, mask, padded=True, shrinks=True)
    next_tokens = torch.tensor(tokens, device=mask.device)
    continue_rows(causal, prompts, generations, state, Sampler(prompts, mask.device), next_tokens)
    return list(zip(logprobs, generations, strict=True))


def _read_and_join(
    causal: Causal, pairs: Sequence[Pair], prompts: Sequence[Prompt]
) -> list[tuple[Logprobs, Generation]]:
    """The same where texts are read apart: what is not used of a draft is left out when they are joined.

    The last token is not read, as for log-probabilities alone, so that they have the same digits either way.
    """
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
    texts = [pair.ids[:count] for pair, count in zip(pairs, places, strict=True)]
    state = state_of(causal, texts, reading.join(range(len(pairs)), places))
    continue_rows(causal, prompts, generations, state, Sampler(prompts, causal.device), torch.tensor(tokens))
    return list(zip(logprobs, generations, strict=True))


def _logprobs(causal: Causal, pairs: Sequence[Pair], rows: Sequence[int], logits: Tensor) -> list[Logprobs]:
    """Log-probabilities of each pair's target, which the last logits of the pair's row predict."""
    longest = logits.shape[1]
    targets = torch.tensor([[0] * (longest - p.target) + list(p.ids[-p.target :]) for p in pairs])
    targets = targets.to(logits.device)
    results = []
    for start in range(0, len(pairs), ROWS):
        part = slice(start, start + ROWS)
        every = logits[list(rows[part])].float().log_softmax(-1)
        chosen = every.gather(-1, targets[part, :, None])[..., 0].tolist()
        for pair, values in zip(pairs[part], chosen, strict=True):
            results.append(
                Logprobs(
                    tuple(map(causal.token_text, pair.ids[-pair.target :])),
                    tuple(values[longest - pair.target :]),
                    merged=pair.merged,
                    last_word=pair.last_word,
                    start=causal.start,
                )
            )
    return results


def batch_dependence(causal: Causal) -> float:
    """The largest difference of a log-probability between short texts read alone and in one batch.

    In half precision, what shares a batch changes how sums are rounded. The texts have 1, 3, 5, … words
    before the scored ones, so that most of them are padded in the batch; on a CPU, where nothing is padded,
    they share it with others of equal length.
    """
    words = PRECISION_TEXT.split()
    pairs = []
    for length in range(1, 2 * PRECISION_TEXTS, 2):
        target = " ".join(words[length : length + PRECISION_WORDS])
        pair = pair_of(causal, " ".join(words[:length]), f" {target}")
        if pair and pair.target and len(pair.ids) <= (causal.context or len(pair.ids)):
            pairs.append(pair)
    alone = [value for pair in pairs for value in loglikelihoods(causal, [pair])[0].values]
    others = [
        replace(pair, ids=(token, *pair.ids[1:])) for pair in pairs for token in pairs[-1].ids[1 : 1 + BESIDE]
    ]
    together = loglikelihoods(causal, [*pairs, *others])[: len(pairs)] if pairs else []
    joint = [value for logprobs in together for value in logprobs.values]
    return max((abs(one - other) for one, other in zip(alone, joint, strict=True)), default=0.0)
