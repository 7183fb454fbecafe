"""Looking through samples: the table, what matches, the record of a row; broken and changing files."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pytest

from records import record, store
from sealegs.errors import DataError, UsageError
from sealegs.files import record_index


def test_samples_are_chosen_by_their_outcome(tmp_path: Path) -> None:
    records = [
        record(0, values={"lev_score": 100.0, "accepted_match": 1.0}),
        record(1, values={"lev_score": None}),
        record(2, values={"other": None}),  # the headline is not asked of it
        record(3, values={"lev_score": 1.0}, status="error"),
        record(4, values={"lev_score": 40.0, "accepted_match": 0.0}, status="truncated"),
        record(5, values={"lev_score": None}, status="refused"),
    ]
    samples = store(tmp_path / "run", records, "miron").samples()
    assert {name: samples.select(outcome=name) for name in samples.outcomes} == {
        "wrong": [4],
        "right in part": [],
        "right": [0],
        "cut off": [4],
        "no answer": [5],
        "error": [1, 3],
    }
    assert samples.select(outcome=("wrong", "cut off")) == [4]
    assert samples.select(outcome=("right", "cut off")) == []


def test_of_several_methods_that_of_the_verdict_is_right_or_wrong(tmp_path: Path) -> None:
    values = [(1.0, 1.0), (1.0, 0.0), (0.0, 0.0), (1.0, None)]
    records = [record(n, values={"accuracy@a": a, "accuracy@b": b}) for n, (a, b) in enumerate(values)]
    shares = {"both_ways/method=a": 0.0, "both_ways/method=b": 0.5, "both_ways": 0.25}
    run = store(tmp_path / "run", records, "multiview", subjects=("a", "b"), summary=shares)
    samples = run.samples()
    assert "Highest of 2 methods: b" in run.verdict  # though a is right more often
    assert samples.decided_by == "b"
    assert samples.select(outcome="right") == [0]
    assert samples.select(outcome="wrong") == [1, 2]


def test_a_prompt_with_some_right_answers_is_right_in_part(tmp_path: Path) -> None:
    shares = (1.0, 0.4, 0.0)
    records = [
        record(n, values={"mean_similarity": 0.5, "right_rate": share, "right_every_time": float(share == 1)})
        for n, share in enumerate(shares)
    ]
    samples = store(tmp_path / "run", records, "mirae").samples()
    assert samples.correct.tolist() == [1.0, 0.4, 0.0]
    chosen = {name: samples.select(outcome=name) for name in samples.outcomes if samples.select(outcome=name)}
    assert chosen == {"wrong": [2], "right in part": [1], "right": [0]}


def test_rows_are_chosen_by_tags_and_sorted_with_missing_values_last(tmp_path: Path) -> None:
    amounts = [3.0, None, 1.0, 2.0]
    records = [
        record(n, tags={"level": n % 3, "lang": "en" if n else "ko"}, values={"x": amount})
        for n, amount in enumerate(amounts)
    ]
    samples = store(tmp_path / "run", records).samples()
    assert samples.select(sort="x") == [2, 3, 0, 1]
    assert samples.select(sort="x", descending=True) == [0, 3, 2, 1]
    assert samples.select(tags={"level": 0}) == [0, 3]
    assert samples.select(tags={"level": ["0", 2], "lang": ["en"]}) == [2, 3]
    with pytest.raises(UsageError, match="no tag 'levels'"):
        samples.select(tags={"levels": 1})
    assert samples.select(sort="level", descending=True) == [2, 1, 0, 3]
    with pytest.raises(UsageError, match="no tag or value 'nothing'"):
        samples.select(sort="nothing")


@pytest.mark.parametrize(
    ("search", "rows"),
    [
        ("STRASSE", [0]),
        ("ΟΔΟΣ", [1]),  # a final sigma is a sigma
        ('said "no\\yes"\n/', [2]),
        ("deep inside", [3]),
        ("\ufffd alone", [4]),
        (".*", []),
        ("documents", []),  # the name of a field
    ],
)
def test_texts_are_found_in_any_case_and_script(search: str, rows: list[int], tmp_path: Path) -> None:
    records = [
        record(0, text="in der Straße"),
        record(1, text="η οδος της"),
        record(2, text='He said "No\\yes"\n/ and left'),
        record(3, inputs={"documents": [{"parts": [["x", "Deep Inside"]]}]}),
        record(4, text="half a pair HALF alone"),
    ]
    run = store(tmp_path / "run", records)
    path = run.path / "records.jsonl"
    path.write_bytes(path.read_bytes().replace(b"HALF", b"\\ud800"))
    assert run.samples().select(search=search) == rows


def test_a_record_is_read_by_its_row_and_related_ones_by_their_group(tmp_path: Path) -> None:
    run = store(tmp_path / "run", [record(n, text=f"text {n}") for n in range(5)])
    samples = run.samples()
    assert [samples.record(row) for row in range(5)] == list(run.records())
    assert samples.row_of("s3") == 3
    assert samples.row_of("s9") is None
    assert samples.related(2) == [3]
    assert len(samples) == 5


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"sample": {"id": "s9", "gro', "line 3.*not JSON: it ends too early"),
        (b'{"sample": 1}\n', "line 3"),
        (b'{"sample":{"id":"\xff","group":"g","tags":{},"inputs":{}}}\n', "line 3"),
        (b'{"sample":{"id":"a","group":"g","tags":{"n":1e999},"inputs":{}}}\n', "line 3.*too large"),
    ],
)
def test_a_broken_line_is_named(line: bytes, problem: str, tmp_path: Path) -> None:
    run = store(tmp_path / "run", [record(0), record(1)])
    with (run.path / "records.jsonl").open("ab") as file:
        file.write(line)
    for read in (run.samples, lambda: list(run.records())):
        with pytest.raises(DataError, match=problem):
            read()


def test_a_run_that_is_scored_again_meanwhile_is_noticed(tmp_path: Path) -> None:
    run = store(tmp_path / "run", [record(0, text="before")])
    before = run.samples()
    store(tmp_path / "run", [record(0, text="later, and longer"), record(1)])
    with pytest.raises(DataError, match="written again since its samples were listed"):
        before.record(0)
    with pytest.raises(DataError, match="written again"):
        before.select(search="before")
    assert len(run.samples()) == 2


def test_another_link_to_the_file_changes_nothing_that_is_listed(tmp_path: Path) -> None:
    run = store(tmp_path / "run", [record(0)])
    before, file = run.samples(), run.path / "records.jsonl"
    changed = file.stat().st_ctime_ns
    while file.stat().st_ctime_ns == changed:  # of a step of the clock
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").hardlink_to(file)
    assert before.record(0) == record(0)


def test_a_stored_index_is_read_while_the_file_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEALEGS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(record_index, "STORED_FROM_BYTES", 0)
    records = [record(n, tags={"level": n, "lang": "en"}, values={"x": n / 4}) for n in range(4)]
    run = store(tmp_path / "run", records)
    first = run.columns
    (stored,) = (tmp_path / "cache" / "indexes").iterdir()
    with monkeypatch.context() as patched:
        patched.delattr(record_index, "index_of")
        record_index.record_index.cache_clear()
        np.testing.assert_equal(run.columns._asdict(), first._asdict())
        assert run.samples().record(3) == records[3]
    whole = stored.read_bytes()
    for damaged in (whole[:20], whole.replace(struct.pack("d", 0.25), struct.pack("d", 0.5))):
        assert damaged != whole
        stored.write_bytes(damaged)
        record_index.record_index.cache_clear()
        np.testing.assert_equal(run.columns._asdict(), first._asdict())
    _rewrite_unseen(run.path / "records.jsonl", b'"x":0.25', b'"x":0.75')
    assert run.columns.values["x"].tolist() == [0, 0.75, 0.5, 0.75]


def _rewrite_unseen(path: Path, before: bytes, after: bytes) -> None:
    """Change a file, and set its time back: its size, time and number are as they were."""
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(before, after))
    while path.stat().st_ctime_ns == status.st_ctime_ns:  # of a step of the clock
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
