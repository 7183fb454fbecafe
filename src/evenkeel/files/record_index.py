"""An index over records.jsonl: a table of its samples, and where the line of each is, made in one pass.

Of each line only the id, the tags, the values and the statuses are decoded. The index of a large file is
stored in the cache folder, as Parquet, under the file's path, size and time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, get_args

import msgspec
import numpy as np
from msgspec import Struct

from evenkeel.errors import DataError
from evenkeel.files.cache import cache_dir, replacing, trim
from evenkeel.files.frame import Key, cell_type, common_type, titles
from evenkeel.files.jsonfile import BOM, NOT_JSON, convert, decode_line, open_file
from evenkeel.types import Status, Tag

if TYPE_CHECKING:
    import polars as pl

VERSION = 2
"""Of the stored form of an index."""
STORED_FROM = 2**24
"""Bytes of a file whose index is stored."""
MOST_STORED = 200
LARGEST_STORED = 2**30
"""Indexes in the cache folder, and the bytes of all of them; the oldest give way."""
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
POSITIONS: tuple[Key, ...] = (("line", "offset"), ("line", "length"), ("line", "number"))


class State(NamedTuple):
    """What a file is as long as it is the same one."""

    size: int
    mtime: int
    inode: int


class Index(NamedTuple):
    frame: pl.DataFrame
    """One row a sample, in the order of the file."""
    offsets: Sequence[int]
    """Where each record begins in the file,"""
    lengths: Sequence[int]
    """how many bytes it has,"""
    numbers: Sequence[int]
    """and the number of its line."""
    tags: dict[str, str]
    """The column of each tag."""
    values: dict[str, str]
    """The column of each value."""


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
    unscorable: bool = False


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
    if state.size < STORED_FROM:
        return _arranged(_columns(path, state, headline))
    identity = f"{VERSION}|{path}|{state.size}|{state.mtime}|{state.inode}|{headline}"
    stored = (
        cache_dir() / "samples" / f"{hashlib.sha256(identity.encode('utf-8', 'replace')).hexdigest()}.parquet"
    )
    columns = _stored(stored, state)
    if columns is None:
        columns = _columns(path, state, headline)
        _store(stored, columns)
    return _arranged(columns)


def _arranged(columns: Mapping[Key, pl.Series]) -> Index:
    """Columns named as in `export`, apart from those that say where the lines are."""
    import polars as pl

    shown = {key: column for key, column in columns.items() if key not in POSITIONS}
    names = titles([*shown, *RESERVED])
    frame = pl.DataFrame([column.alias(names[key]) for key, column in shown.items()])
    positions = (columns[key].to_numpy() for key in POSITIONS)
    offsets, lengths, numbers = (array("q", column.tobytes()) for column in positions)
    tags, values = ({name: names[of, name] for of, name in shown if of == kind} for kind in ("tag", "value"))
    return Index(frame, offsets, lengths, numbers, tags, values)


def _columns(path: Path, state: State, headline: str) -> dict[Key, pl.Series]:
    """One pass over the file."""
    import polars as pl

    ids: list[str] = []
    groups: list[str] = []
    failed = bytearray()
    tags, values = _Rows(), _Rows()
    offsets, lengths, numbers = array("q"), array("q"), array("q")
    offset = 0
    decode = _LINES.decode
    with unchanged(path, state) as file:
        for number, line in enumerate(file, 1):
            start, length = offset, len(line)
            offset += length
            try:
                row = decode(line)
            except NOT_JSON:  # a blank line, half of a surrogate pair, or an error to be described
                content = line.removeprefix(BOM).strip()
                if not content:
                    continue
                row = convert(path, decode_line(path, content, number), _Line, line=number)
                start, length = start + line.index(content), len(content)
            sample, score = row.sample, row.score
            ids.append(sample.id)
            groups.append(sample.group)
            failed.append(
                score.answered < sum(score.statuses.values()) or score.unscorable or bool(score.failures)
            )
            tags.add(sample.tags | score.tags)
            values.add(score.values)
            offsets.append(start)
            lengths.append(length)
            numbers.append(number)
    tag_names, value_names = tags.names(), values.names()
    if len(tag_names) + len(value_names) > MOST_NAMES:
        raise DataError(path, f"its samples have more than {MOST_NAMES:,} different tags and values.")
    numeric, lacking = values.numbers(headline)
    has_failed = np.frombuffer(failed, dtype=bool) | lacking
    return {
        ("sample", "sample"): pl.Series(ids, dtype=pl.String),
        ("sample", "group"): pl.Series(groups, dtype=pl.String),
        ("sample", "failed"): pl.Series(has_failed),
        **{("tag", name): _typed(cells) for name, cells in tags.cells().items()},
        **{("value", name): pl.Series(numeric[name], nan_to_null=True) for name in value_names},
        **{
            key: pl.Series(np.array(column, dtype=np.int64))
            for key, column in zip(POSITIONS, (offsets, lengths, numbers), strict=True)
        },
    }


class _Rows:
    """Rows of named cells, collected by the names that they have: nearly all have the same ones."""

    def __init__(self) -> None:
        self._count = 0
        self._blocks: dict[tuple[str, ...], tuple[list[int], list[tuple[Any, ...]]]] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        names = tuple(row)
        block = self._blocks.get(names)
        if block is None:
            block = self._blocks[names] = ([], [])
        block[0].append(self._count)
        block[1].append(tuple(row.values()))
        self._count += 1

    def names(self) -> list[str]:
        """Every name, in the order of its first occurrence."""
        return list(dict.fromkeys(name for names in self._blocks for name in names))

    def cells(self) -> dict[str, list[Any]]:
        """The column of each name, with None where a row has no such cell."""
        columns: dict[str, list[Any]] = {name: [None] * self._count for name in self.names()}
        for names, (positions, rows) in self._blocks.items():
            for name, column in zip(names, zip(*rows, strict=True), strict=True):
                if len(rows) == self._count:  # every row has these names
                    columns[name] = list(column)
                    continue
                cells = columns[name]
                for position, cell in zip(positions, column, strict=True):
                    cells[position] = cell
        return columns

    def numbers(self, metric: str) -> tuple[dict[str, Any], Any]:
        """The same for numbers, with NaN where there is none; and which rows have the metric (of any subject:
        `accuracy@bm25`), but no value of it. A row that does not have it at all is not measured by it.
        """
        columns = {name: np.full(self._count, np.nan) for name in self.names()}
        lacking = np.zeros(self._count, dtype=bool)
        for names, (numbers, rows) in self._blocks.items():
            positions = np.array(numbers, dtype=np.intp)
            block = np.array(rows, dtype=np.float64).reshape(len(rows), len(names))
            for index, name in enumerate(names):
                columns[name][positions] = block[:, index]
                if name.partition("@")[0] == metric:
                    lacking[positions] |= np.isnan(block[:, index])
        return columns, lacking


def _typed(cells: list[Any]) -> pl.Series:
    """A column of the type that holds all of its cells, as in `export`."""
    import polars as pl

    if common_type({cell_type(cell) for cell in set(cells) if cell is not None}) is int:
        return pl.Series(cells, dtype=pl.Int64)
    return pl.Series([None if cell is None else str(cell) for cell in cells], dtype=pl.String)


def _store(target: Path, columns: Mapping[Key, pl.Series]) -> None:
    """Write an index to the cache, where that is possible; the oldest give way."""
    import polars as pl

    frame = pl.DataFrame([column.alias(f"{kind}:{name}") for (kind, name), column in columns.items()])
    with contextlib.suppress(OSError, pl.exceptions.PolarsError):
        with replacing(target) as draft:
            frame.write_parquet(draft, compression="lz4", statistics=False)
        trim(target.parent, files=MOST_STORED, size=LARGEST_STORED)


def _stored(path: Path, state: State) -> dict[Key, pl.Series] | None:
    """An index from the cache; None where there is none, or where it cannot be that of this file."""
    import polars as pl

    try:
        with open_file(path) as file:
            frame = pl.read_parquet(file)
    except (OSError, DataError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    columns: dict[Key, pl.Series] = {}
    for column in frame:
        kind, _, name = column.name.partition(":")
        columns[kind, name] = column
    return columns if _fits(columns, state) else None


def _fits(columns: Mapping[Key, pl.Series], state: State) -> bool:
    """Whether the columns have the types of an index, and its positions are inside the file, in order."""
    import polars as pl

    types: dict[Key, Any] = {
        ("sample", "sample"): pl.String,
        ("sample", "group"): pl.String,
        ("sample", "failed"): pl.Boolean,
        **dict.fromkeys(POSITIONS, pl.Int64),
    }
    if not all(key in columns and columns[key].dtype == kind for key, kind in types.items()):
        return False
    others = {"tag": (pl.Int64, pl.String), "value": (pl.Float64,)}
    if any(
        key not in types and column.dtype not in others.get(key[0], ()) for key, column in columns.items()
    ):
        return False
    if any(columns[key].null_count() for key in types):
        return False
    offsets, lengths, _ = (columns[key].to_numpy() for key in POSITIONS)
    ends = offsets + lengths
    return bool(
        len(offsets) and offsets[0] >= 0 and (lengths > 0).all()
        and (offsets <= state.size).all() and (lengths <= state.size).all()  # no sum overflows
        and (offsets[1:] >= ends[:-1]).all() and ends[-1] <= state.size
    )  # fmt: skip
