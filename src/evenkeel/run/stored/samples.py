"""The samples of a run, to look through: a table of all, which of them match, and any record by its row.

The table comes from an index over records.jsonl (`files/record_index.py`). A record is read from its line
when it is looked at, so that a run of 100,000 samples opens in seconds once, and at once from then on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
import numpy as np
from msgspec import Struct

from evenkeel.errors import UsageError, suggestion
from evenkeel.files.jsonfile import NOT_JSON, convert, decode_line
from evenkeel.files.record_index import Index, State, record_index, state_of, unchanged
from evenkeel.page.examples import shortened
from evenkeel.page.metrics import Metric
from evenkeel.page.tables import in_order
from evenkeel.page.view import View, generic_view
from evenkeel.types import Record, Tag, to_jsonable

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from evenkeel.run.benchmark import Benchmark

CHUNK = 2**24
"""Bytes of lines that are searched at a time."""
RELATED = 300
"""Records of the same group that are read to show one of them."""
LONGEST = 500
"""Characters of a text to search for."""
OPENING = 200
"""Characters of a text that begins a row of a table."""
MOST_SEARCHES = 8
"""Texts whose rows are kept: a page searches again at every click on it."""
MOST_NAMED = 20
"""Values of a tag that an error lists."""


class _Inputs(Struct, gc=False):
    inputs: Any


class _Answer(Struct, gc=False):
    text: str = ""
    reasoning: str = ""


class _Texts(Struct, gc=False):
    """What is searched of a line."""

    sample: _Inputs
    answers: tuple[_Answer, ...]


class Samples:
    """The samples of a run in the order of the file; `frame` has a row for each."""

    def __init__(
        self, path: Path, state: State, index: Index, kind: Any, benchmark: type[Benchmark] | None
    ) -> None:
        self.path = path
        self._state = state
        self._index = index
        self._kind = kind
        self._benchmark = benchmark
        self._searches: dict[str, tuple[NDArray[np.bool_], NDArray[np.bool_]]] = {}
        """By text: the rows that were searched for it, and those that have it."""

    @property
    def frame(self) -> pl.DataFrame:
        """One row a sample: `sample`, `group`, `failed`, the tags and the values, named as in `export`.

        A sample has failed where a request was not answered, or where it lacks the benchmark's headline value
        or anything else that scoring needed.
        """
        return self._index.frame

    def __len__(self) -> int:
        return len(self._index.offsets)

    @cached_property
    def tags(self) -> dict[str, list[str]]:
        """The values of each tag as text: numbers by size, others in the order of their first occurrence."""
        return {
            tag: in_order(map(str, self.frame[column].drop_nulls().unique(maintain_order=True)))
            for tag, column in self._index.tags.items()
        }

    @property
    def tag_columns(self) -> dict[str, str]:
        """The column of `frame` that holds each tag."""
        return self._index.tags

    @property
    def value_columns(self) -> dict[str, str]:
        """The column of `frame` that holds each value."""
        return self._index.values

    @property
    def values(self) -> list[str]:
        """The columns of `frame` that are values: first that of the headline, or those of its subjects."""
        headline = self._benchmark.metrics[0].name if self._benchmark and self._benchmark.metrics else ""
        names = sorted(self._index.values, key=lambda name: name.partition("@")[0] != headline)
        return [self._index.values[name] for name in names]

    def select(
        self,
        *,
        failed: bool | None = None,
        tags: Mapping[str, Tag | Iterable[Tag]] | None = None,
        search: str = "",
        sort: str = "",
        descending: bool = False,
    ) -> list[int]:
        """The numbers of the rows that match, in the order of the file or sorted by a column.

        `tags` has one or several values for a tag. `search` is a text in the inputs or the answers, in any
        case. What has no value comes last, whatever the order.
        """
        import polars as pl

        number = "\0" * (1 + max(map(len, self.frame.columns)))  # a name that no column has
        chosen = self.frame.with_row_index(number)
        if failed is not None:
            chosen = chosen.filter(pl.col("failed") == failed)
        for tag, wanted in (tags or {}).items():
            column = _known(tag, self._index.tags, "tag")
            chosen = chosen.filter(pl.col(column).cast(pl.String).is_in(self._wanted(tag, wanted)))
        if sort:
            column = _known(sort, {name: name for name in self.frame.columns}, "column")
            chosen = chosen.sort(column, descending=descending, nulls_last=True, maintain_order=True)
        rows: list[int] = chosen[number].to_list()
        return self._containing(search, rows) if search else rows

    def _wanted(self, tag: str, wanted: Tag | Iterable[Tag]) -> list[str]:
        """One or several values of a tag, as text."""
        listed = wanted if isinstance(wanted, Iterable) and not isinstance(wanted, str) else [wanted]
        names = []
        for value in listed:
            if not isinstance(value, str | int):
                available = ", ".join(self.tags[tag][:MOST_NAMED])
                raise UsageError(
                    f"the tag '{tag}' has no value {shortened(repr(value))}: give texts or whole numbers. "
                    f"Available: {available}{', …' if len(self.tags[tag]) > MOST_NAMED else ''}."
                )
            names.append(str(value))
        return names

    def record(self, row: int) -> Record:
        """The whole record of a row."""
        self._check(row)
        with unchanged(self.path, self._state) as file:
            return self._read(file, row)

    def openings(self, rows: Sequence[int]) -> list[tuple[str, str]]:
        """How what was asked and the first answer begin, in one line each: for tables of samples."""
        with unchanged(self.path, self._state) as file:
            texts = [self._decode(row, self._line(file, row)) for row in rows]
        return [
            (
                _opening(text for text in strings_in(each.sample.inputs) if not _is_code(text)),
                _opening(answer.text for answer in each.answers),
            )
            for each in texts
        ]

    def row_of(self, sample_id: str) -> int | None:
        """The row of a sample, or None where there is no such sample."""
        return self._rows.get(sample_id)

    def related(self, row: int) -> list[int]:
        """The other samples of the same group (the other levels of a question, say), or, where the benchmark
        has `related_by`, of the same value of that tag."""
        self._check(row)
        tag = self._benchmark.related_by if self._benchmark else ""
        column = self.frame[tag if tag in self.frame.columns else "group"]
        rows: list[int] = (column == column[row]).arg_true().to_list()
        return [each for each in rows if each != row]

    def view(self, row: int) -> View:
        """What the benchmark shows of a sample; texts and values where it does not know the sample."""
        near = sorted(sorted(self.related(row), key=lambda other: abs(other - row))[:RELATED])
        with unchanged(self.path, self._state) as file:
            record = self._read(file, row)
            related = [self._read(file, other) for other in near]
        if self._benchmark is not None and not record.score.unscorable:
            return self._benchmark.view(record, [each for each in related if not each.score.unscorable])
        inputs = to_jsonable(record.sample.inputs)
        metrics = [Metric(name, name, "cosine") for name in record.score.values or ("score",)]
        return generic_view(record, related, metrics, inputs if isinstance(inputs, dict) else {})

    @cached_property
    def _rows(self) -> dict[str, int]:
        ids = self.frame["sample"].to_list()
        return dict(zip(reversed(ids), range(len(ids) - 1, -1, -1), strict=True))  # the first of a name wins

    def _check(self, row: int) -> None:
        if not isinstance(row, int) or not 0 <= row < len(self):
            rows = f"rows are 0 to {len(self) - 1:,}" if len(self) else "there is no sample"
            raise UsageError(
                f"{self.path} has no row {shortened(repr(row))}: {rows}. `row_of` gives the row of a sample."
            )

    def _read(self, file: BinaryIO, row: int) -> Record:
        number = self._index.numbers[row]
        raw = decode_line(self.path, self._line(file, row), number)
        record: Record = convert(self.path, raw, self._kind, line=number)
        return record

    def _line(self, file: BinaryIO, row: int) -> bytes:
        file.seek(self._index.offsets[row])
        return file.read(self._index.lengths[row])

    def _containing(self, text: str, rows: Sequence[int]) -> list[int]:
        """Those of the rows that contain a text, ignoring case; no row is searched for it twice."""
        if len(text) > LONGEST:
            raise UsageError(
                f"a text to search for has at most {LONGEST} characters; this has {len(text):,}."
            )
        searched, hits = self._searches.get(text, (np.zeros(len(self), dtype=bool),) * 2)
        asked = np.zeros(len(self), dtype=bool)
        asked[rows] = True
        matching = self._search(text, np.flatnonzero(asked & ~searched).tolist())
        hits = hits.copy()
        hits[matching] = True
        self._searches.pop(text, None)
        self._searches[text] = (searched | asked, hits)  # the last searches are at the end
        for old in list(self._searches)[:-MOST_SEARCHES]:
            self._searches.pop(old, None)
        return [row for row, hit in zip(rows, hits[rows].tolist(), strict=True) if hit]

    def _search(self, text: str, rows: Sequence[int]) -> list[int]:
        """Those of the rows that contain a text, from their lines.

        Most lines are ruled out before they are decoded, by a part of the text that JSON writes as it is.
        """
        import polars as pl

        pattern = f"(?i){_quoted(text)}"
        plain = max(re.split(r'["\\/\x00-\x1f\x7f\ud800-\udfff]', text), key=len)
        raw_pattern = rf"(?i)\\u|{_quoted(plain)}"  # a line with \u escapes may hold any text
        matching: list[int] = []
        common = False
        for chunk, lines in self._chunks(rows):
            possible: Sequence[int] = range(len(lines))
            if not common:
                as_text = pl.Series(lines, dtype=pl.Binary).cast(pl.String, strict=False)
                possible = as_text.str.contains(raw_pattern).fill_null(True).arg_true().to_list()
            texts = [self._texts(chunk[each], lines[each]) for each in possible]
            contains = pl.Series(texts, dtype=pl.String).str.contains(pattern)
            hits = [chunk[each] for each, hit in zip(possible, contains, strict=True) if hit]
            matching += hits
            common = 2 * len(hits) > len(lines)  # then hardly any line of the next can be ruled out
        return matching

    def _chunks(self, rows: Sequence[int]) -> Iterator[tuple[list[int], list[bytes]]]:
        """The lines of some rows, many at a time."""
        chunk: list[int] = []
        lines: list[bytes] = []
        size = 0
        with unchanged(self.path, self._state) as file:
            for row in rows:
                chunk.append(row)
                lines.append(self._line(file, row))
                size += len(lines[-1])
                if size >= CHUNK:
                    yield chunk, lines
                    chunk, lines, size = [], [], 0
        if chunk:
            yield chunk, lines

    def _texts(self, row: int, line: bytes) -> str:
        """All that is searched of a line, one text below the other."""
        texts = self._decode(row, line)
        parts = strings_in(texts.sample.inputs)
        for answer in texts.answers:
            parts.append(answer.text)
            if answer.reasoning:
                parts.append(answer.reasoning)
        return "\n\0\n".join(parts)

    def _decode(self, row: int, line: bytes) -> _Texts:
        try:
            return _TEXTS.decode(line)
        except NOT_JSON:
            number = self._index.numbers[row]
            texts: _Texts = convert(self.path, decode_line(self.path, line, number), _Texts, line=number)
            return texts


_TEXTS = msgspec.json.Decoder(_Texts)


def read_samples(path: Path, kind: Any, benchmark: type[Benchmark] | None, headline: str) -> Samples:
    """The samples of a file of records; `headline` is the metric that each must have a value of."""
    state = state_of(path)
    return Samples(path, state, record_index(path, state, headline), kind, benchmark)


def strings_in(value: Any) -> list[str]:
    """Every text in a value, in order, however deep."""
    texts: list[str] = []
    rest = [value]
    while rest:
        part = rest.pop()
        kind = type(part)
        if kind is str:
            texts.append(part)
        elif kind is dict:
            rest += reversed(part.values())
        elif kind is list:
            rest += reversed(part)
    return texts


def _opening(texts: Iterable[str]) -> str:
    """The start of the first text that is not empty."""
    return shortened(" ".join(next(filter(None, texts), "")[: 2 * OPENING].split()), OPENING)


def _is_code(text: str) -> bool:
    """Whether a text is one word, as the name of a language or a setting is."""
    return text.isascii() and not any(map(str.isspace, text.strip()))


def _quoted(text: str) -> str:
    """A text as a regular expression that matches it; half of a surrogate pair is U+FFFD in every record."""
    return re.escape(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def _known(name: str, columns: Mapping[str, str], kind: str) -> str:
    if name not in columns:
        raise UsageError(
            f"there is no {kind} '{name}'.{suggestion(name, columns)} Available: {', '.join(columns)}."
        )
    return columns[name]
