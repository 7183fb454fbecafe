"""Rows of a person's own file: the same from every format, and a broken one named by its place."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sealegs.errors import DataError
from sealegs.files.tables import Row, read_rows

ROWS = [
    {"prefix": "The ship", "target": " sails, and\nlands", "note": 'a "keel"'},
    {"prefix": "Корабль", "target": " плывёт", "note": ""},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """The rows in the format that the name tells."""
    if path.suffix == ".parquet":
        import polars

        polars.DataFrame(rows).write_parquet(path)
    elif path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return path


def read(path: Path) -> list[Row]:
    return list(read_rows(path))


# The same rows from every format


@pytest.mark.parametrize("name", ["r.jsonl", "r.ndjson", "r.json", "r.csv", "r.parquet", "R.CSV", "R.JSONL"])
def test_every_format_gives_the_same_fields(tmp_path: Path, name: str) -> None:
    plain = write(tmp_path / name.lower(), ROWS)
    assert [row.fields for row in read(plain.rename(tmp_path / name))] == ROWS


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r"))


@given(st.lists(st.fixed_dictionaries({"a": TEXT, "b": TEXT}), min_size=1, max_size=4))
@example([{"a": "x" * 300_000, "b": ""}])  # a cell longer than the csv module likes
def test_any_text_survives_csv_and_json(tmp_path_factory: pytest.TempPathFactory, rows: list[Any]) -> None:
    folder = tmp_path_factory.mktemp("rows")
    for name in ("r.csv", "r.jsonl"):
        assert [row.fields for row in read(write(folder / name, rows))] == rows


# Fields


def test_a_number_is_text_and_what_is_neither_is_named() -> None:
    fields = {"n": 7, "x": 0.5, "t": " as it is ", "none": None, "list": ["a"], "yes": True}
    row = Row(Path("f.jsonl"), fields, "3", line=3)
    assert [row.text(name) for name in ("n", "x", "t")] == ["7", "0.5", " as it is "]
    for name, kind in {"none": "nothing", "list": "a list", "yes": "a bool"}.items():
        with pytest.raises(
            DataError, match=rf"^f\.jsonl, line 3: the field '{name}' should be text, not {kind}\.$"
        ):
            row.text(name)


# What is wrong with a file


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("r.jsonl", b'{"a": 1}\n\n{"a": \n', "line 3: this line is not JSON"),
        ("r.jsonl", b'{"a": 1}\n[1, 2]\n', "line 2: expected an object, not a list."),
        ("r.csv", b"a,b\n1,2\n\n3\n", "line 4: this row has 1 cells, the first line 2."),
        ("r.csv", b'a,b\n"1\n1",2\n3,4,5\n', "line 4: this row has 3 cells, the first line 2."),
        ("r.csv", b'a,b\n1,2\n"3\n,4\n', "line 3: this row cannot be read: unexpected end of data."),
        ("r.csv", b"a,b\n1,2\n3,\xff\n", "line 3: this is not UTF-8 text."),
        ("r.parquet", b"PAR1 and no more", "r.parquet: cannot be read:"),
        ("r.xlsx", b"", "r.xlsx: expected a file that ends in .csv, .parquet, .jsonl, .ndjson, .json."),
    ],
)
def test_a_broken_file_is_named_with_the_line(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError) as raised:
        read(path)
    assert said in str(raised.value)
    assert str(path) in str(raised.value)


def test_a_parquet_file_is_itself_whatever_its_name(tmp_path: Path) -> None:
    names = ("r1.parquet", "r[1].parquet", "r*.parquet")
    for number, name in enumerate(names):
        write(tmp_path / name, [{"a": number}])
    for number, name in enumerate(names):
        assert [row.fields for row in read_rows(tmp_path / name)] == [{"a": number}]


def test_a_parquet_file_that_lost_its_middle_is_damaged(tmp_path: Path) -> None:
    path = write(tmp_path / "r.parquet", [{"a": str(number * 7919 % 10007)} for number in range(5000)])
    content = path.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    path.write_bytes(content[:4] + content[-footer:])
    with pytest.raises(DataError, match=r"r\.parquet: cannot be read"):
        read(path)
