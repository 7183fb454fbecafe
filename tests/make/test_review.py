"""Looking through a data set: decisions by content, and exports that a run reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import evenkeel as ek
from evenkeel.errors import DataError, UsageError
from evenkeel.page.view import Facts, Text

ROWS = [{"id": str(n), "prefix": f"One, two, {n}", "target": " four", "category": "Logic"} for n in range(4)]


def write_lines(path: Path) -> None:
    path.write_bytes(b"\n\n".join(map(msgspec.json.encode, ROWS)))


def write_list(path: Path) -> None:
    path.write_bytes(msgspec.json.encode(ROWS))


def write_document(path: Path) -> None:
    path.write_bytes(
        msgspec.json.format(msgspec.json.encode({"about": {"total_rows": 4, "by": "me"}, "rows": ROWS}))
    )


def rows_of(path: Path) -> list[Any]:
    return [dict(row.fields) for row in ek.review(path).rows]


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("data.jsonl", write_lines),
        ("data.json", write_lines),
        ("data.json", write_list),
        ("data.json", write_document),
    ],
)
def test_what_is_accepted_is_written_in_the_same_format(
    tmp_path: Path, name: str, write: Callable[[Path], None]
) -> None:
    write(tmp_path / name)
    review = ek.review(tmp_path)
    assert [row.fields["id"] for row in review.rows] == ["0", "1", "2", "3"]
    review.decide(0, "accepted")
    review.decide(2, "accepted")
    review.decide(3, "rejected")
    assert review.counts() == {"accepted": 2, "rejected": 1, "undecided": 1}
    assert review.next_undecided() == review.next_undecided(after=1) == 1
    [path] = review.export()
    assert path == tmp_path / "accepted" / name
    assert rows_of(path) == [ROWS[0], ROWS[2]]
    if write is write_document:
        assert msgspec.json.decode(path.read_bytes())["about"]["total_rows"] == 2
    [path] = review.export(undecided=True)
    assert rows_of(path) == ROWS[:3]


def test_decisions_are_read_again_and_the_last_one_counts(tmp_path: Path) -> None:
    write_lines(tmp_path / "data.jsonl")
    first = ek.review(tmp_path)
    first.decide(0, "rejected")
    first.decide(0, "accepted")
    first.decide(1, "rejected")
    second = ek.review(tmp_path)
    assert [second.verdict(index) for index in range(4)] == ["accepted", "rejected", *["undecided"] * 2]
    first.decide(1, "undecided")
    assert ek.review(tmp_path).verdict(1) == "undecided"
    assert len((tmp_path / "review.jsonl").read_bytes().splitlines()) == 4


def test_a_rebuilt_row_is_undecided_again(tmp_path: Path) -> None:
    write_lines(tmp_path / "data.jsonl")
    review = ek.review(tmp_path)
    review.decide(0, "accepted")
    review.decide(1, "rejected")
    changed = [{**ROWS[0], "target": " five"}, *ROWS[1:]]
    (tmp_path / "data.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, changed)))
    rebuilt = ek.review(tmp_path)
    assert rebuilt.verdict(0) == "undecided"
    assert rebuilt.verdict(1) == "rejected"


@pytest.mark.parametrize(
    ("benchmark", "model", "options", "asked", "requests"),
    [
        ("miron", "embedded", {"per_category": 4}, {}, 1),
        ("rgb", "embedded", {"size": 3, "lang": "en"}, {"ability": "noise", "noise_rates": "0"}, 1),
        ("multiview", None, {"triplets": 2}, {"method": ["judge:embedded"]}, 4),
        ("mirae", "embedded", {"questions": "questions.txt"}, {"repeats": 2}, 14),
    ],
)
def test_a_run_reads_what_a_review_of_a_build_left(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    benchmark: str,
    model: str | None,
    options: dict[str, Any],
    asked: dict[str, Any],
    requests: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("questions.txt").write_text("What is a river?\nWhy is the sky blue?\n")
    ek.build(benchmark, "built", progress=False, **options)

    def count(data: Path) -> int:
        plan = ek.dry_run(benchmark, model, data=[str(data)], **asked)
        return plan.requests["generate"]

    before = count(Path("built"))
    review = ek.review("built")
    assert not {row.file for row in review.rows} & {"manifest.json", "documents_math.jsonl"}
    review.decide(0, "rejected")
    assert count(Path("built")) == before  # the decisions themselves are not data
    review.export(undecided=True)
    assert count(Path("built/accepted")) == before - requests


def test_an_export_replaces_an_earlier_one_and_leaves_out_empty_files(tmp_path: Path) -> None:
    write_lines(tmp_path / "one.jsonl")
    (tmp_path / "two.jsonl").write_text('{"id": "9"}\n')
    review = ek.review(tmp_path)
    review.decide(0, "accepted")
    review.decide(4, "accepted")
    assert [path.name for path in review.export()] == ["one.jsonl", "two.jsonl"]
    (tmp_path / "accepted" / "mine.jsonl").write_text("{}")
    review.decide(4, "rejected")
    assert [path.name for path in review.export()] == ["one.jsonl"]
    left = {path.name for path in (tmp_path / "accepted").iterdir()}
    assert left == {"one.jsonl", "mine.jsonl"}  # what a person put there stays


def test_a_row_is_shown_as_texts_under_its_fields(tmp_path: Path) -> None:
    row = {
        "id": 7, "query": "Who is it?", "positive": ["a", "b"], "answer": [["x", "y"]], "target": " z",
        "long": "w " * 1000, "none": None,
    }  # fmt: skip
    (tmp_path / "data.jsonl").write_bytes(msgspec.json.encode(row))
    view = ek.review(tmp_path).view(0)
    blocks = {block.heading: block for block in view.blocks if isinstance(block, Text)}
    assert blocks["query"].body == "Who is it?"
    assert blocks["target"].body == " z"
    assert blocks["positive"].body == "a\n\nb"
    assert msgspec.json.decode(blocks["answer"].body) == [["x", "y"]]
    assert [name for name, block in blocks.items() if block.collapsed] == ["long"]
    [table] = [block for block in view.blocks if isinstance(block, Facts)]
    assert table.rows == (("id", "7"),)
    assert "none" not in blocks
    assert view.label == "undecided"


def test_what_cannot_be_reviewed_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        ek.review(tmp_path / "missing")
    with pytest.raises(DataError, match="no file in it ends in"):
        ek.review(tmp_path)
    (tmp_path / "data.csv").write_text("id\n1\n")
    with pytest.raises(DataError, match="what a build wrote"):
        ek.review(tmp_path / "data.csv")
    (tmp_path / "data.json").write_text('{\n"a": 1, oops}')
    with pytest.raises(DataError, match=r"data\.json, line 1"):
        len(ek.review(tmp_path).rows)
    write_lines(tmp_path / "data.json")
    review = ek.review(tmp_path)
    with pytest.raises(UsageError, match="no row is accepted"):
        review.export()
    with pytest.raises(UsageError, match="Available: accepted"):
        review.decide(0, "maybe")  # type: ignore[arg-type]
    (tmp_path / "review.jsonl").write_text('{"row": 3}\n')
    with pytest.raises(DataError, match=r"review\.jsonl, line 1"):
        ek.review(tmp_path).counts()


def test_decisions_are_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    write_lines(tmp_path / "data" / "data.jsonl")
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / "data" / "review.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="this is a link"):
        ek.review(tmp_path / "data").decide(0, "accepted")
    (tmp_path / "data" / "review.jsonl").unlink()
    (tmp_path / "data" / "accepted").symlink_to(tmp_path)
    review = ek.review(tmp_path / "data")
    review.decide(0, "accepted")
    with pytest.raises(DataError, match="not a folder"):
        review.export()
