"""`batches.json` in a run's folder: which batches were handed in, and which requests are in each.

A batch is written down before it is created and again when its id is known. Where a process is killed in
between, the next one asks the same again: one batch may be paid for twice.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from sealegs.errors import DataError
from sealegs.files.cache import write_whole
from sealegs.files.jsonfile import read_json
from sealegs.harness.folder.layout import BATCHES, run_file

FORMAT = 2
BATCH_ID = re.compile(r"[A-Za-z0-9_.-]{1,200}")
"""A server's name for a batch or a file: it becomes part of an address."""

Name = Annotated[str, Meta(max_length=300)]
BatchId = Annotated[str, Meta(pattern=rf"^(?!\.+$)({BATCH_ID.pattern})?$")]


class StoredBatch(Struct, kw_only=True):
    """A batch of this run."""

    address: Name
    """The server, without credentials."""
    requests: list[Name]
    """The `custom_id` of each: the beginning of the journal's key."""
    id: BatchId = ""
    """Empty until the server has named it."""
    fetched: bool = False
    """Whether its results were read to the end."""


class _BatchesFile(Struct):
    batches: list[StoredBatch]
    format: int = FORMAT


def write_batches(folder: Path, batches: list[StoredBatch]) -> None:
    """Store the batches of a run, whose folder must be locked."""
    content = msgspec.json.encode(_BatchesFile(batches))
    write_whole(folder / BATCHES, msgspec.json.format(content, indent=1))


def read_batches(folder: Path) -> list[StoredBatch]:
    """The batches of a run; none where there is no such file."""
    if (path := run_file(folder, BATCHES)) is None:
        return []
    stored: _BatchesFile = read_json(path, _BatchesFile)
    if stored.format != FORMAT:
        raise DataError(path, f"it has format {stored.format}; this Sealegs reads format {FORMAT}.")
    return stored.batches


def unfetched(folder: Path) -> list[StoredBatch]:
    """The batches whose results were not read to the end."""
    return [batch for batch in read_batches(folder) if not batch.fetched]
