"""Embeddings as they are stored (little-endian float32), and which of them can be compared.

A cosine needs a direction. A vector of zeros has none, and numbers that overflow, vanish or are NaN lead to
a cosine of 0 that no model gave. So such a vector is `unparsed`, and so is one of another size than the
others of its embedder, whichever backend it came from and however it was stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from sealegs.types import Response

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SMALLEST, LARGEST = 2.0**-126, 3.4028234e38
"""The range of float32 without loss of digits, for the square of a vector's length."""


def vector_problem(vector: bytes) -> str:
    """Why a vector has no direction; empty where it has one."""
    import numpy as np

    if not vector or len(vector) % 4:
        return f"the vector has {len(vector)} bytes, which are not float32 numbers"
    numbers = np.frombuffer(vector, dtype="<f4").astype(np.float64)
    if not np.isfinite(numbers).all():
        return "the vector is not finite"
    squared = float(numbers @ numbers)
    if not squared:
        return "the vector is all zeros"
    if not SMALLEST <= squared <= LARGEST:
        return f"the vector's length of {squared**0.5:.0e} is out of range"
    return ""


def usable(responses: Iterable[Response]) -> list[Response]:
    """One embedder's responses, with `unparsed` for every vector that cannot be compared with the others.

    The size that most vectors have is the embedder's.
    """
    checked = [_checked(response) for response in responses]
    sizes = Counter(len(response.vector) for response in checked if response.vector)
    ((size, _),) = sizes.most_common(1) or ((0, 0),)
    return [
        response
        if response.vector is None or len(response.vector) == size
        else _unusable(
            response, f"the vector has {len(response.vector) // 4:,} numbers, the others {size // 4:,}"
        )
        for response in checked
    ]


def _checked(response: Response) -> Response:
    if response.vector is None:
        return response
    ok = response.status == "ok"
    problem = vector_problem(response.vector) if ok else response.reason or response.status
    return _unusable(response, problem) if problem else response


def _unusable(response: Response, problem: str) -> Response:
    status = "unparsed" if response.status == "ok" else response.status
    return msgspec.structs.replace(response, status=status, vector=None, reason=problem)


def unit_vector(vector: bytes) -> NDArray[np.float64]:
    """A usable vector at length one: the product of two of them is their cosine."""
    import numpy as np

    numbers = np.frombuffer(vector, dtype="<f4").astype(np.float64)
    return numbers / np.linalg.norm(numbers)
