"""The starter set of multiview: two views of each document, and triplets in which one view misleads."""

from __future__ import annotations

import hashlib
from collections import Counter

import pytest

from evenkeel.benchmarks.multiview.benchmark import STARTER_SHA256, make_starter
from evenkeel.benchmarks.multiview.make.generator import compose, compose_documents, views
from evenkeel.text.bm25 import bm25_scores

TASKS = ("math__arithmetic", "math__setting", "stories__plot", "stories__setting")


def test_the_starter_set_has_its_pinned_bytes() -> None:
    assert hashlib.sha256(make_starter("en")).hexdigest() == STARTER_SHA256["en"]


@pytest.mark.parametrize("docset", ["math", "stories"])
def test_every_pair_of_views_is_there_equally_often(docset: str) -> None:
    deep, surface = views(docset)
    pairs = Counter((d.views[deep.name], d.views[surface.name]) for d in compose_documents(docset))
    kinds, settings = map(set, zip(*pairs, strict=True))
    assert len(set(pairs.values())) == 1
    assert min(len(kinds), len(settings)) >= 8
    assert len(pairs) == len(kinds) * len(settings)


@pytest.mark.parametrize("task", TASKS)
def test_the_positive_shares_one_view_and_the_negative_the_other(task: str) -> None:
    docset, view = task.split("__")
    (other,) = {criterion.name for criterion in views(docset)} - {view}
    texts = {document.id: document.text for document in compose_documents(docset, 1)}
    triplets = [triplet for triplet in compose(1, 200) if triplet.task == task]
    for triplet in triplets:
        anchor, positive, negative = (triplet.labels[role] for role in ("anchor", "positive", "negative"))
        assert anchor[view] == positive[view] != negative[view]
        assert anchor[other] == negative[other] != positive[other]
        ids = (triplet.anchor_id, triplet.positive_id, triplet.negative_id)
        assert triplet.documents == tuple(texts[name] for name in ids)
    # Words mislead on the deep views, and lead on the settings.
    one, two = bm25_scores(*zip(*(triplet.documents for triplet in triplets), strict=True))
    right = float((one > two).mean())
    assert right > 0.9 if view == "setting" else right < 0.2
    assert {triplet.hard_for for triplet in triplets} == {"" if view == "setting" else "bm25"}
