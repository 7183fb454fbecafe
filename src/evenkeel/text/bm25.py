"""BM25 scores of documents against anchors.

Scores are sparse products of one anchor with all documents at a time, never of all pairs, so that memory is
bounded. A document that shares no word with an anchor is not a candidate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenkeel.files.package_data import read_json
from evenkeel.text.word_splitting import normalized, split

DIGITS = 9
"""Scores that differ by less are equal: sums in another order differ in their last bits."""

K1, B = 1.5, 0.75
EPSILON = 0.25
"""The share of the mean idf that a word of a negative idf gets, in the variant `okapi`."""
SHORTEST = 2
"""Letters of a word that counts, in the variant `okapi`."""

Variant: TypeAlias = Literal["lucene", "okapi"]
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
    return neighbours(words.matrix, _weights(words), texts, anchors)


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
    words = counts(
        [okapi_words(text) for text in indices] if variant == "okapi" else split(list(indices), lang)
    )
    weights = _weights(words, variant)

    def against(texts: Sequence[str]) -> Floats:
        scores = np.zeros(len(texts))
        for number, (anchor, text) in enumerate(zip(anchors, texts, strict=True)):
            columns, times = words.matrix.row(indices[anchor])
            others, added = weights.row(indices[text])
            _, at, there = np.intersect1d(columns, others, assume_unique=True, return_indices=True)
            scores[number] = times[at] @ added[there]
        return np.round(scores, DIGITS)

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


class Sparse(NamedTuple):
    """A matrix of which only the cells that are not zero are stored: row by row, in the order of columns."""

    starts: Indices
    """Where each row begins among the cells; and, at last, their number."""
    columns: Indices
    values: Floats
    width: int

    @property
    def rows(self) -> Indices:
        """The row of each cell."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def row(self, number: int) -> tuple[Indices, Floats]:
        """The columns and the values of one row."""
        cells = slice(self.starts[number], self.starts[number + 1])
        return self.columns[cells], self.values[cells]

    def transposed(self) -> Sparse:
        order = np.argsort(self.columns, kind="stable")
        sizes = np.bincount(self.columns, minlength=self.width)
        return Sparse(_starts(sizes), self.rows[order], self.values[order], len(self.starts) - 1)

    def times(self, row: tuple[Indices, Floats]) -> Floats:
        """The sum of some rows, each multiplied: the product of a sparse row with this matrix."""
        total = np.zeros(self.width)
        for number, factor in zip(*(part.tolist() for part in row), strict=True):
            columns, values = self.row(number)
            total[columns] += factor * values  # no column is in a row twice
        return total


def _starts(sizes: Indices) -> Indices:
    return np.concatenate(([0], np.cumsum(sizes)))


class Counts(NamedTuple):
    """How often each word is in each document."""

    lengths: Indices
    """The words of each document, repeated ones included."""
    matrix: Sparse
    """Documents × words, which are numbered in the order of their first occurrence."""


def counts(documents: Sequence[Sequence[str]]) -> Counts:
    vocabulary: dict[str, int] = {}
    lengths = np.fromiter(map(len, documents), dtype=np.intp, count=len(documents))
    words = (vocabulary.setdefault(word, len(vocabulary)) for each in documents for word in each)
    flat = np.fromiter(words, dtype=np.intp, count=int(lengths.sum()))
    width = max(1, len(vocabulary))
    flat += np.repeat(np.arange(len(documents)) * width, lengths)
    cells, times = np.unique(flat, return_counts=True)
    del flat
    rows, columns = np.divmod(cells, width)
    sizes = np.bincount(rows, minlength=len(documents))
    return Counts(lengths, Sparse(_starts(sizes), columns, times.astype(np.float64), width))


def _weights(words: Counts, variant: Variant = "lucene") -> Sparse:
    """What each word of each document adds to its score, by the formulas of `bm25_scores`."""
    matrix, lengths = words.matrix, words.lengths
    if not len(matrix.values):
        return matrix
    holding = np.bincount(matrix.columns)
    if variant == "okapi":
        idf = np.log(len(lengths) - holding + 0.5) - np.log(holding + 0.5)
        idf = (K1 + 1) * np.where(idf < 0, EPSILON * idf.mean(), idf)
    else:
        idf = np.log1p((len(lengths) - holding + 0.5) / (holding + 0.5))
    norms = K1 * (1 - B + B * lengths / lengths.mean())
    weights = idf[matrix.columns] * matrix.values / (matrix.values + norms[matrix.rows])
    return matrix._replace(values=weights)


def neighbours(
    queries: Sparse, documents: Sparse, texts: Sequence[str], anchors: Sequence[int]
) -> Iterator[Neighbours]:
    """The products of each anchor's row of `queries` with all documents, without those that have its text."""
    first: dict[str, int] = {}
    wording = np.array([first.setdefault(text, index) for index, text in enumerate(texts)], dtype=np.intp)
    by_word = documents.transposed()
    for anchor in anchors:
        scores = np.round(by_word.times(queries.row(anchor)), DIGITS)
        indices = np.flatnonzero((scores > 0) & (wording != wording[anchor]))
        yield Neighbours(anchor, indices, scores[indices])
