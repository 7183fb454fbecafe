"""The benchmarks, and what one is.

A benchmark answers four questions: which samples are there; what is asked of a model for one of them; how
do the answers become scores; how do scores become a summary. It knows no engine, no provider and no file
of the run. What it needs beyond the first answers (embeddings, verdicts) it asks for as further requests,
which take the same road as the first.
"""

from __future__ import annotations

import importlib
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from evenkeel.errors import UsageError
from evenkeel.files.datasets import DataFile, Starter
from evenkeel.messages import suggestion
from evenkeel.options import describe, parse
from evenkeel.page.layout import Examples, Layout, Note
from evenkeel.types import Answered, Capability, Records, Request, Response, RunSpec, Sample, Score, Summary

Scoring: TypeAlias = Generator[Sequence[Request], Sequence[Response], list[Score]]
"""Scoring yields further requests, is sent their responses in the same order, and returns the scores."""


class Recorded(NamedTuple):
    """Answers that were given elsewhere, read from one file in a published format."""

    model: str
    """The name of the model that gave them, as far as the file tells."""
    samples: list[Sample]
    """Figures that the file itself gives stand in a sample's `inputs["published"]`."""
    responses: list[list[Response]]
    """For each sample, a response to each of its requests."""


class Benchmark(Protocol):
    """A benchmark with its options set. The class attributes say what it is, before any option is known."""

    Options: ClassVar[type[Struct]]
    subject: ClassVar[Literal["model", "methods"]]
    """What is under test: a model that is asked, or the methods of the option `method`, side by side."""
    layout: ClassVar[Layout]
    starter: ClassVar[Starter]
    """What the benchmark's generator makes of seed 0."""
    options: Any
    needs: Mapping[str, frozenset[Capability]]
    """What the model in each role must be able to do. The role `model` is the one under test."""
    helpers: Mapping[str, str]
    """Who fills the other roles: embedders, judges."""

    def samples(
        self, files: Sequence[DataFile], *, langs: Sequence[str] | None, limit: int | None
    ) -> list[Sample]: ...

    def requests(self, sample: Sample) -> Sequence[Request]: ...

    def score(self, answered: Sequence[Answered]) -> Scoring: ...

    def summarise(self, scores: Sequence[Score]) -> Summary: ...

    @staticmethod
    def notes(spec: RunSpec, summary: Summary) -> list[Note]:
        """What to say beside the figures of this very run."""

    @staticmethod
    def examples(records: Records) -> list[Examples]:
        """Samples to look at."""

    def without(self, capabilities: frozenset[Capability]) -> Benchmark | None:
        """The same with less, for a model that lacks these capabilities; None where that makes no sense."""

    # What follows is about the formats in which it was published.

    def forecast(self, samples: Sequence[Sample], asked: Iterable[Request]) -> dict[str, tuple[int, int]]:
        """For a dry run: how many further requests of each kind at the most, and the tokens they carry."""

    def recorded(self, path: Path, *, lang: str | None) -> Recorded:
        """Recorded answers, in any of the published shapes."""

    def publish(self, spec: RunSpec, records: Records) -> Iterator[tuple[str, Iterator[bytes]]]:
        """The run in the published formats: file names and contents."""


class Built(NamedTuple):
    """A data set that was made: its files, what to tell, and what did not come out."""

    files: Mapping[str, bytes]
    """By name, where `--out` is a folder; else by language, the first of which is written to `--out`."""
    notes: list[str]
    failures: list[str]

    def __repr__(self) -> str:
        """At Python's prompt the names, not the contents."""
        return f"<Built {', '.join(self.files)}: {len(self.notes)} notes, {len(self.failures)} failures>"


class Builder(Protocol):
    """Makes a benchmark's data set. Like scoring, it yields requests where it needs a model."""

    Options: ClassVar[type[Struct]]
    folder: ClassVar[bool]
    """Whether `--out` is a folder of several files, or one file."""
    needs: Mapping[str, frozenset[Capability]]
    helpers: Mapping[str, str]

    def build(self) -> Generator[Sequence[Request], Sequence[Response], Built]: ...


class Entry(NamedTuple):
    module: str
    cls: str
    builder: str
    about: str


BENCHMARKS: dict[str, Entry] = {
    "mirae": Entry(
        "mirae",
        "Mirae",
        "MiraeBuilder",
        "Does it say the same thing when asked again, at seven prompt lengths?",
    ),
    "rgb": Entry("rgb", "Rgb", "RgbBuilder", "Does the answer survive bad retrieval?"),
    "miron": Entry("miron", "Miron", "MironBuilder", "Does a base model survive its own tokenizer?"),
    "multiview": Entry(
        "multiview",
        "Multiview",
        "MultiviewBuilder",
        "Does a similarity method see the view it was asked for?",
    ),
}


RUN_OPTIONS = (
    "model", "model_args", "base_url", "data", "lang", "limit", "seed", "out", "fresh", "reuse", "engine",
    "concurrency", "progress", "max_requests", "max_tokens_total", "max_usd", "price_in", "price_out",
)  # fmt: skip
"""What `evenkeel.run` takes beside a benchmark's own options, for those who misspell it."""


def entry(name: str) -> Entry:
    if name not in BENCHMARKS:
        hint = suggestion(name, BENCHMARKS)
        raise UsageError(f"unknown benchmark '{name}'.{hint} There is: {', '.join(BENCHMARKS)}.")
    return BENCHMARKS[name]


def benchmark_class(name: str) -> Any:
    chosen = entry(name)
    return getattr(importlib.import_module(f"evenkeel.benchmarks.{chosen.module}.benchmark"), chosen.cls)


def builder_class(name: str) -> Any:
    chosen = entry(name)
    return getattr(
        importlib.import_module(f"evenkeel.benchmarks.{chosen.module}.make.builder"), chosen.builder
    )


def load_benchmark(name: str, options: Mapping[str, Any], *, seed: int = 0) -> Benchmark:
    cls = benchmark_class(name)
    parsed = parse(cls.Options, options, of=f"the benchmark '{name}'", also=RUN_OPTIONS)
    benchmark: Benchmark = cls(parsed, seed=seed)
    return benchmark


def load_stored(spec: RunSpec) -> Benchmark:
    """The benchmark of a stored run. Files that its options name are not read: the folder is whole."""
    files = {option.name for option in describe(benchmark_class(spec.benchmark).Options) if option.file}
    options = {name: value for name, value in spec.options.items() if name not in files}
    return load_benchmark(spec.benchmark, options, seed=spec.seed)
