"""Rows of a user's data file: JSON lines, CSV or Parquet; each row knows its line or number for errors."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from sealegs.errors import DataError, explain, listed
from sealegs.files.jsonfile import BOM, json_lines, open_file, read_bytes, read_json

JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
ENDINGS = (".csv", ".parquet", *JSON_ENDINGS)
"""Files that `read_rows` reads."""

LARGEST_CELL = 1 << 30
"""Characters of a cell of a CSV file."""


class Row(NamedTuple):
    """The fields of one row, and where they are."""

    file: Path
    fields: Mapping[str, Any]
    name: str
    """What to call a row that has no id: its line, its number."""
    line: int | None = None
    where: str = ""
    """The place in a file that has no lines: `row 7`."""

    @property
    def place(self) -> str:
        return f"line {self.line}" if self.line is not None else self.where or self.name

    def error(self, problem: str) -> DataError:
        return DataError(self.file, problem, line=self.line, where=f"at {self.where}" if self.where else "")

    def invalid(self, error: msgspec.ValidationError, fields: Mapping[str, Any]) -> DataError:
        """What is wrong with a field of the row."""
        fault = explain(error, fields)
        where = ", ".join(filter(None, (f"at {self.where}" if self.where else "", fault.field)))
        return DataError(self.file, f"{fault.problem}.", line=self.line, where=where)

    def text(self, field: str) -> str:
        """A field as text; one that is missing, or neither text nor number, is an error."""
        if field not in self.fields:
            raise self.error(f"the field '{field}' is missing. Available: {listed(self.fields)}.")
        value = self.fields[field]
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.error(f"the field '{field}' should be text, not {kind_of(value)}.")
        if isinstance(value, float) and not math.isfinite(value):
            raise self.error(f"the field '{field}' should be text, not {value}.")
        try:
            return str(value)
        except ValueError:  # an int of thousands of digits
            raise self.error(f"the number in the field '{field}' is too large.") from None


def kind_of(value: Any) -> str:
    """What a value is, in words for an error."""
    name = type(value).__name__
    return "nothing" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a file, whose ending names its format. JSON has an object on each line, or a list."""
    if not path.exists():
        raise DataError(path, "cannot be read: No such file or folder.")
    readers = {".csv": _csv_rows, ".parquet": _parquet_rows}
    readers |= dict.fromkeys(JSON_ENDINGS, json_rows)
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise DataError(path, f"expected a file that ends in {', '.join(readers)}.")
    return reader(path)


def read_text(path: Path) -> str:
    """A text file, or an error that names the line that is not UTF-8."""
    content = read_bytes(path).removeprefix(BOM)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(path, "this is not UTF-8 text.", line=line) from None


def read_plain_text(path: Path) -> str:
    """A text file as people write it. UTF-16 without a mark would be read as UTF-8 that is full of NUL."""
    text = read_text(path)
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise DataError(path, "this is not UTF-8 text: it holds NUL.", line=line)
    return text


def json_rows(path: Path) -> Iterator[Row]:
    """The rows of a JSON file, whatever its name: a row on each line, or one list of rows."""
    if _is_list(path):
        for number, fields in enumerate(read_json(path, list[Any]), 1):
            row = Row(path, fields, str(number), where=f"row {number}")
            if not isinstance(fields, dict):
                raise row.error(f"expected an object, not {kind_of(fields)}.")
            yield row
        return
    for number, fields in json_lines(path):
        if not isinstance(fields, dict):
            raise DataError(path, f"expected an object, not {kind_of(fields)}.", line=number)
        yield Row(path, fields, str(number), line=number)


def _is_list(path: Path) -> bool:
    """Whether a file is one JSON list, rather than an object on each line."""
    with open_file(path) as file:
        lines = (line.removeprefix(BOM).strip() for line in file)
        return next(filter(None, lines), b"").startswith(b"[")


def _csv_rows(path: Path) -> Iterator[Row]:
    rows = ((line, cells) for line, cells in csv_cells(path) if cells)
    start, header = next(rows, (1, []))
    if twice := next((name for name, count in Counter(header).items() if count > 1), None):
        raise DataError(path, f"there are several columns named '{twice}'.", line=start)
    for line, cells in rows:
        if len(cells) == len(header):
            yield Row(path, dict(zip(header, cells, strict=True)), str(line), line=line)
        else:
            problem = f"this row has {len(cells):,} cells, the first line {len(header):,}."
            raise DataError(path, problem, line=line)


def csv_cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file, the header among them, each with the line where it begins; a blank line has no
    cells. Line breaks inside a cell stay as they are."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    # By default a cell may not be longer than 128 KiB. The limit is that of all readers of the process, which
    # may take turns or be in other threads, so that none sets it back.
    csv.field_size_limit(max(LARGEST_CELL, csv.field_size_limit()))
    end = 0
    try:
        for cells in reader:
            line, end = end + 1, reader.line_num  # a cell may run over several lines
            yield line, cells
    except csv.Error as error:
        raise DataError(path, f"this row cannot be read: {error}.", line=end + 1) from None


def _parquet_rows(path: Path) -> Iterator[Row]:
    from sealegs.files.frame import parquet_rows

    for number, fields in enumerate(parquet_rows(path), 1):
        yield Row(path, fields, str(number), where=f"row {number}")
