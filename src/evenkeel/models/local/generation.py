"""Generating texts in a batch: every distinct prompt is read once, each row samples with its own seed.

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
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers.cache_utils import DynamicCache, DynamicLayer

from evenkeel.models.local.causal import Causal, Step
from evenkeel.models.local.constrained import Constraint
from evenkeel.text.word_splitting import has_whole_words
from evenkeel.types import Generate

TAG_TOKENS = 8
"""Tokens that a tag at the end of the reasoning has at most."""

KEPT = 0.8
"""The share of the rows of a batch that must be active: below, those that have ended are taken out."""

SPARE = 128
"""Places that are allocated at once when a cache layer is full."""


@dataclass(frozen=True)
class Prompt:
    """Token ids, and how to continue them."""

    ids: tuple[int, ...]
    temperature: float
    top_p: float
    seed: int
    max_tokens: int
    """Tokens to generate at most: what was asked for, or what the context leaves."""
    stop: tuple[str, ...]
    clipped: bool = False
    """Whether the context leaves less than was asked for."""
    thinking: bool = False
    """Whether the chat template ends in an open block of reasoning, so that the text begins inside it."""
    schema: str = ""
    """A JSON schema that the text follows, after the reasoning."""
    mark: int = 0
    """Tokens after which the text is kept beside the whole one."""
    words: int = 0
    """Words that end the text once they are whole, but not before the mark."""


@dataclass
class Generation:
    """One row's text while it grows."""

    ids: list[int] = field(default_factory=list)
    """The tokens of the text, without the one that ends it."""
    tokens: int = 0
    """The number of tokens generated, with the one that ends it."""
    text: str = ""
    marked_text: str = ""
    """The text of the tokens up to the prompt's mark."""
    ended: bool = False
    """Whether the model came to an end, rather than being cut off."""
    done: bool = False
    """Whether no further token is added."""
    constraint: Constraint | None = None

    @property
    def in_schema(self) -> bool:
        """Whether the text is the beginning of JSON by its schema."""
        return self.constraint is not None and not self.constraint.thinking


class State(NamedTuple):
    """A batch between two steps."""

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
    """Picks a token for every row: the likeliest at temperature 0, else one drawn by the row's own number.

    A row's nth token is where the running sum of the probabilities passes the nth number of its seed (inverse
    transform sampling): so a row's text does not depend on its neighbours, and a step needs one number a row.
    """

    def __init__(
        self, prompts: Sequence[Prompt], device: torch.device, constraints: Sequence[Constraint | None] = ()
    ) -> None:
        self.device = device
        self.constraints = constraints
        self.sampled = [prompt.temperature > 0 for prompt in prompts]
        self.temperatures = torch.tensor([prompt.temperature or 1.0 for prompt in prompts], device=device)
        self.top_ps = torch.tensor([prompt.top_p for prompt in prompts], device=device)
        self.whole = all(prompt.top_p >= 1 for prompt in prompts)
        self.numbers = torch.tensor(_numbers(prompts), device=device) if any(self.sampled) else None

    def pick(self, logits: Tensor, rows: Sequence[int], generations: Sequence[Generation]) -> list[int]:
        """One token for each of `rows`, from one line of logits each."""
        scores = self._constrained(logits.float(), rows)
        picked = scores.argmax(-1)
        if self.numbers is not None:
            places = torch.tensor([[row, generations[row].tokens] for row in rows], device=self.device)
            row, step = places.unbind(-1)
            drawn = self._draw(scores, row, self.numbers[row, step.clamp_max(self.numbers.shape[1] - 1)])
            sampled = torch.tensor([self.sampled[row] for row in rows], device=self.device)
            picked = torch.where(sampled, drawn, picked)
        tokens: list[int] = picked.tolist()
        return tokens

    def _draw(self, scores: Tensor, row: Tensor, numbers: Tensor) -> Tensor:
        scores = scores / self.temperatures[row, None]
        if not self.whole:
            scores = nucleus(scores, self.top_ps[row, None])
        # In double precision the sum of 200,000 probabilities keeps the rarest of them apart.
        sums = scores.softmax(-1).double().cumsum(-1)
        return torch.searchsorted(sums, sums[:, -1:] * numbers[:, None], right=True)[:, 0]

    def _constrained(self, scores: Tensor, rows: Sequence[int]) -> Tensor:
        """Scores with every token ruled out that the schema of its row does not allow."""
        lines = [line for line, row in enumerate(rows) if self.constraints and self.constraints[row]]
        if not lines:
            return scores
        constraints = [constraint for row in rows if (constraint := self.constraints[row])]
        allowed = torch.tensor(np.stack([each.allowed(scores.shape[-1]) for each in constraints]))
        places = torch.tensor(lines, device=self.device)
        return scores.index_copy(
            0, places, scores[places].masked_fill(~allowed.to(self.device), float("-inf"))
        )


