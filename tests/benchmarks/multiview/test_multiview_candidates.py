"""Words, candidates for anchors, BM25 of triplets, and triplets from labels."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealegs.benchmarks.multiview.make.criteria import Build, Criterion, CriterionTriplets
from sealegs.benchmarks.multiview.make.labels import label_triplets
from sealegs.benchmarks.multiview.make.triplets import jaccard
from sealegs.errors import MissingExtra, UsageError
from sealegs.make.documents import Document
from sealegs.text import word_splitting as words
from sealegs.text.bm25 import best, bm25_scores
from sealegs.text.word_splitting import split

pytestmark = pytest.mark.slow

# --- words ------------------------------------------------------------------------------------------


def test_words_are_lower_case_and_without_punctuation() -> None:
    assert split(["Don’t stop: it's 3 o'clock, 'NAÏVE' Straße!"]) == [
        ["don't", "stop", "it's", "3", "o'clock", "naïve", "straße"]
    ]
    assert split(["", "?!…"]) == [[], []]


def test_chinese_is_split_into_words_and_the_rest_is_kept() -> None:
    assert split(["我们在学校学习 Python3，很好！"]) == [
        ["我们", "在", "学校", "学习", "python3", "很", "好"]
    ]


def test_korean_is_split_into_morphemes_without_punctuation() -> None:
    ((*found,),) = split(["학교에서 사과를 먹었다. OK!"])
    assert {"학교", "에서", "사과", "를", "ok"} <= set(found)
    assert not {".", "!"} & set(found)


@pytest.mark.parametrize(("package", "text"), [("rjieba", "学校"), ("kiwipiepy", "학교")])
def test_a_missing_splitter_names_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, package: str, text: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    for loader in (words._rjieba, words._kiwi):
        loader.cache_clear()
    with pytest.raises(MissingExtra, match=rf"'{package}'.*pip install 'sealegs\[words\]'"):
        split([text])
    assert split(["a word"]) == [["a", "word"]]


# --- candidates -------------------------------------------------------------------------------------


def test_the_best_come_first_and_equal_ones_in_order_from_an_index() -> None:
    scores = np.array([0.5, 0.0, 1.0, 0.5, 0.5])
    assert best(scores, 9) == [2, 0, 3, 4]
    assert best(scores, 3, first=3) == [2, 3, 4]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.frozensets(st.sampled_from("abcd")), min_size=1, max_size=12))
def test_tags_are_compared_as_a_plain_loop_does(tags: list[frozenset[str]]) -> None:
    scores = jaccard([sorted(names) for names in tags])
    for anchor, names in enumerate(tags):
        wanted = [len(names & other) / max(1, len(names | other)) for other in tags]
        assert scores(anchor).tolist() == pytest.approx(wanted)


def test_sums_that_differ_in_their_last_bits_are_a_tie() -> None:
    words_of_both = "kiwi fig plum pear lime"
    (one,), (other,) = bm25_scores([words_of_both], [f"{words_of_both} kiwi"], [f"{words_of_both} pear"])
    assert one == other > 0


# --- triplets from labels ---------------------------------------------------------------------------

CRITERION = Criterion("kind", "What kind it is.")


def labelled(name: str, text: str, *labels: str) -> Document:
    return Document(name, text, {"kind": labels})


def gold_of(documents: Sequence[Document], number: int, seed: int = 0) -> CriterionTriplets:
    return label_triplets(documents, Build(CRITERION, "d", number, seed), "kind")


LABELLED = [
    labelled("a1", "the red boat in the harbour", "sum"),
    labelled("a2", "the red boat in the old harbour", "sum"),
    labelled("a3", "warm bread in the oven", "sum"),
    labelled("b1", "a red boat in the harbour today", "ratio"),
    labelled("b2", "warm bread from the oven", "ratio"),
    labelled("c1", "a lonely zebra", "none"),
]


def test_the_positive_reads_unlike_and_the_negative_alike() -> None:
    made = {triplet.anchor_id: triplet for triplet in gold_of(LABELLED, 9).triplets}
    assert set(made) == {"a1", "a2", "a3", "b1", "b2"}
    assert (made["a1"].positive_id, made["a1"].negative_id) == ("a3", "b1")
    assert (made["b2"].positive_id, made["b2"].negative_id) == ("b1", "a3")
    assert made["a1"].labels == {
        "anchor": {"kind": "sum"}, "positive": {"kind": "sum"}, "negative": {"kind": "ratio"}
    }  # fmt: skip
    for seed in range(8):
        positives = {t.anchor_id: t.positive_id for t in gold_of(LABELLED, 9, seed).triplets}
        assert (positives["a1"], positives["a2"]) == ("a3", "a3")
    assert {(triplet.task, triplet.hard_for) for triplet in made.values()} == {("d__kind", "bm25")}


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([Document("1", "a"), Document("2", "b")], r"'kind': no document has a label"),
        ([labelled("1", "a", "x"), labelled("2", "b", "x")], r"every document has the same label"),
    ],
)
def test_labels_without_two_kinds_are_refused(documents: list[Document], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        gold_of(documents, 1)


def test_documents_with_several_labels_are_alike_when_they_share_one() -> None:
    documents = [
        labelled("a", "the red boat", "sea", "red"),
        labelled("b", "a blue boat", "sea"),
        labelled("c", "the red house", "red", "home"),
        labelled("d", "the red red boat house", "home"),
        labelled("e", "every red boat house", "sea", "red", "home"),
        Document("f", "nothing known"),
    ]
    gold = gold_of(documents, 9)
    assert gold.counts == {"unlabelled": 1, "without_partner": 0, "without_negative": 1}  # f; e
    sets = {document.id: set(document.labels.get("kind", ())) for document in documents}
    assert {triplet.anchor_id for triplet in gold.triplets} == {"a", "b", "c", "d"}
    for triplet in gold.triplets:
        assert sets[triplet.anchor_id] & sets[triplet.positive_id]
        assert not sets[triplet.anchor_id] & sets[triplet.negative_id]
        assert "f" not in (triplet.positive_id, triplet.negative_id)
    assert {t.labels["anchor"]["kind"] for t in gold.triplets if t.anchor_id == "a"} == {"sea, red"}
