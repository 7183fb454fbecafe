"""A run as a table: every cell typed, every text whole, and nothing that a spreadsheet would obey."""

from __future__ import annotations

import csv
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopback import Loopback
from records import record, store
from runs import run_small
from sealegs.errors import DataError, RunConflict, StorageError, UsageError
from sealegs.files import lock
from sealegs.files.columns import cells, columns, titles
from sealegs.files.frame import ROWS_PER_CHUNK
from sealegs.harness.folder import Run
from sealegs.page.format import csv_safe
from sealegs.report.export import export
from sealegs.types import Logprobs, Response

pytestmark = pytest.mark.slow

NASTY = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "  =1", "＝1+1", "\n- a list"]


def said(*texts: str) -> tuple[Response, ...]:
    return tuple(Response(status="ok", text=text) for text in texts)


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_parquet_holds_every_sample_with_its_types(tmp_path: Path) -> None:
    records = [
        record(
            number, answers=said(f"first {number}", f"second {number}"), tags={"lang": "en", "level": number},
            inputs={"question": f"Q{number}?", "samples": 5, "rate": number / 3, "fresh": number > 1,
                    "docs": ["a", "b"], "published": {"x": 1}},
            values={"mean_similarity": number / 7, "drift": None},
        )
        for number in range(3)
    ]  # fmt: skip
    (path,) = export(store(tmp_path / "run", records), "parquet")
    assert path == tmp_path / "run" / "export" / "records.parquet"
    frame = pl.read_parquet(path)
    assert dict(frame.schema) == {
        "sample": pl.String, "group": pl.String, "lang": pl.String, "level": pl.Int64, "answered": pl.Int64,
        "status_ok": pl.Int64, "status_refused": pl.Int64, "status_truncated": pl.Int64,
        "status_unparsed": pl.Int64, "status_error": pl.Int64, "mean_similarity": pl.Float64,
        "drift": pl.Float64, "answer": pl.String, "answer_2": pl.String, "question": pl.String,
        "samples": pl.Int64, "rate": pl.Float64, "fresh": pl.Boolean,
    }  # fmt: skip
    assert frame["mean_similarity"].to_list() == [0, 1 / 7, 2 / 7]
    assert frame["drift"].to_list() == [None] * 3
    assert frame["answer_2"].to_list() == ["second 0", "second 1", "second 2"]
    assert frame["fresh"].to_list() == [False, False, True]


def test_a_run_that_is_written_is_not_exported(tmp_path: Path) -> None:
    run = store(tmp_path / "run", [record(0, answers=said("one", "two"))])
    with lock.writing(run.path), pytest.raises(RunConflict):
        export(run, "csv")


def test_csv_has_the_same_cells_as_parquet(tmp_path: Path) -> None:
    answers = said('one, "two"\nthree', "안녕 你好")
    records = [record(n, answers=answers, inputs={"rate": n / 7}) for n in range(2 * ROWS_PER_CHUNK + 3)]
    run = store(tmp_path / "run", records)
    frames = pl.read_csv(*export(run, "csv")), pl.read_parquet(*export(run, "parquet"))
    assert frames[0].equals(frames[1])
    assert frames[0].height == 2 * ROWS_PER_CHUNK + 3


def test_a_formula_is_defused_in_csv_and_left_alone_in_parquet(tmp_path: Path) -> None:
    records = [record(answers=said(text), inputs={"query": text}, tags={"domain": text}) for text in NASTY]
    run = store(tmp_path / "run", records)
    for row in read_csv(*export(run, "csv")):
        for cell in (row["answer"], row["query"], row["domain"]):
            assert not cell.lstrip().startswith(("=", "+", "-", "@", "＝"))
            assert cell[0] not in "\t\r\n"
    assert pl.read_parquet(*export(run, "parquet"))["answer"].to_list() == NASTY


@given(st.text())
def test_no_cell_is_a_formula_or_has_a_control_character(text: str) -> None:
    cell = csv_safe(text)
    assert not any(ord(char) < 0x20 and char not in "\n\t" for char in cell)
    assert not cell.startswith(("=", "@", "\t", "\r", "\n"))
    if cell.startswith(("+", "-")):
        float(cell.replace(",", "."))


def test_numbers_stay_numbers_and_plain_text_stays_as_it_is(tmp_path: Path) -> None:
    run = store(tmp_path / "run", [record(values={"drift": -0.25}, inputs={"rate": -3}, answers=said("-5"))])
    (row,) = read_csv(*export(run, "csv"))
    assert (row["drift"], row["rate"], row["answer"]) == ("-0.25", "-3", "-5")
    assert csv_safe("It's = fine\r\n안녕") == "It's = fine\n안녕"


