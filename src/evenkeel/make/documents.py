"""Documents from a person's own files: JSON lines, CSV, Parquet, or a folder of text files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from evenkeel.errors import DataError, UsageError
from evenkeel.files.tables import Row, read_rows, read_text

SHAPES: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = (
    (frozenset({"question", "answer"}), ("question",)),  # GSM8K
    (frozenset({"clue"}), ("clue",)),  # crossword clues
    (frozenset({"storytitle", "sentence1"}), ("storytitle", *(f"sentence{n}" for n in range(1, 6)))),
    (frozenset({"title", "sentence1"}), ("title", *(f"sentence{n}" for n in range(1, 6)))),  # ROCStories
    (frozenset({"text"}), ("text",)),
    (frozenset({"document"}), ("document",)),
    (frozenset({"content"}), ("content",)),
)
"""Data sets that are known by their fields, and the fields that make up a document."""
ID_FIELDS = ("id", "storyid")
TEXT_FILES = (".txt", ".md")


class Document(Struct, frozen=True):
    """One document. An id is unique in its set."""

    id: str
    text: str
    label: str | None = None
    """What the person's label field says."""
    views: dict[str, str] = {}
    """Labels that are known by construction, for each view."""


class Documents(NamedTuple):
    """What was read, and how much of it cannot be used."""

    documents: list[Document]
    empty: int = 0
    duplicates: int = 0

    @property
    def notes(self) -> list[str]:
        """What was left out, for the person to know."""
        told = ((self.empty, "empty"), (self.duplicates, "with a text that stands there before"))
        return [f"left out: {count} documents {what}" for count, what in told if count]


def read_documents(
    path: Path,
    *,
    text_field: str | None = None,
    id_field: str | None = None,
    label_field: str | None = None,
) -> Documents:
    """The documents of a file or folder, without empty ones and without texts that were there before.

    Fields that are not named are guessed from those of the first document. Without an id field a document
    goes by its line, row or file name. In a folder, `folder` and `name` are fields as well as `text`.
    """
    rows = _rows(path)
    first = next(rows, None)
    if first is None:
        raise DataError(path, "there is no document in it.")
    texts = (text_field,) if text_field else text_fields(first)
    id_field = id_field or next((field for field in ID_FIELDS if field in first.fields), None)
    documents: list[Document] = []
    empty = duplicates = 0
    places: dict[str, str] = {}
    seen: set[str] = set()
    for row in chain([first], rows):
        document = _document(row, texts, id_field, label_field)
        if document.id in places:
            raise row.error(
                f"the id '{document.id}' stands at {places[document.id]} already; ids are unique."
            )
        places[document.id] = row.place
        key = " ".join(document.text.split())
        if not key:
            empty += 1
        elif key in seen:
            duplicates += 1
        else:
            seen.add(key)
            documents.append(document)
    if not documents:
        raise DataError(path, "every document in it is empty.")
    return Documents(documents, empty, duplicates)


def text_fields(row: Row) -> tuple[str, ...]:
    """The fields that make up a document's text, by the data set that they tell of."""
    for marks, fields in SHAPES:
        if marks <= row.fields.keys():
            return fields
    raise UsageError(
        f"{row.file}: none of the fields is known to hold the text. There is: {', '.join(row.fields)}. "
        "Name one with --text-field."
    )


def _document(row: Row, texts: Sequence[str], id_field: str | None, label_field: str | None) -> Document:
    parts = [row.text(field).strip() for field in texts]
    # A title is no sentence: it gets a full stop before the sentences that follow it.
    parts[:-1] = [part if part[-1:] in ".!?…" else f"{part}." for part in parts[:-1]]
    label = _label(row, label_field) if label_field else None
    return Document(
        row.text(id_field).strip() if id_field else row.name, " ".join(part for part in parts if part), label
    )


def _label(row: Row, field: str) -> str:
    value = row.fields.get(field)
    label = str(value).lower() if isinstance(value, bool) else row.text(field).strip()
    if not label:
        raise row.error(f"the field '{field}' is empty.")
    return label


def _rows(path: Path) -> Iterator[Row]:
    return _folder_rows(path) if path.is_dir() else read_rows(path)


def _folder_rows(folder: Path) -> Iterator[Row]:
    files = [file for file in folder.rglob("*") if file.suffix.lower() in TEXT_FILES and file.is_file()]
    if not files:
        raise DataError(folder, f"there is no file in it that ends in {' or '.join(TEXT_FILES)}.")
    for file in sorted(files, key=lambda file: file.relative_to(folder).as_posix()):
        name = file.relative_to(folder).as_posix()
        yield Row(file, {"text": read_text(file), "name": name, "folder": file.parent.name}, name)
