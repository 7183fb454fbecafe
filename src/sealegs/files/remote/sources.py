"""Data where people have it: on the Hugging Face Hub, at an address, in a compressed file, in other columns.

Each becomes a file on this machine that benchmarks and builders read like any other, below a temporary folder
that goes with the process. The name of the file is that of the data, and its lines have the numbers of the
original's lines (or rows); `naming_source` has an error about it name the original.
A login or a token in an address is in no name and in no message.
"""

from __future__ import annotations

import atexit
import contextlib
import gzip
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, count
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import msgspec

from sealegs.errors import (
    DataError,
    DataUnreachable,
    MissingExtra,
    SealegsError,
    UsageError,
    first_line,
    listed,
    sentence,
    suggestion,
)
from sealegs.files.cache import slug
from sealegs.files.jsonfile import NOT_JSON, decode, open_file
from sealegs.files.remote.telemetry import switch_off_telemetry
from sealegs.files.tables import ENDINGS, Row, read_rows

HUB = "hf:"
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz"}
"""The name that fsspec has for a compression, by the ending of a file."""
TABLES = (".csv", ".parquet")
LARGEST_DOWNLOAD_BYTES = 1 << 31
"""Bytes of a file that is fetched, unpacked or converted."""
CHUNK_BYTES = 1 << 20
INSTALL = "pip install 'sealegs[data]'"


_sources: dict[Path, str] = {}
"""What a file on this machine was made from, as a person wrote it, without login and query."""


def is_elsewhere(data: str) -> bool:
    """Whether a value of `--data` or `--docs` is a data set of the Hub or an address, not a path."""
    return data.startswith(HUB) or bool(re.match(r"[A-Za-z][\w+.-]*(::[\w+.-]+)*://", data))


