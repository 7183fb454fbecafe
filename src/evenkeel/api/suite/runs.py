"""The runs of a suite: each benchmark with each of its options on each model, checked before any begins."""

from __future__ import annotations

import contextlib
import hashlib
import re
import urllib.parse
from collections.abc import Collection, Iterator, Mapping
from typing import Any, get_origin

import msgspec
from msgspec import Struct

from evenkeel.api.launch import checked_settings
from evenkeel.api.setup import model_refs, parse_data, parse_langs
from evenkeel.api.suite.definition import (
    BenchmarkEntry,
    ModelEntry,
    Options,
    Settings,
    SuiteFile,
)
from evenkeel.errors import UsageError, suggestion
from evenkeel.files import configuration, datasets
from evenkeel.files.cache import slug
from evenkeel.harness.benchmark import Benchmark
from evenkeel.harness.limits import Limits
from evenkeel.harness.registry import benchmark_class, load_benchmark
from evenkeel.models.presets import NO_KEY
from evenkeel.models.prices import is_local, prices_by_role
from evenkeel.models.registry import (
    backend,
    check_spec,
    runtime_options,
    sent_keys,
    split_spec,
    with_args,
)
from evenkeel.options import Option, describe
from evenkeel.types import ModelRef

THIS_MACHINE = "this machine"
SMALL = "embedded-embedder"
"""A model of this machine that takes next to no memory: runs that use it go side by side."""
CODE = "trust_remote_code"
PRICES = ("price_in", "price_out")
RUNTIME = ("concurrency", *PRICES)
"""Settings that change nothing in what is asked."""


class PlannedRun(Struct, frozen=True, kw_only=True):
    """A run of a suite."""

    name: str
    """Also that of its folder."""
    benchmark: str
    model: str
    """The name of the model under test; empty where none is."""
    spec: str | None
    settings: dict[str, Any]
    """Those of `evenkeel.run`."""
    identity: str
    """A digest of all that decides what is asked."""
    servers: frozenset[str]
    """What it keeps busy: the addresses of servers, this machine. Runs with one in common take turns."""
    step: int
    """Which of the file's benchmarks it is of."""


class _Chosen(Struct, frozen=True):
    """A benchmark of the file with its options."""

    step: int
    entry: BenchmarkEntry
    cls: type[Benchmark]
    options: Options

    @property
    def on_models(self) -> bool:
        """Whether it is run on each model."""
        roles = getattr(self.cls, "roles", None) or load_benchmark(self.entry.benchmark, {}).roles
        return "model" in roles or any(
            "{model}" in text or "{name}" in text for value in self.options.values() for text in _texts(value)
        )


def planned_runs(file: SuiteFile, allowed: Collection[str] = ()) -> list[PlannedRun]:
    """All runs of a suite, in the order of its benchmarks, then its models; `allowed` are hosts that any key
    may be sent to."""
    models = _models(file, allowed)
    benchmarks = [_benchmark(file, step) for step in range(len(file.definition.benchmarks))]
    chosen = [(benchmark, *each) for benchmark in benchmarks for each in _models_for(file, benchmark, models)]
    by_name: dict[str, PlannedRun] = {}
    hashes: dict[str, list[str]] = {}
    for benchmark, name, model in chosen:
        run = _planned(file, benchmark, name, model, hashes, allowed)
        if (other := by_name.get(run.name.casefold())) is not None:
            raise file.error(
                f"two runs would be called '{run.name}': one of benchmark {other.step + 1} and one of "
                f"benchmark {run.step + 1}. Give one of them a name: `name: …`",
                "benchmarks",
                run.step,
            )
        by_name[run.name.casefold()] = run
    return list(by_name.values())


def _models(file: SuiteFile, allowed: Collection[str]) -> dict[str, tuple[int, ModelEntry]]:
    """The models by name, with their positions."""
    models: dict[str, tuple[int, ModelEntry]] = {}
    lines: dict[str, int] = {}
    for step, entry in enumerate(file.definition.models):
        model = ModelEntry(spec=entry) if isinstance(entry, str) else entry
        with _located(file, "models", step):
            args = _model_args(model)
            bare, _ = split_spec(with_args(model.spec, args))  # which refuses keys and passwords
            check_spec(model.spec, args)
            _refuse_foreign(ModelRef(model.spec, dict(args)), allowed)
        name = model.name or bare.rpartition(":")[2].rstrip("/").rpartition("/")[2] or bare
        if (line := lines.get(slug(name).casefold())) is not None:
            raise file.error(
                f"the model is called '{name}' like that of line {line}: give one of them a name: `name: …`",
                "models",
                step,
            )
        lines[slug(name).casefold()] = file.document.line(("models", step))
        models[name] = step, model
    return models


