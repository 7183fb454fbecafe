"""Documents in a plane: their embeddings by PCA, t-SNE and UMAP, for the pictures of the page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from evenkeel.benchmarks.multiview.files import ROLES, PlacedDocument, Triplet
from evenkeel.models.vectors import unit_vector, usable
from evenkeel.types import Embed, Request, Response

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_DOCUMENTS = 1200
"""Of a set of documents in a picture: more would hide each other. Of more, as many evenly spaced ones."""
MOST_NEIGHBOURS = 600
"""Of a set by t-SNE and UMAP, which take long for many."""
FEWEST_DOCUMENTS = 5
"""Of a set, by t-SNE and UMAP: fewer have no neighbourhoods to show."""
ALIKE = 1e-6
"""Documents that spread by less than this along the first component are all alike."""

Plane: TypeAlias = "NDArray[np.float64]"
"""A row of two coordinates for each document."""
Positions: TypeAlias = dict[str, tuple[float, float]]
"""Of one document, by projection."""


class Placement(NamedTuple):
    """Where the documents of a triplet are."""

    documents: tuple[PlacedDocument, ...] = ()
    """The labelled ones that are in no triplet before it."""
    positions: dict[str, Positions] = {}  # noqa: RUF012
    """Those of all that are placed, by role."""


NOWHERE = Placement()


def place(
    role: str, triplets: Sequence[Triplet]
) -> Generator[Sequence[Request], Sequence[Response], list[Placement]]:
    """For each triplet its labelled documents that are in no triplet before it, and the positions of all.

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
    positions: dict[tuple[str, str], Positions] = {}
    for docset, members in chosen.items():
        embedded = [text for text in members if text in vectors]
        if len(embedded) > 2:
            projected = project(np.stack([vectors[text] for text in embedded]))
            positions |= {(docset, text): each for text, each in zip(embedded, projected, strict=True)}
    documents: list[list[PlacedDocument]] = [[] for _ in triplets]
    for key, index in first.items() if positions else ():
        documents[index].append(PlacedDocument(views[key], positions.get(key, {})))
    return [
        Placement(
            tuple(each),
            {
                name: positions[triplet.docset, text]
                for name, text in zip(ROLES, triplet.documents, strict=True)
                if (triplet.docset, text) in positions
            },
        )
        for each, triplet in zip(documents, triplets, strict=True)
    ]


def _spaced(texts: Sequence[str], most: int) -> Sequence[str]:
    """All of them, or at most so many at even distances."""
    return texts[:: -(-len(texts) // most)]


def project(units: NDArray[np.float64]) -> list[Positions]:
    """The coordinates of each document by each projection that is installed and has them."""
    plane = pca(units)
    positions: list[Positions] = [{"pca": point} for point in _rounded(plane, 4)]
    chosen = np.arange(0, len(units), -(-len(units) // MOST_NEIGHBOURS))
    # Documents that are all alike have no neighbourhoods either.
    if len(chosen) >= FEWEST_DOCUMENTS and plane[chosen, 0].std() > ALIKE:
        for name, method in NEIGHBOURHOODS.items():
            try:
                points = _rounded(method(units[chosen], plane[chosen]), 3)
            except ImportError:
                continue  # the page says what to install
            for index, point in zip(chosen, points, strict=True):
                positions[index][name] = point
    return positions


def pca(units: NDArray[np.float64]) -> Plane:
    """The two principal components; the second is 0 where there is none."""
    left, sizes, _ = np.linalg.svd(units - units.mean(axis=0), full_matrices=False)
    plane = np.zeros((len(units), 2))
    components = left[:, :2] * sizes[:2]
    plane[:, : components.shape[1]] = components
    return plane * np.where(np.round(plane, 4).sum(axis=0) < 0, -1, 1)  # the sign is arbitrary


def tsne(units: NDArray[np.float64], start: Plane) -> Plane:
    """t-SNE, with the same start and seed each time (van der Maaten & Hinton 2008)."""
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (len(units) - 1) / 3)
    start = (start / start[:, 0].std() * 1e-4).astype(np.float32)
    method = TSNE(perplexity=perplexity, init=start, max_iter=500, random_state=0)
    return np.asarray(method.fit_transform(units))


def umap(units: NDArray[np.float64], start: Plane) -> Plane:
    """UMAP by cosine, with the same start and seed each time (McInnes, Healy & Melville 2018)."""
    from umap import UMAP

    neighbours = min(15, len(units) - 1)
    method = UMAP(n_neighbors=neighbours, metric="cosine", init=start, random_state=0, n_jobs=1)
    return np.asarray(method.fit_transform(units))


NEIGHBOURHOODS: dict[str, Callable[[NDArray[np.float64], Plane], Plane]] = {"tsne": tsne, "umap": umap}
"""The projections that show which documents are near each other."""


def _rounded(plane: Plane, digits: int) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in np.round(plane.astype(float), digits)]
