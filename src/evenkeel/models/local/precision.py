"""How far answers depend on the batch: in half precision, what shares one changes how sums are rounded."""

from __future__ import annotations

from evenkeel.models.local.causal import Causal
from evenkeel.models.local.loglikelihood import loglikelihoods, pair_of

TEXT = (
    "In the harbour below the old town the boats come in at dawn with 27 crates of fish, and the captain "
    "says that nothing on this coast is older than the light on the northern pier"
)
TEXTS = 12
TARGET = 3
"""Words that are scored in each text."""


def batch_dependence(causal: Causal) -> float:
    """The largest difference of a log-probability between short texts read alone and in one batch.

    The texts have 1, 3, 5, … words before the scored ones, so that most of them are padded in the batch.
    """
    words = TEXT.split()
    pairs = []
    for length in range(1, 2 * TEXTS, 2):
        prefix, target = " ".join(words[:length]), " ".join(words[length : length + TARGET])
        pair = pair_of(causal, prefix, f" {target}")
        if pair and pair.target and len(pair.ids) <= (causal.context or len(pair.ids)):
            pairs.append(pair)
    if not pairs:
        return 0.0
    alone = [loglikelihoods(causal, [pair])[0] for pair in pairs]
    return max(
        abs(one - other)
        for single, joint in zip(alone, loglikelihoods(causal, pairs), strict=True)
        for one, other in zip(single.values, joint.values, strict=True)
    )
