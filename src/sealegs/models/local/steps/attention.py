"""Attention of one new token to all before it, as products of matrices.

The fused kernels of PyTorch take queries in blocks of 64 or more. For one query a row, which is all that a
step of generation has, they compute 64 times what is needed, and a mask or keys shared by heads cost a copy.
Two batched products read every key and value once, whatever the mask is. They do so at the speed of the
memory where the number of keys is a multiple of eight, and at a third of it elsewhere: so a cache hands on
with its keys the same with a few empty places more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.attention.bias import causal_lower_right
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "sealegs"

MULTIPLE = 8
"""Keys that a product should have a multiple of."""

Softmax = Callable[[Tensor, Tensor, float, torch.dtype, Tensor | None, int], Tensor]
"""A kernel that takes the softmax of a step's scores, as `fused.py` has one."""

UNKNOWN = ("softcap", "position_bias", "cache", "s_aux")
"""What changes the result, and is left to transformers."""


def use_step_attention(model: Any) -> None:
    """Make a model that computes its attention by PyTorch's fused kernels take products for single tokens."""
    if model.config._attn_implementation == "sdpa" and model._can_set_attn_implementation():
        AttentionInterface.register(NAME, attention)
        AttentionMaskInterface.register(NAME, mask)
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
    """softmax(q Kᵀ · scaling + mask) V, of shape (rows, queries, heads, size).

    Several queries without a mask are the last places: each sees all that is before it.
    """
    queries, keys = query.shape[2], key.shape[2]
    unknown = dropout or any(kwargs.get(name) is not None for name in UNKNOWN)
    if attention_mask is None and 1 < queries < keys:
        if not unknown:
            visible, shared = causal_lower_right(queries, keys), query.shape[1] != key.shape[1]
            attended = nn.functional.scaled_dot_product_attention(
                query, key, value, visible, scale=scaling, enable_gqa=shared
            )
            return attended.transpose(1, 2), None
        attention_mask = query.new_ones((queries, keys), dtype=torch.bool).tril(keys - queries)
    if queries > 1 or unknown:
        result: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
        return result
    fused = getattr(module, "masked_softmax", None)
    return step_attention(query, key, value, attention_mask, scaling, fused), None


