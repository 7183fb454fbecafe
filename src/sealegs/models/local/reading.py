"""Texts that a causal model has read, and the batches that are continued from there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sealegs.models.local.steps.caches import CachedText, is_plain, joined, select_rows

SHARED = 32
"""Tokens at the beginning that are worth a reading of their own."""


class StepState(NamedTuple):
    """A batch between two steps."""

    cache: Any
    ids: Tensor
    mask: Tensor
    padded: bool
    """Whether there are places that the mask leaves out."""
    shrinks: bool
    """Whether rows can be taken out of the cache."""
    prompts: Sequence[int] | None = None
    """For each row the row of the cache that it continues, where the cache has each of its texts once."""


class ReadBatch(NamedTuple):
    """Texts that were read: padded to one length, or (on a CPU) in groups of equal length."""

    texts: Sequence[Sequence[int]]
    logits: Tensor
    """At the last places of each text, as many as were to be kept at most."""
    caches: list[tuple[Any, int]]
    """For each text the cache that it is in, and the row there."""
    batch: StepState | None = None
    """All of them, where they were padded."""
    can_mask_cache: bool = False
    """Whether places of the cache can be masked out."""

    def join(self, rows: Sequence[int], places: Sequence[int]) -> Any:
        """A cache of some of the texts, repeats allowed, and of so many first places of each."""
        return joined([CachedText(*self.caches[row], count) for row, count in zip(rows, places, strict=True)])

    def shared(self, rows: Sequence[int]) -> StepState:
        """A batch of all of the texts, some of them several times, whose cache has each of them once."""
        assert self.batch is not None
        cache, ids, mask, _, _, _ = self.batch
        return StepState(cache, ids[list(rows)], mask[list(rows)], padded=True, shrinks=True, prompts=rows)

    def state(self, rows: Sequence[int], places: Sequence[int]) -> StepState | None:
        """A batch of some of the texts, repeats allowed, and of so many first places of each; None where the
        cache does not allow that."""
        if self.batch is None:
            ids, mask = pad([self.texts[row][:count] for row, count in zip(rows, places, strict=True)])
            return StepState(self.join(rows, places), ids, mask, len(set(places)) > 1, shrinks=True)
        cache, ids, mask, padded, *_ = self.batch
        unused = [len(self.texts[row]) - count for row, count in zip(rows, places, strict=True)]
        if any(unused) and not (self.can_mask_cache and is_plain(cache)):
            return None
        if not select_rows(cache, rows, of=len(self.texts)):
            return None
        ids, mask = ids[list(rows)], mask[list(rows)]
        if any(unused):
            visible = np.ones(mask.shape, np.int64)
            for line, count in enumerate(unused):
                visible[line, mask.shape[1] - count :] = 0
            mask = mask * torch.from_numpy(visible).to(mask.device)
        return StepState(cache, ids, mask, padded or any(unused), shrinks=True)


def pad(rows: Sequence[Sequence[int]], *, right: bool = False, width: int = 0) -> tuple[Tensor, Tensor]:
    """Rows of ids, padded on the left so that all end together, and the mask of what is not padding."""
    width = max(width, *map(len, rows))
    ids, mask = np.zeros((2, len(rows), width), np.int64)
    for line, row in enumerate(rows):
        start = 0 if right else width - len(row)
        ids[line, start : start + len(row)] = row
        mask[line, start : start + len(row)] = 1
    return torch.from_numpy(ids), torch.from_numpy(mask)


def is_padded(rows: Sequence[Sequence[int]]) -> bool:
    """Whether rows are of unequal length."""
    return len(set(map(len, rows))) > 1


def shared_beginning(rows: Sequence[Sequence[int]]) -> int:
    """How many tokens all rows begin with, but for the last of each; 0 where they are too few."""
    places = zip(*(row[:-1] for row in rows), strict=False)
    same = sum(1 for _ in takewhile(lambda tokens: len(set(tokens)) == 1, places))
    return same if len(rows) > 1 and same >= SHARED else 0
