"""BM25 scores of documents against anchors, in Lucene's form, by the package bm25s.

    BM25(q, d) = Σ over the words w of q of idf(w) · tf(w, d) / (tf(w, d) + k1 · (1 - b + b · |d| / mean |d|))
    idf(w) = ln(1 + (N - n(w) + ½) / (n(w) + ½)),  k1 = 1.5, b = 0.75

A word counts as often as it is in the query. N, n(w) and the mean length are over the documents given. Scores
are those of one anchor at a time, never of all pairs, so that memory is bounded. A document that shares no
word with an anchor is not a candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenkeel.text.word_splitting import split

DIGITS = 9
"""Scores that differ by less are equal: sums in another order differ in their last bits."""
K1, B = 1.5, 0.75

Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]


class Candidate(NamedTuple):
    """A document, by its index in the set, and its score against the anchor."""

    document: int
    score: float


class Neighbours(NamedTuple):
    """The documents that share something with an anchor, in the order of the set, and their scores."""

    anchor: int
    documents: Indices
    scores: Floats


def best(row: Neighbours, k: int) -> list[Candidate]:
    """The `k` highest scores; equal ones in the order of the documents."""
    if k < 1:
        return []
    documents, scores = row.documents, row.scores
    if len(scores) > k:
        high = scores >= np.partition(scores, -k)[-k]
        documents, scores = documents[high], scores[high]
    order = np.argsort(-scores, kind="stable")[:k]
    return [Candidate(int(documents[index]), float(scores[index])) for index in order]


def bm25_rows(texts: Sequence[str], anchors: Sequence[int]) -> Iterator[Neighbours]:
    """For each anchor the BM25 of the documents that share a word with it, without those of its text."""
    return neighbours(bm25_index(texts), texts, anchors)


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


def neighbours(
    scores: Callable[[int], Floats], texts: Sequence[str], anchors: Sequence[int]
) -> Iterator[Neighbours]:
    """The documents with a score above 0 against each anchor, without those that have its text."""
    first: dict[str, int] = {}
    wording = np.array([first.setdefault(text, index) for index, text in enumerate(texts)], dtype=np.intp)
    for anchor in anchors:
        row = scores(anchor)
        indices = np.flatnonzero((row > 0) & (wording != wording[anchor]))
        yield Neighbours(anchor, indices, row[indices])


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
