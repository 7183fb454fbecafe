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

from sealegs.errors import DataError
from sealegs.files.jsonfile import NOT_JSON, check_depth, convert, decode_line, open_file
from sealegs.types import Status, Tag

if TYPE_CHECKING:
    from numpy.typing import NDArray

IN_MEMORY = 4
"""Indexes in memory, of the files that were read last."""
MOST_NAMES = 2000
"""Distinct tags and values of the samples of one file."""


class FileState(NamedTuple):
    """What a file is as long as it is the same one."""

    size: int
    mtime: int
    inode: int


class Index(NamedTuple):
    """The columns of all samples, in the order of the file."""

    ids: list[str]
    groups: list[str]
    failed: NDArray[np.bool_]
    """Which samples have a request that was not answered, or lack a value or anything else of scoring."""
    statuses: dict[Status, NDArray[np.bool_]]
    """Which samples have a request that ended so."""
    tags: dict[str, list[Tag | None]]
    """Texts or whole numbers, not both; None where a sample lacks the tag."""
    values: dict[str, NDArray[np.float64]]
    """NaN where a sample has no value."""
    offsets: Sequence[int]
    """Where the line of each begins in the file, and where the last one ends."""


class _IndexedSample(Struct, gc=False):
    id: str
    group: str
    tags: dict[str, Tag]


class _IndexedScore(Struct, gc=False):
    tags: dict[str, Tag]
    values: dict[str, float | None]
    statuses: dict[str, int]
    answered: int
    failures: tuple[str, ...] = ()


class _IndexedLine(Struct, gc=False):
    sample: _IndexedSample
    score: _IndexedScore


_LINES = msgspec.json.Decoder(_IndexedLine)


def state_of(path: Path) -> FileState:
    with open_file(path) as file:
        return _state(file)


@contextlib.contextmanager
def unchanged(path: Path, state: FileState) -> Iterator[BinaryIO]:
    """The file, if it is in this state: a run may be scored again while its samples are looked at."""
    with open_file(path) as file:
        if _state(file) != state:
            raise DataError(path, "was written again since its samples were listed. Load the run again.")
        yield file


def _state(file: BinaryIO) -> FileState:
    status = os.fstat(file.fileno())
    return FileState(status.st_size, status.st_mtime_ns, status.st_ino)


@lru_cache(maxsize=IN_MEMORY)
def record_index(path: Path, state: FileState, headline: str) -> Index:
    """The index of a file in one state; `headline` is the metric that no sample may lack."""
    lines: list[_IndexedLine] = []
    offsets = array("q", [0])
    with unchanged(path, state) as file:
        for number, line in enumerate(file, 1):
            try:
                row = _LINES.decode(check_depth(line))
            except NOT_JSON:  # half of a surrogate pair, or an error to be described
                row = convert(path, decode_line(path, line, number), _IndexedLine, line=number)
            lines.append(row)
            offsets.append(offsets[-1] + len(line))
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
    )


def _names(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Every name, in the order of its first occurrence."""
    return list(dict.fromkeys(name for names in dict.fromkeys(map(tuple, rows)) for name in names))


def _has_failed(score: _IndexedScore, headlines: Sequence[str]) -> bool:
    """Whether a request was not answered, or scoring lacked something: the value of a headline (of any
    subject: `accuracy@bm25`) that the sample is measured by, or anything else."""
    return (
        score.answered < sum(score.statuses.values())
        or bool(score.failures)
        or any(score.values.get(name, 0.0) is None for name in headlines)
    )


def _of_one_type(cells: list[Tag | None]) -> list[Tag | None]:
    """Whole numbers where all cells are, texts otherwise."""
    if not any(isinstance(cell, str) for cell in cells):
        return cells
    return [None if cell is None else str(cell) for cell in cells]
