"""Benchmarks by name: built in, of other packages, or in a Python file that a person names.

Another package registers its own under the entry points `sealegs.benchmarks`. A file is named on the command
line (`sealegs run ./parrot.py`) or by the variable SEALEGS_BENCHMARKS. Looking a name up imports no other.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sealegs.errors import SealegsError, UsageError, suggestion
from sealegs.files.remote.telemetry import switch_off_telemetry
from sealegs.harness.benchmark import Benchmark
from sealegs.harness.plugins import UNLOADABLE, described, entry_points, load, load_plugin, origin, warn
from sealegs.options import describe, parse
from sealegs.types import RunSpec

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "sealegs.benchmarks"
BENCHMARKS = {
    name: f"sealegs.benchmarks.{name}.benchmark:{name.capitalize()}"
    for name in ("mirae", "rgb", "miron", "multiview")
}
OTHER_HARNESSES = ("inspect", "lm-eval", "table")
"""What results that were not made here are of: `inspect:TASK`. No benchmark that could be run."""
FILES_VARIABLE = "SEALEGS_BENCHMARKS"
TOKENIZERS = "sealegs.benchmarks.miron.tokenizers"
"""The module that compares tokenizers on a benchmark's data, without a model."""

_LOADED: dict[str, type[Benchmark]] = {}
"""The benchmarks of files that this process was given, by name."""


def benchmark_names() -> list[str]:
    """Every benchmark that can be named: built in, of plug-ins, of files that a person named."""
    return list(dict.fromkeys([*BENCHMARKS, *_plugins(), *_named_files(), *_LOADED]))


def list_benchmarks() -> dict[str, type[Benchmark]]:
    """The class of each benchmark by its name: `sl.list_benchmarks()["mirae"].layout.question`. A plug-in
    that cannot be loaded is named in a warning."""
    usable = {}
    for name in benchmark_names():
        try:
            usable[name] = benchmark_class(name)
        except UsageError as error:
            warn(str(error))
    return usable


def benchmark_class(name: str) -> type[Benchmark]:
    """The class of a benchmark by its name, which a stored run may give: it is never read as a path."""
    if name in BENCHMARKS:
        return _as_benchmark(name, load(BENCHMARKS[name]))
    if name.partition(":")[0] in OTHER_HARNESSES:
        return load("sealegs.analysis.others:Others")  # type: ignore[no-any-return]
    if name in _LOADED:
        return _LOADED[name]
    if name in (files := _named_files()):
        return _from_file(files[name])
    if name in (plugins := _plugins()):
        return _as_benchmark(origin(plugins[name]), load_plugin(plugins[name]))
    available = benchmark_names()
    raise UsageError(
        f"unknown benchmark '{name}'.{suggestion(name, available)} Available: {', '.join(available)}. "
        f"Install the package that has another, or name its file: {FILES_VARIABLE}=path/to/benchmark.py."
    )


def benchmark_title(name: str) -> str:
    """What people call a benchmark: `Consistency (MIRAE)`; its name where there is no other."""
    return (name in benchmark_names() and benchmark_class(name).layout.name) or name


def chosen_class(choice: str | Path) -> type[Benchmark]:
    """The class of a benchmark that a person chose: by its name, or by the path of its Python file."""
    return _from_file(Path(choice).resolve()) if str(choice).endswith(".py") else benchmark_class(str(choice))


def benchmark_name(choice: str | Path) -> str:
    """The name under which a run is stored: of a file, the file's."""
    return Path(choice).stem if str(choice).endswith(".py") else str(choice)


def load_benchmark(
    name: str | Path, options: Mapping[str, Any], *, seed: int = 0, also: Collection[str] = ()
) -> Benchmark:
    """A benchmark that a person chose, with its options; `also` are the settings that every run has."""
    cls = chosen_class(name)
    check_option_names(cls, also)
    return cls(parse(cls.Options, options, of=f"the benchmark '{name}'", also=also), seed=seed)


def check_option_names(cls: type[Benchmark], also: Collection[str]) -> None:
    """Refuse a benchmark with an option that has the name of a setting that every run has."""
    if taken := [option.name for option in describe(cls.Options) if option.name in also]:
        raise UsageError(
            f"the benchmark {cls.__name__} has an option '{taken[0]}', as every run has. Rename it."
        )


def current_names(benchmark: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Stored options under the names of today, where the benchmark is known."""
    known = describe(benchmark_class(benchmark).Options) if benchmark in benchmark_names() else ()
    renamed = {former: option.name for option in known for former in option.former}
    return {renamed.get(name, name): value for name, value in options.items()}


def load_stored(spec: RunSpec) -> Benchmark:
    """The benchmark of a stored run. Files that its options name are not read: the folder has all."""
    cls = benchmark_class(spec.benchmark)
    files = {option.name for option in describe(cls.Options) if option.file}
    options = {name: value for name, value in spec.options.items() if name not in files}
    return cls(parse(cls.Options, options, of=f"the benchmark '{spec.benchmark}'"), seed=spec.seed)


def _plugins() -> dict[str, EntryPoint]:
    return entry_points(GROUP, frozenset(BENCHMARKS))


def _named_files() -> dict[str, Path]:
    """The files of SEALEGS_BENCHMARKS by the names of their benchmarks."""
    paths = filter(None, os.environ.get(FILES_VARIABLE, "").split(os.pathsep))
    return {Path(path).stem: Path(path).resolve() for path in paths}


@cache
def _from_file(path: Path) -> type[Benchmark]:
    """The one benchmark that a Python file defines. The file is run, as a person asked for by naming it."""
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file.")
    if path.stem in BENCHMARKS or path.stem in _plugins():
        raise UsageError(f"{path}: there is a benchmark '{path.stem}' already. Rename the file.")
    name = f"sealegs_file_{path.stem}"
    switch_off_telemetry()
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None  # the name ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and msgspec look a class's module up
    try:
        spec.loader.exec_module(module)
    except SealegsError:
        raise
    except UNLOADABLE as error:
        raise UsageError(f"{path} cannot be loaded: {described(error)}.") from error
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Benchmark) and value.__module__ == name
    ]
    if len(classes) != 1:
        names = ", ".join(cls.__name__ for cls in classes) or "none"
        raise UsageError(f"{path} must define one subclass of sealegs.Benchmark; it defines: {names}.")
    _LOADED[path.stem] = _as_benchmark(str(path), classes[0])
    return classes[0]


def _as_benchmark(source: str, cls: Any) -> type[Benchmark]:
    if not (isinstance(cls, type) and issubclass(cls, Benchmark)):
        raise UsageError(f"{source} is not a subclass of sealegs.Benchmark.")
    missing = [
        member
        for member in ("Options", "roles", "metrics", "samples", "requests", "score")
        if getattr(cls, member, None) in (None, getattr(Benchmark, member, None))
        and not (member == "roles" and "__init__" in vars(cls))  # they may depend on the options
    ]
    if missing:
        raise UsageError(f"the benchmark {cls.__name__} of {source} lacks: {', '.join(missing)}.")
    return cls
