"""What a loaded model must pass: every tensor is in its checkpoint, and no later token moves earlier logits.

transformers fills in random numbers for missing tensors. What counts as missing or unexpected is what it
reports itself: not tied weights, nor buffers that are computed, nor what a model's class ignores.

A model that reads to the right sees the target that it is to predict, and gives it a high probability.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sealegs.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

    from sealegs.models.local.causal import Causal

TENSORS_NAMED = 5
"""Tensors of each kind that an error names."""

EXPECTED = "hf: needs a causal language model, such as LlamaForCausalLM or GPT2LMHeadModel"

TEXT = (
    "The quick brown fox jumps over the lazy dog, and 12 boats sail to the harbour at dawn. "
    "Быстрая лиса и 7 лодок. 敏捷的狐狸跳过懒狗。"
)
LENGTHS = (2, 3, 8, 32)
"""The last token is then never the first of a block, whatever power of two a model's blocks are long."""

PADDING = 3

TOLERANCE = {"float32": 1e-3, "float16": 0.02, "bfloat16": 0.05}
"""How far rounding may move logits, in units of their standard deviation over the vocabulary."""

HALF_DRIFT = 0.25
"""How far padding may move the logits in half precision, in the same units."""


class Loading(NamedTuple):
    """What transformers reports of loading one model."""

    model: Any
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    mismatched: tuple[str, ...]
    """Each with its shape in the file and in the model."""


REPORTED: dict[str, Any] = {"output_loading_info": True, "ignore_mismatched_sizes": True}
"""Arguments of `from_pretrained` for a report of its loading, in which tensors of another shape are named
too, where transformers would raise without naming them."""


def loading_of(model: Any, info: Mapping[str, Any]) -> Loading:
    """transformers' report in lists of names."""
    mismatched = (
        f"{name}: {list(stored)} in the file, {list(expected)} in the model"
        for name, stored, expected in info["mismatched_keys"]
    )
    keys = (info["missing_keys"], info["unexpected_keys"], mismatched)
    return Loading(model, *(tuple(sorted(names)) for names in keys))


def check_tensors(spec: str, path: Path, loading: Loading) -> None:
    """Refuse a checkpoint whose tensors are not those of the model, naming them."""
    kinds = ("missing, and would be random", "unexpected", "of another shape")
    model, *differing = loading
    parts = [f"{_listed(names)} {kind}" for names, kind in zip(differing, kinds, strict=True) if names]
    if parts:
        saved = ", ".join(model.config.architectures or ())
        class_name = type(model).__name__
        saved_as = f" (its config names {saved})" if saved and saved != class_name else ""
        raise UsageError(
            f"{spec}: the tensors in {path}{saved_as} are not those of {class_name}: "
            f"{'; '.join(parts)}. Give a complete checkpoint of that class."
        )


def _listed(names: tuple[str, ...]) -> str:
    """`2 tensors (a, b) are`: the first few, and how many there are."""
    shown = ", ".join(names[:TENSORS_NAMED]) + (", …" if len(names) > TENSORS_NAMED else "")
    return f"{len(names):,} tensors ({shown}) are" if len(names) > 1 else f"1 tensor ({shown}) is"


def without_unused_heads(loading: Loading) -> Loading:
    """Drop from `loading.unexpected` the tensors outside of the encoder, such as a head for masked words.

    Surplus tensors of a part that the model has (a layer too many) stay listed.
    """
    prefix = f"{loading.model.base_model_prefix}."
    parts = {name for name, _ in loading.model.named_children()}
    inside = (name for name in loading.unexpected if name.removeprefix(prefix).split(".")[0] in parts)
    return loading._replace(unexpected=tuple(inside))


def check_config(spec: str, config: Any) -> None:
    """Refuse an encoder-decoder model by its config, whichever part of it could be loaded."""
    if config.is_encoder_decoder:
        name = ", ".join(config.architectures or ()) or type(config).__name__
        raise UsageError(f"{spec}: {name} is an encoder-decoder model; {EXPECTED}.")


def check_causal(causal: Causal) -> None:
    """Refuse a model in which a later token moves earlier logits."""
    trials = [(rows, 0) for rows in _probe_rows(causal)]
    if causal.can_pad:  # with padding, the attention may use another implementation
        trials += [(rows, PADDING) for rows, _ in trials[-2:]]
    for (row, *changed), padding in trials:
        # A router of experts may tip over at a rounding error, or count the tokens of a whole batch: so
        # what moves in a batch has to move alone too, and under another last token.
        if _differ(*_logits_before_last(causal, [row, changed[0]], padding)) and all(
            _differ(*(_logits_before_last(causal, [each], padding)[0] for each in (row, other)))
            for other in changed
        ):
            name = type(causal.model).__name__
            raise UsageError(
                f"{causal.spec}: {name} is not causal: in a text of {len(row)} tokens, another last token "
                f"changes the log-probabilities before it; {EXPECTED}."
            )


