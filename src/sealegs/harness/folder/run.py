"""A finished run, as it is read from its folder."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from sealegs.errors import DataError, MissingExtra, SealegsError, listed, suggestion
from sealegs.files.jsonfile import read_json, read_json_lines
from sealegs.harness.benchmark import Benchmark, record_type
from sealegs.harness.folder.layout import how_to_resume, run_file
from sealegs.harness.folder.spec import read_spec, spec_file
from sealegs.harness.registry import benchmark_class, benchmark_names
from sealegs.page.format import escape_controls, interval, interval_words, nouns, share, value
from sealegs.page.grid import Displayed
from sealegs.page.layout import Layout
from sealegs.page.metrics import scope_name, scope_of
from sealegs.types import Figure, Record, RunSpec, Summary

if TYPE_CHECKING:
    from sealegs.files.frame import DataFrame
    from sealegs.files.record_index import Index
    from sealegs.harness.stored.marks import Mark
    from sealegs.harness.stored.marks import Verdict as MarkVerdict
    from sealegs.harness.stored.samples import Samples
    from sealegs.page.verdict import Verdict

SAME_MODELS = 1e-4
"""Figures of the same models, such as an embedder, differ by less."""


class Figures(dict[str, Figure]):
    """Figures by name; one that is not there is named, with the closest that is, or the headline first."""

    benchmark = ""

    def __missing__(self, name: object) -> Figure:
        headline = benchmark_class(self.benchmark).layout.headline if self.benchmark else ""
        first = list(dict.fromkeys([*([headline] if headline in self else []), *self]))[:5]
        known = suggestion(str(name), self) or f" The first of them: {listed(first)}."
        raise KeyError(f"this run has no figure '{name}'.{known}")


@lru_cache(maxsize=32)
def _figures(path: Path, _state: tuple[int, ...]) -> dict[str, Figure]:
    """The figures of a file in one state: a page reads those of many runs, and of each more than once."""
    figures = {}
    for name, figure in read_json(path, dict[str, Figure]).items():
        metric, scope = scope_of(name)
        figures[name] = msgspec.structs.replace(figure, metric=metric, scope=scope)
    return figures


class Part(NamedTuple):
    """What is answered of a run that is not finished, scored apart from it (`api/so_far.py`)."""

    run: Path
    """The run's own folder."""
    answered: int
    samples: int
    first: bool = False
    """Whether these are the first samples of more."""
    lacking: tuple[str, ...] = ()
    """The roles that are still to be asked for what scoring needs."""

    def __str__(self) -> str:
        """`8 of 24 samples`."""
        return f"{self.answered:,} of {'the first ' * self.first}{nouns(self.samples, 'samples')}"


