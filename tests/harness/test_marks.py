"""Marks: what people say of scores, kept beside the run and handed on; hostile content is data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sealegs as sl
from records import record, store
from sealegs.errors import DataError, UsageError
from sealegs.harness.folder import Run

HOSTILE = "=cmd|' /C calc'!A0 </script>\n\x00\u202e \ud800"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run of a benchmark that is not known here."""
    inputs = {"question": "@SUM(A1)?", "documents": ["one"]}
    return store(tmp_path / "run", [record(n, text=f"answer {n}", inputs=inputs) for n in range(3)])


def test_the_last_mark_of_a_sample_and_metric_counts(run: Run) -> None:
    run.mark("s0", "wrong", comment="no")
    run.mark("s1", "wrong", metric="x")
    run.mark("s0", "right", comment="yes, after all")
    run.mark("s0", "wrong", metric="x")
    run.mark("s1", "", metric="x")
    marks = run.marks()
    assert [(mark.sample, mark.metric, mark.verdict, mark.comment) for mark in marks] == [
        ("s0", "", "right", "yes, after all"),
        ("s0", "x", "wrong", ""),
    ]
    assert len((run.path / "marks.jsonl").read_bytes().splitlines()) == 5


def test_a_mark_has_all_that_it_is_about(run: Run) -> None:
    mark = run.mark("s2", comment=HOSTILE)
    assert run.marks() == [mark]
    assert mark.inputs == {"question": "@SUM(A1)?", "documents": ["one"]}
    assert [answer.text for answer in mark.answers] == ["answer 2"]
    assert mark.values == {"x": 1.0}
    assert (mark.verdict, mark.benchmark, mark.subject) == ("wrong", "unknown", "m")
    assert mark.comment == HOSTILE.replace("\ud800", "\ufffd")
    assert mark.is_about(run.samples().record(2))


def test_marks_survive_a_fresh_run_and_are_not_of_its_new_answers(run: Run) -> None:
    run.mark("s0")
    store(run.path, [record(0, text="another answer", inputs={"question": "?"})])
    (mark,) = run.marks()
    assert mark.answers[0].text == "answer 0"
    assert not mark.is_about(run.samples().record(0))
    (table,) = sl.export(run, to="parquet")
    assert pl.read_parquet(table)["marked"].to_list() == [None]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("s9",), "no sample"),
        (("s0", "bad"), "not a verdict"),
        (("s0", "wrong", "y"), "no value"),
        (("s0", "wrong", "x", "c" * 10_001), "at most"),
    ],
)
def test_what_cannot_be_marked_is_refused(arguments: tuple[Any, ...], problem: str, run: Run) -> None:
    with pytest.raises(UsageError, match=problem):
        run.mark(*arguments)
    assert not (run.path / "marks.jsonl").exists()


def test_a_link_is_neither_read_nor_written(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("mine\n")
    (run.path / "marks.jsonl").symlink_to(target)
    with pytest.raises(DataError, match="this is a link"):
        run.mark("s0")
    with pytest.raises(DataError, match="this is a link"):
        run.marks()
    assert target.read_text() == "mine\n"
