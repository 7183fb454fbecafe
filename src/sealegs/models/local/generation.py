"""Generating texts in a batch: every distinct prompt is read once, each row samples with its own seed.

Reading (prefill) dominates where prompts are long and answers short, and a consistency benchmark asks
every prompt several times: so the state after a prompt is computed once and copied to its repeats. A row
that is done leaves the batch, so that the slowest row does not cost the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec
import torch
from torch import Tensor

from sealegs.models.local import batching
from sealegs.models.local.causal import RIGHT_PADDED, Causal
from sealegs.models.local.constrained import Constraint
from sealegs.models.local.reading import StepState
from sealegs.models.local.steps.caches import is_plain, select_rows
from sealegs.models.local.steps.recorded import RecordedSteps
from sealegs.models.local.steps.sampling import Sampler
from sealegs.text.word_splitting import has_whole_words
from sealegs.types import Generate

TAG_TOKENS = 8
"""Tokens that a tag at the end of the reasoning has at most."""

ACTIVE = 0.8
"""The share of the rows of a batch that must be active: below, those that have ended are taken out."""

AHEAD = frozenset({"cuda"})
"""Devices that are given a step before the tokens of the last one are looked at."""

RECORDED = frozenset({"cuda"})
"""Devices whose steps are recorded where the cache allows it."""


@dataclass(frozen=True)
class TokenisedPrompt:
    """Token ids, and how to continue them."""

    ids: tuple[int, ...]
    temperature: float
    top_p: float
    seed: int
    max_tokens: int
    """Tokens to generate at most: what was asked for, or what the context leaves."""
    stop: tuple[str, ...]
    thinking: bool = False
    """Whether the chat template ends in an open block of reasoning, so that the text begins inside it."""
    schema: str = ""
    """A JSON schema that the text follows, after the reasoning."""
    top_k: int = 0
    """Tokens to choose among, the likeliest; 0 for all."""
    words: int = 0
    """Words that end the text once they are whole."""


@dataclass
class Generation:
    """One row's text while it grows."""

    ids: list[int] = field(default_factory=list)
    """The tokens of the text, without the one that ends it."""
    tokens: int = 0
    """The number of tokens generated, with the one that ends it."""
    text: str = ""
    ended: bool = False
    """Whether the model came to an end, rather than being cut off."""
    done: bool = False
    """Whether no further token is added."""
    constraint: Constraint | None = None


def seed_of(request: Generate) -> int:
    """One seed for one request, whatever shares its batch: repeats differ, a rerun does not."""
    content = msgspec.json.encode([request.sampling.seed, request.prompt, request.repeat])
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest())


@torch.inference_mode()
def generate(
    causal: Causal, prompts: Sequence[TokenisedPrompt], emit: Callable[[int, Generation], None] | None = None
) -> list[Generation]:
    """Continue every prompt until it ends, meets a stop string, or has its full length; `emit` gets each row
    as it ends."""
    state, logits = _read(causal, prompts)
    generations = [Generation(constraint=_constraint(causal, prompt)) for prompt in prompts]
    sampler = Sampler(prompts, causal.device, [generation.constraint for generation in generations])
    tokens = sampler.pick(logits[:, -1], 0)
    ended = partial(_emit_row, emit, generations) if emit else None
    continue_rows(causal, prompts, generations, state, sampler, tokens, ended)
    return generations


def _emit_row(emit: Callable[[int, Generation], None], generations: Sequence[Generation], row: int) -> None:
    emit(row, generations[row])


def _constraint(causal: Causal, prompt: TokenisedPrompt) -> Constraint | None:
    return causal.grammars.constraint(prompt.schema, thinking=prompt.thinking) if prompt.schema else None


def shares_prompts(causal: Causal) -> bool:
    """Whether rows that continue one prompt read its keys and values together."""
    return causal.device.type in RECORDED and causal.device.type in RIGHT_PADDED and causal.kv_only


def _read(causal: Causal, prompts: Sequence[TokenisedPrompt]) -> tuple[StepState, Tensor]:
    """The state after every prompt, and the logits there.

    Each distinct prompt is read once, unless the model keeps a state that cannot be copied row by row.
    """
    distinct = list(dict.fromkeys(prompt.ids for prompt in prompts))
    row_of = {ids: row for row, ids in enumerate(distinct)}
    rows = [row_of[prompt.ids] for prompt in prompts]
    reading = causal.read_prompts(distinct)
    if len(distinct) < len(rows) and shares_prompts(causal):
        return reading.shared(rows), reading.logits[rows]
    state = reading.state(rows, [len(prompt.ids) for prompt in prompts])
    if state is not None:
        return state, reading.logits[rows]
    if len(distinct) < len(rows):
        reading = causal.read([prompt.ids for prompt in prompts], [1] * len(rows))
    assert reading.batch is not None
    return reading.batch, reading.logits