def _numbers(prompts: Sequence[Prompt]) -> NDArray[np.float64]:
    """A number in [0, 1) for each row and step, which depends on the row's seed and the step alone."""
    numbers = np.zeros((len(prompts), max(prompt.max_tokens for prompt in prompts)))
    for row, prompt in zip(numbers, prompts, strict=True):
        if prompt.temperature > 0:
            row[: prompt.max_tokens] = np.random.Generator(np.random.Philox(prompt.seed)).random(
                prompt.max_tokens
            )
    return numbers


def nucleus(scores: Tensor, top_p: Tensor) -> Tensor:
    """Scores with all but the fewest tokens that together have probability `top_p` ruled out."""
    ordered, order = scores.sort(dim=-1, descending=True)
    probabilities = ordered.softmax(-1)
    beyond = (probabilities.cumsum(-1) - probabilities) >= top_p
    beyond[:, 0] = False
    return scores.masked_fill(torch.zeros_like(beyond).scatter(-1, order, beyond), float("-inf"))


@torch.inference_mode()
def generate(causal: Causal, prompts: Sequence[Prompt]) -> list[Generation]:
    """Continue every prompt until it ends, meets a stop string, or has its full length."""
    state, logits = _read(causal, prompts)
    generations = [Generation(constraint=_constraint(causal, prompt)) for prompt in prompts]
    rows = range(len(prompts))
    sampler = Sampler(prompts, causal.device, [generation.constraint for generation in generations])
    tokens = sampler.pick(logits[:, -1], rows, generations)
    active = [row for row in rows if add_token(causal, prompts[row], generations[row], tokens[row])]
    continue_rows(causal, prompts, generations, state, tokens=tokens, active=active, sampler=sampler)
    return generations


def _constraint(causal: Causal, prompt: Prompt) -> Constraint | None:
    return causal.grammars.constraint(prompt.schema, thinking=prompt.thinking) if prompt.schema else None


def _read(causal: Causal, prompts: Sequence[Prompt]) -> tuple[State, Tensor]:
    """The state after every prompt, and the logits there.

    Each distinct prompt is read once, unless the model keeps a state that cannot be copied row by row.
    """
    distinct = list(dict.fromkeys(prompt.ids for prompt in prompts))
    row_of = {ids: row for row, ids in enumerate(distinct)}
    rows = [row_of[prompt.ids] for prompt in prompts]
    ids, mask = causal.pad(distinct)
    step = causal.forward(ids, mask)
    ids, mask = ids[rows], mask[rows]
    if select_rows(step.cache, rows):
        return State(step.cache, ids, mask, shrinks=True), step.logits[rows]
    step = causal.forward(ids, mask)
    return State(step.cache, ids, mask, shrinks=False), step.logits


def continue_rows(
    causal: Causal,
    prompts: Sequence[Prompt],
    generations: Sequence[Generation],
    state: State,
    *,
    tokens: Sequence[int],
    active: Sequence[int],
    sampler: Sampler | None = None,
) -> None:
    """Continue the `active` rows after each one's last of `tokens`, which the state has not read yet."""
    sampler = sampler or Sampler(prompts, causal.device)
    rows: Sequence[int] = range(len(prompts))
    cache, ids, mask, shrinks = state
    while active:
        # Taking rows out copies what is left: worth it once enough have ended. Where a row might outgrow the
        # context, those that have ended must go at once.
        full = causal.context is not None and ids.shape[1] >= causal.context
        if shrinks and len(active) < len(rows) * (1 if full else KEPT):
            select_rows(cache, active)
            rows, tokens = [rows[line] for line in active], [tokens[line] for line in active]
            ids, mask = ids[active], mask[active]
        mask = torch.cat([mask, mask.new_ones((len(rows), 1))], dim=1)
        ids = torch.cat([ids, ids.new_tensor(tokens)[:, None]], dim=1)
        # A model without a cache of a known kind has to read everything again.
        step: Step = causal.forward(ids if cache is None else ids[:, -1:], mask, cache=cache)
        cache = step.cache
        tokens = sampler.pick(step.logits[:, -1], rows, generations)
        active = [
            line
            for line, (row, token) in enumerate(zip(rows, tokens, strict=True))
            if add_token(causal, prompts[row], generations[row], token)
        ]


