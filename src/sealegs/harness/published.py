"""Answers that were recorded elsewhere, and a run written in published formats.

A benchmark that has formats of its own names them by `Recordings` and `Publishing`; what is written by
default is what is read by default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from sealegs.errors import DataError
from sealegs.files.datasets import data_file
from sealegs.files.tables import read_rows
from sealegs.harness.data import Data
from sealegs.types import Record, Records, Response, RunSpec, Sample, Summary

if TYPE_CHECKING:
    from sealegs.harness.benchmark import Benchmark

PublishedFiles: TypeAlias = Iterator[tuple[str, Iterator[bytes]]]
"""The names of files, each with its content."""


class Recorded(NamedTuple):
    """Answers that were given elsewhere, read from one file in a published format."""

    model: str
    """The name of the model that gave them, as far as the file says."""
    samples: list[Sample]
    """Figures that the file itself gives are in the field `published` of a sample's inputs."""
    responses: list[list[Response]]
    """For each sample, a response to each of its requests."""
    helpers: Mapping[str, str] = {}
    """By role, the other models behind the figures that the file itself gives, as far as it says."""
    warnings: Sequence[str] = ()
    """What of the file could not be read, and where."""


def read_answers(benchmark: Benchmark, path: Path, lang: str | None) -> Recorded:
    """Read data rows that also have a field `answer` (one text) or `answers` (one for each request)."""
    samples = list(benchmark.samples(Data([data_file(path)], langs=[lang] if lang else None)))
    rows = list(read_rows(path))
    if len(rows) != len(samples):
        raise DataError(path, f"{len(samples)} samples in {len(rows)} rows: a row must be one sample.")
    responses = []
    for row, sample in zip(rows, samples, strict=True):
        answers = row.fields.get("answers", [row.fields.get("answer")])
        count = len(list(benchmark.requests(sample)))
        if not isinstance(answers, list) or len(answers) != count:
            raise row.error(f"'answer' or 'answers' must hold {count}, one for each request.")
        responses.append([_recorded(answer) for answer in answers])
    return Recorded(model=path.stem, samples=samples, responses=responses)


def _recorded(answer: Any) -> Response:
    if not isinstance(answer, str):
        return Response(status="error", reason="not recorded")
    return Response(status="ok", text=answer)


def write_answers(benchmark: Benchmark, spec: RunSpec, records: Records) -> PublishedFiles:
    """What `read_answers` reads."""
    yield "answers.jsonl", (_answers_line(record) for record in records())


def _answers_line(record: Record) -> bytes:
    inputs = {"id": record.sample.id, **msgspec.to_builtins(record.sample.inputs)}
    texts = [answer.text if answer.status in ("ok", "truncated") else None for answer in record.answers]
    return msgspec.json.encode({**inputs, "answers": texts}) + b"\n"


class Recordings(NamedTuple):
    """How recorded answers and published results are read."""

    read: Callable[[Any, Path, str | None], Recorded] = read_answers
    """Of a benchmark, a file, and the language of a file that does not state its own: the answers in it."""
    combine: Callable[[Sequence[Recorded]], Recorded | None] = lambda recordings: None
    """Recordings of one model as one. None: they are scored one by one."""
    published_result: Callable[[Path], tuple[str, Summary]] | None = None
    """The model of a results file of the published data set, and its figures as the file states them."""


class Publishing(NamedTuple):
    """How a run is written in published formats."""

    files: Callable[[Any, RunSpec, Records], PublishedFiles] = write_answers
