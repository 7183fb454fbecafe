"""A run's folder: what lies in it, how it is written so that a kill harms nothing, how it is read."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import msgspec

from evenkeel.cache import replacing
from evenkeel.errors import DataError, RunConflict, StorageError
from evenkeel.jsonfile import read_json, read_json_lines
from evenkeel.types import Figure, Record, RunSpec, Summary, to_jsonable

FORMAT = 1
UNFINISHED = "this run is not finished: run the same command again, or `evenkeel rescore` it."
FILES = ("spec.json", "journal.sqlite", "records.jsonl", "summary.json", "report.html", "export")


class Run:
    """A finished run, read from its folder."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / "spec.json").is_file():
            raise DataError(self.path, "this is not a run's folder: it has no spec.json.")

    @cached_property
    def spec(self) -> RunSpec:
        spec: RunSpec = read_json(self.path / "spec.json", RunSpec)
        return spec

    @cached_property
    def summary(self) -> Summary:
        """Every figure by name: `run.summary["mean_similarity"].value`."""
        if not (self.path / "summary.json").is_file():
            raise DataError(self.path, UNFINISHED)
        summary: Summary = read_json(self.path / "summary.json", dict[str, Figure])
        if not summary:
            raise DataError(
                self.path / "summary.json", "there are no figures in it: `evenkeel rescore` the run."
            )
        return summary

    def records(self) -> Iterator[Record]:
        """One record a sample: what was asked, what was answered, the scores."""
        if not (self.path / "records.jsonl").is_file():
            raise DataError(self.path, UNFINISHED)
        return read_json_lines(self.path / "records.jsonl", Record)

    @property
    def headline(self) -> Figure:
        """The figure that the benchmark declares first. It has no value where several methods are under test:
        see `headlines`."""
        return self.figure(self._layout.headline)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods under test; empty where a model is."""
        return () if "model" in self.spec.models else tuple(self.spec.options.get("method", ()))

    @property
    def headlines(self) -> dict[str, Figure]:
        """The headline, by its name in the summary; where methods are under test, one for each of them."""
        from evenkeel.stats import scope_name

        headline = self._layout.headline
        names = [scope_name(headline, {"method": method}) for method in self.methods] or [headline]
        return {name: self.figure(name) for name in names}

    def figure(self, name: str) -> Figure:
        """A figure of the summary, or an error that says what to do where it lacks it."""
        if name not in self.summary:
            raise DataError(
                self.path / "summary.json", f"there is no '{name}' in it: `evenkeel rescore` the run."
            )
        return self.summary[name]

    @property
    def _layout(self) -> Any:
        from evenkeel.benchmarks import benchmark_class

        return benchmark_class(self.spec.benchmark).layout

    def failures(self) -> Counter[str]:
        """How often requests ended other than well, and scoring lacked something, by reason."""
        found: Counter[str] = Counter()
        for record in self.records():
            found.update(record.score.detail.get("failures", ()))
            found.update(
                f"{answer.status}: {answer.reason}" if answer.reason else answer.status
                for answer in record.answers
                if answer.status != "ok"
            )
        return found

    def agreement(self) -> str | None:
        """How our figures compare with those that the recorded file itself gave; None where it gave none."""
        differences = [
            abs(value - given[name])
            for record in self.records()
            if (given := record.sample.inputs.get("published"))
            for name, value in record.score.values.items()
            if name in given and value is not None
        ]
        if not differences:
            return None
        return f"{len(differences):,} published figures, largest difference from ours {max(differences):.1e}"

    def __repr__(self) -> str:
        return f"<Run {self.spec.benchmark} of {self.spec.subject} at {self.path}>"


def load_run(path: str | Path) -> Run:
    """A run from its folder."""
    return Run(path)


class RunFolder:
    """The folder of a run that this process is writing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    @contextlib.contextmanager
    def open(cls, path: Path, spec: RunSpec, *, fresh: bool = False) -> Iterator[RunFolder]:
        """Begin a run, or go on with it if its spec is the same. One process at a time."""
        with _writing(path):
            path.mkdir(parents=True, exist_ok=True)
        with _locked(path):
            folder = cls(path)
            folder._begin(spec, fresh=fresh)
            yield folder

    def _begin(self, spec: RunSpec, *, fresh: bool) -> None:
        existing = self.path / "spec.json"
        for draft in self.path.glob(".*"):  # what a killed process was writing; the folder is ours alone now
            if draft.is_file() and draft.name[1:].startswith(FILES):
                draft.unlink()
        if existing.is_file() and fresh:
            # The spec goes last: as long as it is there, the folder is known to be a run.
            for name in (*FILES[1:], "journal.sqlite-wal", "journal.sqlite-shm", "spec.json"):
                target = self.path / name
                shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)
        elif existing.is_file():
            differences = spec_differences(read_json(existing, RunSpec), spec)
            if differences:
                raise RunConflict(
                    f"{self.path} holds another run: {'; '.join(differences)}. "
                    "Choose another --out, or start over with --fresh."
                )
            return
        elif any(self.path.iterdir()):
            raise RunConflict(f"{self.path} is not empty and is not a run. Choose another --out.")
        self.write_json("spec.json", spec)

    @property
    def journal(self) -> Path:
        return self.path / "journal.sqlite"

    def write_json(self, name: str, value: Any) -> Path:
        return self.write_bytes(name, msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")

    def write_bytes(self, name: str, content: bytes) -> Path:
        with self.writing(name) as file:
            file.write(content)
        return self.path / name

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """A file of the run to write to: there as a whole when the block ends well, and not at all if not."""
        target = self.path / name
        if not target.resolve().is_relative_to(self.path.resolve()):
            raise StorageError(f"refusing to write '{name}' outside the run's folder.")
        with _writing(target), replacing(target) as draft, draft.open("wb") as file:
            yield file


def spec_differences(there: RunSpec, here: RunSpec) -> list[str]:
    """What two specs ask differently, in words; provenance does not count."""
    old, new = (_flat({**to_jsonable(spec), "provenance": None}) for spec in (there, here))
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return [f"{name} is {_shown(old.get(name))} there and {_shown(new.get(name))} here" for name in names]


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {k: v for name, part in value.items() for k, v in _flat(part, f"{prefix}{name}.").items()}
    return {prefix.rstrip("."): value}


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 80 else f"{text[:77]}..."


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{path}: cannot be written ({error.strerror or error}). What was stored before is kept: "
            "make room or mend the permissions, then run the same command again."
        ) from error


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the folder for this process; the system lets go of it however the process ends."""
    try:
        import fcntl
    except ImportError:  # Windows has no advisory locks on folders; SQLite still guards its own file
        yield
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunConflict(
                f"{path} is being written by another process. Wait for it, or choose another --out."
            ) from None
        yield
    finally:
        os.close(handle)
