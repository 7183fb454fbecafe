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

from evenkeel.models.local.causal import Causal
from evenkeel.models.local.steps.attention import rounded_up
from evenkeel.models.local.steps.sampling import Sampler

log = logging.getLogger(__name__)

BLOCK = 64
"""Places by which the keys that a step reads are widened. Fewer would have to be recorded more often."""

ROOM = 512
"""Places that are allocated at once at most."""

WORTHWHILE = 8
"""Steps that a recording must serve: it takes as long as one or two of them without."""


class FixedLayer(DynamicLayer):  # type: ignore[misc]
    """Keys and values of which a fixed number of places is read; the next goes where `place` says."""

    def __init__(self, layer: DynamicLayer, place: Tensor) -> None:
        super().__init__()
        self.lazy_initialization(layer.keys, layer.values)
        self.keys, self.values = layer.keys, layer.values
        self._stores, self._place = (layer.keys, layer.values), place

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
        return self.keys, self.values

    def get_seq_length(self) -> int:
        """The places before the new one, as masks are made for them; the mask tells which are used."""
        return int(self.keys.shape[-2]) - 1


class RecordedSteps:
    """One step after the other, for a cache of plain attention from which places can be masked out.

    The first step in a shape is computed as usual, so that all kernels are loaded; the second is recorded
    where enough others will follow.
    """

    def __init__(
        self, causal: Causal, cache: Any, mask: Tensor, sampler: Sampler, tokens: Tensor, steps: int
    ) -> None:
        """`mask` covers the cache, `tokens` come next, and at most so many `steps` will be taken."""
        self._causal, self._cache, self._sampler = causal, cache, sampler
        self._mask, self._tokens = mask, tokens.clone()
        self._used, self._number, self._steps = mask.shape[1], 0, steps
        self._place = torch.tensor([self._used], device=mask.device)
        self._layers = [FixedLayer(layer, self._place) for layer in cache.layers]
        cache.layers[:] = self._layers
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
        self._computed, self._recorded = False, False

    def read(self) -> None:
        """Read the tokens picked last."""
        if self._used == self._mask.shape[1]:
            self._widen()
        left = min(self._steps - self._number, self._mask.shape[1] - self._used)
        if self._computed and not self._recorded and left >= WORTHWHILE and self._causal.records:
            self._record()
        if self._recorded and self._graph is not None:
            self._graph.replay()
        elif self._causal.records is None and self._mask.is_cuda:
            self._causal.records = not self._waits()
        else:
            self._forward()
        self._computed = True
        self._used += 1

    def pick(self) -> Tensor:
        """Pick the next tokens, after what was read."""
        self._number += 1
        return self._tokens.copy_(self._sampler.pick(self._logits, self._number))

    def _widen(self) -> None:
        steps = max(1, self._steps - self._number)
        width = min((self._used // BLOCK + 1) * BLOCK, rounded_up(self._used + steps))
        room = max(width, rounded_up(self._used + min(steps, ROOM)))
        for layer in self._layers:
            layer.widen(width, room)
        self._mask = pad(self._mask, (0, width - self._used))
        self._computed, self._recorded = False, False

    def _forward(self) -> None:
        self._mask.index_fill_(1, self._place, 1)
        step = self._causal.forward(self._tokens[:, None], self._mask, cache=self._cache, padded=True)
        self._logits = step.logits[:, -1]
        self._place += 1

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
            self._causal.records = False
        else:
            self._graph, self._recorded = graph, True
