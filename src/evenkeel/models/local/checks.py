"""Proof that a model is causal: what comes later must not move the log-probabilities before it.

A model that reads to the right sees the target that it is to predict, and gives it a high probability.
"""

from __future__ import annotations

import re
from typing import Any

import torch

from evenkeel.errors import UsageError
from evenkeel.models.local.causal import Causal

EXPECTED = "hf: needs a causal language model, such as LlamaForCausalLM or GPT2LMHeadModel"

OTHER_HEADS = re.compile(
    r"For(MaskedLM|SequenceClassification|TokenClassification|QuestionAnswering|MultipleChoice"
    r"|NextSentencePrediction)$"
)

TEXT = (
    "The quick brown fox jumps over the lazy dog, and 12 boats sail to the harbour at dawn. "
    "Быстрая лиса и 7 лодок. 敏捷的狐狸跳过懒狗。"
)
LENGTHS = (2, 3, 8, 32)
"""The last token is then never the first of a block, whatever power of two a model's blocks are long."""

PADDING = 3

TOLERANCE = {torch.float32: 1e-3, torch.float16: 0.02, torch.bfloat16: 0.05}
"""How far logits may move, in units of their standard deviation over the vocabulary: rounding only."""

HALF_DRIFT = 0.25
"""How far padding may move the logits in half precision, in the same units."""


def check_config(spec: str, config: Any) -> None:
    """Refuse what is an encoder-decoder model by its config, whichever part of it could be loaded."""
    if config.is_encoder_decoder:
        name = ", ".join(config.architectures or ()) or type(config).__name__
        raise UsageError(f"{spec}: {name} is an encoder-decoder model; {EXPECTED}.")


def check_causal(causal: Causal) -> None:
    """Refuse a model that was saved with another head, or in which a later token moves earlier logits."""
    from transformers import MODEL_FOR_MASKED_LM_MAPPING

    config, class_name = causal.model.config, type(causal.model).__name__
    if other := next((name for name in config.architectures or () if OTHER_HEADS.search(name)), None):
        raise UsageError(f"{causal.spec}: its config names {other}, which is not causal; {EXPECTED}.")
    decodes = getattr(config, "is_decoder", False) or getattr(config, "causal", False)
    if type(config) in MODEL_FOR_MASKED_LM_MAPPING and not decodes:
        raise UsageError(f"{causal.spec}: {class_name} is not causal: it reads both ways; {EXPECTED}.")
    trials = [(rows, 0) for rows in probes(causal)]
    if causal.pads:  # with padding, the attention may run on another path
        trials += [(rows, PADDING) for rows, _ in trials[-2:]]
    for (row, changed, again), padding in trials:
        # A router of experts may tip over at a rounding error, or count the tokens of a whole batch: so
        # what moves in company has to move alone too, and under another token.
        if moves(causal, [row, changed], padding) and all(
            beyond_rounding(*(logits_before(causal, [each], padding)[0] for each in (row, other)))
            for other in (changed, again)
        ):
            raise UsageError(
                f"{causal.spec}: {class_name} is not causal: in a text of {len(row)} tokens, another last "
                f"token changes the log-probabilities before it; {EXPECTED}."
            )


def reads_padded(causal: Causal) -> bool:
    """Whether padding on the left leaves a text's logits as they are, also in a step after the first reading.

    It does not where positions are counted from the first place, padded or not, where a recurrent state
    runs over the padding, or where the step's mask is made wrongly. In half precision rounding moves
    logits too, and a router of experts tips over; what moves them everywhere still shows.
    """
    drifts = [padding_drift(causal, row) for row, *_ in probes(causal)[-2:]]
    if causal.model.dtype == torch.float32:
        return max(drifts) < TOLERANCE[torch.float32]
    return min(drifts) < HALF_DRIFT


@torch.inference_mode()
def padding_drift(causal: Causal, row: list[int]) -> float:
    """How far padding moves logits, in their standard deviations: in a reading, or in the step after it."""
    ids, mask = causal.pad([row])
    plain = causal.forward(ids, mask, keep=len(row), use_cache=False).logits.float()
    ids, mask = (torch.nn.functional.pad(each, (PADDING, 0)) for each in (ids, mask))
    begun = causal.forward(ids[:, :-1], mask[:, :-1], keep=len(row) - 1)
    ended = causal.forward(ids if begun.cache is None else ids[:, -1:], mask, cache=begun.cache)
    padded = torch.cat([begun.logits, ended.logits[:, -1:]], 1).float()
    moved = ((plain - padded) / plain.std(-1, keepdim=True))[0].square().mean(-1).sqrt()
    return max(float(moved[:-1].mean()), float(moved[-1]))


def probes(causal: Causal) -> list[tuple[list[int], list[int], list[int]]]:
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


def moves(causal: Causal, rows: list[list[int]], padding: int) -> bool:
    one, other = logits_before(causal, rows, padding)
    return beyond_rounding(one, other)


@torch.inference_mode()
def logits_before(causal: Causal, rows: list[list[int]], padding: int) -> torch.Tensor:
    """The logits of rows of one length before each one's last token, in its model's own precision."""
    ids, mask = (torch.nn.functional.pad(each, (padding, 0)) for each in causal.pad(rows))
    return causal.forward(ids, mask, keep=len(rows[0]), use_cache=False).logits[:, :-1]


def beyond_rounding(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether logits differ by more than rounding. NaN proves nothing; reading such a text is an error."""
    tolerance = TOLERANCE.get(one.dtype, TOLERANCE[torch.bfloat16])
    one, other = one.float(), other.float()
    return bool(((one - other).abs() > tolerance * one.std(-1, keepdim=True)).any())
