"""Benchmarks and backends by name: built in, from other packages, or from a file that a person names.

Another package registers its own under the entry points `evenkeel.benchmarks` and `evenkeel.models`. A
benchmark is also found in a Python file: `evenkeel run ./parrot.py`, or the variable EVENKEEL_BENCHMARKS.
A name is looked up without importing anything else, and a plug-in that cannot be loaded is named in a
warning and left out.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from evenkeel.errors import EvenkeelError, UsageError, place_of
from evenkeel.messages import suggestion
from evenkeel.options import describe, parse
from evenkeel.run.benchmark import Benchmark, Builder
from evenkeel.run.model import Model
from evenkeel.text.token_estimate import TokenCounter
from evenkeel.types import ModelRef, Record, RunSpec, Sample

BENCHMARKS = {
    name: f"evenkeel.benchmarks.{name}.benchmark:{name.capitalize()}"
    for name in ("mirae", "rgb", "miron", "multiview")
}
FILES_VARIABLE = "EVENKEEL_BENCHMARKS"
RUN_OPTIONS = (
    "model", "options", "model_args", "base_url", "data", "lang", "limit", "seed", "out", "fresh", "reuse",
    "engine", "concurrency", "progress", "max_requests", "max_tokens_total", "max_usd", "price_in",
    "price_out",
)  # fmt: skip
"""What `evenkeel.run` takes beside a benchmark's options, for suggestions."""


_LOADED: dict[str, type[Benchmark]] = {}
"""The benchmarks of files that this process was given, by name."""


class PluginWarning(UserWarning):
    """A plug-in cannot be used."""


class Backend(NamedTuple):
    target: str
    """`module:class`"""
    named: bool
    """Whether the spec carries a name after the colon."""
    about: str


BACKENDS: dict[str, Backend] = {
    "embedded": Backend(
        "evenkeel.models.embedded:Embedded", False, "SmolLM2-135M-Instruct, bundled: generate, log-likelihood"
    ),
    "embedded-embedder": Backend(
        "evenkeel.models.embedded:EmbeddedEmbedder", False, "all-MiniLM-L6-v2, bundled: embed"
    ),
    "hf": Backend(
        "evenkeel.models.hf:HuggingFace", True, "any causal model of transformers: generate, log-likelihood"
    ),
    "openai": Backend(
        "evenkeel.models.openai.backend:OpenAI",
        True,
        "any OpenAI-compatible server: generate, log-likelihood, embed",
    ),
    "sbert": Backend(
        "evenkeel.models.sbert:SentenceTransformer", True, "any model of sentence-transformers: embed, rank"
    ),
    "replay": Backend(
        "evenkeel.models.replay:Replay", True, "answers recorded earlier: generate, log-likelihood"
    ),
}


# Benchmarks


def benchmark_names() -> list[str]:
    """Every benchmark that can be named: built in, of plug-ins, of files that a person named."""
    plugins = _entry_points("evenkeel.benchmarks")
    return list(dict.fromkeys([*BENCHMARKS, *plugins, *_named_files(), *_LOADED]))


def usable_benchmarks() -> Iterator[tuple[str, type[Benchmark]]]:
    """Each benchmark with its class; a plug-in that cannot be loaded is named in a warning."""
    for name in benchmark_names():
        try:
            yield name, benchmark_class(name)
        except UsageError as error:
            warnings.warn(str(error), PluginWarning, stacklevel=2)


def benchmark_class(name: str) -> type[Benchmark]:
    """The class of a benchmark by its name, which a stored run may give: it is never read as a path."""
    if name in BENCHMARKS:
        return _as_benchmark(name, _load(BENCHMARKS[name]))
    if name in _LOADED:
        return _LOADED[name]
    if name in (files := _named_files()):
        return _from_file(files[name])
    if name in (plugins := _entry_points("evenkeel.benchmarks")):
        return _as_benchmark(name, _load_plugin(plugins[name]))
    available = benchmark_names()
    raise UsageError(
        f"unknown benchmark '{name}'.{suggestion(name, available)} Available: {', '.join(available)}. "
        f"Install the package that has another, or name its file: {FILES_VARIABLE}=path/to/benchmark.py."
    )


def chosen_class(text: str) -> type[Benchmark]:
    """The class of a benchmark that a person chose: by its name, or by the path of its Python file."""
    return _from_file(Path(text).resolve()) if text.endswith(".py") else benchmark_class(text)


def about(name: str) -> str:
    """What a benchmark asks, in one line."""
    return chosen_class(name).layout.question


