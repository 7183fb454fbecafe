"""The keys and values of a batch: rows taken out of them, put together, and growing without being copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers.cache_utils import DynamicCache, DynamicLayer

from sealegs.models.local.steps.attention import rounded_up, widened

SPARE = 32
"""Places that are allocated at once when a cache layer is full."""


class GrowingLayer(DynamicLayer):  # type: ignore[misc]
    """Keys and values in a store with places to spare.

    transformers' own layer copies all it holds to append one token. After a prompt of a thousand tokens
    that copying took two fifths of the time of a step.
    """

    def __init__(self, keys: Tensor, values: Tensor, stores: tuple[Tensor, Tensor] | None = None) -> None:
        super().__init__()
        self.lazy_initialization(keys, values)
        self.keys, self.values = keys, values
        self._stores = stores

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        used, new = self.keys.shape[-2], key_states.shape[-2]
        if self._stores is None or self._stores[0].shape[-2] < used + new:
            self._stores = _with_room(self.keys, new + SPARE), _with_room(self.values, new + SPARE)
        keys, values = self._stores
        keys[..., used : used + new, :] = key_states
        values[..., used : used + new, :] = value_states
        self.keys, self.values = (widened(store, used + new) for store in self._stores)
        return self.keys, self.values

    def reorder_cache(self, beam_idx: Tensor) -> None:
        super().reorder_cache(beam_idx)
        self._stores = None


def _with_room(states: Tensor, places: int) -> Tensor:
    *rest, used, width = states.shape
    store = states.new_zeros((*rest, rounded_up(used + places), width))
    store[..., :used, :] = states
    return store


def select_rows(cache: Any, rows: Sequence[int], *, of: int) -> bool:
    """Make the cache hold these `of` so many rows, in this order, repeats allowed; False where it cannot.

    Layers of plain attention are made to grow in place on the way; sliding windows and recurrent states
    stay as they are.
    """
    if not _is_selectable(cache):
        return False
    if list(rows) != list(range(of)):
        cache.reorder_cache(torch.tensor(rows))
    cache.layers[:] = [
        GrowingLayer(layer.keys, layer.values)
        if type(layer) is DynamicLayer and layer.is_initialized
        else layer
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


def stacked(caches: Sequence[Any], width: int) -> DynamicCache:
    """One cache of the rows of several plain ones, padded to this width at the end. Those are used up."""
    cache = DynamicCache()
    for number in range(len(caches[0].layers)):
        layers = [each.layers[number] for each in caches]
        keys, values = (
            torch.cat([pad(states, (0, 0, 0, width - states.shape[-2])) for states in several])
            for several in ([layer.keys for layer in layers], [layer.values for layer in layers])
        )
        cache.layers.append(GrowingLayer(keys, values))
        for each in caches:
            each.layers[number] = None
    return cache


def repeated(cache: Any, rows: int) -> DynamicCache:
    """A cache of so many rows that all hold what is in the one row of a plain cache."""
    return DynamicCache(
        [
            tuple(states.expand(rows, -1, -1, -1) for states in (each.keys, each.values))
            for each in cache.layers
        ]
    )


class CachedText(NamedTuple):
    """The first places of one row of a plain cache."""

    cache: Any
    row: int
    places: int


def joined(texts: Sequence[CachedText]) -> DynamicCache:
    """A cache whose rows are these texts, which end together and have room to grow."""
    cache = DynamicCache()
    width = max(text.places for text in texts)
    for number in range(len(texts[0].cache.layers)):
        layers = [text.cache.layers[number] for text in texts]
        stores = tuple(
            _store([states[text.row, :, : text.places] for states, text in zip(several, texts, strict=True)])
            for several in ([layer.keys for layer in layers], [layer.values for layer in layers])
        )
        keys, values = (store[..., :width, :] for store in stores)
        cache.layers.append(GrowingLayer(keys, values, (stores[0], stores[1])))
    return cache


def _store(rows: Sequence[Tensor]) -> Tensor:
    """The states of rows, padded on the left so that all end together, and places to spare."""
    heads, _, size = rows[0].shape
    width = max(row.shape[1] for row in rows)
    store = rows[0].new_zeros((len(rows), heads, rounded_up(width + SPARE), size))
    for line, row in enumerate(rows):
        store[line, :, width - row.shape[1] : width] = row
    return store