def _probe_rows(causal: Causal) -> list[tuple[list[int], list[int], list[int]]]:
    """Rows of each length, and each with two other last tokens, all from a text in several scripts."""
    ids = causal.tokenise(TEXT)
    distinct = [*dict.fromkeys(ids), 0, 1, 2]
    rows = []
    for length in LENGTHS:
        if length <= min(len(ids), causal.context or len(ids)):
            *before, last = ids[:length]
            first, second = [token for token in distinct if token != last][-2:]
            rows.append(([*before, last], [*before, first], [*before, second]))
    return rows


def _logits_before_last(causal: Causal, rows: list[list[int]], padding: int) -> Tensor:
    """The logits of rows of one length before each one's last token, in the model's own precision."""
    import torch

    with torch.inference_mode():
        ids, mask = (torch.nn.functional.pad(each, (padding, 0)) for each in causal.pad(rows))
        return causal.forward(ids, mask, keep=len(rows[0]), use_cache=False).logits[:, :-1]


def _differ(one: Tensor, other: Tensor) -> bool:
    """Whether logits differ by more than rounding. NaN proves nothing; reading such a text is an error."""
    tolerance = TOLERANCE.get(str(one.dtype).removeprefix("torch."), TOLERANCE["bfloat16"])
    one, other = one.float(), other.float()
    return bool(((one - other).abs() > tolerance * one.std(-1, keepdim=True)).any())


def check_positions(causal: Causal) -> None:
    """Refuse a model that does not count its first token as place 0, as decoders of RoBERTa's kind."""
    import torch

    for row, *_ in _probe_rows(causal)[:1]:
        ids, mask = causal.pad([row])
        with torch.inference_mode():
            expected = causal.model(input_ids=ids, return_dict=True).logits
            step = causal.forward(ids, mask, keep=len(row), use_cache=False, padded=False)
        if _differ(expected, step.logits):
            raise UsageError(
                f"{causal.spec}: {type(causal.model).__name__} does not count the places of a text from 0, "
                "which hf: cannot follow."
            )


def reads_padded(causal: Causal) -> bool:
    """Whether padding on the left leaves a text's logits as they are, also in a step after the first reading.

    It does not where positions are counted from the first place, padded or not, where a recurrent state
    runs over the padding, or where the step's mask is made wrongly. In half precision rounding moves
    logits too, and a router of experts tips over; what moves them everywhere still shows.
    """
    drifts = [_padding_drift(causal, row) for row, *_ in _probe_rows(causal)[-2:]]
    if causal.model.dtype.itemsize == 4:
        return all(drift < TOLERANCE["float32"] for drift in drifts)
    return any(drift < HALF_DRIFT for drift in drifts)


def _padding_drift(causal: Causal, row: list[int]) -> float:
    """How far padding moves logits, in their standard deviations: in a reading, or in the step after it.

    Not a number where either gives logits that are none.
    """
    import torch

    with torch.inference_mode():
        ids, mask = causal.pad([row])
        plain = causal.forward(ids, mask, keep=len(row), use_cache=False).logits.float()
        ids, mask = (torch.nn.functional.pad(each, (PADDING, 0)) for each in (ids, mask))
        reading = causal.forward(ids[:, :-1], mask[:, :-1], keep=len(row) - 1)
        step = causal.forward(ids if reading.cache is None else ids[:, -1:], mask, cache=reading.cache)
        padded = torch.cat([reading.logits, step.logits[:, -1:]], 1).float()
        moved = ((plain - padded) / plain.std(-1, keepdim=True))[0].square().mean(-1).sqrt()
        return float(torch.stack([moved[:-1].mean(), moved[-1]]).max())


def has_plain_cache(causal: Causal) -> bool:
    """Whether a model keeps nothing of a text but keys and values, of which any place can be masked out."""
    import torch

    from sealegs.models.local.steps.caches import is_plain

    with torch.inference_mode():
        ids, mask = causal.pad([_probe_rows(causal)[0][0]])
        return causal.can_mask_cache and is_plain(causal.forward(ids, mask).cache)


def joins_rows(causal: Causal) -> bool:
    """Whether texts of unequal length that were read apart can be continued together as they are alone.

    They cannot where the cache holds more than keys and values: such texts are continued together only where
    they are of equal length.
    """
    import torch

    from sealegs.models.local.steps.caches import is_plain

    rows = [row for row, *_ in _probe_rows(causal)[-2:]]
    if not (causal.can_mask_cache and causal.can_pad and len(rows) == 2):
        return False

    @torch.inference_mode()
    def step(texts: list[list[int]]) -> Tensor | None:
        reading = causal.read([text[:-1] for text in texts], [1] * len(texts))
        if not all(is_plain(cache) for cache, _ in reading.caches):
            return None
        _, mask = causal.pad(texts)
        cache = reading.join(range(len(texts)), [len(text) - 1 for text in texts])
        last = torch.tensor([text[-1:] for text in texts])
        return causal.forward(last, mask, cache=cache).logits

    causal.can_merge_cache = True
    together, alone = step(rows), [step([row]) for row in rows]
    return together is not None and not any(
        one is None or _differ(one, line[None]) for line, one in zip(together, alone, strict=True)
    )
