"""A user's questions from a text, CSV or JSON-lines file, and the rows that cannot be used, by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from evenkeel.errors import DataError
from evenkeel.files.jsonfile import convert, decode
from evenkeel.files.tables import csv_cells, read_plain_text

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
    questions: list[UserQuestion] = []
    problems: list[str] = []
    first_lines: dict[str, int] = {}
    for row in readers[path.suffix.lower()](path):
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


def _lines(path: Path) -> list[str]:
    """Lines as editors count them: a line separator of Unicode inside a text does not end one."""
    lines = read_plain_text(path).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def _text_rows(path: Path) -> Rows:
    for number, line in enumerate(_lines(path), 1):
        yield UserQuestion(number, line.strip(), DOMAIN)


def _csv_rows(path: Path) -> Rows:
    rows = csv_cells(path)
    _, header = next(rows, (1, []))
    for name in ("question", "domain"):
        if header.count(name) > 1:
            raise DataError(path, f"there are several columns named '{name}'.", line=1)
    if "question" not in header:
        raise DataError(path, "expected a column 'question' (and optionally 'domain').", line=1)
    try:
        for number, cells in rows:
            if not cells:
                yield f"line {number}: this is blank."
            elif len(cells) != len(header):
                yield f"line {number}: this row has {len(cells):,} cells, the first line {len(header):,}."
            else:
                row = dict(zip(header, cells, strict=True))
                domain = row.get("domain", "").strip() or DOMAIN
                yield UserQuestion(number, row["question"].strip(), domain)
    except DataError as error:
        problem = str(error).removeprefix(f"{path}, ")
        yield problem.replace("this row", "this row and all rows after it", 1)


def _json_rows(path: Path) -> Rows:
    for number, line in enumerate(_lines(path), 1):
        expected = f"line {number}: expected an object with 'question'"
        try:
            row = convert(path, decode(line.encode()), _Row) if line.strip() else _Row("")
        except (msgspec.DecodeError, RecursionError):
            yield f"{expected}: this is not JSON."
        except DataError as error:
            yield f"{expected}: {str(error).removeprefix(str(path)).lstrip(',: ')}"
        else:
            yield UserQuestion(number, row.question.strip(), row.domain)
