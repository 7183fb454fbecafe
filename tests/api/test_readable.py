"""Which benchmark can read which data."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import sealegs as sl
from sealegs.api.setup import data_problem

ROWS = {
    "miron": {"prefix": "a b", "target": " c", "category": "Logic"},
    "rgb": {"id": 1, "query": "who?", "answer": ["she"], "positive": ["she did"], "negative": ["no one"]},
    "multiview": {"criterion": "topic", "anchor": "a b", "positive": "a c", "negative": "d e"},
}


def write(folder: Path, benchmark: str) -> Path:
    path = folder / f"{benchmark}_en.jsonl"
    path.write_bytes(msgspec.json.encode(ROWS[benchmark]) + b"\n")
    return path


@pytest.mark.parametrize("benchmark", ["mirae", "rgb", "miron", "multiview"])
def test_a_benchmark_reads_its_data_and_no_others(benchmark: str, questions: Path, tmp_path: Path) -> None:
    paths = {"mirae": questions} | {name: write(tmp_path, name) for name in ROWS}
    problems = {name: data_problem(benchmark, path) for name, path in paths.items()}
    assert [name for name, problem in problems.items() if not problem] == [benchmark]
    others = {name: problem for name, problem in problems.items() if name != benchmark}
    assert all(str(paths[name]) in problem for name, problem in others.items())


def test_a_language_that_the_file_leaves_open_is_not_a_problem(questions: Path) -> None:
    content = msgspec.json.decode(questions.read_bytes())
    questions.write_bytes(msgspec.json.encode({"questions": content["questions"]}))
    assert data_problem("mirae", questions) == ""
    with pytest.raises(sl.UsageError, match="give --lang"):
        sl.dry_run("mirae", "embedded", data=questions)


def test_data_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    assert "absent" in data_problem("rgb", tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    assert "has no files" in data_problem("rgb", tmp_path / "empty")