def add_token(causal: Causal, prompt: Prompt, generation: Generation, token: int) -> bool:
    """Add a token to a row's text; whether there is more to generate."""
    if generation.done:
        return False
    generation.tokens += 1
    if token in causal.end_ids:
        generation.ended = True
    else:
        generation.ids.append(token)
        generation.ended = _completes_schema(causal, generation) or _meets_stop(causal, prompt, generation)
    if not generation.ended and generation.tokens < prompt.max_tokens:
        if not prompt.words or generation.tokens < prompt.mark:
            return True
        if not has_whole_words(causal.text(generation.ids, after=prompt.ids), prompt.words):
            return True
    generation.done = True
    generation.text = _text_of(causal, prompt, generation.ids)
    if prompt.mark:
        generation.marked_text = _text_of(causal, prompt, generation.ids[: prompt.mark])
    return False


def _text_of(causal: Causal, prompt: Prompt, ids: Sequence[int]) -> str:
    """What tokens after a prompt spell, up to the first stop string."""
    text = causal.text(ids, after=prompt.ids)
    ends = [end for stop in prompt.stop if (end := text.find(stop)) >= 0]
    return text[: min(ends)] if ends else text


def _completes_schema(causal: Causal, generation: Generation) -> bool:
    """Whether the text is whole by its schema, so that only its end could follow."""
    if generation.constraint is None:
        return False
    recent = "".join(map(causal.token_text, generation.ids[-TAG_TOKENS:]))
    generation.constraint.add(generation.ids[-1], recent)
    return generation.constraint.complete


def _meets_stop(causal: Causal, prompt: Prompt, generation: Generation) -> bool:
    """Whether a stop string is at the end. A token has at least a byte, so only a tail need be read.

    And it need be read only after a token that can end one: with its last character, or part of one.
    """
    text = causal.token_text(generation.ids[-1])
    if not any(stop[-1] in text or "\ufffd" in text for stop in prompt.stop):
        return False
    tail = max(len(stop.encode()) for stop in prompt.stop) + 8
    before = prompt.ids if len(generation.ids) <= tail else ()
    recent = causal.text(generation.ids[-tail:], after=before)
    return any(stop in recent for stop in prompt.stop)


# The cache: taking rows out of it, and letting it grow without being copied


class GrowingLayer(DynamicLayer):  # type: ignore[misc]
    """Keys and values in a store with places to spare.

    transformers' own layer copies all it holds to append one token. After a prompt of a thousand tokens
    that copying took two fifths of the time of a step.
    """

    def __init__(self, layer: DynamicLayer) -> None:
        super().__init__()
        self.lazy_initialization(layer.keys, layer.values)
        self.keys, self.values = layer.keys, layer.values
        self._stores: tuple[Tensor, Tensor] | None = None

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        used, new = self.keys.shape[-2], key_states.shape[-2]
        if self._stores is None or self._stores[0].shape[-2] < used + new:
            self._stores = _with_room(self.keys, new + SPARE), _with_room(self.values, new + SPARE)
        keys, values = self._stores
        keys[..., used : used + new, :] = key_states
        values[..., used : used + new, :] = value_states
        self.keys, self.values = keys[..., : used + new, :], values[..., : used + new, :]
        return self.keys, self.values

    def reorder_cache(self, beam_idx: Tensor) -> None:
        super().reorder_cache(beam_idx)
        self._stores = None


def _with_room(states: Tensor, places: int) -> Tensor:
    *rest, used, width = states.shape
    store = states.new_empty((*rest, used + places, width))
    store[..., :used, :] = states
    return store


def select_rows(cache: Any, rows: Sequence[int]) -> bool:
    """Make the cache hold these of its rows, in this order, repeats allowed; False where it cannot.

    Layers of plain attention are made to grow in place on the way; sliding windows and recurrent states
    stay as they are.
    """
    if not _is_selectable(cache):
        return False
    cache.reorder_cache(torch.tensor(rows))
    cache.layers[:] = [
        GrowingLayer(layer) if type(layer) is DynamicLayer and layer.is_initialized else layer
        for layer in cache.layers
    ]
    return True


def _is_selectable(cache: Any) -> bool:
    """Whether all that the cache holds is in layers that transformers itself can take rows out of.

    A model's own cache, or its own kind of layer, may hold a state beside what it inherits (MiniMax's
    linear attention), which would keep the rows that were taken out.
    """
    return (
        type(cache) is DynamicCache
        and vars(cache).keys() <= vars(DynamicCache()).keys()
        and all(type(layer).__module__ in (DynamicLayer.__module__, __name__) for layer in cache.layers)
    )


def is_plain(cache: Any) -> bool:
    """Whether every layer is of plain attention, so that a mask can leave out what it holds."""
    plain = (DynamicLayer, GrowingLayer)
    return (
        _is_selectable(cache) and bool(cache.layers) and all(type(layer) in plain for layer in cache.layers)
    )
