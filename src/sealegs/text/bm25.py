"""BM25 scores of documents against anchors, in Lucene's form, by the package bm25s.

    BM25(q, d) = Σ over the words w of q of idf(w) · tf(w, d) / (tf(w, d) + k1 · (1 - b + b · |d| / mean |d|))
    idf(w) = ln(1 + (N - n(w) + ½) / (n(w) + ½)),  k1 = 1.5, b = 0.75

A word counts as often as it is in the query. N, n(w) and the mean length are over the documents given. Scores
are those of one anchor at a time, never of all pairs, so that memory is bounded. A document that shares no
word with an anchor is not a candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sealegs.text.word_splitting import split

DIGITS = 9
"""Scores that differ by less are equal: sums in another order differ in their last bits."""
K1, B = 1.5, 0.75

Floats: TypeAlias = NDArray[np.float64]


def best(scores: Floats, k: int, first: int = 0) -> list[int]:
    """The documents with the `k` highest scores above 0; of equal ones, those from `first` on come first."""
    documents = np.flatnonzero(scores > 0)
    documents = np.roll(documents, -int(np.searchsorted(documents, first)))
    if len(documents) > k:
        high = scores[documents] >= np.partition(scores[documents], -k)[-k]
        documents = documents[high]
    ranked: list[int] = documents[np.argsort(-scores[documents], kind="stable")][:k].tolist()
    return ranked


def bm25_scores(
    anchors: Sequence[str], positives: Sequence[str], negatives: Sequence[str]
) -> tuple[Floats, Floats]:
    """The BM25 of each anchor, as the query, against its positive and against its negative.

    Words are counted over all distinct documents that are given (one task's).
    """
    indices = {text: index for index, text in enumerate(dict.fromkeys((*anchors, *positives, *negatives)))}
    scores = bm25_index(list(indices))
    pairs = np.array(
        [
            scores(indices[anchor])[[indices[positive], indices[negative]]]
            for anchor, positive, negative in zip(anchors, positives, negatives, strict=True)
        ]
    ).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def bm25_index(texts: Sequence[str], lang: str | None = None) -> Callable[[int], Floats]:
    """The scores of all documents against one of them, by its index."""
    import bm25s

    words = split(texts, lang)
    # Not with scipy, which may be there or not.
    index = bm25s.BM25(k1=K1, b=B, method="lucene", dtype="float64", backend="numpy", csc_backend="numpy")
    if any(words):
        index.index(words, show_progress=False)

    def scores(anchor: int) -> Floats:
        if not words[anchor]:
            return np.zeros(len(texts))
        row: Floats = np.round(index.get_scores(words[anchor]), DIGITS)
        return row

    return scores


def shared_counts(documents: Sequence[Sequence[str]]) -> Callable[[int], Floats]:
    """For one document, by its index, how many names each document shares with it."""
    holders: dict[str, list[int]] = {}
    for index, names in enumerate(documents):
        for name in dict.fromkeys(names):
            holders.setdefault(name, []).append(index)
    arrays = {name: np.array(indices, dtype=np.intp) for name, indices in holders.items()}

    def shared(anchor: int) -> Floats:
        row = np.zeros(len(documents))
        for name in dict.fromkeys(documents[anchor]):
            row[arrays[name]] += 1
        return row

    return shared
