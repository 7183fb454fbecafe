"""Whether a checkpoint holds the tensors of its model: transformers fills in random ones for the missing.

What counts as missing or unexpected is what transformers itself reports: not tied weights, nor buffers
that are computed, nor what a model's class declares to be ignored.
"""

from __future__ import annotations

import contextlib
import functools
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from evenkeel.errors import UsageError

NAMED = 5
"""Tensors that an error names of each kind."""


class Loading(NamedTuple):
    """What came of loading one model."""

    model: Any
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    mismatched: tuple[str, ...]
    """Each with its shape in the file and in the model."""


@contextlib.contextmanager
def watched_loading() -> Iterator[list[Loading]]:
    """Collect what transformers reports of every model that is loaded inside, whoever calls it.

    A tensor of another shape is then reported too, where transformers would raise without naming it.
    """
    from transformers import PreTrainedModel

    loadings: list[Loading] = []
    original = PreTrainedModel.__dict__["from_pretrained"]

    @functools.wraps(original.__func__)
    def from_pretrained(cls: type[Any], *args: Any, **kwargs: Any) -> Any:
        wants_info = kwargs.pop("output_loading_info", False)
        kwargs |= {"output_loading_info": True, "ignore_mismatched_sizes": True}
        try:
            model, info = original.__func__(cls, *args, **kwargs)
        except RuntimeError as error:
            if names := unconverted(error):
                raise RuntimeError(f"{listed(names)} not whole in the checkpoint") from error
            raise
        mismatched = (
            f"{name}: {list(stored)} in the file, {list(expected)} in the model"
            for name, stored, expected in info["mismatched_keys"]
        )
        loadings.append(
            Loading(
                model,
                tuple(sorted(info["missing_keys"])),
                tuple(sorted(info["unexpected_keys"])),
                tuple(sorted(mismatched)),
            )
        )
        return (model, info) if wants_info else model

    PreTrainedModel.from_pretrained = classmethod(from_pretrained)
    try:
        yield loadings
    finally:
        PreTrainedModel.from_pretrained = original


def unconverted(error: RuntimeError) -> tuple[str, ...]:
    """The tensors that could not be put together from the checkpoint's: experts, one of which is missing.

    transformers writes their names into a report that is only logged, so they are read where it failed.
    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if names := getattr(frame.f_locals.get("loading_info"), "conversion_errors", None):
            return tuple(sorted(names))
    return ()


def check_tensors(spec: str, place: Path, loadings: Iterable[Loading]) -> None:
    """Refuse a checkpoint whose tensors are not those of the model, naming them."""
    for model, *differing in loadings:
        kinds = ("missing, and would be random", "unexpected", "of another shape")
        parts = [f"{listed(names)} {kind}" for names, kind in zip(differing, kinds, strict=True) if names]
        if parts:
            saved = ", ".join(model.config.architectures or ())
            class_name = type(model).__name__
            saved_as = f" (its config names {saved})" if saved and saved != class_name else ""
            raise UsageError(
                f"{spec}: the tensors in {place}{saved_as} are not those of {class_name}: "
                f"{'; '.join(parts)}. Name a complete checkpoint of that class."
            )


def listed(names: tuple[str, ...]) -> str:
    """`2 tensors (a, b) are`: the first few, and how many there are."""
    shown = ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")
    return f"{len(names):,} tensors ({shown}) are" if len(names) > 1 else f"1 tensor ({shown}) is"


def without_unused_heads(loading: Loading) -> Loading:
    """Without what a checkpoint holds beyond an encoder: a head for masked words, say, which is not used.

    What belongs to a part that the model has (a layer too many) stays unexpected.
    """
    prefix = f"{loading.model.base_model_prefix}."
    parts = {name for name, _ in loading.model.named_children()}
    inside = (name for name in loading.unexpected if name.removeprefix(prefix).split(".")[0] in parts)
    return loading._replace(unexpected=tuple(inside))
