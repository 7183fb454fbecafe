"""What a leaderboard needs of a run: from its records, or from the cache."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Iterable, Sized
from hashlib import sha256
from math import isclose, isfinite
from typing import Any

import msgspec
from msgspec import Struct

from evenkeel.analysis.comparability import read_values
from evenkeel.errors import UsageError
from evenkeel.files.cache import cache_dir, trim, write_whole
from evenkeel.harness.folder import Run
from evenkeel.harness.registry import benchmark_class
from evenkeel.page.layout import Layout
from evenkeel.page.metrics import Metric

MOST_ENTRIES = 100
"""On a board, each tested against each. Further runs have a further board."""
FORMAT = 1
"""Of the cached values: another number when they or the digests of what is asked change."""
STORED_FROM = 2**18
"""Bytes of records whose values are stored: fewer are read in milliseconds."""
MOST_STORED = 1000
LARGEST_STORED = 2**29
"""Files in the cache folder, and the bytes of all of them; the oldest give way."""


class Values(Struct):
    """The samples of a run by its headline, as they are kept in the cache. Samples are named by position."""

    key: str
    samples: list[str]
    asked: list[bytes]
    """Digests of what each sample asks."""
    groups: list[str | tuple[str, ...]]
    positions: dict[str, list[int]]
    """By metric (`accuracy@bm25`): the samples that have a value, in the order of the records."""
    values: dict[str, list[float]]
    counted: dict[str, list[int]]
    """By metric: the samples that it is about, whether they have a value or not."""
    parts: dict[str, list[str]]
    """By metric: the part of a macro-average that each sample belongs to; empty where there are none."""

    def fit(self) -> bool:
        """Whether they have the shape of a run's values, wherever they come from."""
        count = len(self.samples)
        whole: list[Sized] = [self.asked, self.groups, *filter(None, self.parts.values())]
        positions = [*self.positions.values(), *self.counted.values()]
        return (
            self.positions.keys() == self.values.keys() == self.counted.keys() == self.parts.keys()
            and all(len(each) == count for each in whole)
            and all(len(self.positions[metric]) == len(self.values[metric]) for metric in self.values)
            and len(set(self.samples)) == count
            and all(isfinite(value) for each in self.values.values() for value in each)
            and all(min(each) >= 0 and max(each) < count for each in positions if each)
        )


class Entrant:
    """A run that is to be ranked, and the values of its samples."""

    def __init__(self, run: Run, asked: dict[bytes, Any]) -> None:
        self.run = run
        self.benchmark = benchmark_class(run.spec.benchmark)
        self.layout: Layout = self.benchmark.layout
        headline = self.layout.headline
        self.metrics = [f"{headline}@{subject}" for subject in run.subjects] or [headline]
        """The headline as samples have it: of each subject, where there are any."""
        if len(self.metrics) > MOST_ENTRIES:
            count = f"{len(self.metrics):,} {run.subject}s"
            raise UsageError(f"{run.path} has {count}; a board has at most {MOST_ENTRIES} entries.")
        self.figures = dict(zip(self.metrics, run.headlines.values(), strict=True))
        self.values = self._read(asked)
        self.signature = self._signature()
        self.bases = sorted({figure.basis for figure in self.figures.values()})
        self.not_a_mean = self._is_not_a_mean()

    @property
    def declared(self) -> Metric:
        return self.layout.metrics[0]

    def _is_not_a_mean(self) -> bool:
        """Whether a figure is not the mean of its samples, so that it cannot be compared by them."""
        return any(
            figure.value is not None
            and self.values.values[metric]
            and not isclose(figure.value, self._mean(metric), rel_tol=1e-9, abs_tol=1e-12)
            for metric, figure in self.figures.items()
        )

    def _mean(self, metric: str) -> float:
        values, parts = self.values.values[metric], self.values.parts[metric]
        by_part: defaultdict[str, list[float]] = defaultdict(list)
        for position, value in zip(self.values.positions[metric], values, strict=True):
            by_part[parts[position] if parts else ""].append(value)
        means = [sum(each) / len(each) for each in by_part.values()]
        return sum(means) / len(means)

    def _signature(self) -> bytes:
        """Everything in the spec but what is under test: runs with the same were set up alike."""
        spec, subject = self.run.spec, self.run.subject
        tested = subject == "model"
        models = {role: model for role, model in spec.models.items() if tested and role != "model"}
        options = {name: option for name, option in spec.options.items() if tested or name != subject}
        settings = (spec.format, options, models, spec.data, spec.seed, spec.limit)
        return msgspec.json.encode(settings, order="deterministic")

    def _read(self, asked: dict[bytes, Any]) -> Values:
        """The values from the cache, or from the records, and then into the cache."""
        records = self.run.path / "records.jsonl"
        state = records.lstat() if records.exists() else None
        store = cache_dir() / "leaderboard" / f"{sha256(os.fsencode(records.resolve())).hexdigest()}.msgpack"
        key = state and repr((FORMAT, state.st_size, state.st_mtime_ns, state.st_ino, self.metrics))
        key = f"{key} {sorted((metric, figure.value is None) for metric, figure in self.figures.items())}"
        if state is None or state.st_size < STORED_FROM:
            return self._from_records(key, asked)
        with contextlib.suppress(OSError, msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            if store.is_file() and store.stat().st_size <= LARGEST_STORED:
                values = msgspec.msgpack.decode(store.read_bytes(), type=Values)
                if values.key == key and values.values.keys() == self.figures.keys() and values.fit():
                    return values
        values = self._from_records(key, asked)
        with contextlib.suppress(OSError):
            write_whole(store, msgspec.msgpack.encode(values))
            trim(store.parent, files=MOST_STORED, size=LARGEST_STORED)
        return values

    def _from_records(self, key: str, asked: dict[bytes, Any]) -> Values:
        run_values = read_values(self.run, self.metrics, self.layout.metrics, asked)
        samples = list(run_values.asked)
        position = {sample: number for number, sample in enumerate(samples)}
        by_metric = run_values.by_metric
        return Values(
            key=key,
            samples=samples,
            asked=_digests(run_values.asked.values()),
            groups=[run_values.groups[sample] for sample in samples],  # type: ignore[misc]
            positions={
                metric: [position[sample] for sample in each.values] for metric, each in by_metric.items()
            },
            values={metric: list(each.values.values()) for metric, each in by_metric.items()},
            counted={
                metric: sorted(position[sample] for sample in each.samples)
                for metric, each in by_metric.items()
            },
            parts={
                metric: [] if each.parts is None else [each.parts.get(sample, "") for sample in samples]
                for metric, each in by_metric.items()
            },
        )


def store_values(run: Run) -> None:
    """Store what a leaderboard needs of a run, so that nobody waits for it later."""
    if (run.path / "records.jsonl").stat().st_size >= STORED_FROM:
        Entrant(run, {})


def _digests(asked: Iterable[Any]) -> list[bytes]:
    """Of what samples ask, of which many may be one object."""
    objects = list(asked)
    digests = {id(each): _digest(each) for each in {id(each): each for each in objects}.values()}
    return [digests[id(each)] for each in objects]


def _digest(asked: Any) -> bytes:
    """Equal digests ask the same. What cannot be encoded has one of its own, and is compared itself."""
    try:
        return sha256(msgspec.msgpack.encode(asked, order="deterministic")).digest()
    except TypeError:
        return os.urandom(32)
