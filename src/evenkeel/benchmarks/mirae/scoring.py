"""How alike are the answers to one prompt? The published figures of MIRAE, as pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def cosine_matrix(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """All pairwise cosines: Sᵢⱼ = vᵢ·vⱼ / (‖vᵢ‖‖vⱼ‖), in float32 as the published script computes them."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(norms == 0, np.float32(1), norms)
    matrix: NDArray[np.float32] = (unit @ unit.T).astype(np.float32, copy=False)
    return matrix


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
