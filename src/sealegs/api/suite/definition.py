"""The file of a suite: what may be in it, and how it is read, with the line of whatever is wrong."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta, Struct

from sealegs.errors import DataError, UsageError, explain, sentence, suggestion
from sealegs.files import package_data
from sealegs.files.tables import read_text
from sealegs.files.yamlfile import YamlDocument, read_document
from sealegs.page.format import FLOOR

Count: TypeAlias = Annotated[int, Meta(ge=1)]
Price: TypeAlias = Annotated[float, Meta(ge=0)]
Dollars: TypeAlias = Annotated[float, Meta(gt=0)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Text: TypeAlias = Annotated[str, Meta(min_length=1)]
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=60)]
Scalar: TypeAlias = str | bool | int | float
Options: TypeAlias = dict[str, Scalar | list[Scalar]]


class SuiteSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be set for all runs, for a benchmark, or for a model: the last of these decides."""

    data: str | list[str] | None = None
    """A path (relative to the file), 'starter' or 'published'; or a list of them."""
    lang: str | list[str] | None = None
    limit: Count | None = None
    seed: int | None = None
    concurrency: Count | None = None
    price_in: Price | None = None
    price_out: Price | None = None


class ModelEntry(SuiteSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model under test."""

    spec: Text
    name: Name | None = None
    """What it is called in folders and tables; from its spec by default."""
    base_url: str | None = None
    args: dict[str, Scalar] = {}
    """Options of its backend."""


class BenchmarkEntry(SuiteSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A benchmark with its options."""

    benchmark: Text
    name: Name | None = None
    """What it is called in folders; the benchmark's name by default."""
    options: Options = {}
    """Its options by name; {model} is the spec of each model, {name} its name."""
    models: list[str] | None = None
    """The names of the models that it is run on; all by default."""
    metric: Text | None = None
    """The metric that the leaderboard of its runs is by; its headline by default."""


class BudgetEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all runs together may cost, those of earlier calls with the same folder included."""

    usd: Dollars | None = None
    requests: Count | None = None


class GateEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Compare each run with that of an earlier suite, and exit with 1 where one is significantly worse."""

    baseline: Text
    """The folder of the earlier suite, relative to the file. Until it is there, nothing is compared."""
    max_drop: Price = 0.0
    """How much worse a run may be, in the unit of its headline."""


class Definition(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A suite: each benchmark is run on each model."""

    models: list[str | ModelEntry] = []
    benchmarks: Annotated[list[str | BenchmarkEntry], Meta(min_length=1)]
    out: Annotated[str, Meta(pattern=r"^[^\x00]*$")] = ""
    """The folder of the suite, below that of the file; runs/NAME by default."""
    defaults: SuiteSettings = SuiteSettings()
    budget: BudgetEntry = BudgetEntry()
    min_coverage: Share = FLOOR
    """A run of which a smaller share was answered is not ranked."""
    parallel: Annotated[int, Meta(ge=1, le=64)] = 8
    """At most this many runs at once; those of one server are always one after the other."""
    gate: GateEntry | None = None


PARTS: dict[str | int, type[Struct]] = {
    "models": ModelEntry,
    "benchmarks": BenchmarkEntry,
    "defaults": SuiteSettings,
    "budget": BudgetEntry,
    "gate": GateEntry,
}


class SuiteFile(NamedTuple):
    """A file that was read."""

    path: Path
    definition: Definition
    document: YamlDocument

    @property
    def folder(self) -> Path:
        """Paths in the file are relative to it."""
        return self.path.resolve().parent

    def error(self, problem: str, *steps: str | int) -> DataError:
        """A problem with the value at the end of some steps (`"models", 2`)."""
        return DataError(self.path, sentence(problem), line=self.document.line(steps))

    @contextlib.contextmanager
    def located(self, *steps: str | int) -> Iterator[None]:
        """Have a usage error name the file and the line of the entry that it is about."""
        try:
            yield
        except UsageError as error:
            raise self.error(error.args[0], *steps) from None

    @property
    def out(self) -> Path:
        """Where the suite is. The file may come from anyone: it names no folder outside its own."""
        name = self.definition.out or f"runs/{self.path.stem}"
        target = self.folder / name
        if not target.resolve().is_relative_to(self.folder):
            problem = "is not below the folder of this file. Give such a folder here, or any with --out"
            raise self.error(f"out: {name!r} {problem}", "out")
        return target

    def find(self, name: str) -> Path:
        """A path relative to the file, or else to the current folder; it need not be there. The file may come
        from anyone: no path leads out of the two folders."""
        folders = self.folder, Path.cwd().resolve()
        paths = [folder / name for folder in folders]
        path = next((path for path in paths if path.exists()), paths[0])
        if not any(path.resolve().is_relative_to(folder) for folder in folders):
            raise UsageError(f"'{name}' is not below the folder of this file or the current one")
        return path

    def baseline(self) -> Path | None:
        """The folder of the earlier suite that this one is compared with, if with any."""
        if self.definition.gate is None:
            return None
        with self.located("gate", "baseline"):
            return self.find(self.definition.gate.baseline)


def example() -> str:
    """A commented file that runs as it is, on the embedded models."""
    return package_data.read_text(__package__, "example.yaml")


def read_suite(path: Path) -> SuiteFile:
    """Read and check the shape of a suite's file; an error names its line."""
    document = read_document(path, read_text(path))
    if document.entries is None or any(not entry.key for entry in document.entries):
        raise DataError(path, "this is not a suite: a mapping with 'models' and 'benchmarks' is expected.")
    raw = {key: value for _, key, value in document.entries}
    try:
        definition = msgspec.convert(raw, Definition)
    except msgspec.ValidationError as error:
        raise _explained(path, document, raw, error) from None
    return SuiteFile(path, definition, document)


def _explained(path: Path, document: YamlDocument, raw: Any, error: msgspec.ValidationError) -> DataError:
    fault = explain(error, raw)
    steps, problem, hint = list(fault.path), fault.problem, ""
    if unknown := re.fullmatch(r"the field '(.*)' is not known", problem, re.DOTALL):
        part = PARTS[steps[0]] if steps and steps[0] in PARTS else Definition
        known = part.__struct_fields__
        steps.append(unknown[1])
        problem = f"'{unknown[1]}' is not known here"
        hint = f"{suggestion(unknown[1], known)} Available: {', '.join(known)}."
    if "args" in steps:
        problem = problem.partition(", got")[0]  # a key may have been written here
    where = "" if unknown or not fault.field else f"{fault.field.removeprefix('field ')}: "
    return DataError(path, f"{where}{sentence(problem)}{hint}", line=document.line(steps))
