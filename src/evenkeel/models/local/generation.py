"""Writing texts in a batch: every distinct prompt is read once, each row draws with its own seed.

Reading (prefill) dominates where prompts are long and answers short, and a consistency benchmark asks
every prompt several times: so the state after a prompt is computed once and copied to its repeats. A row
that is done leaves the batch, so that the slowest row does not cost the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import torch
from torch import Tensor

from evenkeel.models.local.causal import Causal, Step
from evenkeel.models.local.kvcache import select
from evenkeel.types import Generate


@dataclass(frozen=True)
class Prompt:
    """What is to be written after `ids`."""

    ids: tuple[int, ...]
    temperature: float
    top_p: float
    seed: int
    most: int
    """Tokens to write at most: what was asked for, or what the context leaves."""
    stop: tuple[str, ...]
    clipped: bool = False
    """Whether the context leaves less than was asked for."""
    thinking: bool = False
    """Whether the chat template ends in an open block of reasoning, so that the text begins inside it."""


@dataclass
class Written:
    """One row's text while it grows."""

    ids: list[int] = field(default_factory=list)
    """The tokens of the text, without the one that ends it."""
    tokens: int = 0
    """The tokens written, with the one that ends it."""
    text: str = ""
    ended: bool = False
    """Whether the model came to an end, rather than being cut off."""


class State(NamedTuple):
    """Where a batch stands between two steps."""

    cache: Any
    ids: Tensor
    mask: Tensor
    shrinks: bool
    """Whether rows can be taken out of the cache."""


def seed_of(request: Generate) -> int:
    """One seed for one request, whatever shares its batch: repeats differ, a rerun does not."""
    content = msgspec.json.encode([request.sampling.seed, request.prompt, request.repeat])
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest())


class Sampler:
    """Picks a token for every row: the likeliest at temperature 0, else one drawn with the row's own noise.

    Drawing from softmax(logits / T) is the same as taking the largest logits / T + Gumbel noise
    (Gumbel 1954; Maddison et al. 2014, "A* Sampling"). With noise that depends only on the row's seed and
    the step, a row's text does not depend on its neighbours.
    """

    def __init__(self, prompts: Sequence[Prompt], device: torch.device) -> None:
        self.device = device
        self.temperatures = [prompt.temperature for prompt in prompts]
        self.top_ps = [prompt.top_p for prompt in prompts]
        self.sources = [torch.Generator(device).manual_seed(prompt.seed) for prompt in prompts]

    def pick(self, logits: Tensor, rows: Sequence[int]) -> list[int]:
        """One token for each of `rows`, of whose logits there is one line each."""
        scores = logits.float()
        drawn = [place for place, row in enumerate(rows) if self.temperatures[row] > 0]
        if drawn:
            warm = torch.tensor([self.temperatures[rows[place]] for place in drawn], device=self.device)
            top_p = torch.tensor([self.top_ps[rows[place]] for place in drawn], device=self.device)
            noise = torch.empty((len(drawn), scores.shape[-1]), device=self.device)
            for line, place in zip(noise, drawn, strict=True):
                line.exponential_(generator=self.sources[rows[place]])
            # A negative logarithm of an exponential variable is a Gumbel variable.
            chosen = nucleus(scores[drawn] / warm[:, None], top_p[:, None])
            scores = scores.index_copy(0, torch.tensor(drawn, device=self.device), chosen - noise.log())
        return [int(token) for token in scores.argmax(-1).tolist()]


def nucleus(scores: Tensor, top_p: Tensor) -> Tensor:
    """Scores with all but the fewest tokens that together have probability `top_p` ruled out."""
    if bool((top_p >= 1).all()):
        return scores
    ordered, order = scores.sort(dim=-1, descending=True)
    odds = ordered.softmax(-1)
    beyond = (odds.cumsum(-1) - odds) >= top_p
    beyond[:, 0] = False
    return scores.masked_fill(torch.zeros_like(beyond).scatter(-1, order, beyond), float("-inf"))


