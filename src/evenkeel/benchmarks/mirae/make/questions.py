"""A person's own questions, from a text, CSV or JSON-lines file, with what is wrong in it by line."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from evenkeel.errors import DataError
from evenkeel.files.jsonfile import convert, decode
from evenkeel.files.tables import read_text

DOMAIN = "OWN"


class OwnQuestion(NamedTuple):
    line: int
    text: str
    domain: str


class Problem(NamedTuple):
    line: int
    what: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}"


class _Row(Struct):
    question: str
    domain: str = DOMAIN


def read_own(
    path: Path, *, count: Callable[[str], int], longest: int
) -> tuple[list[OwnQuestion], list[Problem]]:
    """The questions that can be used, and the rows that cannot, each with its line and the reason."""
    readers = {".txt": _text_rows, ".csv": _csv_rows, ".jsonl": _json_rows}
    if path.suffix.lower() not in readers:
        raise DataError(path, f"expected a file that ends in {', '.join(readers)}.")
    content = read_text(path)
    good: list[OwnQuestion] = []
    bad: list[Problem] = []
    first_seen: dict[str, int] = {}
    for row in readers[path.suffix.lower()](path, content):
        if isinstance(row, Problem):
            bad.append(row)
        elif fault := _fault(row, first_seen, count(row.text), longest):
            bad.append(Problem(row.line, fault))
        else:
            good.append(row)
    return good, bad


def _fault(row: OwnQuestion, first_seen: dict[str, int], tokens: int, longest: int) -> str:
    if not row.text:
        return "this is blank."
    key = " ".join(row.text.casefold().split())
    if (earlier := first_seen.setdefault(key, row.line)) != row.line:
        return f"the same question as in line {earlier}."
    if tokens > longest:
        return f"the question is {tokens} tokens long; at most {longest} leave room for the levels above it."
    return ""


def _lines(content: str) -> list[str]:
    """Lines as editors count them: a line separator of Unicode inside a text does not end one."""
    lines = content.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if lines and not lines[-1] else lines


def _text_rows(path: Path, content: str) -> Iterator[OwnQuestion | Problem]:
    for number, line in enumerate(_lines(content), 1):
        yield OwnQuestion(number, line.strip(), DOMAIN)


def _csv_rows(path: Path, content: str) -> Iterator[OwnQuestion | Problem]:
    reader = csv.reader((f"{line}\n" for line in _lines(content)), strict=True)
    read = 0
    try:
        header = next(reader, [])
        if "question" not in header:
            raise DataError(path, "expected a column 'question' (and, if you like, 'domain').", line=1)
        for cells in reader:
            read = reader.line_num
            if not cells:
                yield Problem(read, "this is blank.")
            elif len(cells) != len(header):
                yield Problem(read, f"this row has {len(cells)} cells, the first line {len(header)}.")
            else:
                row = dict(zip(header, cells, strict=True))
                yield OwnQuestion(read, row["question"].strip(), row.get("domain", "").strip() or DOMAIN)
    except csv.Error as error:
        yield Problem(read + 1, f"this row and what follows cannot be read: {error}.")


def _json_rows(path: Path, content: str) -> Iterator[OwnQuestion | Problem]:
    for number, line in enumerate(_lines(content), 1):
        if not line.strip():
            yield Problem(number, "this is blank.")
            continue
        try:
            row = convert(path, decode(line.encode()), _Row)
        except (msgspec.DecodeError, RecursionError):
            yield Problem(number, "expected an object with 'question': this is not JSON.")
        except DataError as error:
            yield Problem(number, f"expected an object with 'question': {str(error).partition(': ')[2]}")
        else:
            yield OwnQuestion(number, row.question.strip(), row.domain)
