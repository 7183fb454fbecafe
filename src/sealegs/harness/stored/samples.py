"""The samples of a run, to look through: a table of all, which of them match, and any record by its row.

The table comes from an index over records.jsonl (`files/record_index.py`). A record is read from its line
when it is looked at.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from msgspec import Struct

from sealegs.errors import UsageError, suggestion
from sealegs.files.jsonfile import NOT_JSON, check_depth, convert, decode_line, strings_in
from sealegs.files.record_index import FileState, Index, record_index, state_of, unchanged
from sealegs.harness.benchmark import Benchmark, inputs_type
from sealegs.harness.inputs import row_text
from sealegs.page.examples import shortened
from sealegs.page.layout import Layout
from sealegs.page.metrics import Metric
from sealegs.page.tables import in_order
from sealegs.page.view import View, generic_view
from sealegs.types import Record, Tag, to_jsonable

if TYPE_CHECKING:
    from numpy.typing import NDArray


Outcome: TypeAlias = Literal["wrong", "right in part", "right", "cut off", "no answer", "error"]

RELATED = 300
"""Records of the same group that are read to show one of them."""
OPENING = 200
"""Characters of a text that begins a row of a table."""
MOST_SEARCHES = 8
"""Texts whose rows are remembered: a page searches again at every click on it."""


class SampleOpening(NamedTuple):
    """A sample in a row of a table."""

    question: str
    setting: str
    """What distinguishes it from other samples with the same question."""
    expected: str
    answer: str


class _StoredInputs(Struct, gc=False):
    inputs: Any
    tags: dict[str, Tag] = {}


class _Answer(Struct, gc=False):
    text: str = ""
    reasoning: str = ""


class _Texts(Struct, gc=False):
    """What is searched of a line."""

    sample: _StoredInputs
    answers: tuple[_Answer, ...]


_TEXTS = msgspec.json.Decoder(_Texts)


@dataclass(eq=False)
class Samples:
    """The samples of a run in the order of the file."""

    path: Path
    _state: FileState
    index: Index
    """The cells of all columns."""
    _kind: Any
    _benchmark: type[Benchmark] | None
    _layout: Layout | None
    decided_by: str
    """The subject whose answers are right or wrong here: that of the run's verdict; empty where there is only
    one."""

    def __post_init__(self) -> None:
        self._found = lru_cache(MOST_SEARCHES)(self._search)
        self._records = msgspec.json.Decoder(self._kind)

    def __len__(self) -> int:
        return len(self.index.ids)

    @cached_property
    def tags(self) -> dict[str, list[str]]:
        """The values of each tag as text: numbers by size, others in the order of their first occurrence."""
        return {
            tag: in_order(dict.fromkeys(str(cell) for cell in cells if cell is not None))
            for tag, cells in self.index.tags.items()
        }

    @property
    def values(self) -> list[str]:
        """The names of the values that samples have: first the headline, or that of each subject."""
        headline = self._layout.headline if self._layout else ""
        return sorted(self.index.values, key=lambda name: name.partition("@")[0] != headline)

    def cells(self, name: str) -> NDArray[np.float64]:
        """One of the values: NaN where a row has none."""
        return self.index.values[name]

    def select(
        self,
        *,
        outcome: Outcome | Iterable[Outcome] = (),
        tags: Mapping[str, Tag | Iterable[Tag]] | None = None,
        search: str = "",
        sort: str = "",
        descending: bool = False,
    ) -> list[int]:
        """The numbers of the rows that match, in the order of the file or sorted by a value or a tag.

        `outcome` is `wrong`, `right in part`, `right`, `cut off`, `no answer` or `error`; of several, rows
        have all of them. `tags` has one or several values for a tag. `search` is a text in the inputs or the
        answers, in any case. What has no value comes last, whatever the order.
        """
        chosen = np.ones(len(self), dtype=bool)
        for name in [outcome] if isinstance(outcome, str) else outcome:
            _known(name, self.outcomes, "outcome")
            chosen &= self.outcomes[name]
        for tag, wanted in (tags or {}).items():
            cells = self.index.tags[_known(tag, self.index.tags, "tag")]
            texts = set(map(str, [wanted] if isinstance(wanted, str | int) else wanted))
            chosen &= np.array([cell is not None and str(cell) in texts for cell in cells], dtype=bool)
        rows: list[int] = np.flatnonzero(chosen).tolist()
        if sort:
            keys = self.column(_known(sort, {**self.index.tags, **self.index.values}, "tag or value"))
            with_key = [row for row in rows if keys[row] is not None]
            with_key.sort(key=keys.__getitem__, reverse=descending)
            rows = [*with_key, *(row for row in rows if keys[row] is None)]
        return [row for row in rows if row in self._found(search)] if search else rows

    def column(self, name: str) -> Sequence[Any]:
        """A value or a tag of all rows; None where a row lacks it."""
        if name in self.index.values:
            return [None if value != value else value for value in self.cells(name).tolist()]
        return self.index.tags.get(name, [None] * len(self))

    def record(self, row: int) -> Record:
        """The whole record of a row."""
        self._check(row)
        record: Record = next(self._lines([row], self._records))
        return record

    @cached_property
    def correct(self) -> NDArray[np.float64]:
        """For each row 1 where the answer is right, 0 where it is wrong, between them where some of several
        are right, NaN where it is neither. Of several subjects it is the answer of `decided_by`."""
        correct = np.full(len(self), np.nan)
        for metric in reversed(self._layout.correct_metrics if self._layout else ()):
            values = self.index.values.get(f"{metric}@{self.decided_by}" if self.decided_by else metric)
            if values is not None:
                correct = np.where(np.isnan(values), correct, values)
        return correct

    @cached_property
    def outcomes(self) -> dict[Outcome, NDArray[np.bool_]]:
        """Which rows ended how. Those that failed are in `error` where a request or the scoring did, and in
        `no answer` where the model gave none; an answer that was cut off may be right or wrong as well."""
        statuses = self.index.statuses
        unanswered = statuses["refused"] | statuses["unparsed"]
        return {
            "wrong": self.correct == 0,
            "right in part": (self.correct > 0) & (self.correct < 1),
            "right": self.correct == 1,
            "cut off": statuses["truncated"],
            "no answer": unanswered,
            "error": statuses["error"] | (self.index.failed & ~unanswered),
        }

    def inputs(self, rows: Sequence[int]) -> list[Any]:
        """What the samples of some rows ask, as the benchmark has it."""
        return [record.sample.inputs for record in self._lines(rows, self._records)]

    def row_texts(self, rows: Sequence[int]) -> list[SampleOpening]:
        """The question of some rows, its setting, the expected answer and the first answer, in short."""
        for row in rows:
            self._check(row)
        return list(map(self._row_text, self._lines(rows)))

    def plain(self, row: int) -> list[tuple[str, str]]:
        """The texts of a sample and its answers under their names, which is fast: nothing is marked."""
        return _texts(next(self._lines([row])))

    def _row_text(self, line: _Texts) -> SampleOpening:
        row = row_text(line.sample.inputs, line.sample.tags)
        if self._benchmark is not None:
            with contextlib.suppress(msgspec.ValidationError, LookupError):  # a stranger's file
                inputs = msgspec.convert(line.sample.inputs, inputs_type(self._benchmark))
                row = row_text(inputs, line.sample.tags)
        answer = next((answer.text for answer in line.answers if answer.text), "")
        return SampleOpening(*map(_opening, (row.question, row.setting, row.expected, answer)))

    def row_of(self, sample_id: str) -> int | None:
        """The row of a sample, or None where there is no such sample."""
        return self._rows.get(sample_id)

    def related(self, row: int) -> list[int]:
        """The other samples of the same group: the other levels of a question, say."""
        self._check(row)
        return [each for each in self._members[self.index.groups[row]] if each != row]

    def view(self, row: int) -> View:
        """What the benchmark shows of a sample; texts and values where it does not know the sample."""
        near = sorted(sorted(self.related(row), key=lambda other: abs(other - row))[:RELATED])
        record, *related = self._lines([row, *near], self._records)
        if self._benchmark is not None:
            return self._benchmark.view(record, related)
        inputs = to_jsonable(record.sample.inputs)
        metrics = [Metric(name, name, "cosine", "higher") for name in record.score.values or ("score",)]
        return generic_view(record, related, metrics, inputs if isinstance(inputs, dict) else {})

    @cached_property
    def _members(self) -> dict[str, list[int]]:
        """The rows of each group."""
        members: dict[str, list[int]] = {}
        for row, group in enumerate(self.index.groups):
            members.setdefault(group, []).append(row)
        return members

    @cached_property
    def _rows(self) -> dict[str, int]:
        ids = self.index.ids
        return dict(zip(reversed(ids), range(len(ids) - 1, -1, -1), strict=True))  # the first of a name wins

    def _check(self, row: int) -> None:
        if not isinstance(row, int) or not 0 <= row < len(self):
            rows = f"rows are 0 to {len(self) - 1:,}" if len(self) else "there is no sample"
            raise UsageError(
                f"{self.path} has no row {shortened(repr(row))}: {rows}. `row_of` gives the row of a sample."
            )

    def _search(self, text: str) -> frozenset[int]:
        """The rows that contain a text, ignoring case."""
        wanted = text.casefold()
        lines = enumerate(self._lines(range(len(self))))
        return frozenset(
            row for row, line in lines if any(wanted in text.casefold() for _, text in _texts(line))
        )

    def _lines(self, rows: Iterable[int], decoder: msgspec.json.Decoder[Any] = _TEXTS) -> Iterator[Any]:
        """What is wanted of some lines: by default their texts."""
        with unchanged(self.path, self._state) as file:
            for row in rows:
                start, end = self.index.offsets[row : row + 2]
                file.seek(start)
                content = file.read(end - start)
                try:
                    line = decoder.decode(check_depth(content))
                except NOT_JSON:
                    raw = decode_line(self.path, content, row + 1)
                    line = convert(self.path, raw, decoder.type, line=row + 1)
                yield line


def read_samples(
    path: Path,
    kind: Any,
    benchmark: type[Benchmark] | None,
    layout: Layout | None,
    decided_by: str,
    *,
    stored: bool = True,
) -> Samples:
    """The samples of a file of records, each of which must have a value of the run's headline; `stored` says
    whether the file stays, so that its index is worth storing."""
    state = state_of(path)
    index = record_index(path, state, layout.headline if layout else "", stored)
    return Samples(path, state, index, kind, benchmark, layout, decided_by)


def _texts(line: _Texts) -> list[tuple[str, str]]:
    inputs = line.sample.inputs
    fields = inputs if isinstance(inputs, dict) else {"inputs": inputs}
    parts = [(str(name).replace("_", " "), "\n\n".join(strings_in(part))) for name, part in fields.items()]
    for number, answer in enumerate(line.answers, 1):
        parts.append((f"Reasoning before answer {number}", answer.reasoning))
        parts.append((f"Answer {number}", answer.text))
    return [(name, text) for name, text in parts if text]


def _opening(text: str) -> str:
    """The start of a text, in one line."""
    return shortened(" ".join(text[: 2 * OPENING].split()), OPENING)


def _known(name: str, columns: Collection[str], kind: str) -> str:
    if name not in columns:
        raise UsageError(
            f"there is no {kind} '{name}'.{suggestion(name, columns)} Available: {', '.join(columns)}."
        )
    return name
