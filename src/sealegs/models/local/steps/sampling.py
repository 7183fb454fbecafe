"""Picking the next token of every row of a batch, on the device of the model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from sealegs.models.local.constrained import Constraint

if TYPE_CHECKING:
    from sealegs.models.local.generation import TokenisedPrompt

CELLS = 2**26
"""Scores that are computed with at once: rows times tokens. Of a whole batch they could fill the memory."""

SMALLEST, ALL = 1e-30, 2.0
"""Shares of probability: one that leaves the likeliest token alone, and one that rounding does not reach."""

GOLDEN = 0x9E3779B97F4A7C15 - 2**64
MIX64 = ((30, 0xBF58476D1CE4E5B9 - 2**64), (27, 0x94D049BB133111EB - 2**64), (31, 1))
MIX32 = ((16, 0x21F0AAAD), (15, 0xD35A2D97 - 2**32), (15, 1))
"""Shifts and factors of two published mixing functions, whose every output bit depends on every input bit:
splitmix64 (Steele et al. 2014) and one of the 32-bit functions of Wellons' search for low bias."""


class Sampler:
    """Picks a token for every row: the likeliest at temperature 0, else one sampled with the row's own noise.

    Sampling from softmax(logits / T) is the same as taking the largest logits / T + Gumbel noise
    (Gumbel 1954; Maddison et al. 2014, "A* Sampling"). The noise of a token depends only on the row's seed,
    the step and the token: so a row's text does not depend on its neighbours, and logits that differ by
    rounding give another token only where two are tied as closely.
    """

    def __init__(
        self,
        prompts: Sequence[TokenisedPrompt],
        device: torch.device,
        constraints: Sequence[Constraint | None] = (),
    ) -> None:
        self.constraints = constraints if any(constraints) else ()
        self.sampled = torch.tensor([prompt.temperature > 0 for prompt in prompts], device=device)
        self.temperatures = torch.tensor([prompt.temperature or 1.0 for prompt in prompts], device=device)
        shares = [max(prompt.top_p, SMALLEST) if prompt.top_p < 1 else ALL for prompt in prompts]
        self.shares = torch.tensor(shares, device=device)
        seeds = np.array([prompt.seed for prompt in prompts], np.uint64)
        self.seeds = torch.tensor(seeds.view(np.int64), device=device)
        self.some_sampled = any(prompt.temperature > 0 for prompt in prompts)
        self.all_sampled = all(prompt.temperature > 0 for prompt in prompts)
        self.top_k = max((prompt.top_k for prompt in prompts), default=0)
        """The same for all rows: it is the model's."""
        self.cuts = any(prompt.top_p < 1 and prompt.temperature > 0 for prompt in prompts)

    def select(self, rows: Sequence[int]) -> None:
        """Go on with these rows alone."""
        index = torch.tensor(rows, device=self.seeds.device)
        self.sampled, self.temperatures = self.sampled[index], self.temperatures[index]
        self.shares, self.seeds = self.shares[index], self.seeds[index]
        self.constraints = [self.constraints[row] for row in rows] if self.constraints else ()

    def pick(self, logits: Tensor, step: int) -> Tensor:
        """One token for each row, from one line of logits each."""
        size = max(1, CELLS // logits.shape[-1])
        parts = [
            self._pick(logits[start : start + size], slice(start, start + size), step)
            for start in range(0, len(logits), size)
        ]
        return torch.cat(parts)

    def _pick(self, logits: Tensor, part: slice, step: int) -> Tensor:
        scores = self._constrained(logits, part)
        if not self.some_sampled:
            return scores.argmax(-1)
        noisy = scores / self.temperatures[part, None]
        if 0 < self.top_k < noisy.shape[-1]:
            least = noisy.topk(self.top_k).values[:, -1:]
            noisy = noisy.masked_fill(noisy < least, float("-inf"))
        probabilities = noisy.softmax(-1) if self.cuts else None
        noisy.sub_(log_exponentials(self.seeds[part], step, noisy.shape[-1]))
        if probabilities is None:
            sampled = noisy.argmax(-1)
        else:
            sampled = largest_in_nucleus(noisy, probabilities, self.shares[part])
        return sampled if self.all_sampled else torch.where(self.sampled[part], sampled, scores.argmax(-1))

    def _constrained(self, scores: Tensor, part: slice) -> Tensor:
        """Scores with every token ruled out that the schema of its row does not allow."""
        for line, constraint in enumerate(self.constraints[part]):
            if constraint is not None:
                allowed = torch.from_numpy(constraint.allowed(scores.shape[-1])).to(scores.device)
                scores[line].masked_fill_(~allowed, float("-inf"))
        return scores


def log_exponentials(seeds: Tensor, step: int, width: int) -> Tensor:
    """The logarithm of an exponential variable for each seed and token: its negative is a Gumbel variable."""
    keys = _mixed(seeds + ((step + 1) * GOLDEN + 2**63) % 2**64 - 2**63, MIX64, 64)
    bits = _mixed(keys.view(torch.int32)[::2, None] ^ _token_bits(width, seeds.device), MIX32, 32)
    # v in (0, 1], fine near 0: there, where -log(1 - v) is as small, are the largest Gumbel variables.
    smallest = torch.full((), -(2.0**-32), device=seeds.device)
    negative = torch.add(smallest, bits.bitwise_and_(2**31 - 1), alpha=-(2.0**-31))
    return negative.log1p_().neg_().log_()


@lru_cache(maxsize=4)
def _token_bits(width: int, device: torch.device) -> Tensor:
    with torch.inference_mode(mode=False):
        return _mixed(torch.arange(1, width + 1, dtype=torch.int32, device=device), MIX32, 32)


def _mixed(numbers: Tensor, rounds: Sequence[tuple[int, int]], width: int) -> Tensor:
    """Whole numbers of `width` bits, each mixed by itself; as in C's unsigned arithmetic, overflow wraps."""
    for shift, factor in rounds:
        # The shift fills up with the sign, which is masked out.
        numbers = (numbers >> shift).bitwise_and_(2 ** (width - shift) - 1).bitwise_xor_(numbers)
        if factor != 1:
            numbers = numbers.mul_(factor)
    return numbers


def largest_in_nucleus(scores: Tensor, probabilities: Tensor, shares: Tensor) -> Tensor:
    """The token with the largest score of a row, among the fewest that have this share of the probability.

    Tokens exactly as likely as the last of them count too. So a token is one of them where those likelier
    than it have less than the share: which is known after one sum, without sorting the vocabulary. The token
    with the largest score of all mostly is. Where it is not, all that are no likelier are ruled out with it.
    """
    tokens = best = scores.argmax(-1)
    rows = torch.arange(len(tokens), device=tokens.device)
    while True:
        chosen = probabilities.gather(-1, best[:, None])
        likelier = torch.where(probabilities > chosen, probabilities, 0).sum(-1)
        outside = (likelier >= shares).nonzero()[:, 0]
        if not len(outside):
            return tokens
        rows, probabilities, shares = rows[outside], probabilities[outside], shares[outside]
        scores = scores[outside].masked_fill_(probabilities <= chosen[outside], -torch.inf)
        tokens[rows] = best = scores.argmax(-1)