def benchmark_name(name: str) -> str:
    """The name under which a run is stored: of a file, the file's."""
    return Path(name).stem if name.endswith(".py") else name


def load_benchmark(name: str, options: Mapping[str, Any] | Struct, *, seed: int = 0) -> Benchmark:
    """A benchmark that a person chose, with its options."""
    cls = chosen_class(name)
    if isinstance(options, Struct):
        if not isinstance(options, cls.Options):
            raise UsageError(
                f"{type(options).__name__} is not the options of '{name}': give {cls.Options.__name__}."
            )
        return cls(options, seed=seed)
    parsed = parse(cls.Options, options, of=f"the benchmark '{name}'", also=RUN_OPTIONS)
    return cls(parsed, seed=seed)


def load_stored(spec: RunSpec) -> Benchmark:
    """The benchmark of a stored run. Files that its options name are not read: the folder has all."""
    cls = benchmark_class(spec.benchmark)
    files = {option.name for option in describe(cls.Options) if option.file}
    options = {name: value for name, value in spec.options.items() if name not in files}
    return cls(parse(cls.Options, options, of=f"the benchmark '{spec.benchmark}'"), seed=spec.seed)


def sample_type(cls: type[Benchmark]) -> Any:
    return Sample[cls.Inputs]  # type: ignore[name-defined]


def record_type(cls: type[Benchmark]) -> Any:
    return Record[cls.Inputs, cls.Detail]  # type: ignore[name-defined]


def load_builder(name: str, options: Mapping[str, Any]) -> Builder:
    cls = chosen_class(name).builder()
    builder: Builder = cls(parse(cls.Options, options, of=f"building for '{name}'"))
    return builder


# Models


def backends() -> dict[str, Backend]:
    """Every backend by its scheme; those of plug-ins are loaded to be described."""
    known = dict(BACKENDS)
    for scheme, point in _entry_points("evenkeel.models").items():
        try:
            known.setdefault(scheme, _described(point))
        except UsageError as error:
            warnings.warn(str(error), PluginWarning, stacklevel=2)
    return known


def backend(scheme: str) -> Backend | None:
    """The backend of a scheme; None where there is none."""
    if scheme in BACKENDS:
        return BACKENDS[scheme]
    point = _entry_points("evenkeel.models").get(scheme)
    return _described(point) if point else None


def load_model(spec: str, **args: Any) -> Model:
    """The model that a spec names: `load_model("hf:path/to/model", dtype="bfloat16")`.

    model = ek.load_model("embedded")
    request = ek.Generate(prompt=(ek.Message("user", "Hello!"),), sampling=ek.Sampling(max_tokens=16))
    [(request, response)] = model.answer([request])
    model.close()
    """
    options = check_spec(spec, args)
    scheme, colon, name = spec.partition(":")
    cls = backend_class(scheme)
    model: Model = cls(name, options) if colon else cls(options)
    return model


def check_spec(spec: str, args: Mapping[str, Any]) -> Struct:
    """The backend's options for a spec and its arguments, or a UsageError that says what is known."""
    for text in (spec, *(f"{key}={value}" for key, value in args.items())):
        if not _is_unicode(text):
            shown = text.partition("=")[0].encode("ascii", "backslashreplace").decode()
            raise UsageError(f"'{shown}' is not valid UTF-8.")
    scheme, colon, name = spec.partition(":")
    entry = backend(scheme)
    if entry is None or bool(colon and name) != entry.named:
        known = backends()
        hint = "" if scheme in known else suggestion(scheme, known)
        forms = ", ".join(f"{scheme}:NAME" if entry.named else scheme for scheme, entry in known.items())
        raise UsageError(f"unknown model '{spec}'.{hint} Available: {forms}.")
    options: type[Struct] = backend_class(scheme).Options
    return parse(options, args, of=f"the model '{spec}'")


def open_model(ref: ModelRef, *, concurrency: int | None = None) -> Model:
    """`load_model` for a ref; the ceiling on requests at once goes to backends that have one."""
    args = dict(ref.args)
    scheme = ref.spec.partition(":")[0]
    if concurrency is not None and backend(scheme) and "concurrency" in option_names(scheme):
        args.setdefault("concurrency", concurrency)
    return load_model(ref.spec, **args)


def backend_class(scheme: str) -> Any:
    if scheme in BACKENDS:
        return _load(BACKENDS[scheme].target)
    return _load_plugin(_entry_points("evenkeel.models")[scheme])


