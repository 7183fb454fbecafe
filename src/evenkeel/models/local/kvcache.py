"""The state of a model between steps: taking rows out of it, and letting it grow without being copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache, DynamicLayer

SPARE = 128
"""Places that are made at once when a layer is full."""


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
        held, new = self.keys.shape[-2], key_states.shape[-2]
        if self._stores is None or self._stores[0].shape[-2] < held + new:
            self._stores = with_room(self.keys, new + SPARE), with_room(self.values, new + SPARE)
        keys, values = self._stores
        keys[..., held : held + new, :] = key_states
        values[..., held : held + new, :] = value_states
        self.keys, self.values = keys[..., : held + new, :], values[..., : held + new, :]
        return self.keys, self.values

    def reorder_cache(self, beam_idx: Tensor) -> None:
        super().reorder_cache(beam_idx)
        self._stores = None


def with_room(states: Tensor, places: int) -> Tensor:
    *rest, held, width = states.shape
    store = states.new_empty((*rest, held + places, width))
    store[..., :held, :] = states
    return store


def is_plain(cache: Any) -> bool:
    """Whether every layer is of plain attention, so that a mask can leave out what it holds."""
    plain = (DynamicLayer, GrowingLayer)
    return is_selectable(cache) and bool(cache.layers) and all(type(layer) in plain for layer in cache.layers)


def select(cache: Any, rows: Sequence[int]) -> bool:
    """Make the cache hold these of its rows, in this order, repeats allowed; False where it cannot.

    Layers of plain attention are made to grow in place on the way; sliding windows and recurrent states
    stay as they are.
    """
    if not is_selectable(cache):
        return False
    cache.reorder_cache(torch.tensor(rows))
    cache.layers[:] = [
        GrowingLayer(layer) if type(layer) is DynamicLayer and layer.is_initialized else layer
        for layer in cache.layers
    ]
    return True


def is_selectable(cache: Any) -> bool:
    """Whether all that the cache holds is in layers that transformers itself can take rows out of.

    A model's own cache, or its own kind of layer, may hold a state beside what it inherits (MiniMax's
    linear attention), which would keep the rows that were taken out.
    """
    return (
        type(cache) is DynamicCache
        and vars(cache).keys() <= vars(DynamicCache()).keys()
        and all(type(layer).__module__ in (DynamicLayer.__module__, __name__) for layer in cache.layers)
    )
