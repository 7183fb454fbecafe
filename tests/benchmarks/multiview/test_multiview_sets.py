"""Document sets that are known by name: small samples in their shapes go through one command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commandline import sealegs
from jsonlines import write_lines
from multiview_judge import MATH, STRUCTURES, Judge, manifest
from sealegs import api
from sealegs.benchmarks.multiview.data import read_triplets
from sealegs.benchmarks.multiview.make.sets import (
    choose_set,
    document_sets,
    known_criterion,
    listed,
    operations,
    task_names,
)
from sealegs.errors import UsageError
from sealegs.make.documents import read_documents

pytestmark = pytest.mark.slow

FEW = list(MATH.values())[:40]
STEPS = ("<<2+3=5>>5", "<<6/2=3>>3", "<<4*5=20>>20, then <<20-1=19>>19")


def answer_of(structure: str) -> str:
    return f"It comes to {STEPS[STRUCTURES.index(structure) % len(STEPS)]}.\n#### 5"


def rows_of(name: str) -> list[dict[str, Any]]:
    """The made-up documents as rows of a set's file."""
    if name == "gsm8k":
        return [{"question": d.text, "answer": answer_of(d.views["arithmetic"])} for d in FEW]
    return [{"clue": d.text, "answer": f"WORD{n}"} for n, d in enumerate(FEW)]


@pytest.mark.parametrize(
    ("task", "end"),
    [
        ("gsm8k__arithmetic", "#### 5"),
        ("crossword__topic", "Answer: WORD"),
    ],
)
def test_a_sample_in_the_shape_of_a_set_goes_through_one_command(task: str, end: str, tmp_path: Path) -> None:
    docs = write_lines(tmp_path / "docs.jsonl", rows_of(task.partition("__")[0]))
    with Judge() as server:
        judge = ("--judge", "openai:judge", "--base-url", server.url)
        out = tmp_path / "made"
        done = sealegs(
            "build", "multiview", "--set", task, "--docs", docs, *judge, "--triplets", 2, "--out", out
        )
        assert done.code == 0, done.stderr
        description = choose_set(task).criteria[0].description
        assert all(description in prompt for prompt in server.answered)
    triplets = read_triplets(out / "triplets.jsonl")
    assert [(t.task, t.description, t.built_by) for t in triplets] == [
        (task, description, "openai:judge")
    ] * 2
    assert all(end in text for t in triplets for text in t.documents)
    assert manifest(out)["options"]["set"] == task


def test_the_operations_in_the_answers_label_gsm8k_without_a_judge(tmp_path: Path) -> None:
    rows = [*rows_of("gsm8k"), {"question": "What is the capital of France?", "answer": "Paris"}]
    docs = write_lines(tmp_path / "train.jsonl", rows)
    built = api.build("multiview", tmp_path / "made", set="gsm8k__arithmetic", docs=str(docs), triplets=9)[1]
    triplets = read_triplets(tmp_path / "made" / "triplets.jsonl")
    assert len(triplets) == 9
    for triplet in triplets:
        anchor, positive, negative = map(operations, triplet.documents)
        assert anchor == positive != negative
        assert triplet.labels["anchor"] == {"arithmetic": anchor[0]}
        assert triplet.built_by == ""
    assert "41 documents read" in built.notes
    assert any("1 have no label" in note and "9 triplets made" in note for note in built.notes)
    with pytest.raises(UsageError, match="no labels for problem_type: give a --judge"):
        api.build("multiview", tmp_path / "x", set="gsm8k__problem_type", docs=str(docs))


def test_operations_are_read_in_the_order_in_which_they_are_written() -> None:
    assert operations("3*4=<<3*4=12>>12, 12 - 5 = <<12 - 5=7>>7") == ("* -",)
    assert operations("<<-5+3=-2>> <<3*-2=-6>> <<(2+3)÷5=1>> <<4x.5=2>>") == ("+ * + / *",)
    assert operations("<<SQRT(16)=4>> <<50%*$3=1.5>>") == ("sqrt *",)
    assert operations("2+2=4 without brackets, <<5=5>>, <<a lot") == ()


def test_a_row_of_each_form_of_each_set_is_a_document(tmp_path: Path) -> None:
    forms = [(name, form) for name, known in document_sets().items() for form in known.forms]
    for number, (name, form) in enumerate(forms):
        # A file of the Times articles has the labels of one criterion.
        chosen = choose_set(f"{name}__topic" if name == "inb_nytclustering" else name)
        assert {f"{name}__{each.name}" for each in chosen.criteria} <= set(task_names())
        assert all(each.criterion.description for each in chosen.criteria)
        row: dict[str, Any] = {column: f"the {column} #~# and more" for column in form.columns}
        labels = {each.labels.column: f"the {each.labels.column}" for each in chosen.criteria if each.labels}
        lists = {"choices": ["one", "two"]} if "choices" in form.columns else {}
        path = write_lines(tmp_path / f"{number}.jsonl", [{**labels, **row, **lists, "further": None}])
        (document,) = read_documents(path, compose=chosen.reader).documents
        for column in set(form.columns) - set(lists):
            assert f"the {column}" in document.text
        assert ("#~#" in document.text) == (not form.until)
        assert "(A) one\n(B) two" in document.text or not lists
        assert set(document.labels) == {each.name for each in chosen.criteria if each.labels}


def test_a_file_of_another_shape_is_refused_with_the_columns_expected(tmp_path: Path) -> None:
    docs = write_lines(tmp_path / "x.jsonl", [{"hint": "h", "answer": "a"}])
    with pytest.raises(
        UsageError, match=r"expects the columns clue, answer. Available: hint, answer. Any CSV"
    ):
        api.build("multiview", tmp_path / "x", set="crossword", docs=str(docs), judge="embedded")


def test_an_unknown_set_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="Did you mean 'gsm8k__arithmetic'"):
        choose_set("gsm8k__aritmetic")
    with pytest.raises(UsageError, match=r"Available: gsm8k, crossword, rocstories"):
        choose_set("nothing")


def test_public_names_word_count_and_lists_are_known() -> None:
    assert choose_set("crossword_clues__topic").name == "crossword"
    assert [each.name for each in choose_set("rocstories__word_count").criteria] == ["word_count"]
    assert known_criterion("rocstories", "presence_of_maslow_hierarchy") is not None
    assert (listed("['Coco', 'Up', 'Up']"), listed("Coco")) == (("Coco", "Up"), ("Coco",))
    with pytest.raises(UsageError, match="labels of one criterion. Name which: inb_nytclustering__topic"):
        choose_set("nytclustering")
