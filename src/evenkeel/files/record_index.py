"""An index over records.jsonl: the columns of its samples, and where the line of each is, made in one pass.

Of each line only the id, the tags, the values and the statuses are decoded: 50,000 samples take about a
second.
"""

from __future__ import annotations

import contextlib
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, get_args

import msgspec
import numpy as np
from msgspec import Struct

from evenkeel.errors import DataError
from evenkeel.files.columns import Key, cell_type, common_type, titles
from evenkeel.files.jsonfile import BOM, NOT_JSON, convert, decode_line, open_file, shallow
from evenkeel.types import Status, Tag

if TYPE_CHECKING:
    from numpy.typing import NDArray

IN_MEMORY = 4
"""Indexes in memory, of the files that were read last."""
MOST_NAMES = 2000
"""Distinct tags and values of the samples of one file."""
RESERVED: list[Key] = [
    ("count", "answered"),
    *(("count", f"status_{name}") for name in get_args(Status)),
    ("answer", ""),
]
"""Columns that `export` has and the table has not: a tag of such a name is named as there."""
SAMPLE, GROUP, FAILED = "sample", "group", "failed"
"""The columns that are neither tags nor values."""


class State(NamedTuple):
    """What a file is as long as it is the same one."""

    size: int
    mtime: int
    inode: int


class Index(NamedTuple):
    """The columns of all samples, in the order of the file."""

    ids: list[str]
    groups: list[str]
    failed: NDArray[np.bool_]
    statuses: dict[Status, NDArray[np.bool_]]
    """Which samples have a request that ended so."""
    tags: dict[str, list[Tag | None]]
    """Texts or whole numbers, not both; None where a sample lacks the tag."""
    values: dict[str, NDArray[np.float64]]
    """NaN where a sample has no value."""
    offsets: Sequence[int]
    """Where each record begins in the file,"""
    lengths: Sequence[int]
    """how many bytes it has,"""
    numbers: Sequence[int]
    """and the number of its line."""

    def column_names(self) -> dict[Key, str]:
        """The name of each column, as in `export`."""
        shown = [("sample", name) for name in (SAMPLE, GROUP, FAILED)]
        shown += [("tag", name) for name in self.tags] + [("value", name) for name in self.values]
        names = titles([*shown, *RESERVED])
        return {key: names[key] for key in shown}


class _Sample(Struct, gc=False):
    id: str
    group: str
    tags: dict[str, Tag]


class _Score(Struct, gc=False):
    tags: dict[str, Tag]
    values: dict[str, float | None]
    statuses: dict[str, int]
    answered: int
    failures: tuple[str, ...] = ()


class _Line(Struct, gc=False):
    sample: _Sample
    score: _Score


_LINES = msgspec.json.Decoder(_Line)


def state_of(path: Path) -> State:
    with open_file(path) as file:
        return _state(file)


@contextlib.contextmanager
def unchanged(path: Path, state: State) -> Iterator[BinaryIO]:
    """The file, if it is in this state: a run may be scored again while its samples are looked at."""
    with open_file(path) as file:
        if _state(file) != state:
            raise DataError(path, "was written again since its samples were listed. Load the run again.")
        yield file


def _state(file: BinaryIO) -> State:
    status = os.fstat(file.fileno())
    return State(status.st_size, status.st_mtime_ns, status.st_ino)


@lru_cache(maxsize=IN_MEMORY)
def record_index(path: Path, state: State, headline: str) -> Index:
    """The index of a file in one state; `headline` is the metric that no sample may lack."""
    lines: list[_Line] = []
    offsets, lengths, numbers = array("q"), array("q"), array("q")
    offset = 0
    with unchanged(path, state) as file:
        for number, line in enumerate(file, 1):
            start, length = offset, len(line)
            offset += length
            try:
                row = _LINES.decode(shallow(line))
            except NOT_JSON:  # a blank line, half of a surrogate pair, or an error to be described
                content = line.removeprefix(BOM).strip()
                if not content:
                    continue
                row = convert(path, decode_line(path, content, number), _Line, line=number)
                start, length = start + line.index(content), len(content)
            lines.append(row)
            offsets.append(start)
            lengths.append(length)
            numbers.append(number)
    tags = [line.sample.tags | line.score.tags for line in lines]
    values = [line.score.values for line in lines]
    tag_names, value_names = _names(tags), _names(values)
    if len(tag_names) + len(value_names) > MOST_NAMES:
        raise DataError(path, f"its samples have more than {MOST_NAMES:,} different tags and values.")
    headlines = [name for name in value_names if name.partition("@")[0] == headline]
    return Index(
        [line.sample.id for line in lines],
        [line.sample.group for line in lines],
        np.array([_has_failed(line.score, headlines) for line in lines], dtype=bool),
        {
            status: np.array([line.score.statuses.get(status, 0) > 0 for line in lines], dtype=bool)
            for status in get_args(Status)
        },
        {name: _of_one_type([row.get(name) for row in tags]) for name in tag_names},
        {name: np.array([row.get(name) for row in values], dtype=np.float64) for name in value_names},
        offsets,
        lengths,
        numbers,
    )


def _names(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Every name, in the order of its first occurrence."""
    return list(dict.fromkeys(name for names in dict.fromkeys(map(tuple, rows)) for name in names))


def _has_failed(score: _Score, headlines: Sequence[str]) -> bool:
    """Whether a request was not answered, or scoring lacked something: the value of a headline (of any
    subject: `accuracy@bm25`) that the sample is measured by, or anything else."""
    return (
        score.answered < sum(score.statuses.values())
        or bool(score.failures)
        or any(score.values.get(name, 0.0) is None for name in headlines)
    )


def _of_one_type(cells: list[Tag | None]) -> list[Tag | None]:
    """A column of the type that holds all of its cells, as in `export`."""
    if common_type({cell_type(cell) for cell in set(cells) if cell is not None}) is int:
        return cells
    return [None if cell is None else str(cell) for cell in cells]
