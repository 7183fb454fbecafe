"""How alike are answers? MIRAE's published figures and what stands beside them, as pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row divided by its length; a row of zeros stays as it is."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: NDArray[np.float32] = (vectors / np.where(norms == 0, 1, norms)).astype(np.float32, copy=False)
    return result


def cosine_matrix(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """All pairwise cosines: Sᵢⱼ = vᵢ·vⱼ / (‖vᵢ‖‖vⱼ‖), in float32 as the published script computes them."""
    normed = unit(vectors)
    return normed @ normed.T


def similarity(matrix: NDArray[np.float32]) -> dict[str, float] | None:
    """Mean, population standard deviation, maximum and minimum of the matrix above its diagonal.

    None for fewer than two answers: one answer is not alike or unlike anything.
    """
    n = len(matrix)
    if n < 2:
        return None
    pairs = matrix[np.triu_indices(n, k=1)]
    return {
        "mean_similarity": float(pairs.mean()),
        "std_similarity": float(pairs.std()),
        "max_similarity": float(pairs.max()),
        "min_similarity": float(pairs.min()),
    }


def cross_similarity(first: NDArray[np.float32], second: NDArray[np.float32]) -> float:
    """The mean cosine of all pairs of one answer from `first` and one from `second`."""
    return float((unit(first) @ unit(second).T).mean())


def drift_gap(within_first: float, within_second: float, across: float) -> float:
    """gap = (W₁ + Wₖ) / 2 − C₁ₖ: likeness within either level, less likeness across them.

    Sampling alone lowers all three alike, so the gap is zero where growing the prompt changes nothing.
    """
    return (within_first + within_second) / 2 - across


def meanings(matrix: NDArray[np.float32], distance: float) -> list[int]:
    """A group number for each answer: two are of one meaning if a chain of steps no longer than
    `distance` (1 − cosine) leads from one to the other."""
    reach = matrix >= 1 - distance
    np.fill_diagonal(reach, True)
    while not np.array_equal(further := reach @ reach, reach):
        reach = further
    leaders = [int(np.argmax(row)) for row in reach]
    numbers = {leader: number for number, leader in enumerate(dict.fromkeys(leaders))}
    return [numbers[leader] for leader in leaders]


def semantic_entropy(groups: Sequence[int]) -> float:
    """H = −Σ pₖ ln pₖ over the meanings' shares (Kuhn, Gal & Farquhar 2023, the discrete form)."""
    shares = [count / len(groups) for count in Counter(groups).values()]
    return -sum(share * log(share) for share in shares)


def duplicates(texts: Sequence[str]) -> float:
    """The share of answers that repeat an earlier one to the letter."""
    return 1 - len(set(texts)) / len(texts)


def matched(queries: NDArray[np.float32], translations: NDArray[np.float32]) -> float:
    """The share of sentences whose nearest translation is their own: does an embedder read a language?"""
    nearest = (unit(translations) @ unit(queries).T).argmax(axis=1)
    return float((nearest == np.arange(len(queries))).mean())


def mean_of_windows(vectors: NDArray[np.float32], lengths: Sequence[int]) -> NDArray[np.float32]:
    """One vector for a text from those of its windows, weighed by their lengths."""
    averaged: NDArray[np.float32] = np.average(unit(vectors), axis=0, weights=lengths).astype(np.float32)
    return averaged