def parse_columns(column: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    """`FIELD=COLUMN` for each: the column of the data that a field is taken from."""
    if isinstance(column, Mapping):
        return dict(column)
    columns: dict[str, str] = {}
    for pair in [column] if isinstance(column, str) else column:
        field, mark, name = pair.partition("=")
        if not field or not mark or not name:
            raise UsageError(f"--column {field}{mark}{name}: write it as FIELD=COLUMN, as in query=question.")
        if field in columns:
            raise UsageError(f"--column {field}={name}: '{field}' is given twice.")
        columns[field] = name
    return columns


def local(
    data: str | Path, columns: Mapping[str, str] | None = None, *, split: str = "test", tables: bool = True
) -> Path:
    """The file or folder of this machine that a value of `--data` or `--docs` means.

    A path to a file that is not compressed is itself, unless its columns are to have other names. `split` is
    taken of a data set that has several and of which none was named. Without `tables` a CSV or Parquet file
    becomes JSON lines.
    """
    if isinstance(data, str) and data.startswith(HUB):
        return _renamed(_from_hub(data, split), columns or {})
    path = Path(data)
    if isinstance(data, str) and is_elsewhere(data):
        path = _fetched(data)
    if path.is_dir():
        if columns:
            raise UsageError(f"--column goes with one file: {data} is a folder.")
        return path
    if path.suffix.lower() in COMPRESSED and path.is_file():
        with open_file(path):  # or an error that says why not
            path = _copied(str(path), str(path), path.name)
    if columns or (not tables and path.suffix.lower() in TABLES and path.is_file()):
        return _renamed(path, columns or {})
    return path


def ending(path: Path) -> str:
    """The ending that names a file's format, that of a compression aside."""
    return Path(path.stem if path.suffix.lower() in COMPRESSED else path.name).suffix.lower()


@contextlib.contextmanager
def naming_source() -> Iterator[None]:
    """Errors about a file that stands for another name the other."""
    try:
        yield
    except SealegsError as error:
        error.args = (named(str(error.args[0])), *error.args[1:])
        raise


def named(text: str) -> str:
    """A text about files that stand for others, with the names of the others."""
    for path, source in _sources.items():
        text = text.replace(str(path), source)
    return text


# Files of this process


@cache
def _folder() -> Path:
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="sealegs-data-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


_numbers = count(1)


def _new_file(name: str, source: str) -> Path:
    """A path for a file in a folder of its own, so that it can have the name of the original."""
    folder = _folder() / str(next(_numbers))
    folder.mkdir()
    path = folder / slug(name, longest=120)
    _sources[path] = source
    return path


def _source_of(path: Path) -> str:
    """What a path stands for; a person's own file is itself."""
    return _sources.get(path, str(path))


def _write(path: Path, chunks: Iterable[bytes], done: str) -> None:
    """Write a file of at most LARGEST bytes."""
    size = 0
    with path.open("wb") as file:
        for chunk in chunks:
            size += len(chunk)
            if size > LARGEST_DOWNLOAD_BYTES:
                raise DataError(
                    _source_of(path), f"it has more than {LARGEST_DOWNLOAD_BYTES:,} bytes {done}."
                )
            file.write(chunk)


# Addresses


def _fetched(address: str) -> Path:
    """The file at an address that fsspec knows."""
    shown = without_secrets(address)
    name = Path(unquote(urlsplit(shown).path)).name
    if not name:
        raise UsageError(f"{shown}: this address names no file. Give that of a file ({', '.join(ENDINGS)}).")
    return _copied(address, shown, name)


def _copied(origin: str, shown: str, name: str) -> Path:
    """A file of this process with what a file elsewhere, or a compressed one, holds."""
    compression = COMPRESSED.get(Path(name).suffix.lower())
    path = _new_file(Path(name).stem if compression else name, shown)
    _write(path, _chunks(origin, shown, compression), "unpacked")
    return path


def _chunks(origin: str, shown: str, compression: str | None) -> Iterator[bytes]:
    try:
        import fsspec
    except ImportError:
        raise MissingExtra(f"--data {shown}", package="fsspec", install=INSTALL) from None
    try:
        with fsspec.open(origin, "rb", compression=compression) as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk
    except FileNotFoundError:
        raise DataError(shown, "there is no such file.") from None
    except ImportError as error:
        raise UsageError(f"{shown} cannot be read here. {sentence(str(error))}") from None
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile):
        raise DataError(shown, "cannot be unpacked: the file is damaged.") from None
    except Exception as error:  # noqa: BLE001  # a file system may raise anything, and its text may hold the login
        if not is_elsewhere(origin):  # bz2 raises OSError
            raise DataError(shown, "cannot be unpacked: the file is damaged.") from None
        status = getattr(error, "status", None)
        reason = f"HTTP {status}" if status else getattr(error, "strerror", None) or type(error).__name__
        raise DataUnreachable(f"{shown} could not be fetched ({reason}).") from None


def without_secrets(address: str) -> str:
    """An address, or a chain of them (`zip://a.csv::https://…`), without what may hold a key: logins,
    parameters, queries and fragments."""
    return "::".join(_without_secrets(link) for link in address.split("::"))


def _without_secrets(address: str) -> str:
    try:
        parts = urlsplit(address)
        host, path = parts.netloc.rpartition("@")[2], parts.path.partition(";")[0]
    except ValueError:
        raise UsageError("--data: this is not an address that can be read.") from None
    try:
        _ = parts.port
    except (
        ValueError
    ):  # a password with a slash, a question mark or a number sign ends what is read as the host
        host, _, path = path.rpartition("@")[2].partition("/") if "@" in path else ("…", "", "")
        path = f"/{path}" if path else ""
    return urlunsplit((parts.scheme, host, path, "", ""))


# Rows


