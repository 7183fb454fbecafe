"""MIRAE's published formulas (https://github.com/greatgompang/MIRAE): cosines between a prompt's answers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def cosine_matrix(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """All pairwise cosines: Sᵢⱼ = vᵢ·vⱼ / (‖vᵢ‖‖vⱼ‖), in float32 as the published script computes them."""
    normed = unit(vectors)
    return normed @ normed.T


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row divided by its length; a row of zeros stays as it is."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: NDArray[np.float32] = (vectors / np.where(norms == 0, 1, norms)).astype(np.float32, copy=False)
    return result


def similarity(matrix: NDArray[np.float32]) -> dict[str, float] | None:
    """Mean, population standard deviation, maximum and minimum of the matrix above its diagonal.

    None for fewer than two answers: there is nothing to compare.
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
