"""multiview's triplet files: which are read, what they may leave out, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import evenkeel as ek
from evenkeel.benchmarks.multiview.files import read_triplets
from evenkeel.errors import DataError, UsageError
from triplets import store, store_tools, triplet


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    return store_tools(tmp_path)


def test_a_language_is_refused_as_the_triplets_are_what_they_are(tools: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="multiview takes no --lang"):
        ek.run("multiview", data=tools, lang="ko", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_of_a_folder_that_was_built_the_triplets_are_taken(tools: Path, tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    for name, content in {"triplets.jsonl": tools.read_bytes(), "manifest.json": b"{}"}.items():
        (tmp_path / "made" / name).write_bytes(content)
    run = ek.run("multiview", data=tmp_path / "made", out=tmp_path / "run")
    assert len(list(run.records())) == 6


def test_bare_triplets_are_numbered_by_their_lines_and_ids_may_be_numbers(tmp_path: Path) -> None:
    bare = {"criterion": "use", "anchor": "a", "positive": "b", "negative": "c"}
    data = tmp_path / "t.jsonl"
    data.write_text("".join(f"{json.dumps(line)}\n" for line in (bare, {**bare, "anchor_id": 7})))
    first, second = read_triplets(data)
    assert (first.anchor_id, first.positive_id, first.negative_id) == ("1-anchor", "1-positive", "1-negative")
    assert (second.anchor_id, second.positive_id, second.task) == ("7", "2-positive", "use")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"task": "a__b"}', "line 2"),
        (json.dumps({**json.loads(b'{"x": 1}'), "anchor": 3}), "line 2"),
        ("nonsense", "line 2"),
    ],
)
def test_a_line_that_is_no_triplet_is_named(line: str, says: str, tmp_path: Path) -> None:
    data = store(tmp_path / "t.jsonl", [triplet(0)])
    with data.open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(DataError, match=says):
        ek.run("multiview", data=data, out=tmp_path / "run")


def test_an_empty_document_is_named(tmp_path: Path) -> None:
    data = store(tmp_path / "t.jsonl", [triplet(0), triplet(1, negative=" ")])
    with pytest.raises(DataError, match=r"line 2, field 'negative': the document is empty"):
        ek.run("multiview", data=data, out=tmp_path / "run")


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ('"anchor":"', '"start":"', "sample.inputs': the field 'anchor' is missing"),
        ('"picks":{"bm25":["', '"picks":{"bm25":["maybe ', "score.detail.picks"),
    ],
)
def test_a_record_of_another_shape_is_refused_by_its_line_and_field(
    old: str, new: str, field: str, tools: Path, tmp_path: Path
) -> None:
    run = ek.run("multiview", data=tools, out=tmp_path / "run")
    path = run.path / "records.jsonl"
    first, second, *others = path.read_text().splitlines(keepends=True)
    assert old in second
    path.write_text("".join([first, second.replace(old, new), *others]))
    with pytest.raises(DataError, match=f"line 2, field '{field}"):
        list(ek.load_run(run.path).records())