def _renamed(path: Path, columns: Mapping[str, str]) -> Path:
    """The rows of a file as JSON lines, each at its line of the original, with fields from other columns."""
    if path in _sources and not columns and path.suffix == ".jsonl":
        return path
    with naming_source():
        rows = read_rows(path)
        first = next(rows, None)
        if first is None:
            raise DataError(path, "there is no row in it.")
        for field, column in columns.items():
            if column not in first.fields:
                raise UsageError(
                    f"--column {field}={column}: {path} has no column '{column}'."
                    f"{suggestion(column, first.fields)} Available: {listed(first.fields)}."
                )
        target = _new_file(f"{path.stem}.jsonl", _source_of(path))
        _write(target, _lines(chain([first], rows), columns), "as JSON lines")
    return target


def _lines(rows: Iterable[Row], columns: Mapping[str, str]) -> Iterator[bytes]:
    written = 0
    for number, row in enumerate(rows, 1):
        line = row.line or number
        yield b"\n" * (line - 1 - written) + encoded(row, columns) + b"\n"
        written = line


def encoded(row: Row, columns: Mapping[str, str]) -> bytes:
    """A row as a line of JSON. A cell that is empty is no field, and a cell of CSV may hold a JSON list."""
    taken = set(columns.values())
    fields = {name: value for name, value in row.fields.items() if name not in taken}
    fields |= {field: row.fields[column] for field, column in columns.items() if column in row.fields}
    if row.file.suffix.lower() == ".csv":
        fields = {name: _cell(text) for name, text in fields.items() if text != ""}
    fields = {name: value for name, value in fields.items() if value is not None}
    try:
        return msgspec.json.encode(fields)
    except (TypeError, ValueError) as error:
        raise row.error(f"a column holds what is not text: {error}.") from None


def _cell(text: Any) -> Any:
    if isinstance(text, str) and text.startswith(("[", "{")):
        with contextlib.suppress(*NOT_JSON):
            return decode(text.encode())
    return text


# The Hugging Face Hub


def _from_hub(data: str, split: str) -> Path:
    """The rows of a data set as JSON lines. `datasets` runs no code of a data set from version 4 on."""
    name, config, chosen = parts_of(data)
    switch_off_telemetry()
    try:
        import datasets
    except ImportError:
        raise MissingExtra(f"--data {data}", package="datasets", install=INSTALL) from None
    if int(datasets.__version__.partition(".")[0]) < 4:
        raise UsageError(
            f"--data {data}: datasets {datasets.__version__} may run code of a data set. Run: {INSTALL}"
        )
    try:
        loaded = datasets.load_dataset(name, config or None)
    except Exception as error:  # noqa: BLE001  # `datasets` raises what its readers and the Hub's client raise
        from huggingface_hub import get_token

        text = str(error).replace(get_token() or "\0", "[key]")  # a server may repeat it
        reason = first_line(text) or type(error).__name__
        raise DataUnreachable(f"{data} could not be loaded ({reason.rstrip('.')}).") from None
    splits = [str(name) for name in loaded]
    chosen = chosen or (splits[0] if len(splits) == 1 else split if split in splits else "")
    if chosen not in splits:
        problem = f"has no split '{chosen}'.{suggestion(chosen, splits)}" if chosen else "has several splits."
        raise UsageError(f"{data}: the data set {problem} Available: {', '.join(splits)}. Give NAME:SPLIT.")
    stem = "-".join(filter(None, (Path(name).name, config, chosen)))
    path = _new_file(f"{stem}.jsonl", data)
    rows = (
        Row(path, fields, str(number), where=f"row {number}")
        for number, fields in enumerate(loaded[chosen], 1)
    )
    with naming_source():
        _write(path, (encoded(row, {}) + b"\n" for row in rows), "as JSON lines")
    return path


def parts_of(data: str) -> tuple[str, str, str]:
    """`hf:NAME`, `hf:NAME:SPLIT` or `hf:NAME:CONFIG:SPLIT`."""
    name, *rest = data.removeprefix(HUB).split(":")
    if not name or len(rest) > 2 or not all(rest):
        raise UsageError(f"{data}: write it as hf:NAME, hf:NAME:SPLIT or hf:NAME:CONFIG:SPLIT.")
    config, split = ("", *rest)[-2:] if rest else ("", "")
    return name, config, split
