"""The passages that are nearest to a question: by BM25, and by embedding where there is an embedder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenkeel.benchmarks.rgb.files import Lang
from evenkeel.benchmarks.rgb.make.documents.asking import Asking, Author
from evenkeel.models.vectors import usable
from evenkeel.text.bm25 import DIGITS, best, lexical_rows
from evenkeel.types import Embed

DEPTH = 200
"""Passages that are looked at for one question."""

Vector: TypeAlias = NDArray[np.float64]


class Nearest:
    """Finds the passages nearest to any question."""

    def __init__(self, passages: Sequence[str], author: Author, *, embeds: bool) -> None:
        self.passages = passages
        self._author = author
        self._embeds = embeds
        self._vectors: list[Vector | None] = []

    def of(self, queries: Sequence[str]) -> Asking[list[list[str]]]:
        """For each query the passages, nearest first: by words and by meaning in turns, each once."""
        lexical = by_words(self.passages, queries, self._author.lang)
        if self._embeds:
            semantic = yield from self._by_meaning(queries)
            lexical = [_by_turns(one, other) for one, other in zip(lexical, semantic, strict=True)]
        return [[self.passages[place] for place in ranked] for ranked in lexical]

    def _by_meaning(self, queries: Sequence[str]) -> Asking[list[list[int]]]:
        """By the cosine of the embeddings. What could not be embedded is near to nothing."""
        if not self._vectors:
            self._vectors = yield from self._embedded(self.passages)
        known = [place for place, vector in enumerate(self._vectors) if vector is not None]
        matrix = np.array([self._vectors[place] for place in known])
        asked = yield from self._embedded(queries)
        found: list[list[int]] = []
        for vector in asked:
            fits = vector is not None and matrix.shape[1:] == vector.shape
            scores = np.round(matrix @ vector, DIGITS) if vector is not None and fits else np.zeros(0)
            found.append([known[place] for place in np.argsort(-scores, kind="stable")[:DEPTH]])
        return found

    def _embedded(self, texts: Sequence[str]) -> Asking[list[Vector | None]]:
        responses = usable((yield [Embed(text=text) for text in texts]))
        vectors: list[Vector | None] = []
        for response in responses:
            self._author.tally.note("embeddings", response.status)
            vectors.append(_unit(response.vector) if response.vector else None)
        return vectors


def by_words(passages: Sequence[str], queries: Sequence[str], lang: Lang) -> list[list[int]]:
    """The places of the passages by BM25. One that shares no word with the query is not among them."""
    if not queries:
        return []
    count = len(passages)
    found = []
    for row in lexical_rows([*passages, *queries], range(count, count + len(queries)), lang=lang):
        own = row.documents < count
        kept = row._replace(documents=row.documents[own], scores=row.scores[own])
        found.append([candidate.document for candidate in best(kept, DEPTH)])
    return found


def _unit(encoded: bytes) -> Vector:
    vector = np.frombuffer(encoded, dtype="<f4").astype(np.float64)
    return vector / max(float(np.linalg.norm(vector)), 1e-12)


def _by_turns(one: Iterable[int], other: Iterable[int]) -> list[int]:
    mixed = chain.from_iterable(zip_longest(one, other))
    return list(dict.fromkeys(place for place in mixed if place is not None))
