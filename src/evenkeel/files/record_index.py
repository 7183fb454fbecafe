"""An index over records.jsonl: the columns of its samples, and where the line of each is, made in one pass.

Of each line only the id, the tags, the values and the statuses are decoded. The index of a large file is
stored in the cache folder, as MessagePack, under the file's path, size and time.
"""

from __future__ import annotations

import contextlib
import hashlib
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
from evenkeel.files.cache import cache_dir, replacing, trim
from evenkeel.files.columns import Key, cell_type, common_type, titles
from evenkeel.files.jsonfile import BOM, NOT_JSON, convert, decode_line, open_file, shallow
from evenkeel.types import Status, Tag

if TYPE_CHECKING:
    from numpy.typing import NDArray

VERSION = 3
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
SAMPLE, GROUP, FAILED = "sample", "group", "failed"
"""The columns that are neither tags nor values."""


class State(NamedTuple):
    """What a file is as long as it is the same one."""

    size: int
    mtime: int
    inode: int


class Labels(NamedTuple):
    """A column of texts or whole numbers that recur."""

    codes: NDArray[np.int32]
    """For each row the number of its label; -1 where it has none."""
    names: list[Tag]
    """The labels, in the order of their first occurrence; texts or whole numbers, not both."""

    @property
    def kind(self) -> type:
        return int if self.names and isinstance(self.names[0], int) else str

    def cells(self, rows: Sequence[int]) -> list[Tag | None]:
        """The labels of some rows."""
        names: list[Tag | None] = [*self.names, None]
        return [names[code] for code in self.codes[list(rows)].tolist()]

    def ranks(self) -> NDArray[np.int64]:
        """For each row the place of its label among all in order; that of a row without one is the last."""
        places = np.empty(len(self.names) + 1, dtype=np.int64)
        places[sorted(range(len(self.names)), key=self.names.__getitem__)] = np.arange(len(self.names))
        places[-1] = len(self.names)
        return places[self.codes]


class Index(NamedTuple):
    """The columns of all samples, in the order of the file."""

    ids: list[str]
    groups: Labels
    failed: NDArray[np.bool_]
    tags: dict[str, Labels]
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
        return _read(path, state, headline)
    identity = f"{VERSION}|{path}|{state.size}|{state.mtime}|{state.inode}|{headline}"
    name = hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()
    stored = cache_dir() / "samples" / f"{name}.msgpack"
    index = _load(stored, state)
    if index is None:
        index = _read(path, state, headline)
        _store(stored, index)
    return index


def _read(path: Path, state: State, headline: str) -> Index:
    """One pass over the file."""
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
                row = decode(shallow(line))
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
    return Index(
        ids, labels_of(groups), has_failed, {name: labels_of(cells) for name, cells in tags.cells().items()},
        {name: numeric[name] for name in value_names}, offsets, lengths, numbers,
    )  # fmt: skip


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


def labels_of(cells: Sequence[Tag | None]) -> Labels:
    """A column of the type that holds all of its cells, as in `export`."""
    distinct = [cell for cell in dict.fromkeys(cells) if cell is not None]
    whole = common_type({cell_type(cell) for cell in distinct}) is int
    names: dict[Tag, int] = {}
    codes: dict[Tag | None, int] = {None: -1}
    for cell in distinct:
        codes[cell] = names.setdefault(cell if whole else str(cell), len(names))
    numbers = np.fromiter(map(codes.__getitem__, cells), dtype=np.int32, count=len(cells))
    return Labels(numbers, list(names))


class _StoredLabels(Struct, array_like=True):
    codes: bytes
    names: list[str | int]


class _Stored(Struct, array_like=True):
    """An index as it is stored: its arrays as bytes."""

    ids: list[str]
    groups: _StoredLabels
    failed: bytes
    tags: dict[str, _StoredLabels]
    values: dict[str, bytes]
    positions: tuple[bytes, bytes, bytes]


def _store(target: Path, index: Index) -> None:
    """Write an index to the cache, where that is possible; the oldest give way."""

    def packed(labels: Labels) -> _StoredLabels:
        return _StoredLabels(labels.codes.tobytes(), labels.names)

    content = _Stored(
        index.ids, packed(index.groups), index.failed.tobytes(),
        {name: packed(labels) for name, labels in index.tags.items()},
        {name: column.tobytes() for name, column in index.values.items()},
        (_bytes(index.offsets), _bytes(index.lengths), _bytes(index.numbers)),
    )  # fmt: skip
    with contextlib.suppress(OSError):
        with replacing(target) as draft:
            draft.write_bytes(msgspec.msgpack.encode(content))
        trim(target.parent, files=MOST_STORED, size=LARGEST_STORED)


def _bytes(numbers: Iterable[int]) -> bytes:
    return array("q", numbers).tobytes()


def _load(path: Path, state: State) -> Index | None:
    """An index from the cache; None where there is none, or where it cannot be that of this file."""
    try:
        with open_file(path) as file:
            stored = msgspec.msgpack.decode(file.read(), type=_Stored)
        index = Index(
            stored.ids,
            _unpacked(stored.groups),
            np.frombuffer(stored.failed, dtype=np.uint8).astype(bool),
            {name: _unpacked(labels) for name, labels in stored.tags.items()},
            {name: np.frombuffer(column, dtype=np.float64) for name, column in stored.values.items()},
            *(array("q", column) for column in stored.positions),
        )
    except (OSError, DataError, ValueError, msgspec.MsgspecError):
        return None
    return index if _fits(index, state) else None


def _unpacked(labels: _StoredLabels) -> Labels:
    return Labels(np.frombuffer(labels.codes, dtype=np.int32), labels.names)


def _fits(index: Index, state: State) -> bool:
    """Whether all columns have a cell for each sample, and the positions are inside the file, in order."""
    rows = len(index.ids)
    labels = [index.groups, *index.tags.values()]
    columns = [index.failed, *index.values.values(), index.offsets, index.lengths, index.numbers]
    if not rows or any(len(each) != rows for each in (*columns, *(each.codes for each in labels))):
        return False
    if any(each.codes.min() < -1 or each.codes.max() >= len(each.names) for each in labels):
        return False
    if index.groups.codes.min() < 0 or any(len(set(map(type, each.names))) > 1 for each in labels):
        return False
    offsets, lengths = np.array(index.offsets), np.array(index.lengths)
    ends = offsets + lengths
    return bool(
        offsets[0] >= 0 and (lengths > 0).all()
        and (offsets <= state.size).all() and (lengths <= state.size).all()  # no sum overflows
        and (offsets[1:] >= ends[:-1]).all() and ends[-1] <= state.size
    )  # fmt: skip
