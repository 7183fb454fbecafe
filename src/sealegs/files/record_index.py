"""An index over records.jsonl: the columns of its samples, and where the line of each is, made in one pass.

Of each line only what the columns hold is decoded, without inputs, answers and details: 50,000 samples take
less than a second. The index of a large file is stored in the person's own cache, never beside the file,
which may come from anyone; it is read again, in a tenth of the time, for as long as the file is the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, get_args

import msgspec
import numpy as np
from msgspec import Struct

from sealegs.errors import DataError, StorageError
from sealegs.files.cache import cache_dir, write_whole
from sealegs.files.jsonfile import NOT_JSON, check_depth, decode_line_as, open_file
from sealegs.types import Record, Status, Tag

if TYPE_CHECKING:
    from numpy.typing import NDArray

IN_MEMORY = 8
"""Indexes in memory, of the files that were read last."""
STORED_FROM_BYTES = 2**19
"""Size of the files whose indexes are stored: smaller ones are read in a few milliseconds."""
MOST_STORED = 100
"""Indexes in the cache, which are a tenth of the size of their files."""
FORMAT = 3
"""Of stored indexes: another number where `Index` means something else."""
DIGEST_BYTES = 16
"""Of stored indexes: one whose content does not fit is made anew."""
MOST_NAMES = 2000
"""Distinct tags and values of the samples of one file."""


class FileState(NamedTuple):
    """What a file is as long as it is the same one."""

    size: int
    modified: int
    changed: int
    """When anything of it changed, its name and its links included: nobody can set that, save on Windows,
    where it is when the file was made."""
    inode: int

    def has_same_content(self, other: FileState) -> bool:
        """Links and permissions may have changed."""
        return self._replace(changed=0) == other._replace(changed=0)


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
    measured: dict[str, NDArray[np.bool_]]
    """Which samples a value is of, though it may not be known."""
    answered: NDArray[np.intp]
    """Requests of each sample that can be scored."""
    asked: NDArray[np.intp]
    requests: dict[str, tuple[NDArray[np.intp], NDArray[np.intp]]]
    """The same two by the subject that they were for, where subjects share samples; of a sample
    without such a subject, all of them."""
    links: dict[int, Sequence[str]]
    """Those of the samples that have any, by row."""
    inputs: NDArray[np.int64]
    """A hash of what each sample asks as it stands in the file: equal ones ask the same."""
    offsets: NDArray[np.int64]
    """Where the line of each begins in the file, and where the last one ends."""


class _IndexedSample(Struct, gc=False):
    id: str
    group: str
    tags: dict[str, Tag]
    inputs: msgspec.Raw


class _IndexedScore(Struct, gc=False):
    tags: dict[str, Tag]
    values: dict[str, float | None]
    statuses: dict[str, int]
    answered: int
    failures: tuple[str, ...] = ()
    requests: dict[str, tuple[int, int]] = {}
    links: tuple[str, ...] = ()


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
        if not _state(file).has_same_content(state):
            raise DataError(path, "was written again since its samples were listed. Load the run again.")
        yield file


def _state(file: BinaryIO) -> FileState:
    status = os.fstat(file.fileno())
    return FileState(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


@lru_cache(maxsize=IN_MEMORY)
def record_index(path: Path, state: FileState, headline: str, stored: bool = True) -> Index:
    """The index of a file in one state; `headline` is the metric that no sample may lack."""
    if not stored or state.size < STORED_FROM_BYTES:
        return _read(path, state, headline)
    file = _stored_at(path, state, headline)
    with contextlib.suppress(OSError, msgspec.DecodeError, ValueError, TypeError):  # none there, or damaged
        return _unpacked(file.read_bytes())
    index = _read(path, state, headline)
    with contextlib.suppress(OSError, StorageError, OverflowError):  # a full disk, say; a number of any size
        write_whole(file, _packed(index))
        for old in sorted(file.parent.iterdir(), key=os.path.getmtime)[:-MOST_STORED]:
            old.unlink()
    return index


def _stored_at(path: Path, state: FileState, headline: str) -> Path:
    key = hashlib.sha256(repr((FORMAT, str(path), state, headline)).encode()).hexdigest()
    return cache_dir() / "indexes" / key


def _packed(index: Index) -> bytes:
    """An index as it is stored, after its digest."""
    content = msgspec.msgpack.encode(index, enc_hook=_extension)
    return _digest(content) + content


def _unpacked(stored: bytes) -> Index:
    digest, content = stored[:DIGEST_BYTES], stored[DIGEST_BYTES:]
    if digest != _digest(content):
        raise ValueError
    return Index(*msgspec.msgpack.decode(content, ext_hook=_array))


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()


def _extension(column: NDArray[Any]) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(ord(column.dtype.char), column.tobytes())


def _array(kind: int, content: memoryview) -> NDArray[Any]:
    return np.frombuffer(content, dtype=chr(kind))


def _read(path: Path, state: FileState, headline: str) -> Index:
    offsets = array("q", [0])

    def lines() -> Iterator[_IndexedLine]:
        with unchanged(path, state) as file:
            for number, line in enumerate(file, 1):
                offsets.append(offsets[-1] + len(line))
                try:
                    yield _LINES.decode(check_depth(line))
                except NOT_JSON:  # half of a surrogate pair, or an error to be described
                    yield decode_line_as(path, line, _IndexedLine, number)

    index = index_of(path, lines(), headline)
    return index._replace(offsets=np.frombuffer(offsets, dtype=np.int64))


def index_of(path: Path, lines: Iterable[_IndexedLine | Record[msgspec.Raw]], headline: str = "") -> Index:
    """The columns of records, of which nothing else is kept."""
    ids, groups, inputs = [], [], bytearray()
    tags, scores = [], []
    for line in lines:
        ids.append(line.sample.id)
        groups.append(line.sample.group)
        inputs += hashlib.blake2b(line.sample.inputs, digest_size=8).digest()
        tags.append(line.sample.tags | line.score.tags)
        scores.append(line.score)
    tag_names, value_names = _names(tags), _names(score.values for score in scores)
    if len(tag_names) + len(value_names) > MOST_NAMES:
        raise DataError(path, f"its samples have more than {MOST_NAMES:,} different tags and values.")
    columns, measured = _columns([score.values for score in scores], value_names)
    counts = [(score.answered, sum(score.statuses.values())) for score in scores]
    answered, asked = _two_columns(counts)
    # A request was not answered, or scoring lacked something: anything, or the value of a headline (of any
    # subject: `accuracy@bm25`) that the sample is measured by.
    failed = (answered < asked) | np.array([bool(score.failures) for score in scores], dtype=bool)
    for name in columns:
        if name.partition("@")[0] == headline:
            failed |= measured[name] & np.isnan(columns[name])
    ended = _names(score.statuses for score in scores)
    return Index(
        ids=ids,
        groups=groups,
        failed=failed,
        statuses={
            status: np.array([score.statuses.get(status, 0) > 0 for score in scores], dtype=bool)
            if status in ended
            else np.zeros(len(scores), dtype=bool)
            for status in get_args(Status)
        },
        tags={name: _of_one_type([row.get(name) for row in tags]) for name in tag_names},
        values=columns,
        measured=measured,
        answered=answered,
        asked=asked,
        requests={
            subject: _two_columns(
                [score.requests.get(subject, whole) for score, whole in zip(scores, counts, strict=True)]
            )
            for subject in _names(score.requests for score in scores)
        },
        links={row: score.links for row, score in enumerate(scores) if score.links},
        inputs=np.frombuffer(inputs, dtype=np.int64),
        offsets=np.zeros(0, dtype=np.int64),
    )  # fmt: skip


def _two_columns(counts: Sequence[tuple[int, int]]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    first, second = np.array(counts, dtype=np.intp).reshape(-1, 2).T
    return first, second


def _columns(
    rows: Sequence[Mapping[str, float | None]], names: Sequence[str]
) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.bool_]]]:
    """The values of each name, NaN where they are not known, and which rows have the name: rows of the same
    names, as nearly all are, at once."""
    values = {name: np.full(len(rows), np.nan) for name in names}
    measured = {name: np.zeros(len(rows), dtype=bool) for name in names}
    alike: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        alike[*row].append(number)
    for shape, numbers in alike.items():
        cells = np.array([[*rows[number].values()] for number in numbers], dtype=np.float64)
        for name, column in zip(shape, cells.T, strict=True):
            values[name][numbers] = column
            measured[name][numbers] = True
    return values, measured


def _names(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Every name, in the order of its first occurrence."""
    return list(dict.fromkeys(name for names in dict.fromkeys(map(tuple, rows)) for name in names))


def _of_one_type(cells: list[Tag | None]) -> list[Tag | None]:
    """Whole numbers where all cells are, texts otherwise."""
    if not any(isinstance(cell, str) for cell in cells):
        return cells
    return [None if cell is None else str(cell) for cell in cells]
