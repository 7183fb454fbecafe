"""The starter set of multiview: two views of each document, and triplets in which one view misleads."""

from __future__ import annotations

import random
import re
import string
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import pytest

from evenkeel.benchmarks.multiview.files import Triplet
from evenkeel.benchmarks.multiview.make.generator import (
    TRIPLETS,
    compose,
    compose_documents,
    math_bank,
    numbers,
    story_bank,
    views,
)
from evenkeel.make.documents import Document
from evenkeel.text.bm25 import bm25_scores

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCSETS = ("math", "stories")
TASKS = ("math__arithmetic", "math__setting", "stories__plot", "stories__setting")
WORDS = {"who", "mate", "items", "items2", "items3", "buyer", "box", "boxes", "make", "made", "spot", "gone"}
STORY_SLOTS = {"hero", "other", "nook1", "nook2", "nook3", "crowd", "thing", "event", "job"}


@cache
def documents(docset: str, seed: int = 0) -> list[Document]:
    return compose_documents(docset, seed)


@cache
def triplets(task: str, seed: int = 0, number: int = TRIPLETS) -> list[Triplet]:
    return [triplet for triplet in compose(seed, number) if triplet.task == task]


def slots(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


every_docset = pytest.mark.parametrize("docset", DOCSETS)
every_task = pytest.mark.parametrize("task", TASKS)


# --- documents --------------------------------------------------------------------------------------


@every_docset
def test_every_pair_of_views_is_there_equally_often(docset: str) -> None:
    deep, surface = views(docset)
    pairs = Counter((d.views[deep.name], d.views[surface.name]) for d in documents(docset))
    assert len(set(pairs.values())) == 1
    assert len({kind for kind, _ in pairs}) >= 8
    assert len({setting for _, setting in pairs}) >= 8
    assert len(pairs) == len({kind for kind, _ in pairs}) * len({setting for _, setting in pairs})


@pytest.mark.full
@every_docset
def test_documents_read_as_sentences(docset: str) -> None:
    for document in documents(docset):
        assert not re.search(r"[{}]|  |\b(the|a) \1\b", document.text), document.text
        assert re.fullmatch(r"[A-Z'].*[.?]", document.text), document.text
        assert not re.search(r"[.?!]'? [a-z]", document.text), document.text
        assert len(document.text.split()) < 90


# --- the bank ---------------------------------------------------------------------------------------


@pytest.mark.full
def test_a_template_uses_every_number_and_only_known_words() -> None:
    for structure, templates in math_bank().wordings.items():
        names = numbers(structure, random.Random(0)).keys()
        assert len(templates) >= 4
        for template in templates:
            assert names <= slots(template) <= names | WORDS, template


@pytest.mark.full
def test_each_plot_has_three_beats_of_several_wordings_with_known_slots() -> None:
    for plot, beats in story_bank().wordings.items():
        assert [len(wordings) for wordings in beats] == [4, 4, 4], plot
        assert all(slots(wording) <= STORY_SLOTS for wordings in beats for wording in wordings), plot


@pytest.mark.full
@pytest.mark.parametrize("structure", math_bank().wordings)
def test_every_answer_is_a_positive_whole_number(structure: str) -> None:
    for seed in range(300):
        values = numbers(structure, random.Random(seed))
        assert all(type(number) is int and number > 0 for number in values.values())
        answer = solved(structure, values)
        assert answer > 0
        assert float(answer).is_integer()


def solved(structure: str, n: Mapping[str, int]) -> float:
    """The answer by exact division, so that a remainder would show."""
    match structure:
        case "sum of parts":
            return n["a"] + n["b"] + n["c"]
        case "difference":
            return n["a"] - n["b"]
        case "equal groups":
            return n["n"] * n["m"]
        case "sharing":
            return n["t"] / n["n"]
        case "percentage off":
            return n["price"] - n["price"] * n["percent"] / 100
        case "buying and change":
            return n["note"] - n["n"] * n["price"]
        case "average":
            return (n["a"] + n["b"] + n["c"]) / 3
        case "ratio":
            return n["t"] * n["r"] / (n["r"] + n["s"])
        case "rule of three":
            return n["t"] * n["m"] / n["n"]
        case "combined rates":
            return n["n"] * (n["a"] + n["b"])
    raise AssertionError(structure)


# --- triplets ---------------------------------------------------------------------------------------


@every_task
@pytest.mark.parametrize("seed", [0, 1])
def test_the_positive_shares_one_view_and_the_negative_the_other(task: str, seed: int) -> None:
    docset, view = task.split("__")
    (other,) = {criterion.name for criterion in views(docset)} - {view}
    by_id = {document.id: document for document in documents(docset, seed)}
    for triplet in triplets(task, seed):
        anchor, positive, negative = (triplet.labels[role] for role in ("anchor", "positive", "negative"))
        assert anchor[view] == positive[view] != negative[view]
        assert anchor[other] == negative[other] != positive[other]
        for text, key in zip(
            triplet.documents, (triplet.anchor_id, triplet.positive_id, triplet.negative_id), strict=True
        ):
            assert by_id[key].text == text
        assert by_id[triplet.anchor_id].views == anchor


@every_task
@pytest.mark.parametrize(("seed", "number"), [(0, TRIPLETS), (1, 200)])
def test_words_mislead_on_the_deep_views_and_lead_on_the_settings(task: str, seed: int, number: int) -> None:
    composed = triplets(task, seed, number)
    anchors, positives, negatives = zip(*(triplet.documents for triplet in composed), strict=True)
    one, other = bm25_scores(anchors, positives, negatives)
    right = float((one > other).mean())
    if task.endswith("__setting"):
        assert right > 0.9
    else:
        assert right < 0.2
    assert {triplet.hard_for for triplet in composed} == {"" if task.endswith("__setting") else "bm25"}
