"""BM25 scores of documents against anchors.

Scores are sparse products of a few anchors with all documents at a time, never of all pairs, so that memory
stays bounded. A document that shares no word with an anchor is not a candidate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenkeel.files.package_data import read_json
from evenkeel.text.word_splitting import normalized, split

CELLS = 4_000_000
"""Scores held at once: about 100 MB, once sparse and once as a table."""
DIGITS = 9
"""Scores that differ by less are equal: sums in another order differ in their last bits."""

K1, B = 1.5, 0.75
EPSILON = 0.25
"""The share of the mean idf that a word of a negative idf gets, in the variant `okapi`."""
SHORTEST = 2
"""Letters of a word that counts, in the variant `okapi`."""

Variant: TypeAlias = Literal["lucene", "okapi"]
Sparse: TypeAlias = Any
"""A matrix of scipy.sparse, which has no types."""
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


def bm25_candidates(
    texts: Sequence[str], anchors: Sequence[int], k: int, *, lang: str | None = None
) -> list[list[Candidate]]:
    """For each anchor the `k` documents with the highest BM25 against it as the query, best first.

    Neither the anchor nor a document with the same text is a candidate. Equal scores keep the order of the
    documents.
    """
    return [best(row, k) for row in bm25_rows(texts, anchors, lang=lang)]


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


def bm25_rows(
    texts: Sequence[str], anchors: Sequence[int], *, lang: str | None = None
) -> Iterator[Neighbours]:
    """For each anchor the BM25 of all documents that share a word with it, itself left out."""
    words = counts(split(texts, lang))
    return neighbours(words.matrix[list(anchors)], _bm25_weights(words), texts, anchors)


def bm25_scores(
    anchors: Sequence[str],
    positives: Sequence[str],
    negatives: Sequence[str],
    *,
    lang: str | None = None,
    variant: Variant = "lucene",
    corpus: Sequence[str] = (),
) -> tuple[Floats, Floats]:
    """The BM25 of each anchor, as the query, against its positive and against its negative.

        BM25(q, d) = Σ over the words w of q of idf(w) · tf(w, d) / (tf(w, d) + k1 · norm(d))
        norm(d) = 1 - b + b · |d| / mean |d|

    with k1 = 1.5 and b = 0.75. A word counts as often as it is in the query. N, n(w) and the mean length are
    over all distinct documents that are given (one task's), and those of `corpus`. The variants:

    - `lucene` (the default of bm25s): idf(w) = ln(1 + (N - n(w) + ½) / (n(w) + ½)); every word counts, as
      `word_splitting.split` finds them.
    - `okapi` (rank_bm25's BM25Okapi, as the public multiview project calls it): every score has the factor
      k1 + 1; idf(w) = ln((N - n(w) + ½) / (n(w) + ½)), and ¼ of the mean idf of all words where that is
      negative; the words are those of `okapi_words`, without Lucene's 33 English stop words.
    """
    texts = dict.fromkeys((*anchors, *positives, *negatives, *corpus))
    indices = {text: index for index, text in enumerate(texts)}
    if variant == "okapi":
        words = counts([okapi_words(text) for text in indices])
        weights = _okapi_weights(words)
    else:
        words = counts(split(list(indices), lang))
        weights = _bm25_weights(words)
    queries = words.matrix[[indices[text] for text in anchors]]

    def against(texts: Sequence[str]) -> Floats:
        products = queries.multiply(weights[[indices[text] for text in texts]])
        return np.round(np.asarray(products.sum(axis=1), dtype=np.float64).ravel(), DIGITS)

    return against(positives), against(negatives)


def okapi_words(text: str) -> list[str]:
    """The words of a text as the public multiview project finds them.

    NFKC, lower-cased; runs of letters, digits and apostrophes, without a possessive and without apostrophes
    around them; no word of one letter, and no stop word.
    """
    words = []
    for run in re.findall(r"\b[\w']+\b", normalized("NFKC", text).lower()):
        word = run[:-2] if run.endswith("'s") else run[:-1] if run.endswith("s'") else run
        word = word.strip("'")
        if len(word) >= SHORTEST and word not in stop_words():
            words.append(word)
    return words


def stop_words() -> frozenset[str]:
    """Lucene's English stop words."""
    return read_json(__package__, "stop_words.json", type=frozenset[str])


# --- sparse matrices --------------------------------------------------------------------------------


class Counts(NamedTuple):
    """How often each word is in each document."""

    ids: list[list[int]]
    vocabulary: dict[str, int]
    matrix: Sparse
    """Documents × words."""


def counts(documents: Sequence[Sequence[str]]) -> Counts:
    from scipy.sparse import csr_array

    vocabulary: dict[str, int] = {}
    ids = [[vocabulary.setdefault(word, len(vocabulary)) for word in words] for words in documents]
    ends = np.cumsum([0, *map(len, ids)])
    flat = np.fromiter((index for words in ids for index in words), dtype=np.int64, count=int(ends[-1]))
    shape = (len(ids), max(1, len(vocabulary)))
    matrix = csr_array((np.ones(len(flat)), flat, ends), shape=shape)
    matrix.sum_duplicates()
    return Counts(ids, vocabulary, matrix)


def _bm25_weights(words: Counts) -> Sparse:
    """What each word of each document adds to its score: documents × words.

    bm25s is given numbers for words: by itself it numbers them in the order of a set, which differs from
    process to process.
    """
    from scipy.sparse import csc_array, csr_array

    if not words.vocabulary:
        return csr_array(words.matrix.shape)
    import bm25s  # type: ignore[import-untyped, unused-ignore]

    index = bm25s.BM25(method="lucene", k1=K1, b=B, dtype="float64", backend="numpy")
    index.index((words.ids, words.vocabulary), create_empty_token=False, show_progress=False)
    parts = (index.scores["data"], index.scores["indices"], index.scores["indptr"])
    return csc_array(parts, shape=words.matrix.shape).tocsr()


def _okapi_weights(words: Counts) -> Sparse:
    """What each word of each document adds to its score, as `_bm25_weights`, by the formula of rank_bm25."""
    from scipy.sparse import csr_array

    if not words.vocabulary:
        return csr_array(words.matrix.shape)
    frequencies = words.matrix.tocoo()
    rows, columns, times = frequencies.row, frequencies.col, frequencies.data
    holding = np.bincount(columns, minlength=len(words.vocabulary))
    idf = np.log(len(words.ids) - holding + 0.5) - np.log(holding + 0.5)
    idf = np.where(idf < 0, EPSILON * idf.mean(), idf)
    lengths = np.array([len(ids) for ids in words.ids])
    norms = 1 - B + B * lengths / lengths.mean()
    weights = idf[columns] * times * (K1 + 1) / (times + K1 * norms[rows])
    return csr_array((weights, (rows, columns)), shape=words.matrix.shape)


def neighbours(
    queries: Sparse, documents: Sparse, texts: Sequence[str], anchors: Sequence[int]
) -> Iterator[Neighbours]:
    """The products of each query with all documents, without those that have the anchor's text."""
    first: dict[str, int] = {}
    wording = np.array([first.setdefault(text, index) for index, text in enumerate(texts)], dtype=np.intp)
    by_word = documents.T.tocsr()
    step = max(1, CELLS // max(1, len(texts)))
    for start in range(0, len(anchors), step):
        products = (queries[start : start + step] @ by_word).toarray()
        for anchor, row in zip(anchors[start : start + step], np.round(products, DIGITS), strict=True):
            indices = np.flatnonzero((row > 0) & (wording != wording[anchor]))
            yield Neighbours(anchor, indices, row[indices])
