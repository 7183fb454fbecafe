"""MIRON results that were recorded elsewhere: scored as they stand, and what is missing stays missing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import sealegs as sl
from benchmarks.miron.test_miron_files import GOOD
from jsonlines import read_lines, write_lines
from sealegs.benchmarks.miron.benchmark import Miron
from sealegs.errors import DataError
from sealegs.types import Record


def results(tmp_path: Path, *lines: dict[str, Any]) -> Path:
    return write_lines(
        tmp_path / "results_en.jsonl", [{**GOOD, "generated": " ships", **line} for line in lines]
    )


def only(run: sl.Run) -> Record:
    (record,) = run.records()
    return record


def test_a_recorded_text_is_scored_as_it_stands(tmp_path: Path) -> None:
    """Where it was cut is not known, and nothing of it is taken away."""
    file = results(tmp_path, {"generated": " ships\nsail", "target_confidence": 40})
    record = only(sl.score("miron", file, out=tmp_path / "run"))
    assert record.score.values["lev_score"] == pytest.approx(100 * 6 / 11)
    assert record.score.values["target_confidence"] == pytest.approx(40)


def test_recorded_results_without_any_confidence_are_whole(tmp_path: Path) -> None:
    run = sl.score(
        "miron", results(tmp_path, {}, {"prefix": "x", "target_confidence": None}), out=tmp_path / "r"
    )
    assert run.headline.coverage == 1.0
    assert "target_confidence" not in run.summary
    assert any(note.warning for note in Miron.notes(run.spec, run.summary))


def test_what_is_missing_from_some_recorded_results_lowers_coverage(tmp_path: Path) -> None:
    file = results(
        tmp_path,
        {"target_confidence": 12.5},
        {"prefix": "x", "target_confidence": None},
        {"prefix": "y", "generated": None, "target_confidence": 0.0},
    )
    run = sl.score("miron", file, out=tmp_path / "run")
    # A text keeps its score where the confidence is missing, and the other way round.
    confidence = run.summary["target_confidence"]
    assert (run.headline.statuses, run.headline.coverage) == ({"ok": 2, "error": 1}, 2 / 3)
    assert (run.headline.value, run.headline.n) == (100, 2)
    assert (confidence.statuses, confidence.coverage) == ({"ok": 2, "error": 1}, 2 / 3)
    assert confidence.value == pytest.approx(6.25)
    assert confidence.n == 2
    # The confidence is a mean over tokens, whose number the file does not have.
    assert not {"knows", "answer_probability"} & set(run.summary)
    # What has no figure is exported as null, and the export can be read again.
    (again,) = (run.path / "export").iterdir()
    assert [line["generated"] for line in read_lines(again)] == [" ships", " ships", None]
    assert [line["target_confidence"] for line in read_lines(again)] == [12.5, None, 0.0]
    assert sl.score("miron", again, out=tmp_path / "again").headline == run.headline


def test_results_in_csv_are_read(tmp_path: Path) -> None:
    path = tmp_path / "results_ru.csv"
    path.write_text("prefix,target,category,generated,lev_score,target_confidence\na, b,Logic, b,100,\n")
    record = only(sl.score("miron", path, out=tmp_path / "run"))
    assert record.sample.inputs.published == {"lev_score": 100.0}
    assert record.score.values["lev_score"] == 100


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"generated": ["a"]}, "line 1: the field 'generated' should be text, not a list."),
        ({"lev_score": "high"}, "line 1, field 'lev_score': expected a number or nothing, got 'high'"),
    ],
)
def test_a_result_that_cannot_be_read_is_named_by_line(
    tmp_path: Path, line: dict[str, Any], said: str
) -> None:
    with pytest.raises(DataError, match=re.escape(said)):
        sl.score("miron", results(tmp_path, line), out=tmp_path / "run")
    with pytest.raises(DataError, match="line 1: the field 'generated' is missing"):
        sl.score("miron", write_lines(tmp_path / "x_en.jsonl", [GOOD]), out=tmp_path / "run")


def test_rows_of_the_same_prefix_keep_their_own_answers(tmp_path: Path) -> None:
    file = results(
        tmp_path,
        {"generated": " ships", "target_confidence": 50},
        {"generated": " sails", "target_confidence": 10},
    )
    first, second = sl.score("miron", file, out=tmp_path / "run").records()
    assert (first.score.detail.generated, second.score.detail.generated) == (" ships", " sails")
    assert second.score.values["target_confidence"] == pytest.approx(10)


@pytest.mark.parametrize("confidence", ["nan", "250", "-5"])
def test_a_confidence_that_cannot_be_is_named_by_its_line(tmp_path: Path, confidence: str) -> None:
    file = tmp_path / "results_en.csv"
    file.write_text(f"prefix,target,category,generated,target_confidence\nOne,two,Logic,two,{confidence}\n")
    with pytest.raises(DataError, match=r"line 2: the field 'target_confidence' is"):
        sl.score("miron", file, out=tmp_path / "run")