def option_names(scheme: str) -> list[str]:
    return [option.name for option in describe(backend_class(scheme).Options)]


def tokenizer(spec: str) -> Callable[[str], list[int]]:
    """The tokenizer of a model without its weights: `embedded` or `hf:ID-or-path`.

    It gives the tokens of a text as the model would read it, a start token included where it has one.
    """
    scheme, _, name = spec.partition(":")
    entry = backend(scheme)
    make = getattr(backend_class(scheme), "tokenizer", None) if entry else None
    if entry is None or make is None or bool(name) != entry.named:
        raise UsageError(f"'{spec}' has no tokenizer that can be read alone: give embedded or hf:ID-or-path.")
    tokenise: Callable[[str], list[int]] = make(name)
    return tokenise


def token_counter(spec: str) -> TokenCounter:
    """Counts with the tokenizer of a model; a start token does not count."""
    tokenise = tokenizer(spec)
    start = len(tokenise(""))
    return TokenCounter(spec, lambda text: len(tokenise(text)) - start)


def parse_args(pairs: Iterable[str]) -> Mapping[str, str]:
    """`key=value` strings of the command line as a mapping."""
    args = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"'{key}' is not a model argument: write key=value.")
        args[key] = value
    return args


def _is_unicode(text: str) -> bool:
    """False where a command line's bytes were not UTF-8, so that Python keeps them as halves of pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# Loading


def _load(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


@cache
def _entry_points(group: str) -> dict[str, metadata.EntryPoint]:
    """The plug-ins of a group by name; what is built in, or was there first, keeps its name."""
    points: dict[str, metadata.EntryPoint] = {}
    for point in metadata.entry_points(group=group):
        if point.name in (*BENCHMARKS, *BACKENDS) or (
            point.name in points and points[point.name].value != point.value
        ):
            warnings.warn(
                f"{_origin(point)} is left out: the name '{point.name}' is taken.",
                PluginWarning,
                stacklevel=2,
            )
            continue
        points[point.name] = point
    return points


def _load_plugin(point: metadata.EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:  # whatever a stranger's module raises when it is imported
        raise UsageError(f"{_origin(point)} cannot be loaded: {place_of(error)}: {error}.") from error


def _origin(point: metadata.EntryPoint) -> str:
    package = f" of the package '{point.dist.name}'" if point.dist else ""
    return f"the plug-in '{point.name}' ({point.value}){package}"


def _described(point: metadata.EntryPoint) -> Backend:
    cls = _load_plugin(point)
    about = (cls.__doc__ or point.value).strip().partition("\n")[0]
    return Backend(point.value, getattr(cls, "named", True), about)


def _named_files() -> dict[str, Path]:
    """The files of EVENKEEL_BENCHMARKS by the names of their benchmarks."""
    paths = filter(None, os.environ.get(FILES_VARIABLE, "").split(os.pathsep))
    return {Path(path).stem: Path(path).resolve() for path in paths}


@cache
def _from_file(path: Path) -> type[Benchmark]:
    """The one benchmark that a Python file defines. The file is run, as a person asked for by naming it."""
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file.")
    name = f"evenkeel_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: this is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and msgspec look a class's module up
    try:
        spec.loader.exec_module(module)
    except EvenkeelError:
        raise
    except Exception as error:
        raise UsageError(f"{path} cannot be loaded: {place_of(error)}: {error}.") from error
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Benchmark) and value.__module__ == name
    ]
    if len(classes) != 1:
        names = ", ".join(cls.__name__ for cls in classes) or "none"
        raise UsageError(f"{path} must define one subclass of evenkeel.Benchmark; it defines: {names}.")
    _LOADED[path.stem] = _as_benchmark(str(path), classes[0])
    return classes[0]


def _as_benchmark(name: str, cls: Any) -> type[Benchmark]:
    if not (isinstance(cls, type) and issubclass(cls, Benchmark)):
        raise UsageError(f"'{name}' is not a benchmark: {cls!r} is not a subclass of evenkeel.Benchmark.")
    missing = [
        member
        for member in ("Options", "roles", "metrics", "samples", "requests", "score")
        if getattr(cls, member, None) in (None, getattr(Benchmark, member, None))
        and not _set_later(cls, member)
    ]
    if missing:
        raise UsageError(f"the benchmark '{name}' ({cls.__name__}) lacks: {', '.join(missing)}.")
    return cls


def _set_later(cls: type[Benchmark], member: str) -> bool:
    """`roles` may depend on the options, and is set when a benchmark is made."""
    return member == "roles" and "__init__" in vars(cls)