class Run(Displayed):
    """A finished run, read from its folder; or what is answered of another, as if that were all."""

    def __init__(self, path: str | Path, part: Part | None = None) -> None:
        self.path = Path(path)
        self.part = part
        self.problems: list[str] = []
        """What could not be written when it was made: the page, published files. The figures are whole."""
        spec_file(self.path)

    @property
    def home(self) -> Path:
        """Where what people say of it lies, though no more than a part of it may be read here."""
        return self.part.run if self.part else self.path

    @cached_property
    def spec(self) -> RunSpec:
        return read_spec(self.path)

    @cached_property
    def summary(self) -> Summary:
        """Every figure by name: `run.summary["mean_similarity"].value`."""
        path = self._result("summary.json")
        with _naming_remedy():
            self._check_size(self._result("records.jsonl"))
            status = path.stat()
            figures = _figures(path, (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))
        if not figures:
            raise DataError(path, "there are no figures in it: `sealegs rescore` the run.")
        named = Figures(figures)
        if self.spec.benchmark in benchmark_names():
            named.benchmark = self.spec.benchmark
        return named

    def records(self) -> Iterator[Record]:
        """One record a sample: what was asked, what was answered, the scores."""
        path = self._result("records.jsonl")
        with _naming_remedy():
            self._check_size(path)
            yield from read_json_lines(path, self._record_type)

    def samples(self) -> Samples:
        """Its samples to look through: `run.samples().select(outcome="wrong")`. Fast with 100,000 of them."""
        from sealegs.harness.stored.samples import read_samples

        known = self.spec.benchmark in benchmark_names()
        path = self._result("records.jsonl").resolve()
        with _naming_remedy():
            self._check_size(path)
            benchmark, layout = (self._benchmark, self.layout) if known else (None, None)
            decided_by = ""
            if known and self.subjects and run_file(self.path, "summary.json"):
                decided_by = self.leading.scope.get(self.subject, "")
            return read_samples(path, self._record_type, benchmark, layout, decided_by, stored=not self.part)

    @property
    def columns(self) -> Index:
        """Tags, values and requests of all samples, in less time: no text is decoded."""
        return self.samples().index

    def inputs(self, rows: Sequence[int]) -> list[Any]:
        """What some samples ask, as their benchmark has it."""
        with _naming_remedy():
            return self.samples().inputs(rows)

    def mark(
        self, sample_id: str, verdict: MarkVerdict = "wrong", metric: str = "", comment: str = ""
    ) -> Mark:
        """Say that a sample's score, or one value of it, is wrong or right; "" takes that back.

        Marks are kept in marks.jsonl in the run's folder, each with the inputs, answers and values.
        """
        from sealegs.harness.stored.marks import add_mark

        return add_mark(self, sample_id, verdict, metric, comment)

    def marks(self) -> list[Mark]:
        """What people said of its scores: the last mark of each sample and metric."""
        from sealegs.harness.stored.marks import read_marks

        return read_marks(self)

    @cached_property
    def layout(self) -> Layout:
        """What is shown of it: its headline is the metric that its benchmark chooses for such a run."""
        summary = self.summary if run_file(self.path, "summary.json") else {}
        return self._benchmark.layout.of_run(self.spec, summary)

    @property
    def headline(self) -> Figure:
        """The figure that leads. It has no value where there are several subjects: see `headlines`."""
        return self.figure(self.layout.headline)

    @property
    def verdict(self) -> str:
        """One plain sentence: how good it is, and whether to trust the figure."""
        return self._verdict.text

    @property
    def leading(self) -> Figure:
        """The figure that the verdict is about: the headline, of several subjects that of the best."""
        return self._verdict.figure

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why it is no more than a test run: few samples, answers cut off. Empty where nothing speaks against
        its headline."""
        return self._verdict.doubts

    @cached_property
    def _verdict(self) -> Verdict:
        from sealegs.page.verdict import judge

        names = self.subjects or (self.spec.subject,)
        notes = self._benchmark.notes(self.spec, self.summary)
        headlines = dict(zip(names, self.headlines.values(), strict=True))
        return judge(self.layout, self.summary, headlines, subjects=f"{self.subject}s", notes=notes)

    @property
    def coverages(self) -> dict[str, float]:
        """What must reach the coverage floor: the headline, and metrics that the benchmark names."""
        declared = (metric.name for metric in self._benchmark.metrics if metric.needs_coverage)
        covered = (name for name in declared if name in self.summary)
        return {"": self.headline.coverage, **{name: self.summary[name].coverage for name in covered}}

    @property
    def subject(self) -> str:
        """What its benchmark tests: `model`, or the option (and tag) whose values are set side by side."""
        return self._benchmark.subjects.tag

    @property
    def subjects(self) -> tuple[str, ...]:
        """The names of what is set side by side; empty where one model is under test."""
        return () if self.subject == "model" else self.spec.subjects

    @property
    def headlines(self) -> dict[str, Figure]:
        """The headline, by its name in the summary; where several subjects are under test, one for each."""
        return self.figures_of(self.layout.headline)

    def figures_of(self, metric: str) -> dict[str, Figure]:
        """A metric, by its name in the summary; where several subjects are under test, of each of them."""
        names = [scope_name(metric, {self.subject: name}) for name in self.subjects] or [metric]
        if len(names) != len(self.spec.subjects):
            raise DataError(self.path / "spec.json", "'subjects' is not as Sealegs writes it.")
        return {name: self.figure(name) for name in names}

    def figure(self, name: str) -> Figure:
        """A figure of the summary, or an error that says what to do where it lacks it."""
        if name not in self.summary:
            raise DataError(
                self.path / "summary.json", f"there is no '{name}' in it: `sealegs rescore` the run."
            )
        return self.summary[name]

    def _result(self, name: str) -> Path:
        """A file that a finished run has; its spec must be of a format that is known here."""
        _ = self.spec
        if (path := run_file(self.path, name)) is None:
            raise DataError(
                self.path,
                f"this run is not finished: resume it with {how_to_resume(self.path)}, or rescore it.",
            )
        return path

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
        differences = [
            abs(value - published[name])
            for record in self.records()
            if (published := _published_figures(record.sample.inputs))
            for name, value in record.score.values.items()
            if name in published and value is not None
        ]
        if not differences:
            return None
        text = f"{len(differences):,} published figures, largest difference from ours {max(differences):.1e}"
        for role, identity in self.spec.models.items():
            theirs, ours = str(self.spec.data.get(role) or ""), str(identity.get("name") or "")
            if max(differences) > SAME_MODELS and theirs and _model_name(theirs) != _model_name(ours):
                return f"{text}: the file's figures are of another {role} ({theirs}; ours is {ours})"
        return text

    def frame(self) -> DataFrame:
        """The records as a polars data frame, one row per sample.

            run.frame().group_by("level").agg(polars.col("mean_similarity").mean())

        Columns as in `sealegs export`: `sample`, `group`, the tags, how its requests ended (`answered`,
        `status_ok`, …), its values, and those of its inputs that are single texts or numbers; `answers` is a
        list, with null for a request that brought none.
        """
        from sealegs.files.frame import frame

        return frame(self.records)

    def to_pandas(self) -> Any:
        """The same as a pandas data frame; pandas must be installed."""
        try:
            import pandas
        except ImportError:
            raise MissingExtra("to_pandas()", package="pandas", install="pip install pandas") from None
        return pandas.DataFrame(self.frame().to_dict(as_series=False))

    def __repr__(self) -> str:
        """One line: what it is, where it is, and its headline if it is finished."""
        try:
            about = f"{self.spec.benchmark} of {self.spec.subject}"
        except SealegsError as error:
            return escape_controls(f"<Run at {self.path}: {error}>")
        try:
            limits = interval(self.headline) or interval_words(self.headline)
            about += f": {value(self.headline)} ({limits})"
            about += f", coverage {share(self.headline.coverage)}"
        except SealegsError:
            about += ", not finished"
        return escape_controls(f"<Run {about}, at {self.path}>")


@contextlib.contextmanager
def _naming_remedy() -> Iterator[None]:
    """Say of a damaged file that it can be written again."""
    try:
        yield
    except DataError as error:
        error.add_note("`sealegs rescore` writes the run's results again from its stored answers.")
        raise


def load_run(path: Run | str | Path) -> Run:
    """A run from its folder: `sl.load_run("runs/yesterday").summary["mean_similarity"].value`. A run that is
    loaded already is itself, so that every call that takes a run takes its folder as well."""
    return path if isinstance(path, Run) else Run(path)


def shared_layout(runs: Sequence[Run]) -> Layout:
    """The layout of runs of one benchmark; the benchmark's usual one where their headlines differ."""
    if len({run.layout.headline for run in runs}) == 1:
        return runs[0].layout
    return benchmark_class(runs[0].spec.benchmark).layout


def _published_figures(inputs: Any) -> Mapping[str, float]:
    figures = inputs.get("published") if isinstance(inputs, Mapping) else getattr(inputs, "published", None)
    return figures or {}


def _model_name(name: str) -> str:
    """A model's name without the folder or the organisation before it, in any case."""
    return name.replace("\\", "/").rstrip("/").rpartition("/")[2].casefold()