def test_a_missing_answer_is_null_and_an_empty_one_is_empty_text(tmp_path: Path) -> None:
    records = [
        record(0, answers=(Response(status="error", reason="HTTP 500"), *said(""))),
        record(1, answers=said("one", "two")),
    ]
    run = store(tmp_path / "run", records)
    frame = pl.read_parquet(*export(run, "parquet"))
    assert frame["answer"].to_list() == [None, "one"]
    assert frame["answer_2"].to_list() == ["", "two"]
    assert frame["status_error"].to_list() == [1, 0]


def test_log_probabilities_are_not_a_text() -> None:
    logprobs = Response(status="ok", logprobs=Logprobs((" Paris",), (-0.1,)))
    failed = Response(status="error", reason="timeout")
    rows = [record(0, answers=(logprobs, *said(" Paris"))), record(1, answers=(failed, *said(" Rome")))]
    names = titles(columns(rows))
    answers = [key for key in names if key[0] == "answer"]
    assert [names[key] for key in answers] == ["answer"]
    assert [cells(row)[answers[0]] for row in rows] == [" Paris", " Rome"]


def test_the_expected_answer_is_a_column_of_its_own_also_where_there_are_several() -> None:
    row = record(
        answers=said("Gus"), inputs={"query": "Who?", "answer": [["Fay Sand"], ["Gus Tide", "G. Tide"]]}
    )
    named = {name: cells(row)[key] for key, name in titles(columns([row])).items()}
    assert named["answer"] == "Gus"
    assert named["expected"] == '[["Fay Sand"],["Gus Tide","G. Tide"]]'


def test_columns_have_distinct_names_and_repeat_no_tag() -> None:
    row = record(
        answers=said("x"), tags={"pieces": 8, "category": "Facts", "noise": "0.4"}, values={"pieces": 11.0},
        inputs={"answer": "true", "category": "Facts", "noise": 0.4},
    )  # fmt: skip
    named = {name: cells(row)[key] for key, name in titles(columns([row])).items()}
    assert (named["pieces"], named["tag_pieces"]) == (11.0, 8)
    assert (named["answer"], named["expected"]) == ("x", "true")
    assert (named["noise"], named["input_noise"]) == ("0.4", 0.4)
    assert named["category"] == "Facts"
    assert "input_category" not in named


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ((1, 2.5), float),
        ((1, "a"), str),
        ((True, False), bool),
        ((1, 2**80), str),
        ((None, 3), int),
        ((None,), str),
    ],
)
def test_a_column_has_the_type_that_holds_all_of_it(given: tuple[Any, ...], kind: type) -> None:
    rows = [record(number, inputs={"x": value}) for number, value in enumerate(given)]
    assert columns(rows)["input", "x"] is kind


@pytest.mark.parametrize("form", [pytest.param("csv", marks=pytest.mark.full), "parquet"])
def test_a_run_larger_than_memory_is_written_piece_by_piece(tmp_path: Path, form: Any) -> None:
    """12,600 answers of 4,000 characters: 50 MB of text, of which Python holds a small part at a time."""
    texts = ([f"{number}-{turn} {'word ' * 800}" for turn in range(5)] for number in range(2520))
    run = store(tmp_path / "run", (record(number, answers=said(*five)) for number, five in enumerate(texts)))
    tracemalloc.start()
    try:
        (path,) = export(run, form)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20e6
    frame = pl.scan_parquet(path) if form == "parquet" else pl.scan_csv(path)
    assert frame.select(pl.len()).collect().item() == 2520


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("asked")
    items = [{"question_id": n, "domain": "FACTUAL", "level_1_text": f"Question {n}?"} for n in (1, 2, 3)]
    (folder / "q.json").write_bytes(
        msgspec.json.encode({"metadata": {"language": "English"}, "questions": items})
    )
    with Loopback() as server:
        return run_small("mirae", folder / "run", server, data=folder / "q.json")


def test_the_published_files_are_written_to_a_folder(asked: Run, tmp_path: Path) -> None:
    export(asked, "csv")  # a table of ours beside them is not one of theirs
    (path,) = export(asked, "published", tmp_path / "there")
    assert path == tmp_path / "there" / "MIRAE_loop_results_english.json"
    assert path.read_bytes() == (asked.path / "export" / path.name).read_bytes()
    assert export(asked, "published") == [asked.path / "export" / path.name]


def test_what_cannot_be_exported_says_why(tmp_path: Path) -> None:
    run = store(tmp_path / "run", [record()])
    with pytest.raises(UsageError, match=r"is a folder: give a file, such as .*records\.csv"):
        export(run, "csv", tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is a file: give a folder"):
        export(run, "published", tmp_path / "file")
    (run.path / "records.jsonl").unlink()
    with pytest.raises(DataError, match="not finished"):
        export(run, "csv")


def test_a_file_that_cannot_be_written_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise pl.exceptions.ComputeError("No space left on device")

    monkeypatch.setattr(pl.LazyFrame, "sink_parquet", full)
    with pytest.raises(StorageError, match="No space left"):
        export(store(tmp_path / "run", [record()]), "parquet", tmp_path / "out" / "x.parquet")
    assert list((tmp_path / "out").iterdir()) == []