def _model_args(model: ModelEntry) -> dict[str, str]:
    args = {key: _text(value) for key, value in model.args.items()}
    return args if model.base_url is None else {"base_url": model.base_url, **args}


def _benchmark(file: SuiteFile, step: int) -> _Chosen:
    raw = file.definition.benchmarks[step]
    entry = BenchmarkEntry(benchmark=raw) if isinstance(raw, str) else raw
    with _located(file, "benchmarks", step):
        if entry.benchmark.endswith(".py"):
            raise UsageError(
                f"'{entry.benchmark}': a suite runs no Python file. Install the benchmark, or name its file "
                "in the environment: EVENKEEL_BENCHMARKS=path/to/benchmark.py"
            )
        cls = benchmark_class(entry.benchmark)
    known = {option.name: option for option in describe(cls.Options)}
    options = {name: _fitting(file, known.get(name), value) for name, value in entry.options.items()}
    return _Chosen(step, entry, cls, options)


def _fitting(file: SuiteFile, option: Option | None, value: Any) -> Any:
    """A value as its option takes it: a number that YAML reads where a text is wanted, a path of a file."""
    if option is None:
        return value  # which is refused later, with a suggestion
    if option.file and isinstance(value, str):
        return _path(file, value)
    if option.type is str and not isinstance(value, list):
        return _text(value)
    if get_origin(option.type) is tuple:
        return [_text(each) for each in (value if isinstance(value, list) else [value])]
    return value


def _path(file: SuiteFile, name: str) -> str:
    """A path relative to the suite's file; anything else is a name, and is left as it is."""
    path = file.folder / name
    return str(path) if name and path.exists() else name


def _models_for(
    file: SuiteFile, chosen: _Chosen, models: Mapping[str, tuple[int, ModelEntry]]
) -> Iterator[tuple[str, ModelEntry | None]]:
    """The models that a benchmark is run on; none at all, once, for one that takes none."""
    if not chosen.on_models:
        if chosen.entry.models:
            raise file.error(
                f"{chosen.entry.benchmark} is run on no model here: leave out `models`, or write {{model}} "
                "in an option",
                "benchmarks", chosen.step, "models",
            )  # fmt: skip
        yield "", None
        return
    if not models:
        raise file.error(f"{chosen.entry.benchmark} needs a model: `models: […]`", "benchmarks", chosen.step)
    names = list(models) if chosen.entry.models is None else chosen.entry.models
    for position, name in enumerate(names):
        if name not in models:
            raise file.error(
                f"there is no model '{name}'.{suggestion(name, models)} Available: {', '.join(models)}",
                "benchmarks", chosen.step, "models", position,
            )  # fmt: skip
        yield name, models[name][1]


def _planned(
    file: SuiteFile,
    chosen: _Chosen,
    name: str,
    model: ModelEntry | None,
    known_hashes: dict[str, list[str]],
    allowed: Collection[str],
) -> PlannedRun:
    definition, benchmark = file.definition, chosen.entry.benchmark
    title = chosen.entry.name or benchmark
    settings = _merged([definition.defaults, chosen.entry, model])
    data = settings["data"] = [_path(file, each) for each in parse_data(settings.get("data", "starter"))]
    options = _filled(chosen.options, name, model)
    with _located(file, "benchmarks", chosen.step):
        loaded = load_benchmark(benchmark, options, seed=settings.get("seed", 0))
        langs = parse_langs(settings.get("lang"))
        hashes = known_hashes.get(key := repr((benchmark, data, langs)))
        if hashes is None:
            files = datasets.find(benchmark, data, langs, starter=chosen.cls.starter)
            hashes = known_hashes[key] = [each.sha256 for each in files]
        under_test = model is not None and "model" in loaded.roles
        ref = ModelRef(model.spec, _model_args(model)) if model is not None and under_test else None
        refs = model_refs(loaded, benchmark, ref, None)
        for each in refs.values():
            check_spec(each.spec, each.args)
            _refuse_foreign(each, allowed)
        if all(map(is_local, refs.values())):
            settings = {key: value for key, value in settings.items() if key not in PRICES}
        prices = Limits.of(None, None, *(settings.get(each) for each in PRICES))
        unpriced = prices_by_role(prices, refs, loaded.roles)[1]
        settings |= options
        if ref is not None:
            settings["model_args"] = ref.args
        checked_settings(benchmark, ref.spec if ref else None, settings)
    if definition.budget.usd is not None and unpriced:
        raise file.error(
            f"budget.usd needs the price of {', '.join(unpriced)}, which is not known: give price_in and "
            "price_out, dollars per million tokens",
            "budget", "usd",
        )  # fmt: skip
    spec = ref.spec if ref else None
    label = {"label": model.name} if model is not None and model.name and spec else {}
    return PlannedRun(
        name=slug(f"{title}-{name}" if name else title),
        benchmark=benchmark,
        model=name,
        spec=spec,
        settings=settings | label,
        identity=_identity(benchmark, spec, settings, hashes),
        servers=_servers(refs),
        step=chosen.step,
    )


