"""A run's folder: what lies in it and how it is read.

A folder may come from a stranger. What is read from it is data: its shape is checked, and no link in it is
followed.
"""

from __future__ import annotations

import contextlib
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from evenkeel.errors import DataError, EvenkeelError, MissingExtra, UsageError
from evenkeel.files.jsonfile import convert, depth, read_json, read_json_lines
from evenkeel.harness.benchmark import Benchmark
from evenkeel.harness.registry import benchmark_class, benchmark_names, record_type
from evenkeel.options import describe, parse
from evenkeel.page.format import counts, interval, share, statuses, value, visible
from evenkeel.page.grid import Displayed, Overview
from evenkeel.page.metrics import scope_name, scope_of
from evenkeel.types import Figure, Record, RunSpec, Sample, Score, Summary, to_jsonable

if TYPE_CHECKING:
    from evenkeel.files.frame import DataFrame
    from evenkeel.harness.stored.marks import Mark, Verdict
    from evenkeel.harness.stored.samples import Samples

FORMAT = 2
PROGRESS = "progress.json"
STOP, STOPPED = "stop", "stopped"
CONTROL = (PROGRESS, STOP, STOPPED)
"""Files of a run that is being written, which `harness/control.py` explains."""
STARTED, LOG = "started.json", "log"
"""What its process was begun with, and what one without a terminal printed: `api/launch.py`."""
MARKS = "marks.jsonl"
"""What people say of the scores: it outlives the run's own files."""
BATCHES = "batches.json"
"""The batches that were handed in, which `models/openai/batches/stored.py` explains."""
RESULTS = ("records.jsonl", "summary.json", "report.html", "export")
FILES = ("spec.json", "journal.sqlite", *RESULTS, BATCHES, *CONTROL, STARTED)
LOGS = ("journal.sqlite-wal", "journal.sqlite-shm")
LARGEST = {"spec.json": 2**24, "summary.json": 2**28, PROGRESS: 2**16, STARTED: 2**24, MARKS: 2**26}
"""Bytes of a file that is read as a whole."""
DEEPEST = 8
"""Levels of lists and objects in a spec."""


class ScoredLine(Struct, frozen=True):
    """A record without its answers; inputs and detail as they stand in the file."""

    sample: Sample[msgspec.Raw]
    score: Score[msgspec.Raw]


