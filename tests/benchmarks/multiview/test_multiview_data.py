"""multiview's triplet files: which are read, what they may leave out, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sealegs as sl
from loopback import Loopback
from sealegs.benchmarks.multiview.data import Triplet, read_triplets
from sealegs.errors import DataError
from sealegs.report.notes import notes_of
from triplets import store, triplet

pytestmark = pytest.mark.slow


def test_bare_triplets_are_numbered_by_their_lines_and_ids_may_be_numbers(tmp_path: Path) -> None:
    bare = {"criterion": "use", "anchor": "a", "positive": "b", "negative": "c"}
    data = tmp_path / "t.jsonl"
    data.write_text(
        "".join(f"{json.dumps(line)}\n" for line in (bare, {**bare, "anchor": "d", "anchor_id": 7}))
    )
    first, second = read_triplets(data)
    assert (first.anchor_id, first.positive_id, first.negative_id) == ("1-anchor", "1-positive", "1-negative")
    assert (second.anchor_id, second.positive_id, second.task) == ("7", "2-positive", "use")


@pytest.mark.parametrize("line", ['{"task": "a__b"}', "nonsense"])
def test_a_line_that_is_no_triplet_is_named(line: str, tmp_path: Path) -> None:
    data = store(tmp_path / "t.jsonl", [triplet(0)])
    with data.open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(DataError, match="line 2"):
        sl.run("multiview", data=data, out=tmp_path / "run")


# The same document or triplet twice


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"positive": " anchor  2 of tools__use"}, "line 2: anchor and positive are the same document"),
        ({"negative": "good 2 of tools__use\n"}, "line 2: positive and negative are the same document"),
        ({"negative": " "}, "line 2: the document in the field 'negative' is empty"),
    ],
)
def test_the_same_document_twice_in_a_triplet_is_refused(
    fields: dict[str, str], message: str, tmp_path: Path
) -> None:
    data = store(tmp_path / "t.jsonl", [triplet(1), triplet(2, **fields)])
    with pytest.raises(DataError, match=message):
        read_triplets(data)


def test_twenty_copies_of_a_triplet_are_one(tmp_path: Path) -> None:
    copies = [triplet(0, anchor_id=str(n), positive=f"good  0 of{' ' * n} tools__use") for n in range(1, 21)]
    data = store(tmp_path / "t.jsonl", [*copies, triplet(1), triplet(0, task="tools__age")])
    run = sl.run("multiview", data=data, out=tmp_path / "run")
    assert [record.sample.inputs.copies for record in run.records()] == [20, 1, 1]
    assert run.summary["accuracy"].n == 3
    assert run.spec.data["copies"] == 19
    texts = [note.text for note in notes_of(run)]
    assert "19 copies of triplets were left out: each triplet counts once." in texts
    again = sl.run("multiview", data=run.path / "export" / "triplets.jsonl", out=tmp_path / "again")
    assert again.spec.data["copies"] == 19


def test_triplets_that_contradict_each_other_are_refused_by_both_lines(tmp_path: Path) -> None:
    one = triplet(0)
    swapped = triplet(0, positive=one.negative, negative=one.positive)
    other = triplet(0, task="tools__age", positive=one.negative, negative=one.positive)
    assert len(read_triplets(store(tmp_path / "a.jsonl", [one, other]))) == 2
    with pytest.raises(DataError, match="line 3: this triplet contradicts line 1"):
        read_triplets(store(tmp_path / "b.jsonl", [one, triplet(1), swapped]))
    with pytest.raises(DataError, match=r"c.jsonl, line 1: this triplet contradicts .*a.jsonl, line 1"):
        read_triplets(tmp_path / "a.jsonl", store(tmp_path / "c.jsonl", [swapped]))


# Exports


def full(number: int) -> Triplet:
    """A triplet with every field that a method reads."""
    return triplet(
        number,
        instruction=f"Find a tool of use {number}",
        hints=("h",),
        quality=4,
        anchor_summary=f"It is for {number}.",
        positive_summary="It is for the same.",
        negative_summary="It is for something else.",
        labels={"anchor": {"use": "cut"}, "positive": {"use": "cut"}, "negative": {"use": "dig"}},
        tags={"anchor": ("sharp",)},
        built_by="openai:judge",
        confirmed_by="openai:other",
        hard_for="bm25",
    )


def test_a_rerun_of_an_export_gives_the_same_margins(tmp_path: Path) -> None:
    data = store(tmp_path / "t.jsonl", [full(n) for n in range(3)])
    embedder = "embed:openai:loop"
    methods = ["bm25", embedder, f"{embedder}+instruct", "judge:openai:loop+annotations"]
    with Loopback() as server:
        settings: dict[str, Any] = {"method": methods, "base_url": server.url}
        first = sl.run("multiview", data=data, out=tmp_path / "first", **settings)
        export = first.path / "export"
        assert read_triplets(export / "triplets.jsonl") == read_triplets(data)
        margins = [record.score.detail.margins for record in first.records()]
        assert all(len(each) == 3 for each in margins)
        prompts = set(server.answered)
        assert any("It is for 0." in prompt for prompt in prompts)
        again = sl.run("multiview", data=export / "triplets.jsonl", out=tmp_path / "again", **settings)
        assert [record.score.detail.margins for record in again.records()] == margins
        assert set(server.answered) == prompts
    repeated = again.path / "export" / "triplets.jsonl"
    assert repeated.read_bytes() == (export / "triplets.jsonl").read_bytes()


PUBLIC = {
    "triplet_id": 0, "anchor_id": 4, "positive_id": 7, "negative_id": 2,
    "anchor": "Question: 1", "positive": {"text": "Question: 2", "subject": "s"}, "negative": "Question: 3",
    "quality_assessment_with_annotations": {"rating": 3, "label": "trivial", "class": "x", "reasoning": "r"},
    "anchor_annotation": {"category": "sums", "tags": {"many": True, "few": False},
                          "summary": [{"annotation_trace": "hm", "final_summary": "Adds."}]},
    "positive_annotation": {"summary": {"final_summary": ["a", "b"]}},
    "negative_annotation": {"summary": "Divides."},
}  # fmt: skip


def test_the_public_shape_is_read_from_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "gsm8k__arithmetic__hn__300"
    folder.mkdir()
    (folder / "triplets.json").write_text(json.dumps([PUBLIC], indent=2))
    (folder / "documents.jsonl").write_text('{"doc_id": 0, "document": "x"}\n')
    (read,) = read_triplets(folder / "triplets.json")
    assert (read.task, read.criterion) == ("gsm8k__arithmetic", "arithmetic")
    assert read.description.startswith("Which arithmetic operations solve the problem")
    assert read.documents == ("Question: 1", "Question: 2", "Question: 3")
    assert (read.anchor_id, read.quality, read.tags) == ("4", 3, {"anchor": ("many",)})
    assert (read.anchor_summary, read.positive_summary, read.negative_summary) == (
        "Adds.",
        '["a","b"]',
        "Divides.",
    )
    assert read.labels == {"anchor": {"arithmetic": "sums"}}
    run = sl.run("multiview", data=folder, out=tmp_path / "run")
    assert run.summary["accuracy"].n == 1
    config = {"document_set": "set", "criterion": "kind", "criterion_description": "What kind."}
    (folder / "triplet_config.json").write_text(json.dumps(config))
    (read,) = read_triplets(folder / "triplets.json")
    assert (read.task, read.description) == ("set__kind", "What kind.")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([PUBLIC], "the file does not name its criterion"),
        ([{**PUBLIC, "criterion": "c", "anchor": {"image": "x.png"}}], "row 1: .*'anchor' has no text"),
        ([{**PUBLIC, "criterion": "c", "labels": 5}], "row 1, field 'labels': expected"),
        ([], "there is no triplet in this file"),
    ],
)
def test_a_public_file_that_cannot_be_used_is_named(entries: list[Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "triplets.json").write_text(json.dumps(entries))
    with pytest.raises(DataError, match=message):
        read_triplets(tmp_path / "triplets.json")
