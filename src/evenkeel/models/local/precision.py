"""How much the digits of a text depend on what shares its batch."""

from __future__ import annotations

from dataclasses import replace

from evenkeel.models.local import batching
from evenkeel.models.local.causal import Causal
from evenkeel.models.local.loglikelihood import loglikelihoods, pair_of

TEXT = (
    "In the harbour below the old town the boats come in at dawn with 27 crates of fish, and the captain "
    "says that nothing on this coast is older than the light on the northern pier"
)
TEXTS = 12
WORDS = 3
"""Words that are scored in each text."""
BESIDE = 4
"""Texts of equal length, with another first token, that each is read together with."""


def precision_notes(causal: Causal) -> list[str]:
    """What the rows beside a text do to its digits, measured on this model and device.

    In full precision nothing that a figure shows, except on a CPU where rows cannot be joined: experts that
    compute with few rows, say.
    """
    dtype = str(causal.model.dtype).removeprefix("torch.")
    on_cpu = causal.device.type == "cpu"
    if dtype not in ("bfloat16", "float16") and (causal.joins or not on_cpu):
        return []
    if on_cpu:
        with batching.cpu_pool(1) as pool:
            difference = pool.submit(batch_dependence, causal).result()
    else:
        difference = batch_dependence(causal)
    if on_cpu and not difference:
        return []
    return [
        f"Computed in {dtype}: answers depend on what shares a batch. Log-probabilities of "
        f"{TEXTS} short texts differ by up to {difference:.2g} between reading them "
        "alone and together; --model-arg deterministic=true reads every text alone."
    ]


def batch_dependence(causal: Causal) -> float:
    """The largest difference of a log-probability between short texts read alone and in one batch.

    In half precision, what shares a batch changes how sums are rounded. The texts have 1, 3, 5, … words
    before the scored ones, so that most of them are padded in the batch; on a CPU, where nothing is padded,
    they share it with others of equal length.
    """
    words = TEXT.split()
    pairs = []
    for length in range(1, 2 * TEXTS, 2):
        target = " ".join(words[length : length + WORDS])
        pair = pair_of(causal, " ".join(words[:length]), f" {target}")
        if pair and pair.target and len(pair.ids) <= (causal.context or len(pair.ids)):
            pairs.append(pair)
    alone = [value for pair in pairs for value in loglikelihoods(causal, [pair])[0].values]
    others = [
        replace(pair, ids=(token, *pair.ids[1:])) for pair in pairs for token in pairs[-1].ids[1 : 1 + BESIDE]
    ]
    together = loglikelihoods(causal, [*pairs, *others])[: len(pairs)] if pairs else []
    joint = [value for logprobs in together for value in logprobs.values]
    return max((abs(one - other) for one, other in zip(alone, joint, strict=True)), default=0.0)
