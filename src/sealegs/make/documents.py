"""Documents from a user's files: JSON lines, CSV, Parquet, or a folder of text files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from sealegs.errors import DataError, UsageError, listed
from sealegs.files.tables import Row, read_plain_text, read_rows

TEXT_FIELDS = ("question", "clue", "text", "document", "content")
"""The fields that hold a document's text, the first that there is."""
ID_FIELDS = ("id", "storyid")
TEXT_FILES = (".txt", ".md")


class Document(Struct, frozen=True):
    """One document. An id is unique in its set."""

    id: str
    text: str
    labels: dict[str, tuple[str, ...]] = {}
    """The values of the user's label fields; several where a document has several labels in one field."""
    views: dict[str, str] = {}
    """Labels that are known by construction, for each view."""


class Content(NamedTuple):
    """What a row gives a document: its text, and its labels by field."""

    text: str
    labels: dict[str, tuple[str, ...]]


Reader: TypeAlias = Callable[[Row], Content]


class Documents(NamedTuple):
    """The documents of a file or folder, and how many were left out."""

    documents: list[Document]
    empty: int = 0
    duplicates: int = 0

    @property
    def notes(self) -> list[str]:
        """What was left out."""
        counts = ((self.empty, "empty"), (self.duplicates, "with the text of an earlier one"))
        return [f"left out: {count} documents {reason}" for count, reason in counts if count]


def read_documents(
    path: Path,
    *,
    text_field: str | None = None,
    label_fields: Sequence[str] = (),
    compose: Callable[[Row], Reader] | None = None,
    endings: Sequence[str] = TEXT_FILES,
) -> Documents:
    """The documents of a file or folder, without empty ones and duplicates.

    A text field that is not given is recognised by those of the first document. Without an `id` a document is
    named by its line, row or file name. In a folder, `folder` and `name` are fields as well as `text`.
    A label field may hold a list of labels.
    `endings` are those of the files of a folder that are read.
    `compose` chooses from the first row how a row's text and labels are made, instead of the fields.
    """
    if path.is_file() and path.suffix.lower() in endings:
        raise DataError(path, "one text is read from a folder: give the folder that it is in.")
    rows = _folder_rows(path, endings) if path.is_dir() else read_rows(path)
    first = next(rows, None)
    if first is None:
        raise DataError(path, "there is no document in it.")
    if compose:
        reader = compose(first)
    else:
        chosen = text_field or _text_field(first)

        def reader(row: Row) -> Content:
            labels = {field: read_labels(row, field) for field in label_fields}
            return Content(row.text(chosen).strip(), labels)

    id_field = next((field for field in ID_FIELDS if field in first.fields), None)
    documents: list[Document] = []
    empty = duplicates = 0
    ids: dict[str, str] = {}
    texts: dict[str, Document] = {}
    for row in chain([first], rows):
        document = Document(row.text(id_field).strip() if id_field else row.name, *reader(row))
        if document.id in ids:
            raise row.error(
                f"the id '{document.id}' appears twice, first at {ids[document.id]}; make ids unique."
            )
        ids[document.id] = row.place
        text = " ".join(document.text.split())
        if not text:
            empty += 1
        elif text in texts:
            duplicates += 1
            _check_labels(row, document, texts[text], ids)
        else:
            texts[text] = document
            documents.append(document)
    if not documents:
        raise DataError(path, "every document in it is empty.")
    return Documents(documents, empty, duplicates)


def _check_labels(row: Row, document: Document, first: Document, locations: Mapping[str, str]) -> None:
    """Refuse a document whose text was there before with other labels: one of the two is wrong."""
    for field, labels in document.labels.items():
        if set(labels) != set(first.labels[field]):
            old, new = (", ".join(each) or "nothing" for each in (first.labels[field], labels))
            raise row.error(
                f"the same text has the label '{old}' in the field '{field}' at {locations[first.id]}, and "
                f"'{new}' here. Remove the one that is wrong."
            )


def _text_field(row: Row) -> str:
    for field in TEXT_FIELDS:
        if field in row.fields:
            return field
    raise UsageError(
        f"{row.file}: none of the fields is known to hold the text. Available: {listed(row.fields)}. "
        "Choose one with --text-field."
    )


def read_labels(row: Row, field: str) -> tuple[str, ...]:
    """The labels in a field, each once. An empty list is no label; an empty text is an error."""
    value = row.fields.get(field)
    if isinstance(value, list):
        rows = [row._replace(fields={field: each}) for each in value]
        return tuple(dict.fromkeys(label for each in rows for label in read_labels(each, field)))
    label = str(value).lower() if isinstance(value, bool) else row.text(field).strip()
    if not label:
        raise row.error(f"the field '{field}' is empty.")
    return (label,)


def _folder_rows(folder: Path, endings: Sequence[str]) -> Iterator[Row]:
    files = [file for file in folder.rglob("*") if file.suffix.lower() in endings and file.is_file()]
    if not files:
        raise DataError(folder, f"there is no file in it that ends in {' or '.join(endings)}.")
    inside = folder.resolve()
    for file in sorted(files, key=lambda file: file.relative_to(folder).as_posix()):
        name = file.relative_to(folder).as_posix()
        # A stranger's folder must not choose what a server reads.
        if not file.resolve().is_relative_to(inside):
            raise DataError(
                file, "this is a link out of the folder. Copy the file itself there, or remove the link."
            )
        yield Row(file, {"text": read_plain_text(file), "name": name, "folder": file.parent.name}, name)
