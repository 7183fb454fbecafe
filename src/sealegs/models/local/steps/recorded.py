"""Steps of generation that a GPU is given as one recorded graph.

A step is about a thousand short kernels, and Python takes 16 to 27 ms to launch them, whatever the number of
rows. A CUDA graph launches all of them at once, but it repeats what was recorded: the same operations on the
same memory. So keys and values have places to spare, which the mask leaves out, and the place of the next
token is a number on the device. A step is recorded anew when those places are used up or rows are taken out.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers.cache_utils import DynamicLayer

from sealegs.models.local.causal import Causal
from sealegs.models.local.reading import StepState
from sealegs.models.local.steps.attention import SharedPrompts, rounded_up, slots_of
from sealegs.models.local.steps.sampling import Sampler

log = logging.getLogger(__name__)

BLOCK = 64
"""Places by which the keys that a step reads are widened. Fewer would have to be recorded more often."""

ROOM = 512
"""Places that are allocated at once at most."""

WORTHWHILE = 8
"""Steps that a recording must serve: it takes as long as one or two of them without."""


class FixedLayer(DynamicLayer):  # type: ignore[misc]
    """Keys and values of which a fixed number of places is read; the next goes where `place` says.

    Where rows share their prompts, these are kept apart, once each.
    """

    def __init__(self, layer: DynamicLayer, place: Tensor, prompts: Sequence[int] | None) -> None:
        super().__init__()
        self.lazy_initialization(layer.keys, layer.values)
        keys, values = layer.keys, layer.values
        self._place = place
        self.prompts: SharedPrompts | None = None
        if prompts is not None:
            self.prompts = SharedPrompts(keys, values, None, None)
            keys, values = (
                each.new_empty((len(prompts), each.shape[1], 0, each.shape[3])) for each in (keys, values)
            )
        self.keys, self.values = self._stores = keys, values

    def widen(self, width: int, room: int) -> None:
        """Read `width` places; where there are fewer, allocate `room`, with zeros beyond those used."""
        keys, values = self._stores
        if keys.shape[-2] < width:
            keys, values = (pad(each, (0, 0, 0, room - each.shape[-2])) for each in self._stores)
        self._stores = keys, values
        self.keys, self.values = keys[..., :width, :], values[..., :width, :]

    def select(self, rows: Tensor) -> None:
        width = self.keys.shape[-2]
        keys, values = (each.index_select(0, rows) for each in self._stores)
        self._stores = keys, values
        self.keys, self.values = keys[..., :width, :], values[..., :width, :]

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        self.keys.index_copy_(2, self._place, key_states)
        self.values.index_copy_(2, self._place, value_states)
        if self.prompts is not None:
            self.keys.prompts = self.prompts
        return self.keys, self.values

    def get_seq_length(self) -> int:
        """The places before the new one, as masks are made for them; the mask tells which are used."""
        before = 0 if self.prompts is None else self.prompts.keys.shape[-2]
        return int(before + self.keys.shape[-2]) - 1


class RecordedSteps:
    """One step after the other, for a cache of plain attention from which places can be masked out.

    The first step in a shape is computed as usual, so that all kernels are loaded; the second is recorded
    where enough others will follow.
    """

    def __init__(
        self, causal: Causal, state: StepState, sampler: Sampler, tokens: Tensor, steps: int
    ) -> None:
        """After `state` come `tokens`, and at most so many `steps` will be taken."""
        self._causal, self._cache, self._sampler = causal, state.cache, sampler
        self._mask, self._tokens = state.mask, tokens.clone()
        self._used, self._number, self._steps = state.mask.shape[1], 0, steps
        self._place = torch.tensor([self._used], device=state.mask.device)
        self._prompts = state.prompts
        self._apart = 0 if state.prompts is None else self._used
        """Places of the prompts that rows share: those of a row's own are counted from there."""
        self._own_place = self._place - self._apart
        layers = state.cache.layers
        self._layers = [FixedLayer(layer, self._own_place, state.prompts) for layer in layers]
        layers[:] = self._layers
        self._assign_slots()
        self._graph: torch.cuda.CUDAGraph | None = None
        self._logits = torch.empty(0)
        self._computed, self._recorded = False, False
        """Whether a step of the present shape was computed, and whether the graph is of that shape."""

    def select(self, rows: Sequence[int]) -> None:
        """Go on with these rows alone."""
        index = torch.tensor(rows, device=self._mask.device)
        for layer in self._layers:
            layer.select(index)
        self._sampler.select(rows)
        self._mask, self._tokens = self._mask[index], self._tokens[index]
        if self._prompts is not None:
            self._prompts = [self._prompts[row] for row in rows]
            self._assign_slots()
        self._computed, self._recorded = False, False

    def _assign_slots(self) -> None:
        """Take out prompts that no row continues, and say which rows continue the others."""
        if self._prompts is None:
            return
        left = sorted(set(self._prompts))
        self._prompts = [left.index(prompt) for prompt in self._prompts]
        slots, slot_of = slots_of(self._prompts)
        device = self._mask.device
        index, in_order = torch.tensor(left, device=device), slots == list(range(len(slot_of)))
        order = (
            (None, None)
            if in_order
            else (torch.tensor(slots, device=device), torch.tensor(slot_of, device=device))
        )
        for layer in self._layers:
            assert layer.prompts is not None
            keys, values = layer.prompts[:2]
            if len(left) < len(keys):
                keys, values = keys.index_select(0, index), values.index_select(0, index)
            layer.prompts = SharedPrompts(keys, values, *order)

    def read(self) -> None:
        """Read the tokens picked last."""
        if self._used == self._mask.shape[1]:
            self._widen()
        left = min(self._steps - self._number, self._mask.shape[1] - self._used)
        if self._computed and not self._recorded and left >= WORTHWHILE and self._causal.cuda_graph_ok:
            self._record()
        if self._recorded and self._graph is not None:
            self._graph.replay()
        elif self._causal.cuda_graph_ok is None and self._mask.is_cuda:
            self._causal.cuda_graph_ok = not self._waits()
        else:
            self._forward()
        self._computed = True
        self._used += 1

    def pick(self) -> Tensor:
        """Pick the next tokens, after what was read."""
        self._number += 1
        return self._tokens.copy_(self._sampler.pick(self._logits, self._number))

    def _widen(self) -> None:
        steps, used = max(1, self._steps - self._number), self._used - self._apart
        width = min((used // BLOCK + 1) * BLOCK, rounded_up(used + steps))
        room = max(width, rounded_up(used + min(steps, ROOM)))
        for layer in self._layers:
            layer.widen(width, room)
        self._mask = pad(self._mask, (0, width - used))
        self._computed, self._recorded = False, False

    def _forward(self) -> None:
        self._mask.index_fill_(1, self._place, 1)
        step = self._causal.forward(self._tokens[:, None], self._mask, cache=self._cache, padded=True)
        self._logits = step.logits[:, -1]
        self._place += 1
        self._own_place += 1

    def _waits(self) -> bool:
        """Compute a step; whether it waits for the device, as one with experts that Python chooses does."""
        mode = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                self._forward()
            finally:
                torch.cuda.set_sync_debug_mode(mode)
        return any("called a synchronizing" in str(warning.message) for warning in caught)

    def _record(self) -> None:
        graph, device = torch.cuda.CUDAGraph(), self._mask.device
        pool = None if self._graph is None else self._graph.pool()
        stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        try:
            with (
                torch.cuda.device(device),
                torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"),
            ):
                self._forward()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            log.info("The steps of %s cannot be recorded: %s", self._causal.spec, error)
            self._causal.cuda_graph_ok = False
        else:
            self._graph, self._recorded = graph, True