@torch.inference_mode()
def write(causal: Causal, prompts: Sequence[Prompt]) -> list[Written]:
    """Write after every prompt until it ends, meets a stop string, or has its full length."""
    step, ids, mask, shrinks = read(causal, prompts)
    sampler = Sampler(prompts, causal.device)
    written = [Written() for _ in prompts]
    tokens = sampler.pick(step.logits[:, -1], range(len(prompts)))
    going = [row for row, token in enumerate(tokens) if goes_on(causal, prompts[row], written[row], token)]
    state = State(step.cache, ids, mask, shrinks)
    write_on(causal, prompts, written, state, tokens=tokens, going=going, sampler=sampler)
    return written


def write_on(
    causal: Causal,
    prompts: Sequence[Prompt],
    written: Sequence[Written],
    state: State,
    *,
    tokens: Sequence[int],
    going: Sequence[int],
    sampler: Sampler | None = None,
) -> None:
    """Go on with the rows `going`, after each one's last of `tokens`, which the state has not read yet."""
    sampler = sampler or Sampler(prompts, causal.device)
    rows: Sequence[int] = range(len(prompts))
    cache, ids, mask, shrinks = state
    while going:
        if shrinks and len(going) < len(rows):
            select(cache, going)
            rows, tokens = [rows[place] for place in going], [tokens[place] for place in going]
            ids, mask = ids[going], mask[going]
        mask = torch.cat([mask, mask.new_ones((len(rows), 1))], dim=1)
        ids = torch.cat([ids, ids.new_tensor(tokens)[:, None]], dim=1)
        # A model that hands out no state that is known here has to read everything again.
        step = causal.forward(ids if cache is None else ids[:, -1:], mask, cache=cache)
        cache = step.cache
        tokens = sampler.pick(step.logits[:, -1], rows)
        going = [
            place
            for place, (row, token) in enumerate(zip(rows, tokens, strict=True))
            if goes_on(causal, prompts[row], written[row], token)
        ]


def read(causal: Causal, prompts: Sequence[Prompt]) -> tuple[Step, Tensor, Tensor, bool]:
    """The state after every prompt, the ids, their mask, and whether rows can be taken out of the state.

    Each distinct prompt is read once, unless the model keeps a state that cannot be copied row by row.
    """
    distinct = list(dict.fromkeys(prompt.ids for prompt in prompts))
    place = {ids: row for row, ids in enumerate(distinct)}
    rows = [place[prompt.ids] for prompt in prompts]
    ids, mask = causal.pad(distinct)
    step = causal.forward(ids, mask)
    if select(step.cache, rows):
        return Step(step.logits[rows], step.cache), ids[rows], mask[rows], True
    ids, mask = ids[rows], mask[rows]
    return causal.forward(ids, mask), ids, mask, False


def goes_on(causal: Causal, prompt: Prompt, written: Written, token: int) -> bool:
    """Add a token to a row's text; whether there is more to write."""
    if written.ended or written.tokens >= prompt.most:
        return False
    written.tokens += 1
    if token in causal.end_ids:
        written.ended = True
    else:
        written.ids.append(token)
        written.ended = meets_stop(causal, prompt, written)
    if written.ended or written.tokens >= prompt.most:
        written.text = cut_at_stop(causal.text(written.ids, after=prompt.ids), prompt.stop)
        return False
    return True


def meets_stop(causal: Causal, prompt: Prompt, written: Written) -> bool:
    """Whether a stop string stands at the end. A token has a byte at least, so only a tail need be read.

    And it need be read only after a token that can end one: with its last character, or part of one.
    """
    piece = causal.piece(written.ids[-1])
    if not any(stop[-1] in piece or "\ufffd" in piece for stop in prompt.stop):
        return False
    tail = max(len(stop.encode()) for stop in prompt.stop) + 8
    recent = causal.text(written.ids[-tail:], after=prompt.ids if len(written.ids) <= tail else ())
    return any(stop in recent for stop in prompt.stop)


def cut_at_stop(text: str, stops: Sequence[str]) -> str:
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    return text[: min(places)] if places else text
