"""Triplets from documents that carry labels: no judge is needed, and surface likeness misleads where it can.

For an anchor the negative is the document of another label that reads most like it (highest BM25). The
positive is drawn from the half of its own label that reads least like it. So a method that goes by words
alone tends to the negative; where it does, the triplet is marked as hard for `bm25`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from evenkeel.benchmarks.multiview.files import Triplet, make_triplet
from evenkeel.benchmarks.multiview.make.criteria import Criterion
from evenkeel.errors import UsageError
from evenkeel.make.documents import Document
from evenkeel.make.grammar import pick, shuffled


class Gold(NamedTuple):
    """Triplets, and the documents that could not be an anchor: no other document has their label."""

    triplets: list[Triplet]
    without_partner: list[str]


def gold_triplets(
    documents: Sequence[Document],
    criterion: Criterion,
    number: int,
    *,
    docset: str,
    seed: int = 0,
    lang: str | None = None,
) -> Gold:
    """As many triplets as asked for, or as there are anchors: a document is an anchor at most once.

    No two documents may have the same text; `read_documents` sees to that.
    """
    import numpy as np

    from evenkeel.text.bm25 import lexical_rows

    sizes = Counter(_label(document) for document in documents)
    if len(sizes) < 2:
        raise UsageError("every document has the same label: there is nothing to tell them apart by.")
    rng = random.Random(f"multiview/gold/{seed}/{criterion.name}")
    paired = [place for place, document in enumerate(documents) if sizes[_label(document)] > 1]
    labels = np.array([_label(document) for document in documents])
    triplets = []
    for row in lexical_rows([d.text for d in documents], shuffled(paired, rng)[:number], lang=lang):
        scores = np.zeros(len(documents))
        scores[row.documents] = row.scores
        same = labels == labels[row.anchor]
        own = np.flatnonzero(same & (np.arange(len(documents)) != row.anchor))
        unlike = own[np.argsort(scores[own], kind="stable")][: (len(own) + 1) // 2]
        positive, negative = pick(unlike.tolist(), rng), int(np.where(same, -1, scores).argmax())
        chosen = (documents[row.anchor], documents[positive], documents[negative])
        known = [{criterion.name: _label(document)} for document in chosen]
        hard_for = "bm25" if scores[negative] > scores[positive] else ""
        triplets.append(make_triplet(docset, criterion, chosen, labels=known, hard_for=hard_for))
    return Gold(triplets, [document.id for document in documents if sizes[_label(document)] == 1])


def _label(document: Document) -> str:
    if document.label is None:
        raise UsageError(f"the document '{document.id}' has no label: name the field that holds it.")
    return document.label
