"""Documents in a plane: the principal components of their embeddings, for the pictures of the page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from evenkeel.benchmarks.multiview.files import ROLES, PlacedDocument, Triplet
from evenkeel.models.vectors import unit_vector, usable
from evenkeel.types import Asking, Embed

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_DOCUMENTS = 1200
"""Of a set of documents in a picture: more would hide each other. Of more, as many evenly spaced ones."""

Placed: TypeAlias = tuple[PlacedDocument, ...]
"""Of one triplet: the labelled documents that are in no triplet before it."""


def place(role: str, triplets: Sequence[Triplet]) -> Asking[list[Placed]]:
    """For each triplet its labelled documents that are in no triplet before it, in the plane.

    Each set of documents is projected by itself: anchors, positives and negatives of all its tasks together.
    """
    views: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    first: dict[tuple[str, str], int] = {}
    for index, triplet in enumerate(triplets):
        for name, text in zip(ROLES, triplet.documents, strict=True):
            if labels := triplet.labels.get(name):
                views[triplet.docset, text].update(labels)
                first.setdefault((triplet.docset, text), index)
    docsets: defaultdict[str, list[str]] = defaultdict(list)
    for docset, text in first:
        docsets[docset].append(text)
    chosen = {docset: _spaced(texts, MOST_DOCUMENTS) for docset, texts in docsets.items()}
    texts = list(dict.fromkeys(text for members in chosen.values() for text in members))
    responses = usable((yield [Embed(text=text, role=role) for text in texts]))
    vectors = {text: unit_vector(r.vector) for text, r in zip(texts, responses, strict=True) if r.vector}
    positions: dict[tuple[str, str], dict[str, tuple[float, float]]] = {}
    for docset, members in chosen.items():
        embedded = [text for text in members if text in vectors]
        if len(embedded) > 2:
            plane = np.round(pca(np.stack([vectors[text] for text in embedded])), 4)
            for text, (x, y) in zip(embedded, plane.tolist(), strict=True):
                positions[docset, text] = {"pca": (x, y)}
    documents: list[list[PlacedDocument]] = [[] for _ in triplets]
    for key, index in first.items() if positions else ():
        documents[index].append(PlacedDocument(views[key], positions.get(key, {})))
    return [tuple(each) for each in documents]


def _spaced(texts: Sequence[str], most: int) -> Sequence[str]:
    """All of them, or at most so many at even distances."""
    return texts[:: -(-len(texts) // most)]


def pca(units: NDArray[np.float64]) -> NDArray[np.float64]:
    """The two principal components; the second is 0 where there is none."""
    left, sizes, _ = np.linalg.svd(units - units.mean(axis=0), full_matrices=False)
    plane = np.zeros((len(units), 2))
    components = left[:, :2] * sizes[:2]
    plane[:, : components.shape[1]] = components
    return plane * np.where(np.round(plane, 4).sum(axis=0) < 0, -1, 1)  # the sign is arbitrary
