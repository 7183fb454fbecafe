"""Attention on a CPU: a new token attends to its row's own keys alone.

That is faster than a masked attention over padded keys, and what shares a batch changes no sum of a row.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from evenkeel.models.local.steps.attention import UNKNOWN

NAME = "evenkeel-rows"


def use_row_attention(model: Any) -> None:
    """Make a model that computes its attention by PyTorch's fused kernels do so for each row by itself."""
    if model.config._attn_implementation == "sdpa" and model._can_set_attn_implementation():
        AttentionInterface.register(NAME, attention)
        AttentionMaskInterface.register(NAME, sdpa_mask)
        model.set_attn_implementation(NAME)


def attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """softmax(q Kᵀ · scaling) V over the places of each row; of shape (rows, queries, heads, size)."""
    whole = attention_mask is None and query.shape[2] > 1
    unknown = dropout or any(kwargs.get(name) is not None for name in UNKNOWN)
    if whole or unknown or (attention_mask is not None and attention_mask.dtype != torch.bool):
        result: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
        return result
    parts = [Part(slice(None), 0, None)] if attention_mask is None else _parts_of(attention_mask)
    attended = [
        _attended(query[rows], key[rows, :, first:], value[rows, :, first:], mask, scaling)
        for rows, first, mask in parts
    ]
    return attended[0] if len(attended) == 1 else torch.cat(attended), None


class Part(NamedTuple):
    """Neighbouring rows whose keys begin at the same place."""

    rows: slice
    first: int
    mask: Tensor | None
    """Which of the places from there on are visible; None where all are."""


def _parts_of(mask: Tensor) -> list[Part]:
    """Every layer gets the same mask: it is looked at once."""
    parts: list[Part] | None = getattr(mask, "parts", None)
    if parts is None:
        parts, start = [], 0
        firsts = mask[:, 0].any(1).byte().argmax(-1).tolist()
        for first, rows in groupby(firsts):
            lines = slice(start, start + len(list(rows)))
            visible = mask[lines, ..., first:]
            parts.append(Part(lines, first, None if bool(visible.all()) else visible))
            start = lines.stop
        mask.parts = parts  # type: ignore[attr-defined]
    return parts


def _attended(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float | None
) -> Tensor:
    rows, heads, count, size = query.shape
    shared = heads // key.shape[1]
    # Heads that share their keys and values are queries of one product.
    queries = query.reshape(rows, key.shape[1], shared * count, size)
    visible = mask.repeat(1, 1, shared, 1) if mask is not None else None
    states = nn.functional.scaled_dot_product_attention(queries, key, value, visible, scale=scaling)
    return states.reshape(rows, heads, count, value.shape[-1]).transpose(1, 2)
