"""Data frames and Parquet, with polars, the extra `frames`. Outside the app only this imports polars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sealegs.errors import DataError, MissingExtra, StorageError, first_line
from sealegs.files.columns import Cell, Extra, Key, cells, columns, titles, typed_rows
from sealegs.files.jsonfile import open_file
from sealegs.types import Record, Records

if TYPE_CHECKING:
    import polars as pl
    from polars import DataFrame as DataFrame

ROWS_PER_CHUNK = 256
"""Rows handed to polars at a time."""
LFS_POINTER = b"version https://git-lfs.github.com/spec/"


def load_polars(what: str) -> Any:
    """The module; or an error that says what needs it, and how to install it."""
    try:
        import polars
    except ImportError:
        install = "pip install 'sealegs[frames]'"
        raise MissingExtra(what, package="polars", install=install) from None
    return polars


def frame(records: Records) -> DataFrame:
    """The records in memory, with the answers of a sample in one list."""
    polars = load_polars("a data frame")
    types = columns(records())
    answers = [key for key in types if key[0] == "answer"]
    table = _scan(records, {key: kind for key, kind in types.items() if key not in answers}).collect()
    texts = [_answers(record, answers) for record in records()]
    name = "answers" if "answers" not in table.columns else "answer_texts"
    return table.with_columns(polars.Series(name, texts, dtype=polars.List(polars.String)))


def _answers(record: Record, keys: Iterable[Key]) -> list[Cell]:
    """The texts of one sample at the positions where any sample has one; None where there is no answer."""
    row = cells(record)
    return [row.get(key) for key in keys if int(key[1]) < len(record.answers)]


def frame_of(cells: Mapping[str, Sequence[Any]], types: Mapping[str, type]) -> DataFrame:
    """Columns in memory as a data frame."""
    polars = load_polars("a data frame")
    table: DataFrame = polars.DataFrame(dict(cells), schema=_schema(polars, types))
    return table


def write_parquet(records: Records, types: Mapping[Key, type], target: Path, extra: Extra) -> None:
    polars = load_polars("Parquet")
    try:
        _scan(records, types, extra).sink_parquet(target)
    except polars.exceptions.PolarsError as error:
        raise StorageError(f"{target}: cannot be written ({first_line(error)}).") from error


def _scan(records: Records, types: Mapping[Key, type], extra: Extra = lambda record: {}) -> pl.LazyFrame:
    """The rows as a stream that polars reads while it writes."""
    polars = load_polars("a data frame")
    from polars.io.plugins import register_io_source

    names = titles(types)
    schema = _schema(polars, {names[key]: kind for key, kind in types.items()})

    def batches(*_: Any) -> Iterator[DataFrame]:
        rows = typed_rows(records, types, extra=extra)
        while chunk := list(islice(rows, ROWS_PER_CHUNK)):
            yield polars.DataFrame(chunk, schema=schema, orient="row", strict=False)

    return register_io_source(batches, schema=schema)


def _schema(polars: Any, types: Mapping[str, type]) -> dict[str, Any]:
    kinds = {str: polars.String(), int: polars.Int64(), float: polars.Float64(), bool: polars.Boolean()}
    return {name: kinds[kind] for name, kind in types.items()}


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file by their fields."""
    with open_file(path) as file:  # or an error in our words
        if file.read(len(LFS_POINTER)) == LFS_POINTER:
            raise DataError(path, "is a pointer of Git LFS, not the file itself. Run: git lfs pull")
    polars = load_polars(f"{path}: reading Parquet")
    try:
        rows: Iterator[dict[str, Any]] = polars.read_parquet(path, glob=False).iter_rows(named=True)
    except polars.exceptions.PanicException:  # its parts do not fit together
        raise DataError(path, "cannot be read: the file is damaged.") from None
    except (OSError, polars.exceptions.PolarsError) as error:
        raise DataError(path, f"cannot be read: {first_line(error)}.") from None
    return rows
