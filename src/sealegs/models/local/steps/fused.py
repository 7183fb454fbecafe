"""Norms, rotations, activations and the softmax of a step in half precision on a GPU, each as one kernel.

One operation at a time, as the models' own code computes them, they took a quarter of the time of a long
prompt, all of it spent on moving numbers. The kernels round where that code rounds. A part of a model is
replaced only where its kernel gives the same digits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn
from triton.language.extra import libdevice

NUMBERS = 4096
"""That one program of a kernel computes, about."""

SHORT = 1024
"""Scores of a line for which one compiled kernel does, which takes longer to compile than all of them."""

ROTATION = "apply_rotary_pos_emb"
"""What the attention of transformers' models calls to turn queries and keys by their positions."""


def use_fused_kernels(model: Any) -> int:
    """Replace the parts of a model that a kernel computes; how many those were."""
    parts = [(each, _norm_of(each) or _gated_of(each) or _turning_of(each)) for each in model.modules()]
    fused = [(module, forward) for module, forward in parts if forward is not None]
    for module, forward in fused:
        module.forward = forward
        module.masked_softmax = masked_softmax
    return len(fused)


def _norm_of(module: Any) -> Callable[..., Tensor] | None:
    weight, epsilon = getattr(module, "weight", None), getattr(module, "variance_epsilon", None)
    if not isinstance(epsilon, float) or not isinstance(weight, Tensor) or weight.ndim != 1:
        return None
    fused, x = partial(rms_norm, weight=weight, epsilon=epsilon), _random(weight, 1, 50, len(weight))
    return fused if torch.equal(module(x), fused(x)) else None


def _gated_of(module: Any) -> Callable[..., Tensor] | None:
    names = ("gate_proj", "up_proj", "down_proj")
    activation = getattr(module, "act_fn", None)
    if activation is None or not all(isinstance(getattr(module, name, None), nn.Linear) for name in names):
        return None
    gate, up, down = (getattr(module, name) for name in names)

    def fused(x: Tensor) -> Tensor:
        result: Tensor = down(gated(gate(x), up(x)))
        return result

    x = 4 * _random(gate.weight, 1, 50, gate.in_features)
    pairs = (activation(x), gated(x.clone(), torch.ones_like(x))), (module(x), fused(x))
    return fused if all(torch.equal(one, other) for one, other in pairs) else None


def _turning_of(module: Any) -> Callable[..., Any] | None:
    """The forward of an attention, with a kernel where it turns queries and keys."""
    forward, size = type(module).forward, getattr(module, "head_dim", None)
    theirs = getattr(forward, "__globals__", {}).get(ROTATION)
    if theirs is None or ROTATION not in forward.__code__.co_names or not isinstance(size, int):
        return None

    def turned_or_theirs(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, *rest: Any, **kwargs: Any) -> Any:
        fits = q.dtype == k.dtype == cos.dtype == sin.dtype and q.shape[-1] == k.shape[-1] == cos.shape[-1]
        if rest or kwargs or not fits:
            return theirs(q, k, cos, sin, *rest, **kwargs)
        return turned(q, cos, sin), turned(k, cos, sin)

    like = next(module.parameters())
    trial = (*_random(like, 2, 2, 3, 5, size), *_random(like, 2, 2, 5, size))
    if not all(map(torch.equal, theirs(*trial), turned_or_theirs(*trial))):
        return None
    names = {**forward.__globals__, ROTATION: turned_or_theirs}
    own = FunctionType(forward.__code__, names, "forward", forward.__defaults__, forward.__closure__)
    own.__kwdefaults__ = forward.__kwdefaults__
    return MethodType(own, module)


