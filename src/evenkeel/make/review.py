"""Looking through a data set row by row: accept, reject, and write what was accepted in the same formats.

Decisions are lines of `review.jsonl` beside the files. Each is about the content of a row, by its digest: a
row that a later build changes is undecided again.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import msgspec
from msgspec import Struct

from evenkeel.errors import DataError, UsageError
from evenkeel.files.cache import storage_errors, write_whole
from evenkeel.files.jsonfile import BOM, indented, read_bytes, read_json, read_json_lines
from evenkeel.files.tables import read_rows
from evenkeel.page.view import Facts, Text, View

DECISIONS = "review.jsonl"
ACCEPTED = "accepted"
"""The folder of what was accepted, beside the files."""
COMPANIONS = (
    "manifest.json", "documents*", "dropped.jsonl", "schema*.json", "annotations*.jsonl", "progress.json",
    "started.json", DECISIONS,
)  # fmt: skip
"""What builders write beside the samples."""
ENDINGS = (".jsonl", ".json")
"""Of the files that builders write."""
LONG = 600
MOST_LINES = 12
"""Characters and lines of a field that is shown without a click."""
SPACE = re.compile(r"\s")

Verdict: TypeAlias = Literal["accepted", "rejected", "undecided"]


class ReviewRow(NamedTuple):
    """A row of a data set: its file, its number there from 1, its fields, and the digest of these."""

    file: str
    number: int
    fields: Mapping[str, Any]
    digest: str


class Decision(Struct, frozen=True):
    """A line of `review.jsonl`."""

    row: str
    """The digest of the row."""
    verdict: Verdict
    file: str = ""
    number: int = 0
    created: str = ""


class Review:
    """The rows of a data set, and what was decided about each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = path if path.is_dir() else path.parent
        self.files = _sample_files(path)

    def __repr__(self) -> str:
        return f"<Review {self.path}: {', '.join(f'{n} {verdict}' for verdict, n in self.counts().items())}>"

    @cached_property
    def rows(self) -> list[ReviewRow]:
        """All rows, file by file."""
        return [row for path in self.files for row in _read(path)]

    @property
    def _decisions_file(self) -> Path:
        path = self.folder / DECISIONS
        if path.is_symlink():
            raise DataError(path, "this is a link. Decisions are saved in the folder of the data itself.")
        return path

    @cached_property
    def _decisions(self) -> dict[str, Verdict]:
        """What was decided last about each row, by its digest."""
        path = self._decisions_file
        if not path.exists():
            return {}
        return {decision.row: decision.verdict for decision in read_json_lines(path, Decision)}

    def verdict(self, index: int) -> Verdict:
        """What was decided about a row, by its position in `rows`."""
        return self._decisions.get(self.rows[index].digest, "undecided")

    def decide(self, index: int, verdict: Verdict) -> None:
        """Accept or reject a row, or take the decision back with `undecided`."""
        if verdict not in get_args(Verdict):
            raise UsageError(f"'{verdict}' is not a decision. Available: {', '.join(get_args(Verdict))}.")
        row = self.rows[index]
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        decision = Decision(row.digest, verdict, row.file, row.number, created)
        target = self._decisions_file
        with storage_errors(target), target.open("ab") as file:
            file.write(msgspec.json.encode(decision) + b"\n")
        self._decisions[row.digest] = verdict

    def counts(self) -> dict[Verdict, int]:
        """How many rows are accepted, rejected and undecided."""
        counted = Counter(map(self.verdict, range(len(self.rows))))
        return {verdict: counted[verdict] for verdict in get_args(Verdict)}

    def next_undecided(self, after: int = -1) -> int | None:
        """The first undecided row after a position, or else from the start; None where all are decided."""
        size = len(self.rows)
        order = (index % size for index in range(after + 1, after + 1 + size))
        return next((index for index in order if self.verdict(index) == "undecided"), None)

    def view(self, index: int) -> View:
        """A row as texts under the names of its fields, of which long ones are collapsed, and a table of the
        fields that are a single word or number."""
        row = self.rows[index]
        texts = {str(name): _text(value) for name, value in row.fields.items()}
        words = tuple((name, text) for name, text in texts.items() if text and not SPACE.search(text))
        blocks = [
            Text(name, text, collapsed=len(text) > LONG or text.count("\n") > MOST_LINES)
            for name, text in texts.items()
            if SPACE.search(text)
        ]
        table = [Facts("further fields", words)] if words else []
        return View(f"{row.file}, row {row.number}", self.verdict(index), (*blocks, *table))

    def export(self, *, undecided: bool = False, out: str | Path | None = None) -> list[Path]:
        """Write the accepted rows, and with `undecided` those that nobody decided about, to the folder `out`.

        Each file keeps its name and format; one of which no row is left is not written. Without `out` the
        folder is `accepted` beside the files, which is replaced.
        """
        wanted = {"accepted", "undecided"} if undecided else {"accepted"}
        rows: dict[str, list[int]] = {path.name: [] for path in self.files}
        for index, row in enumerate(self.rows):
            if self.verdict(index) in wanted:
                rows[row.file].append(row.number)
        if not any(rows.values()):
            raise UsageError(f"{self.path}: no row is accepted, so there is nothing to write.")
        target = Path(out) if out else self.folder / ACCEPTED
        if not out:
            _clear(target, {path.name for path in self.files})
        written = []
        for path in self.files:
            if rows[path.name]:
                _write(path, frozenset(rows[path.name]), target / path.name)
                written.append(target / path.name)
        return written


