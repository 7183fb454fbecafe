"""MIRON's measures: pure functions of a generated text and of log-probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence

RIGHT = 80.0
"""The Levenshtein score from which a continuation counts as the right one."""
SURE = 50.0
"""The confidence from which a model counts as sure of the true continuation."""


def lev_score(generated: str, target: str) -> float:
    """The published score: (1 − Lev(generated, target) / max(|generated|, |target|)) × 100.

    Lev counts insertions, deletions and substitutions of characters. Two empty texts are alike: 100.
    """
    from rapidfuzz.distance import Levenshtein

    return 100 * Levenshtein.normalized_similarity(generated, target)


def target_confidence(logprobs: Sequence[float]) -> float:
    """The published confidence: exp(mean of log P(token | what stands before it)) × 100; 0 for no token."""
    return 100 * math.exp(math.fsum(logprobs) / len(logprobs)) if logprobs else 0.0


def bits_per_byte(logprobs: Sequence[float], target: str) -> float:
    """−Σ log₂ P(token) over the bytes of the target in UTF-8: what it costs to spell, in any tokenizer."""
    return -math.fsum(logprobs) / math.log(2) / len(target.encode())


def quadrant(score: float, confidence: float) -> str:
    """What a score and a confidence tell together.

    `knows`: right and sure. `doubts`: right, though the probability is spread over other ways to go on or
    to spell it. `slips`: sure of the true continuation, and yet writes another. `does_not_know`: neither.
    """
    if score >= RIGHT:
        return "knows" if confidence >= SURE else "doubts"
    return "slips" if confidence >= SURE else "does_not_know"


def first_words(text: str, count: int) -> str:
    """A text up to the end of its `count`-th word, the spaces before it included."""
    end = 0
    for _ in range(count):
        while end < len(text) and text[end].isspace():
            end += 1
        while end < len(text) and not text[end].isspace():
            end += 1
    return text[:end]
