"""Options that the backends of this machine share, and which of them enter a model's identity."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from sealegs.options import RUNTIME, identity_options

OMIT_IF_UNSET = ("rank_template", "top_p", "top_k")
"""Options that came after the first runs were stored."""

Dtype: TypeAlias = Annotated[
    Literal["auto", "float32", "bfloat16", "float16"],
    Meta(description="number format of the weights; auto: as they are stored"),
]
Device: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$",
        description="auto (a GPU where there is one), cpu, cuda, cuda:N or mps",
        extra=RUNTIME,
    ),
]
Concurrency: TypeAlias = Annotated[
    Annotated[int, Meta(ge=1)] | None,
    Meta(
        description="rows in one batch at most; by default up to 128 on CPU, on CUDA by the free memory",
        extra=RUNTIME,
    ),
]
BatchTokens: TypeAlias = Annotated[
    Annotated[int, Meta(ge=1)] | None,
    Meta(description="padded tokens in one batch at most; by default chosen by device", extra=RUNTIME),
]
Revision: TypeAlias = Annotated[str | None, Meta(description="branch, tag or commit of a Hub model")]
RemoteCode: TypeAlias = Annotated[bool, Meta(description="run Python code that comes with the model")]


def precision_notes(dtype: Any) -> list[str]:
    """Half precision is noted with a run: what shares a batch changes how sums are rounded."""
    if dtype.itemsize > 2:
        return []
    name = str(dtype).removeprefix("torch.")
    return [
        f"Computed in {name}: answers depend on what shares a batch; --model-arg concurrency=1 reads every "
        "text alone."
    ]


def chosen_options(options: Struct) -> dict[str, Any]:
    """The options that enter a model's identity: later ones only where they are chosen, so that the identity
    of all other runs stays what it was before there was such a choice."""
    values = identity_options(options)
    return {name: value for name, value in values.items() if name not in OMIT_IF_UNSET or value}
