"""A user's questions from a text, CSV or JSON-lines file, and the rows that cannot be used, by line."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from evenkeel.errors import DataError
from evenkeel.files.jsonfile import convert, decode
from evenkeel.files.tables import read_text

DOMAIN = "OWN"
"""The domain of a question that names none, as built files have it."""


class UserQuestion(NamedTuple):
    line: int
    text: str
    domain: str


Rows: TypeAlias = Iterator[UserQuestion | str]
"""Each row as a question, or as what is wrong with it."""


class _Row(Struct):
    question: str
    domain: str = DOMAIN


def read_user_questions(
    path: Path, *, count: Callable[[str], int], longest: int
) -> tuple[list[UserQuestion], list[str]]:
    """The questions of at most `longest` tokens, and what is wrong with the other rows."""
    readers = {".txt": _text_rows, ".csv": _csv_rows, ".jsonl": _json_rows}
    if path.suffix.lower() not in readers:
        raise DataError(path, f"expected a file that ends in {', '.join(readers)}.")
    # Lines as editors count them: a line separator of Unicode inside a text does not end one.
    lines = read_text(path).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    questions: list[UserQuestion] = []
    problems: list[str] = []
    first_lines: dict[str, int] = {}
    for row in readers[path.suffix.lower()](path, lines if lines[-1] else lines[:-1]):
        if isinstance(row, str):
            problems.append(row)
        elif fault := _fault(row, first_lines, count(row.text), longest):
            problems.append(f"line {row.line}: {fault}")
        else:
            questions.append(row)
    return questions, problems


def _fault(question: UserQuestion, first_lines: dict[str, int], tokens: int, longest: int) -> str:
    if not question.text:
        return "this is blank."
    first = first_lines.setdefault(" ".join(question.text.casefold().split()), question.line)
    if first != question.line:
        return f"the same question as in line {first}."
    if tokens > longest:
        return f"the question is {tokens} tokens long; at most {longest} leave room for the levels above it."
    return ""


def _text_rows(path: Path, lines: list[str]) -> Rows:
    for number, line in enumerate(lines, 1):
        yield UserQuestion(number, line.strip(), DOMAIN)


def _csv_rows(path: Path, lines: list[str]) -> Rows:
    reader = csv.reader((f"{line}\n" for line in lines), strict=True)
    number = 0
    try:
        header = next(reader, [])
        if "question" not in header:
            raise DataError(path, "expected a column 'question' (and optionally 'domain').", line=1)
        for cells in reader:
            number = reader.line_num
            if not cells:
                yield f"line {number}: this is blank."
            elif len(cells) != len(header):
                yield f"line {number}: this row has {len(cells)} cells, the first line {len(header)}."
            else:
                row = dict(zip(header, cells, strict=True))
                domain = row.get("domain", "").strip() or DOMAIN
                yield UserQuestion(number, row["question"].strip(), domain)
    except csv.Error as error:
        yield f"line {number + 1}: this row and all rows after it cannot be read: {error}."


def _json_rows(path: Path, lines: list[str]) -> Rows:
    for number, line in enumerate(lines, 1):
        expected = f"line {number}: expected an object with 'question'"
        try:
            row = convert(path, decode(line.encode()), _Row) if line.strip() else _Row("")
        except (msgspec.DecodeError, RecursionError):
            yield f"{expected}: this is not JSON."
        except DataError as error:
            yield f"{expected}: {str(error).partition(': ')[2]}"
        else:
            yield UserQuestion(number, row.question.strip(), row.domain)