def review(path: str | Path) -> Review:
    """Look through what a build made: a folder, or one file.

    review = ek.review("mine")
    review.decide(0, "rejected")
    review.export(undecided=True)  # writes mine/accepted, for `run --data`
    """
    return Review(Path(path))


def _sample_files(path: Path) -> list[Path]:
    """The files of a folder that hold samples."""
    if not path.is_dir():
        if not path.exists():
            raise DataError(path, "there is no such file or folder.")
        if path.suffix.lower() not in ENDINGS:
            raise DataError(path, f"a review takes what a build wrote: {' or '.join(ENDINGS)}.")
        return [path]
    files = [
        each
        for each in sorted(path.iterdir())
        if each.suffix.lower() in ENDINGS
        and not each.name.startswith(".")
        and not any(fnmatch(each.name, name) for name in COMPANIONS)
        and each.is_file()
        and not each.is_symlink()
    ]
    if not files:
        raise DataError(path, f"no file in it ends in {', '.join(ENDINGS)}.")
    return files


def _read(path: Path) -> Iterator[ReviewRow]:
    """The rows of a file: of a JSON document, those of its one list of objects."""
    document = _document(path)
    fields = document[1] if document else (row.fields for row in read_rows(path))
    for number, row in enumerate(fields, 1):
        yield ReviewRow(path.name, number, row, _digest(row))


def _document(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]], str] | None:
    """A file that is one JSON object with one list of objects: the object, the list, and its name.

    None where the file holds rows itself.
    """
    if path.suffix.lower() != ".json":
        return None
    try:
        raw = read_json(path)
    except DataError:
        return None  # an object on each line
    lists = {name: value for name, value in raw.items() if _is_rows(value)} if isinstance(raw, dict) else {}
    if len(lists) != 1:
        return None
    [(name, rows)] = lists.items()
    return raw, rows, name


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _digest(fields: Mapping[str, Any]) -> str:
    return hashlib.sha256(msgspec.json.encode(fields, order="sorted")).hexdigest()


def _text(value: Any) -> str:
    """A field as a person reads it: texts and lists of texts as they are, anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return "\n\n".join(value)
    if value is None:
        return ""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


# Writing


def _clear(folder: Path, names: Collection[str]) -> None:
    """Remove the data files that an earlier export wrote, which have the names of the reviewed ones."""
    if folder.is_symlink() or folder.is_file():
        raise DataError(folder, "this is not a folder: move it away.")
    for path in folder.iterdir() if folder.exists() else ():
        if path.name in names and path.is_file():
            path.unlink()


def _write(source: Path, numbers: frozenset[int], target: Path) -> None:
    """Some rows of a file, in its format."""
    document = _document(source)
    write_whole(target, _json_document(*document, numbers) if document else _json_rows(source, numbers))


def _json_document(
    document: dict[str, Any], rows: list[dict[str, Any]], name: str, numbers: frozenset[int]
) -> bytes:
    """The object with fewer rows, and their number where its metadata gives it."""
    chosen = [row for number, row in enumerate(rows, 1) if number in numbers]
    total = f"total_{name}"
    changed = {
        key: {**value, total: len(chosen)} if isinstance(value, dict) and total in value else value
        for key, value in document.items()
    }
    return indented({**changed, name: chosen}, 0) + b"\n"


def _json_rows(source: Path, numbers: frozenset[int]) -> bytes:
    """The very lines of JSON lines; a list is written as a list."""
    rows = [row for number, row in enumerate(read_rows(source), 1) if number in numbers]
    if rows[0].line is None:
        return indented([row.fields for row in rows], 0) + b"\n"
    lines = read_bytes(source).removeprefix(BOM).split(b"\n")
    return b"".join(lines[row.line - 1].strip() + b"\n" for row in rows if row.line is not None)
