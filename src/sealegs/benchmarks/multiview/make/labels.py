"""Triplets from known labels, without a judge."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np

from sealegs.benchmarks.multiview.data import Triplet
from sealegs.benchmarks.multiview.make.criteria import Build, CriterionTriplets, make_triplet
from sealegs.errors import UsageError
from sealegs.make.documents import Document
from sealegs.make.grammar import pick, shuffled
from sealegs.page.format import nouns
from sealegs.text.bm25 import bm25_index, shared_counts


def label_triplets(documents: Sequence[Document], build: Build, field: str) -> CriterionTriplets:
    """As many triplets as asked for, or as there are anchors: a document is an anchor at most once.

    Documents are alike that share at least one label of the field. The negative is the document without any
    of the anchor's labels that reads most like the anchor (highest BM25); the positive is drawn from the half
    of those that share a label which reads least like it. So a method that goes by words alone tends to the
    negative, and the triplets are marked as hard for `bm25`.

    No two documents may have the same text, which `read_documents` ensures. Counted are the documents that
    are `unlabelled`, `without_partner` (no other document shares a label with them, so that they are not an
    anchor), and the anchors `without_negative`, which share a label with every other document.
    """
    criterion = build.criterion
    labelled = [document for document in documents if document.labels.get(field)]
    labels = [document.labels[field] for document in labelled]
    sizes = Counter(label for of_document in labels for label in of_document)
    if len(sizes) < 2:
        raise UsageError(
            f"'{field}': every document has the same label, so that there is no negative for any anchor."
            if sizes
            else f"'{field}': no document has a label."
        )
    shared = shared_counts(labels)
    rng = random.Random(f"multiview/gold/{build.seed}/{criterion.name}")
    anchors = [index for index, names in enumerate(labels) if any(sizes[name] > 1 for name in names)]
    triplets: list[Triplet] = []
    without_negative = 0
    by_words = bm25_index([document.text for document in labelled])
    for anchor in shuffled(anchors, rng):
        if len(triplets) == build.number:
            break
        scores, alike = by_words(anchor), shared(anchor) > 0
        if alike.all():
            without_negative += 1
            continue
        partners = np.flatnonzero(alike & (np.arange(len(labelled)) != anchor))
        unlike = partners[np.argsort(scores[partners], kind="stable")][: (len(partners) + 1) // 2]
        positive, negative = pick(unlike.tolist(), rng), int(np.where(alike, -1, scores).argmax())
        chosen = (labelled[anchor], labelled[positive], labelled[negative])
        views = [{criterion.name: ", ".join(document.labels[field])} for document in chosen]
        triplets.append(make_triplet(build.docset, criterion, chosen, labels=views, hard_for="bm25"))
    counts = {
        "unlabelled": len(documents) - len(labelled),
        "without_partner": len(labelled) - len(anchors),
        "without_negative": without_negative,
    }
    note = (
        f"{nouns(len(anchors), 'documents')} could be anchors; {counts['unlabelled']:,} have no label, "
        f"{counts['without_partner']:,} share theirs with no other; {without_negative:,} anchors share one "
        f"with every other; {len(triplets)} triplets made"
    )
    return CriterionTriplets(criterion, triplets, counts, [note])