class Run(Displayed):
    """A finished run, read from its folder."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.problems: list[str] = []
        """What could not be written when it was made: the page, published files. The figures are whole."""
        _spec_file(self.path)

    @cached_property
    def spec(self) -> RunSpec:
        return read_spec(self.path)

    @cached_property
    def summary(self) -> Summary:
        """Every figure by name: `run.summary["mean_similarity"].value`."""
        path = self._result("summary.json")
        with _naming_remedy():
            self._check_size(self._result("records.jsonl"))
            figures = read_json(path, dict[str, Figure])
        if not figures:
            raise DataError(path, "there are no figures in it: `evenkeel rescore` the run.")
        summary = {}
        for name, figure in figures.items():
            metric, scope = scope_of(name)
            summary[name] = msgspec.structs.replace(figure, metric=metric, scope=scope)
        return summary

    def records(self) -> Iterator[Record]:
        """One record a sample: what was asked, what was answered, the scores."""
        return self._lines(self._record_type)

    def samples(self) -> Samples:
        """Its samples to look through: `run.samples().select(outcome="wrong")`. Fast with 100,000 of them."""
        from evenkeel.harness.stored.samples import read_samples

        benchmark = self._benchmark if self.spec.benchmark in benchmark_names() else None
        path = self._result("records.jsonl").resolve()
        with _naming_remedy():
            self._check_size(path)
            return read_samples(path, self._record_type, benchmark)

    def scores(self) -> Iterator[ScoredLine]:
        """The scores of the records alone, in less time: answers and details are not decoded."""
        return self._lines(ScoredLine)

    def mark(self, sample_id: str, verdict: Verdict = "wrong", metric: str = "", comment: str = "") -> Mark:
        """Say that a sample's score, or one value of it, is wrong or right; "" takes that back.

        Marks are kept in marks.jsonl in the run's folder, each with the inputs, answers and values.
        """
        from evenkeel.harness.stored.marks import add_mark

        return add_mark(self, sample_id, verdict, metric, comment)

    def marks(self) -> list[Mark]:
        """What people said of its scores: the last mark of each sample and metric."""
        from evenkeel.harness.stored.marks import read_marks

        return read_marks(self)

    @property
    def headline(self) -> Figure:
        """The figure that the benchmark declares first. It has no value where there are several subjects: see
        `headlines`."""
        return self.figure(self._benchmark.metrics[0].name)

    @property
    def verdict(self) -> str:
        """One plain sentence: how good it is, and whether to trust the figure."""
        from evenkeel.page.verdict import verdict

        names = self.subjects or (self.spec.subject,)
        notes = self._benchmark.notes(self.spec, self.summary)
        headlines = dict(zip(names, self.headlines.values(), strict=True))
        return verdict(
            self._benchmark.layout, self.summary, headlines, subjects=f"{self.subject}s", notes=notes
        )

    @property
    def coverages(self) -> dict[str, float]:
        """What must reach the coverage floor: the headline, and metrics that the benchmark names."""
        covered = (name for name in self._benchmark.covered if name in self.summary)
        return {"": self.headline.coverage, **{name: self.summary[name].coverage for name in covered}}

    @property
    def subject(self) -> str:
        """What its benchmark tests: `model`, or the option (and tag) whose values are set side by side."""
        return self._benchmark.subject

    @property
    def subjects(self) -> tuple[str, ...]:
        """The names of what is set side by side; empty where one model is under test."""
        return () if self.subject == "model" else self.spec.subjects

    @property
    def headlines(self) -> dict[str, Figure]:
        """The headline, by its name in the summary; where several subjects are under test, one for each."""
        headline = self._benchmark.metrics[0].name
        names = [scope_name(headline, {self.subject: name}) for name in self.subjects] or [headline]
        return {name: self.figure(name) for name in names}

    def figure(self, name: str) -> Figure:
        """A figure of the summary, or an error that says what to do where it lacks it."""
        if name not in self.summary:
            raise DataError(
                self.path / "summary.json", f"there is no '{name}' in it: `evenkeel rescore` the run."
            )
        return self.summary[name]

    def _result(self, name: str) -> Path:
        """A file that a finished run has; its spec must be of a format that is known here."""
        _ = self.spec
        if (path := member(self.path, name)) is None:
            raise DataError(
                self.path,
                f"this run is not finished: resume it with {how_to_resume(self.path)}, or rescore it.",
            )
        return path

    def _lines(self, kind: Any) -> Iterator[Any]:
        return self._checked_lines(self._result("records.jsonl"), kind)

    def _checked_lines(self, path: Path, kind: Any) -> Iterator[Any]:
        with _naming_remedy():
            self._check_size(path)
            yield from read_json_lines(path, kind)

    def _check_size(self, path: Path) -> None:
        """Notice damaged records also where the figures alone are read, and where whole lines are missing."""
        size = path.stat().st_size
        stored = self.spec.provenance.get("records_bytes", size)
        if stored != size:  # it may be scored anew by now
            stored = read_spec(self.path).provenance.get("records_bytes", size)
        if stored != size:
            raise DataError(path, f"it has {size:,} bytes, and {stored:,} when the run was finished.")

    @property
    def _record_type(self) -> Any:
        return record_type(self._benchmark) if self.spec.benchmark in benchmark_names() else Record

    @property
    def _benchmark(self) -> type[Benchmark]:
        return benchmark_class(self.spec.benchmark)

    def failures(self) -> Counter[str]:
        """How often requests ended other than well, and scoring lacked something, by reason."""
        reasons: Counter[str] = Counter()
        for record in self.records():
            reasons.update(record.score.failures)
            reasons.update(
                f"{answer.status}: {answer.reason}" if answer.reason else answer.status
                for answer in record.answers
                if answer.status != "ok"
            )
        return reasons

    def agreement(self) -> str | None:
        """How our figures compare with those that the recorded file itself gave; None where it gave none."""
        from evenkeel.harness.stored.agreement import agreement

        return agreement(self)

    def frame(self) -> DataFrame:
        """The records as a polars data frame, one row per sample.

            run.frame().group_by("level").agg(polars.col("mean_similarity").mean())

        Columns as in `evenkeel export`: `sample`, `group`, the tags, how its requests ended (`answered`,
        `status_ok`, …), its values, and those of its inputs that are single texts or numbers; `answers` is a
        list, with null for a request that brought none.
        """
        from evenkeel.files.frame import frame

        return frame(self.records)

    def to_pandas(self) -> Any:
        """The same as a pandas data frame; pandas must be installed."""
        try:
            import pandas
        except ImportError:
            raise MissingExtra("to_pandas()", package="pandas", install="pip install pandas") from None
        return pandas.DataFrame(self.frame().to_dict(as_series=False))

    def overview(self) -> Overview:
        """The headline with its interval and coverage, and the benchmark's first table."""
        from evenkeel.page.tables import arrange

        try:
            benchmark = self._benchmark
            layout, figure, notes = benchmark.layout, self.headline, benchmark.notes(self.spec, self.summary)
            several = len(self.headlines) > 1  # the table has a figure for each
        except EvenkeelError as error:  # not finished, or not a run of this version
            return Overview(str(self.path), [str(error)])
        lines = [
            self.verdict,
            *([] if several else [f"95% interval {interval(figure) or 'not known'}"]),
            f"over {counts(figure, layout)}, coverage {share(figure.coverage)} ({statuses(figure)})",
            *(f"⚠ {note.text}" for note in notes if note.warning),
            f"Report: {self.path / 'report.html'}",
        ]
        title = f"{layout.headline_title} of {self.spec.subject}" + ("" if several else f": {value(figure)}")
        grids = [grid for table in layout.tables if (grid := arrange(self.summary, table))]
        return Overview(title, lines, grids[:1])

    def __repr__(self) -> str:
        """One line: what it is, where it is, and its headline if it is finished."""
        try:
            about = f"{self.spec.benchmark} of {self.spec.subject}"
        except EvenkeelError as error:
            return visible(f"<Run at {self.path}: {error}>")
        try:
            limits = interval(self.headline)
            about += f": {value(self.headline)}{f' ({limits})' if limits else ''}"
            about += f", coverage {share(self.headline.coverage)}"
        except EvenkeelError:
            about += ", not finished"
        return visible(f"<Run {about}, at {self.path}>")


