"""MIRON's published formulas (https://huggingface.co/datasets/apsua/MIRON_Benchmark), to the digit."""

from __future__ import annotations

import math
from collections.abc import Sequence


def lev_score(generated: str, target: str) -> float:
    """The published score: (1 − Lev(generated, target) / max(|generated|, |target|)) × 100.

    Lev counts insertions, deletions and substitutions of characters. Two empty texts are equal: 100.
    """
    from rapidfuzz.distance import Levenshtein

    return 100 * Levenshtein.normalized_similarity(generated, target)


def target_confidence(logprobs: Sequence[float]) -> float:
    """The published confidence: exp(mean of log P(token | the text before it)) × 100; 0 for no token."""
    return 100 * math.exp(math.fsum(logprobs) / len(logprobs)) if logprobs else 0.0
