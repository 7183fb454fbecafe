"""Logs of Inspect, read without it: `.eval` (a zip with a JSON file for each sample and epoch) and `.json`.

A log may come from anyone: what is read of it is bounded, nothing in it is run, and errors name the place.
"""

from __future__ import annotations

import contextlib
import json
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from evenkeel.errors import DataError, MissingExtra, explain
from evenkeel.files.jsonfile import BOM, NOT_JSON, open_file, read_bytes, replace_half_pairs, shallow
from evenkeel.inspect.outputs import Output

LARGEST_LOG = 4 << 30
"""Bytes of a log, unpacked."""
LARGEST_MEMBER = 256 << 20
"""Bytes of one sample, unpacked."""
MOST_MEMBERS = 2_000_000
HEADERS = ("header.json", "_journal/start.json")
"""Where a log says what it is; the second, while the evaluation goes on or after it was killed."""
LONGEST_REASON = 300
"""Characters of an error's message."""
ZSTANDARD = 93
INSTALL = "pip install zstandard"


class Dataset(Struct):
    sample_ids: list[str | int] | None = None


class Eval(Struct):
    task: str
    model: str = ""
    metadata: dict[str, Any] | None = None
    dataset: Dataset = msgspec.field(default_factory=Dataset)


class Header(Struct):
    """What a log says of the evaluation."""

    eval: Eval
    status: str = ""


class Error(Struct):
    """Why an epoch of a sample failed. A message of Inspect's may begin with the whole request."""

    message: str = ""
    traceback: str = ""

    @property
    def reason(self) -> str:
        """The last line, which names the error itself, and no more than the beginning of a long one."""
        lines = [line.strip() for line in (self.traceback or self.message).splitlines() if line.strip()]
        return lines[-1][:LONGEST_REASON] if lines else "no reason given"


class LoggedSample(Struct):
    """One epoch of one sample."""

    id: str | int
    epoch: int
    input: Any = None
    metadata: dict[str, Any] = {}
    output: Output = msgspec.field(default_factory=Output)
    store: dict[str, Any] = {}
    error: Error | None = None


class Placed(NamedTuple):
    """A sample, and where in the file it is."""

    where: str
    sample: LoggedSample


class Whole(Struct):
    """A log in one JSON file."""

    eval: Eval
    samples: list[Any] | None = None
    status: str = ""


@contextlib.contextmanager
def open_log(path: Path) -> Iterator[tuple[Header, Iterator[Placed]]]:
    """What a log says of the evaluation, and its samples one by one."""
    with open_file(path) as file:
        first = file.read(4)
    if first.startswith(b"PK"):
        with _open_zip(path) as archive:
            yield _read_archive(path, archive)
    elif first.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        yield _read_whole(path)
    else:
        raise DataError(path, "this is not a log of Inspect: expected a .eval or .json file that it wrote.")


def _read_whole(path: Path) -> tuple[Header, Iterator[Placed]]:
    if path.stat().st_size > LARGEST_LOG:
        raise DataError(path, f"this log is larger than {LARGEST_LOG >> 30} GiB.")
    log: Whole = _decode(path, read_bytes(path).removeprefix(BOM), Whole, "")
    samples = (
        Placed(f"samples[{index}]", _convert(path, raw, LoggedSample, f"samples[{index}]"))
        for index, raw in enumerate(log.samples or ())
    )
    return Header(log.eval, log.status), samples


@contextlib.contextmanager
def _open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, struct.error, NotImplementedError) as error:
        raise DataError(path, f"this is not a zip file that can be read ({error}).") from None
    with archive:
        yield archive


def _read_archive(path: Path, archive: zipfile.ZipFile) -> tuple[Header, Iterator[Placed]]:
    members = {member.filename: member for member in archive.infolist()}  # of two, the last one counts
    if len(members) > MOST_MEMBERS or sum(m.file_size for m in members.values()) > LARGEST_LOG:
        raise DataError(path, f"this log holds more than {LARGEST_LOG >> 30} GiB or {MOST_MEMBERS:,} files.")
    name = next((name for name in HEADERS if name in members), None)
    if name is None:
        raise DataError(path, f"this is not a log of Inspect: it holds no {HEADERS[0]}.")
    header: Header = _decode(path, _unpack(path, archive, members[name]), Header, name)
    samples = (
        Placed(name, _decode(path, _unpack(path, archive, member), LoggedSample, name))
        for name, member in members.items()
        if name.startswith("samples/") and name.endswith(".json")
    )
    return header, samples


def _unpack(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """A file of a zip, of no more bytes than it says."""
    size = member.file_size
    if size > LARGEST_MEMBER:
        raise DataError(path, f"this file is larger than {LARGEST_MEMBER >> 20} MiB.", where=member.filename)
    try:
        if member.compress_type == ZSTANDARD:
            content = _unpack_zstandard(path, archive, member)
        else:
            with archive.open(member) as file:
                content = file.read(size + 1)
    except MissingExtra:
        raise
    except Exception as error:  # noqa: BLE001  # zlib.error, zstandard.ZstdError, RuntimeError of a password, …
        raise DataError(path, f"this file cannot be unpacked ({error}).", where=member.filename) from None
    if len(content) != size:
        raise DataError(path, "this file has not the size that the zip says.", where=member.filename)
    return content


def _unpack_zstandard(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Python's zipfile cannot unpack this before version 3.14, and does not bound it."""
    try:
        import zstandard
    except ImportError:
        raise MissingExtra(f"{path.name}", package="zstandard", install=INSTALL) from None
    with open_file(path) as file:
        file.seek(member.header_offset)
        lengths = struct.unpack("<HH", file.read(30)[26:])
        file.seek(sum(lengths), 1)
        packed = file.read(member.compress_size)
    decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    with decompressor.stream_reader(packed, read_across_frames=True) as reader:
        content: bytes = reader.read(member.file_size + 1)
    return content


def _decode(path: Path, content: bytes, kind: Any, where: str) -> Any:
    """JSON as `kind`. Python's own reader takes NaN and Infinity too, which Inspect writes."""
    try:
        return msgspec.json.decode(shallow(content), type=kind)
    except NOT_JSON:
        pass
    try:
        raw = json.loads(replace_half_pairs(shallow(content).decode()))
    except (ValueError, RecursionError) as error:
        raise DataError(path, f"this is not JSON ({error}).", where=where) from None
    return _convert(path, raw, kind, where)


def _convert(path: Path, raw: Any, kind: Any, where: str) -> Any:
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        fault = explain(error, raw)
        place = ", ".join(filter(None, (where, fault.field)))
        raise DataError(path, f"{fault.problem}.", where=place) from None
