"""A run's records as a table: one row per sample, every column with a type, whatever it is written to.

Records are read as a stream, once to learn the columns and once for the rows, because a run may be larger
than memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, get_args

import msgspec

from sealegs.types import Record, Records, Response, Sample, Status, to_jsonable

Cell: TypeAlias = str | int | float | None
Key: TypeAlias = tuple[str, str]
"""What a cell is (a tag, a value, an input) and its name."""

Extra: TypeAlias = Callable[[Record], dict[Key, Cell]]
"""Cells beside those that a record has."""

KINDS = ("sample", "tag", "count", "mark", "value", "answer", "input")
"""The order of the columns."""
NAMED_FIRST = ("sample", "count", "answer", "value", "tag", "input", "mark")
"""Where two columns would have one name, the later of these puts its kind before it: `input_level`."""
EXPECTED = "expected"
"""What is right, in every export: `answer` is the model's reply there."""


def cells(record: Record) -> dict[Key, Cell]:
    """The cells of one row. Of the inputs only texts and numbers, and the expected answer, of which there may
    be several, as JSON: other lists are left to records.jsonl."""
    sample, score = record.sample, record.score
    row: dict[Key, Cell] = {("sample", "sample"): sample.id, ("sample", "group"): sample.group}
    row |= {("tag", name): tag for name, tag in {**sample.tags, **score.tags}.items()}
    row |= {("count", "answered"): score.answered}
    row |= {("count", f"status_{name}"): score.statuses.get(name, 0) for name in get_args(Status)}
    row |= {("value", name): value for name, value in score.values.items()}
    row |= {
        ("answer", f"{index:06d}"): text
        for index, answer in enumerate(record.answers)
        if (text := answer_cell(answer)) is not None
    }
    return row | {
        ("input", name): msgspec.json.encode(value).decode() if isinstance(value, list | dict) else value
        for name, value in exported_inputs(sample).items()
        if isinstance(value, str | int | float | None) or name == EXPECTED
    }


def exported_inputs(sample: Sample) -> dict[str, Any]:
    """The inputs of a sample by the names that they have in exports."""
    inputs: dict[str, Any] = to_jsonable(sample.inputs)
    return {EXPECTED if name == "answer" else name: value for name, value in inputs.items()}


def answer_cell(answer: Response) -> str | None:
    """The text of an answer, which may be empty; None where there is none, or no text was asked for."""
    others = (answer.logprobs, answer.string, answer.vector, answer.rank)
    silent = answer.status != "ok" or any(other is not None for other in others)
    return answer.text or (None if silent else "")


def columns(records: Iterable[Record], extra: Extra = lambda record: {}) -> dict[Key, type]:
    """The columns of a table, in order, each with the type that holds all of its cells.

    An input that only repeats a tag of its name is left out.
    """
    types: dict[Key, set[type]] = {}
    informative: set[Key] = set()
    for record in records:
        row = cells(record) | extra(record)
        for key, cell in row.items():
            types.setdefault(key, set()).update(() if cell is None else (cell_type(cell),))
            if key[0] == "input" and cell != row.get(("tag", key[1])):
                informative.add(key)
    keys = [key for key in types if key[0] != "input" or ("tag", key[1]) not in types or key in informative]
    keys.sort(key=lambda key: (KINDS.index(key[0]), key[1] if key[0] == "answer" else ""))
    return {key: float if key[0] == "value" else common_type(types[key]) for key in keys}


def cell_type(cell: str | int | float) -> type:
    """A number too long for 64 bits is written as text."""
    return str if isinstance(cell, int) and not -(2**63) <= cell < 2**63 else type(cell)


def common_type(types: set[type]) -> type:
    if len(types) == 1:
        return next(iter(types))
    return float if types == {int, float} else str


def titles(keys: Iterable[Key]) -> dict[Key, str]:
    """A distinct name for every column: answers are numbered from the second on."""
    names = {key: key[1] for key in keys}
    answers = sorted(key for key in names if key[0] == "answer")
    names |= {key: f"answer_{number}" if number > 1 else "answer" for number, key in enumerate(answers, 1)}
    taken: set[str] = set()
    for key in sorted(names, key=lambda key: NAMED_FIRST.index(key[0])):
        while names[key] in taken:
            names[key] = f"{key[0]}_{names[key]}"
        taken.add(names[key])
    return names


def typed_rows(
    records: Records,
    types: Mapping[Key, type],
    text: Callable[[str], str] = str,
    extra: Extra = lambda record: {},
) -> Iterator[list[Cell]]:
    """The cells of each row in the order of the columns, of their types; every text passes through `text`."""

    def typed(cell: Cell, kind: type) -> Cell:
        if cell is None:
            return None
        return text(str(cell)) if kind is str else float(cell) if kind is float else cell

    for record in records():
        row = cells(record) | extra(record)
        yield [typed(row.get(key), kind) for key, kind in types.items()]


def csv_line(row: Iterable[Cell]) -> str:
    """A line of CSV, in which an empty text is \"\" and no text is nothing."""
    return ",".join(map(_csv_cell, row)) + "\n"


def _csv_cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    words = str(cell)
    quoted = isinstance(cell, str) and (not words or any(mark in words for mark in ',;"\t\n\r'))
    return '"' + words.replace('"', '""') + '"' if quoted else words