def _merged(layers: list[Settings | None]) -> dict[str, Any]:
    """The settings of a run; of several values, the last that is given."""
    return {
        name: value
        for layer in layers
        if layer is not None
        for name in Settings.__struct_fields__
        if (value := getattr(layer, name)) is not None
    }


def _filled(options: Options, name: str, model: ModelEntry | None) -> dict[str, Any]:
    """Options with the model's spec and name in the place of {model} and {name}."""
    if model is None:
        return dict(options)
    spec = with_args(model.spec, _model_args(model))
    label = re.sub(r"[^\w .-]", "_", name)

    def fill(value: Any) -> Any:
        if isinstance(value, list):
            return [fill(each) for each in value]
        return value.replace("{name}", label).replace("{model}", spec) if isinstance(value, str) else value

    return {key: fill(value) for key, value in options.items()}


def _identity(benchmark: str, spec: str | None, settings: Mapping[str, Any], hashes: list[str]) -> str:
    args = settings.get("model_args", {})
    runtime = runtime_options(split_spec(spec)[0].partition(":")[0]) if spec else {}
    deciding = {key: value for key, value in settings.items() if key not in (*RUNTIME, "data", "model_args")}
    deciding["model_args"] = {key: value for key, value in args.items() if not runtime.get(key)}
    content = msgspec.json.encode([benchmark, spec, hashes, deciding], order="deterministic")
    return hashlib.sha256(content).hexdigest()


def _refuse_foreign(ref: ModelRef, allowed: Collection[str]) -> None:
    """A file may come from anyone: it has no code run that comes with a model, and sends a key only to the
    provider whose key it is, or to a host that the person who runs it names."""
    bare, args = split_spec(ref.spec)
    if str({**ref.args, **args}.get(CODE, "false")).lower() not in ("false", "0", ""):
        raise UsageError(
            f"the model '{bare}': {CODE} cannot be set in a suite, whose file runs no code. Run the model by "
            "itself: evenkeel run --model-arg"
        )
    hosts = {*allowed, *configuration.read_section("hosts")}
    for key in sent_keys(ref):
        if not key.belongs and not hosts & {key.host, key.host.rpartition(":")[0] or key.host}:
            raise UsageError(
                f"the model '{bare}' would send {key.variable} to {key.host}, which a suite's file cannot "
                f'decide. To permit it: --allow-host {key.host}, or [hosts."{key.host}"] in '
                f"{configuration.config_path()}. To send no key: api_key_env={NO_KEY}"
            )


def _servers(refs: Mapping[str, ModelRef]) -> frozenset[str]:
    """The server of the model under test, or of all models where none is; and this machine, where one
    computes here."""
    busy: set[str] = set()
    for role, ref in refs.items():
        bare, args = split_spec(ref.spec)
        scheme = bare.partition(":")[0]
        entry = backend(scheme)
        if entry is not None and entry.computes:
            busy |= {THIS_MACHINE} if scheme != SMALL else set()
        elif role == "model" or "model" not in refs:
            address = str({**ref.args, **args}.get("base_url", ""))
            busy.add(urllib.parse.urlsplit(address).netloc or scheme)
    return frozenset(busy)


@contextlib.contextmanager
def _located(file: SuiteFile, *steps: str | int) -> Iterator[None]:
    """Have a usage error name the file and the line of the entry that it is about."""
    try:
        yield
    except UsageError as error:
        raise file.error(error.args[0], *steps) from None


def _texts(value: Any) -> list[str]:
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]


def _text(value: Any) -> str:
    """A scalar as the command line has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
