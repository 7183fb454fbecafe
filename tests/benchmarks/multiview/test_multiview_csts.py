"""C-STS, and a folder of the public tool's output, from files to figures."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import sealegs as sl
from sealegs.benchmarks.multiview.data import read_triplets
from sealegs.errors import DataError

COLUMNS = ("sentence1", "sentence2", "condition", "label")
PAIRS = [
    ("A man plays a harp.", "A man plays a piano.", "the instrument", "1"),
    ("A man plays a harp.", "A man plays a piano.", "whether music is made", "5"),
    ("A dog runs on sand.", "Two dogs run on grass.", "the number of animals", "2"),
    ("A dog runs on sand.", "Two dogs run on grass.", "the kind of animal", "5"),
    ("One row alone.", "It has no other.", "the length", "3"),
]


def csts(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    return path


def test_two_conditions_of_a_pair_are_asked_about_both_ways(tmp_path: Path) -> None:
    data = csts(tmp_path / "csts_validation.csv", PAIRS)
    run = sl.run("multiview", data=data, method=["bm25"], out=tmp_path / "run")
    records = list(run.records())
    assert [record.sample.inputs.criterion for record in records] == [pair[2] for pair in PAIRS[:4]]
    assert {record.sample.tags["task"] for record in records} == {"csts__condition"}
    for different, alike in zip(records[::2], records[1::2], strict=True):
        assert different.sample.inputs.positive == alike.sample.inputs.negative
        assert "are alike" in alike.sample.inputs.positive
    figure = run.summary["both_ways"]
    assert (figure.value, figure.n) == (0, 2)  # BM25 does not read the condition
    assert figure.clusters == 2  # pairs are independent of each other


@pytest.mark.parametrize(("label", "said"), [("-1", "the label is hidden"), ("much", "expected a number")])
def test_a_label_that_is_none_is_named(label: str, said: str, tmp_path: Path) -> None:
    rows = [dict(zip(COLUMNS, (*PAIRS[0][:3], label), strict=True))]
    path = tmp_path / "csts.jsonl"
    path.write_text(json.dumps(rows[0]) + "\n")
    with pytest.raises(DataError, match=f"line 1.*{said}"):
        read_triplets(path)


def test_a_folder_with_a_folder_for_each_task_is_read(tmp_path: Path) -> None:
    for task in ("gsm8k__arithmetic", "rocstories__theme"):
        folder = tmp_path / "triplets" / task
        folder.mkdir(parents=True)
        names = {role: f"{task} {role}" for role in ("anchor", "positive", "negative")}
        entry = {"triplet_id": 0, **{f"{role}_id": number for number, role in enumerate(names)}, **names}
        (folder / "triplets.json").write_text(json.dumps([entry]))
        (folder / "documents.jsonl").write_text(json.dumps({"doc_id": 0, "document": "a"}) + "\n")
    run = sl.run("multiview", data=tmp_path / "triplets", method=["bm25"], out=tmp_path / "run")
    assert {record.sample.tags["task"] for record in run.records()} == {
        "gsm8k__arithmetic",
        "rocstories__theme",
    }