def _random(like: Tensor, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(like)


def rms_norm(x: Tensor, *, weight: Tensor, epsilon: float) -> Tensor:
    """x / sqrt(mean(x²) + epsilon) · weight, over the last dimension. The mean, whose digits depend on the
    order of its sum, is torch's own."""
    x = x.contiguous()
    squares, result, width = torch.empty_like(x, dtype=torch.float32), torch.empty_like(x), x.shape[-1]
    _launch(_square, triton.cdiv(x.numel(), NUMBERS), x, squares, x.numel(), NUMBERS)
    means, block = squares.mean(-1, keepdim=True), triton.next_power_of_2(width)
    count, lines = means.numel(), max(1, NUMBERS // block)
    _launch(_scale, triton.cdiv(count, lines), x, means, weight, result, count, width, epsilon, lines, block)
    return result


def gated(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) · up, which takes the place of `gate`."""
    _launch(_gate, triton.cdiv(gate.numel(), NUMBERS), gate, up, gate.numel(), NUMBERS)
    return gate


def turned(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Heads (rows, heads, places, size), in each of which the pairs of both halves are turned."""
    rows, count, places, size = heads.shape
    cos, sin = (each.expand(rows, places, size).contiguous() for each in (cos, sin))
    by_place = heads.transpose(1, 2).contiguous()  # as the projection gave it
    result, blocks = torch.empty_like(by_place), map(triton.next_power_of_2, (count, size))
    _launch(_turn, rows * places, by_place, cos, sin, result, count, size, *blocks)
    return result.transpose(1, 2)


def masked_softmax(
    scores: Tensor, mask: Tensor, scaling: float, dtype: torch.dtype, slots: Tensor | None, rows: int
) -> Tensor:
    """softmax(scores · scaling) over the places that a mask of (rows, places) shows.

    Scores are of (prompts, groups, rows · heads, width): for each prompt and group of heads, the heads of the
    `rows` that continue it. Those are the rows in `slots`, or else follow one another.
    """
    result, (_, groups, lines, width) = torch.empty_like(scores, dtype=dtype), scores.shape
    sizes = (mask.shape[-1], width, scaling, groups, rows, lines // rows)
    order = (mask, False) if slots is None else (slots, True)
    block = triton.next_power_of_2(max(width, SHORT))
    _launch(_soften, scores.numel() // width, scores, mask, order[0], result, *sizes, order[1], block)
    return result


def _launch(kernel: Any, programs: int, *args: Any) -> None:
    with torch.cuda.device(args[0].device):
        kernel[(programs,)](*args, num_warps=8, enable_fp_fusion=False)


# Triton would take the types of parameters for names that the kernel uses.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"


@triton.jit
def _square(x, result, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    numbers = tl.load(x + at, mask=at < count, other=0.0).to(tl.float32)
    tl.store(result + at, numbers * numbers, mask=at < count)


@triton.jit(do_not_specialize=["count"])
def _scale(x, means, weight, result, count, width, epsilon, LINES: tl.constexpr, WIDTH: tl.constexpr):
    kind = result.dtype.element_ty
    line = tl.program_id(0).to(tl.int64) * LINES + tl.arange(0, LINES)[:, None]
    place = tl.arange(0, WIDTH)[None, :]
    inside = (line < count) & (place < width)
    numbers = tl.load(x + line * width + place, mask=inside, other=0.0).to(tl.float32)
    factors = tl.rsqrt(tl.load(means + line, mask=line < count, other=0.0) + epsilon)
    scaled = (numbers * factors).to(kind).to(tl.float32)
    weights = tl.load(weight + place, mask=place < width, other=0.0).to(tl.float32)
    tl.store(result + line * width + place, (scaled * weights).to(kind), mask=inside)


@triton.jit
def _gate(gate, up, count, BLOCK: tl.constexpr):
    kind = gate.dtype.element_ty
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(gate + at, mask=at < count, other=0.0).to(tl.float32)
    activated = tl.div_rn(x, 1.0 + libdevice.exp(-x)).to(kind).to(tl.float32)
    factors = tl.load(up + at, mask=at < count, other=0.0).to(tl.float32)
    tl.store(gate + at, (activated * factors).to(kind), mask=at < count)


@triton.jit
def _turn(x, cos, sin, result, heads, size, HEADS: tl.constexpr, SIZE: tl.constexpr):
    """All heads of one place."""
    kind = result.dtype.element_ty
    number = tl.program_id(0).to(tl.int64)
    head, at = tl.arange(0, HEADS)[:, None], tl.arange(0, SIZE)[None, :]
    first, inside = (number * heads + head) * size, (head < heads) & (at < size)
    numbers = tl.load(x + first + at, mask=inside, other=0.0).to(tl.float32)
    across = at + tl.where(at < size // 2, size // 2, -(size // 2))
    others = tl.load(x + first + across, mask=inside, other=0.0).to(tl.float32)
    others = tl.where(at < size // 2, -others, others)
    cosines = tl.load(cos + number * size + at, mask=at < size, other=0.0).to(tl.float32)
    sines = tl.load(sin + number * size + at, mask=at < size, other=0.0).to(tl.float32)
    turned = (numbers * cosines).to(kind).to(tl.float32) + (others * sines).to(kind).to(tl.float32)
    tl.store(result + first + at, turned.to(kind), mask=inside)


@triton.jit(do_not_specialize=["places", "width", "groups", "rows", "heads"])
def _soften(
    scores, mask, slots, result, places, width, scaling, groups, rows, heads,
    SLOTS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """One line of scores; see `masked_softmax`."""
    line, at = tl.program_id(0).to(tl.int64), tl.arange(0, WIDTH)
    row = line // (groups * rows * heads) * rows + line // heads % rows
    if SLOTS:
        row = tl.load(slots + row)
    seen = tl.load(mask + row * places + at, mask=at < places, other=0) != 0
    numbers = tl.load(scores + line * width + at, mask=seen, other=0.0) * scaling
    numbers = tl.where(seen, numbers, float("-inf"))
    powers = tl.exp(numbers - tl.max(numbers, axis=0))
    shares = powers / tl.sum(powers, axis=0)
    tl.store(result + line * width + at, shares.to(result.dtype.element_ty), mask=at < width)