def step_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scaling: float | None,
    fused: Softmax | None = None,
) -> Tensor:
    """`fused`: the kernel that takes the softmax, where there is one."""
    rows, heads, _, size = query.shape
    scaling = size**-0.5 if scaling is None else scaling
    if mask is None or mask.dtype != torch.bool or mask.shape[:3] != (rows, 1, 1):
        fused = None
    if fused is None and mask is not None and mask.dtype == torch.bool:
        mask = torch.where(mask, 0.0, -torch.inf)
    if hasattr(key, "prompts"):
        assert mask is not None
        return _attention_with_prompts(query, key, value, mask, scaling, fused)
    places = key.shape[2]
    if hasattr(key, "wide") and hasattr(value, "wide"):
        key, value = key.wide, value.wide
    # Heads that share their keys and values are queries of one product.
    queries = query.reshape(rows * key.shape[1], heads // key.shape[1], size)
    scores = _scores(queries, key).view(rows, heads, 1, key.shape[2])
    if fused is not None and mask is not None:
        weights = fused(
            scores.view(rows, *key.shape[1:2], -1, key.shape[2]), mask, scaling, value.dtype, None, 1
        )
    else:
        used = scores[..., :places]
        if mask is None:
            used.mul_(scaling)
        else:
            torch.add(mask, used, alpha=scaling, out=used)
        if places < key.shape[2]:
            scores[..., places:] = -torch.inf
        weights = scores.softmax(-1).to(value.dtype)
    weights = weights.view(*queries.shape[:2], key.shape[2])
    return torch.bmm(weights, value.flatten(0, 1)).view(rows, 1, heads, value.shape[-1])


def _scores(queries: Tensor, key: Tensor) -> Tensor:
    """q Kᵀ; in half precision the sums are kept in float32, as the fused kernels do."""
    keys = key.flatten(0, 1).mT
    if queries.is_cuda and queries.dtype != torch.float32:
        return torch.bmm(queries, keys, out_dtype=torch.float32)
    return torch.bmm(queries.float(), keys.float())


class SharedPrompts(NamedTuple):
    """Keys and values of prompts that several rows continue, and which rows those are."""

    keys: Tensor
    values: Tensor
    slots: Tensor | None
    """For each prompt as many rows as any of them has (some twice); None where they are in that order."""
    slot_of: Tensor | None
    """Where each row is in that order."""


def slots_of(prompts: Sequence[int]) -> tuple[list[int], list[int]]:
    """The slots of rows by the number of each one's prompt, and the slot of every row."""
    rows_of: dict[int, list[int]] = {prompt: [] for prompt in range(max(prompts) + 1)}
    for row, prompt in enumerate(prompts):
        rows_of[prompt].append(row)
    most = max(map(len, rows_of.values()))
    slots = [row for rows in rows_of.values() for row in rows + rows[:1] * (most - len(rows))]
    return slots, [slots.index(row) for row in range(len(prompts))]


def _attention_with_prompts(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float, fused: Softmax | None
) -> Tensor:
    """Attention to a row's prompt and what follows it. A prompt's keys are read once for all its rows."""
    prompts: SharedPrompts = key.prompts  # type: ignore[attr-defined]
    rows, heads, _, size = query.shape
    count, groups = prompts.keys.shape[:2]
    shared = heads // groups

    def in_slots(each: Tensor) -> Tensor:
        """From (rows, groups, shared, …) to (prompts · groups, slots · shared, …)."""
        each = each if prompts.slots is None else each[prompts.slots]
        each = each.reshape(count, -1, groups, shared, each.shape[-1]).transpose(1, 2)
        return each.reshape(count * groups, -1, each.shape[-1])

    def in_rows(each: Tensor) -> Tensor:
        each = each.view(count, groups, -1, shared, each.shape[-1]).transpose(1, 2)
        each = each.reshape(-1, groups, shared, each.shape[-1])
        return each if prompts.slot_of is None else each[prompts.slot_of]

    queries = query.view(rows, groups, shared, size)
    own = _scores(queries.flatten(0, 1), key).view(rows, groups, shared, key.shape[2])
    scores = torch.cat([_scores(in_slots(queries), prompts.keys), in_slots(own)], -1)
    if fused is not None:
        by_prompt = scores.view(count, groups, *scores.shape[1:])
        weights = fused(
            by_prompt, mask, scaling, value.dtype, prompts.slots, scores.shape[1] // shared
        ).view_as(scores)
    else:
        visible = in_slots(mask.expand(rows, groups, shared, mask.shape[-1]))
        weights = torch.add(visible, scores, alpha=scaling, out=scores).softmax(-1).to(value.dtype)
    before = prompts.keys.shape[2]
    attended = in_rows(torch.bmm(weights[..., :before], prompts.values.flatten(0, 1)))
    later = in_rows(weights[..., before:]).flatten(0, 1)
    attended = attended + torch.bmm(later, value.flatten(0, 1)).view_as(attended)
    return attended.reshape(rows, 1, heads, value.shape[-1])


def widened(store: Tensor, places: int) -> Tensor:
    """The first places of a store that is empty (zero) beyond them; `wide`: rounded up to a multiple."""
    used = store[..., :places, :]
    used.wide = store[..., : rounded_up(places), :]  # type: ignore[attr-defined]
    return used


def rounded_up(places: int) -> int:
    return -(-places // MULTIPLE) * MULTIPLE


def mask(*args: Any, q_length: int, allow_is_causal_skip: bool = True, **kwargs: Any) -> Tensor | None:
    """As for the fused kernels; but in a step, looking whether all is visible would wait for the device.

    Where nothing is padded, `attention` needs no mask for the places after a beginning that was read before.
    """
    padded = kwargs.get("attention_mask") is not None
    whole = allow_is_causal_skip and not padded and kwargs.get("local_size") is None
    if whole and kwargs["kv_length"] > q_length > 1:
        return None
    skip = allow_is_causal_skip and not (padded and q_length == 1)
    visible: Tensor | None = sdpa_mask(*args, q_length=q_length, allow_is_causal_skip=skip, **kwargs)
    return visible