@contextlib.contextmanager
def _naming_remedy() -> Iterator[None]:
    """Say of a damaged file that it can be written again."""
    try:
        yield
    except DataError as error:
        error.add_note("`evenkeel rescore` writes the run's results again from its stored answers.")
        raise


def member(folder: Path, name: str) -> Path | None:
    """A file of a run by its name, or None where there is none. A link is refused: it may lead anywhere."""
    path = folder / name
    for part in (path, *path.parents):
        if part == folder:
            break
        if part.is_symlink():
            raise DataError(part, "this is a link. The files of a run must lie in its own folder.")
    if not path.is_file():
        return None
    if path.stat().st_size > LARGEST.get(name, path.stat().st_size):
        raise DataError(path, f"this file is larger than {LARGEST[name] >> 20} MiB.")
    return path


def how_to_resume(folder: Path) -> str:
    """The command that resumes a run, for a message; it is short where the folder has the settings."""
    if (folder / STARTED).is_file():
        return f"`{shlex.join(['evenkeel', 'resume', str(folder)])}`"
    return f"the same command and --out {folder}"


class _Model(Struct):
    name: str
    spec: str
    identity: dict[str, Any]


class _Source(Struct):
    source: str = ""
    sha256: list[str] = []


class _Provenance(Struct):
    created: str = ""
    evenkeel: str = ""
    python: str = ""
    platform: str = ""
    packages: dict[str, str] = {}
    notes: dict[str, list[str]] = {}
    servers: dict[str, list[str]] = {}
    samples: int = 0
    records_bytes: int = 0
    exported: list[str] = []


class _Parts(Struct):
    """What is read of those parts of a spec that may hold more."""

    models: dict[str, _Model]
    data: _Source
    provenance: _Provenance


def _spec_file(folder: Path) -> Path:
    if (path := member(folder, "spec.json")) is None:
        raise DataError(folder, "this is not a run's folder: it has no spec.json.")
    return path


def read_spec(folder: Path) -> RunSpec:
    """A run's spec, if it is of the format that this version writes and has its shape."""
    path = _spec_file(folder)
    raw = read_json(path)
    if not isinstance(raw, dict) or depth(raw) > DEEPEST:
        raise DataError(path, "this is not the spec of a run.")
    version = raw.get("format")
    if type(version) is not int or version != FORMAT:
        raise DataError(
            path,
            f"the run has format {shown(version)}; this Evenkeel reads format {FORMAT}. "
            "Use the Evenkeel that made it.",
        )
    spec: RunSpec = convert(path, raw, RunSpec)
    convert(path, raw, _Parts)
    _check_options(path, spec)
    return spec


def _check_options(path: Path, spec: RunSpec) -> None:
    """Values of the types that the benchmark's options have. What is not known here is only shown."""
    if spec.benchmark not in benchmark_names():
        return
    kind = benchmark_class(spec.benchmark).Options
    known = {option.name for option in describe(kind)}
    options = {name: value for name, value in spec.options.items() if name in known and value is not None}
    try:
        parse(kind, options, of=f"the benchmark '{spec.benchmark}'")
    except UsageError as error:
        raise DataError(path, str(error), where="options") from None


def load_run(path: str | Path) -> Run:
    """A run from its folder: `ek.load_run("runs/yesterday").summary["mean_similarity"].value`."""
    return Run(path)


def spec_changes(stored: RunSpec, current: RunSpec) -> dict[str, tuple[Any, Any]]:
    """What two specs ask differently, by name; provenance does not count."""
    old, new = (_flat({**to_jsonable(spec), "provenance": None}) for spec in (stored, current))
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return {name: (old.get(name), new.get(name)) for name in names}


def served_at(spec: RunSpec) -> dict[str, list[str]]:
    """By role: the addresses at which its model was reached, where it is on a server."""
    servers: dict[str, list[str]] = spec.provenance.get("servers", {})
    return servers


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {k: v for name, part in value.items() for k, v in _flat(part, f"{prefix}{name}.").items()}
    return {prefix.rstrip("."): value}


def shown(value: Any) -> str:
    """A value of a spec in a message."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 80 else f"{text[:77]}..."
