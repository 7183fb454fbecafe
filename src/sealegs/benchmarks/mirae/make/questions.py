"""A user's questions from a text file, one per line, or from rows of CSV or JSON lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from sealegs.errors import DataError
from sealegs.files.tables import Row, read_plain_text, read_rows
from sealegs.text.answer_search.mention import Answer, RawAnswer, check_answer, parts

DOMAIN = "OWN"
"""The domain of a question that names none, as built files have it."""


class UserQuestion(NamedTuple):
    line: int
    text: str
    domain: str
    expected: Answer = ()
    """The right answer, in the language of the file."""
    wording: int = 0
    """Which wording it is, from 1 (the person's) on, where there are several."""


def read_user_questions(path: Path, *, count: Callable[[str], int], longest: int) -> list[UserQuestion]:
    """The questions, each once and of at most `longest` tokens; a row that cannot be used is an error."""
    questions: list[UserQuestion] = []
    first_lines: dict[str, int] = {}
    for row in _rows(path):
        line, text = row.line or int(row.name), row.text("question").strip()
        if not text:
            raise row.error("the question is blank.")
        first = first_lines.setdefault(" ".join(text.casefold().split()), line)
        if first != line:
            raise row.error(f"the same question as in line {first}.")
        if (tokens := count(text)) > longest:
            room = f"at most {longest} leave room for the levels above it."
            raise row.error(f"the question is {tokens} tokens long; {room}")
        domain = row.text("domain").strip() if row.fields.get("domain") else ""
        questions.append(UserQuestion(line, text, domain or DOMAIN, _expected(row)))
    if not questions:
        raise DataError(path, "there is no question in it.")
    return questions


def _expected(row: Row) -> Answer:
    """The column `expected`: a text, a list of parts, or a list of lists of alternatives. In a cell of CSV a
    list is written as JSON."""
    value = row.fields.get("expected")
    if value is None or value == "":
        return ()
    try:
        if isinstance(value, str) and value.lstrip().startswith("["):
            value = msgspec.json.decode(value)
        answer = msgspec.convert(
            str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value, RawAnswer
        )
        check_answer("expected", answer)
    except (msgspec.DecodeError, ValueError) as error:
        shape = "a text, a list of parts, or a list of lists of alternatives"
        raise row.error(f"the field 'expected' should be {shape}: {error}.") from None
    return parts(answer)


def _rows(path: Path) -> Iterator[Row]:
    """Of a text file the lines that are not blank, as editors count them."""
    if path.suffix.lower() != ".txt":
        return read_rows(path)
    lines = enumerate(re.split(r"\r\n|\r|\n", read_plain_text(path)), 1)
    return (Row(path, {"question": line}, str(number), number) for number, line in lines if line.strip())