def continue_rows(
    causal: Causal,
    prompts: Sequence[TokenisedPrompt],
    generations: Sequence[Generation],
    state: StepState,
    sampler: Sampler,
    tokens: Tensor,
    ended: Callable[[int], None] | None = None,
) -> None:
    """Continue the rows that are not done with each one's next of `tokens`, which the state has not read yet;
    `ended` is called for each row as it ends.

    A GPU is given the next step before the tokens of the last one are looked at here, so that it does not
    wait for that; a row that has ended goes along for one step more.
    """
    rows = list(range(len(prompts)))
    steps = _steps(causal, prompts, generations, state, sampler, tokens)
    ahead = causal.device.type in AHEAD
    unread: tuple[list[int], Callable[[], list[int]]] | None = (rows, _copied(tokens))
    while True:
        batching.check_stopped()
        if unread and not ahead:
            _add_tokens(causal, prompts, generations, *unread, ended)
            unread = None
        active = [
            line for line, row in enumerate(rows) if _goes_on(prompts[row], generations[row], bool(unread))
        ]
        if not active:
            break
        # Taking rows out copies what is left: worth it once enough have ended.
        if state.shrinks and len(active) < len(rows) * ACTIVE:
            steps.select(active)
            rows = [rows[line] for line in active]
        causal.count("writing answers", len(active))
        steps.read()
        if unread:
            _add_tokens(causal, prompts, generations, *unread, ended)
        unread = rows, _copied(steps.pick())
    if unread:
        _add_tokens(causal, prompts, generations, *unread, ended)


class Steps:
    """One step after the other, each with a cache that is one place longer."""

    def __init__(self, causal: Causal, state: StepState, sampler: Sampler, tokens: Tensor) -> None:
        self._causal, self._sampler, self._tokens = causal, sampler, tokens
        self._cache, self._ids, self._mask, self._padded = state[:4]
        self._number = 0

    def select(self, rows: Sequence[int]) -> None:
        """Go on with these rows alone."""
        select_rows(self._cache, rows, of=len(self._tokens))
        self._sampler.select(rows)
        self._ids, self._mask, self._tokens = (
            each[list(rows)] for each in (self._ids, self._mask, self._tokens)
        )

    def read(self) -> None:
        """Read the tokens picked last."""
        self._mask = torch.cat([self._mask, self._mask.new_ones((len(self._mask), 1))], dim=1)
        self._ids = torch.cat([self._ids, self._tokens[:, None]], dim=1)
        # A model without a cache of a known kind has to read everything again.
        ids = self._ids if self._cache is None else self._ids[:, -1:]
        self._logits, self._cache = self._causal.forward(
            ids, self._mask, cache=self._cache, padded=self._padded
        )

    def pick(self) -> Tensor:
        """Pick the next tokens, after what was read."""
        self._number += 1
        self._tokens = self._sampler.pick(self._logits[:, -1], self._number)
        return self._tokens


def _steps(
    causal: Causal,
    prompts: Sequence[TokenisedPrompt],
    generations: Sequence[Generation],
    state: StepState,
    sampler: Sampler,
    tokens: Tensor,
) -> Steps | RecordedSteps:
    """How the steps of a batch are taken, by what the model's cache allows."""
    recorded = (
        causal.device.type in RECORDED and causal.can_pad and causal.can_mask_cache and is_plain(state.cache)
    )
    if recorded and all(layer.is_initialized for layer in state.cache.layers):
        most = max(
            prompt.max_tokens - generation.tokens
            for prompt, generation in zip(prompts, generations, strict=True)
        )
        return RecordedSteps(causal, state, sampler, tokens, most)
    return Steps(causal, state, sampler, tokens)


def _copied(tokens: Tensor) -> Callable[[], list[int]]:
    """A function that waits until these tokens are here, and for nothing that the device was given since."""
    if tokens.device.type != "cuda":
        return tokens.tolist
    copy = torch.empty(tokens.shape, dtype=tokens.dtype, pin_memory=True)
    copy.copy_(tokens, non_blocking=True)
    event = torch.cuda.current_stream(tokens.device).record_event()

    def read() -> list[int]:
        event.synchronize()
        return copy.tolist()

    return read


def _goes_on(prompt: TokenisedPrompt, generation: Generation, unread: bool) -> bool:
    """Whether a row needs a token more than those that are picked, as far as they are known."""
    return not generation.done and generation.tokens + unread < prompt.max_tokens


def _add_tokens(
    causal: Causal,
    prompts: Sequence[TokenisedPrompt],
    generations: Sequence[Generation],
    rows: Sequence[int],
    read: Callable[[], list[int]],
    ended: Callable[[int], None] | None,
) -> None:
    for row, token in zip(rows, read(), strict=True):
        goes_on = generations[row].done or add_token(causal, prompts[row], generations[row], token)
        if not goes_on and ended is not None:
            ended(row)


def add_token(causal: Causal, prompt: TokenisedPrompt, generation: Generation, token: int) -> bool:
    """Add a token to a row's text; whether there is more to generate."""
    generation.tokens += 1
    if token in causal.end_ids:
        generation.ended = True
    else:
        generation.ids.append(token)
        generation.ended = _completes_schema(causal, generation) or _meets_stop(causal, prompt, generation)
    if not generation.ended and generation.tokens < prompt.max_tokens:
        if not prompt.words:
            return True
        if not has_whole_words(causal.text(generation.ids, after=prompt.ids), prompt.words):
            return True
    generation.done = True
    generation.text = _text_of(causal, prompt, generation.ids)
    return False


def _text_of(causal: Causal, prompt: TokenisedPrompt, ids: Sequence[int]) -> str:
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


def _meets_stop(causal: Causal, prompt: TokenisedPrompt, generation: Generation) -> bool:
    """Whether a stop string is at the end. A token has at least a byte, so only a tail need be read.

    And it need be read only after a token that can end one: with its last character, or part of one.
    """
    if not prompt.stop:
        return False
    text = causal.token_text(generation.ids[-1])
    if not any(stop[-1] in text or "\ufffd" in text for stop in prompt.stop):
        return False
    tail = max(len(stop.encode()) for stop in prompt.stop) + 8
    before = prompt.ids if len(generation.ids) <= tail else ()
    recent = causal.text(generation.ids[-tail:], after=before)
    return any(stop in recent for stop in prompt.stop)
