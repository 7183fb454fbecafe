"""The starter set of multiview: two views of each document, asked both ways, in settings without names."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from itertools import combinations

import pytest
from msgspec import to_builtins

from sealegs.benchmarks.multiview.benchmark import STARTER_SHA256, make_starter
from sealegs.benchmarks.multiview.make.generator import (
    MathBank,
    MathFacet,
    StoryBank,
    StoryFacet,
    compose,
    compose_documents,
    math_bank,
    story_bank,
    views,
)
from sealegs.text.bm25 import bm25_scores


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


@pytest.mark.parametrize("docset", ["math", "stories"])
def test_the_same_documents_are_asked_under_both_views(docset: str) -> None:
    texts = {document.id: document.text for document in compose_documents(docset, 1)}
    deep, surface = (view.name for view in views(docset))
    by_task = {
        name: [t for t in compose(1, 150) if t.task == f"{docset}__{name}"] for name in (deep, surface)
    }
    for one, other in zip(by_task[deep], by_task[surface], strict=True):
        assert (one.anchor, one.positive, one.negative) == (other.anchor, other.negative, other.positive)
        anchor, alike, setting = (one.labels[role] for role in ("anchor", "positive", "negative"))
        assert anchor[deep] == alike[deep] != setting[deep]
        assert anchor[surface] == setting[surface] != alike[surface]
        ids = (one.anchor_id, one.positive_id, one.negative_id)
        assert one.documents == tuple(texts[name] for name in ids)
    # Words lead neither way: what they give under one view they lose under the other.
    ours, theirs = bm25_scores(*zip(*(triplet.documents for triplet in by_task[deep]), strict=True))
    assert 0.35 < float((ours > theirs).mean()) < 0.75


@pytest.mark.parametrize("docset", ["math", "stories"])
def test_no_document_names_its_setting(docset: str) -> None:
    _, surface = views(docset)
    for document in compose_documents(docset):
        for word in document.views[surface.name].replace("'s", "").split():
            assert not re.search(rf"\b{word}", document.text, re.IGNORECASE), document.text


@pytest.mark.parametrize("bank", [math_bank(), story_bank()], ids=["math", "stories"])
def test_facets_of_a_setting_share_no_telling_word(bank: MathBank | StoryBank) -> None:
    """Else two documents of a setting could be matched by a word, as by its name. What is in three settings
    or more says nothing of a place."""
    facets = {setting: list(map(words, facets)) for setting, facets in bank.settings.items()}
    settings = Counter(word for each in facets.values() for word in set().union(*each))
    for setting, each in facets.items():
        shared = set().union(*(one & two for one, two in combinations(each, 2)))
        assert not [word for word in shared if settings[word] < 3], setting


def words(facet: MathFacet | StoryFacet) -> set[str]:
    """Its words of four letters or more, without the ending of a plural or a tense."""
    found = re.findall(r"[^\W\d_]{4,}", str(to_builtins(facet)).lower())
    return {re.sub(r"(?:s|ed|ing)$", "", word) for word in found}
