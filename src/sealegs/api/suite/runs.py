"""The runs of a suite: each benchmark with each of its options on each model, checked before any begins."""

from __future__ import annotations

import hashlib
import re
import urllib.parse
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from sealegs.api.launch import ProcessTask, refuse_keys
from sealegs.api.run import RUN_ARGUMENTS
from sealegs.api.setup import model_refs, parse_data, parse_langs
from sealegs.api.suite.definition import BenchmarkEntry, ModelEntry, Scalar, SuiteFile, SuiteSettings
from sealegs.errors import UsageError, suggestion
from sealegs.files import configuration, datasets
from sealegs.files.cache import slug
from sealegs.files.remote.sources import HUB, is_elsewhere
from sealegs.harness.gate import RequestGate
from sealegs.harness.limits import Limits
from sealegs.harness.registry import benchmark_class, load_benchmark
from sealegs.models.presets import NO_KEY
from sealegs.models.prices import is_local, prices_by_role, thinking_by_role
from sealegs.models.registry import (
    backend,
    called_hosts,
    check_spec,
    runtime_options,
    split_spec,
    with_args,
)
from sealegs.options import describe
from sealegs.types import ModelRef

THIS_MACHINE = "this machine"
SMALL_MODEL = "embedded-embedder"
"""A model of this machine that takes next to no memory: runs that use it go side by side."""
CODE = "trust_remote_code"
PRICES = ("price_in", "price_out")
DATA_NAMES = ("starter", "published")
REMOTE = re.compile(r"(https?|s3|gs|gcs|az|abfss?|hf)://", re.IGNORECASE)
"""Addresses that lead to no file of this machine."""
RUNTIME = ("concurrency", *PRICES)
"""Settings that change nothing in what is asked."""


class PlannedRun(Struct, frozen=True, kw_only=True):
    """A run of a suite."""

    name: str
    """Also that of its folder."""
    model: str
    """The name of the model under test; empty where none is."""
    task: ProcessTask
    servers: frozenset[str]
    """What it keeps busy: the addresses of servers, this machine. Runs with one in common take turns."""
    gate: RequestGate
    """What counts its requests, and shares the suite's budget, unless all its models are on this machine."""
    in_child: bool
    """Whether it is a process of its own: it loads a model. One that also asks a server is not, where there
    is a budget, which is counted in one process."""
    step: int
    """Which of the file's benchmarks it is of."""


def planned_runs(
    file: SuiteFile, allowed: Collection[str] = (), budget: RequestGate | None = None
) -> list[PlannedRun]:
    """All runs of a suite, in the order of its benchmarks, then its models; `allowed` are hosts that any key
    may be sent to, `budget` is the gate of all runs together."""
    models = _models(file, allowed)
    runs: dict[str, PlannedRun] = {}

    @cache  # data may be far away
    def hashes(benchmark: str, langs: str, *data: str) -> list[str]:
        starter = benchmark_class(benchmark).starter
        files = datasets.find(benchmark, data, parse_langs(langs), starter=starter)
        return [each.sha256 for each in files]

    for step, raw in enumerate(file.definition.benchmarks):
        entry = BenchmarkEntry(benchmark=raw) if isinstance(raw, str) else raw
        for name in _models_of(file, step, entry, models):
            run = _planned(file, step, entry, name, models.get(name), hashes, allowed, budget)
            if (other := runs.setdefault(run.name.casefold(), run)) is not run:
                raise file.error(
                    f"two runs would be called '{run.name}': one of benchmark {other.step + 1} and one of "
                    f"benchmark {step + 1}. Give one of them a name: `name: …`",
                    "benchmarks",
                    step,
                )
    return list(runs.values())


def _models(file: SuiteFile, allowed: Collection[str]) -> dict[str, ModelEntry]:
    """The models by name."""
    models: dict[str, ModelEntry] = {}
    lines: dict[str, int] = {}
    for step, entry in enumerate(file.definition.models):
        model = ModelEntry(spec=entry) if isinstance(entry, str) else entry
        ref = _ref(model)
        with file.located("models", step):
            bare, _ = split_spec(with_args(ref.spec, ref.args))  # which refuses keys and passwords
            _check(ref, allowed)
        name = model.name or bare.rpartition(":")[2].rstrip("/").rpartition("/")[2] or bare
        if (line := lines.get(slug(name).casefold())) is not None:
            raise file.error(
                f"the model is called '{name}' like that of line {line}: give one of them a name: `name: …`",
                "models",
                step,
            )
        lines[slug(name).casefold()] = file.document.line(("models", step))
        models[name] = model
    return models


def _ref(model: ModelEntry) -> ModelRef:
    args = {key: _text(value) for key, value in model.args.items()}
    return ModelRef(model.spec, args if model.base_url is None else {"base_url": model.base_url, **args})


def _models_of(
    file: SuiteFile, step: int, entry: BenchmarkEntry, models: Mapping[str, ModelEntry]
) -> Sequence[str]:
    """The names of the models that a benchmark is run on; an empty one, for one that takes none."""
    with file.located("benchmarks", step):
        if entry.benchmark.endswith(".py"):
            raise UsageError(
                f"'{entry.benchmark}': a suite runs no Python file. Install the benchmark, or name its file "
                "in the environment: SEALEGS_BENCHMARKS=path/to/benchmark.py"
            )
        roles = getattr(benchmark_class(entry.benchmark), "roles", None)
        roles = roles or load_benchmark(entry.benchmark, {}).roles
    if "model" not in roles and not any(mark in str(entry.options) for mark in ("{model}", "{name}")):
        if entry.models:
            raise file.error(
                f"{entry.benchmark} is run on no model here: leave out `models`, or write {{model}} in an "
                "option",
                "benchmarks", step, "models",
            )  # fmt: skip
        return [""]
    if not models:
        raise file.error(f"{entry.benchmark} needs a model: `models: […]`", "benchmarks", step)
    for position, name in enumerate(entry.models or ()):
        if name not in models:
            raise file.error(
                f"there is no model '{name}'.{suggestion(name, models)} Available: {', '.join(models)}",
                "benchmarks", step, "models", position,
            )  # fmt: skip
    return list(models) if entry.models is None else entry.models


def _planned(
    file: SuiteFile,
    step: int,
    entry: BenchmarkEntry,
    name: str,
    model: ModelEntry | None,
    hashes: Callable[..., list[str]],
    allowed: Collection[str],
    budget: RequestGate | None,
) -> PlannedRun:
    definition, benchmark = file.definition, entry.benchmark
    settings = _merged([definition.defaults, entry, model])
    with file.located("benchmarks", step):
        data = settings["data"] = [_data(file, each) for each in parse_data(settings.get("data", "starter"))]
        options = _options(file, entry, name, model)
        loaded = load_benchmark(benchmark, options, seed=settings.get("seed", 0), also=RUN_ARGUMENTS)
        refs = model_refs(loaded, benchmark)
        if model is not None and "model" in loaded.roles:
            refs["model"] = ref = _ref(model)
            settings |= {"model": ref.spec, "model_args": ref.args}
        for each in refs.values():
            _check(each, allowed)
        if is_free := all(map(is_local, refs.values())):
            settings = {key: value for key, value in settings.items() if key not in PRICES}
        limits = Limits.of(None, None, *(settings.get(each) for each in PRICES))
        prices, unpriced = prices_by_role(limits, refs, loaded.roles)
        settings |= options
        refuse_keys(settings)
        langs = parse_langs(settings.get("lang"))
        identity = _identity(benchmark, settings, hashes(benchmark, ",".join(langs or ()), *data))
    if definition.budget.usd is not None and unpriced:
        raise file.error(
            f"budget.usd needs the price of {', '.join(unpriced)}, which is not known: give price_in and "
            "price_out, dollars per million tokens",
            "budget", "usd",
        )  # fmt: skip
    if "model" in settings:
        settings["label"] = name
    title, servers = entry.name or benchmark, _servers(refs)
    shared = None if is_free else budget
    return PlannedRun(
        name=slug(f"{title}-{name}" if name else title),
        model=name,
        task=ProcessTask(
            kind="run",
            benchmark=benchmark,
            settings=settings,
            min_coverage=definition.min_coverage,
            identity=identity,
        ),
        servers=servers,
        gate=RequestGate(limits, prices, thinking_by_role(refs), shared=shared),
        in_child=THIS_MACHINE in servers and shared is None,
        step=step,
    )


def _merged(layers: list[SuiteSettings | None]) -> dict[str, Any]:
    """The settings of a run; of several values, the last that is given."""
    return {
        name: value
        for layer in layers
        if layer is not None
        for name in SuiteSettings.__struct_fields__
        if (value := getattr(layer, name)) is not None
    }


def _options(file: SuiteFile, entry: BenchmarkEntry, name: str, model: ModelEntry | None) -> dict[str, Any]:
    """A benchmark's options as the command line has them, with the model's spec and name in the place of
    {model} and {name}, and with paths that are relative to the file."""
    ref = _ref(model) if model is not None else None
    spec = with_args(ref.spec, ref.args) if ref is not None else "{model}"
    label = re.sub(r"[^\w .-]", "_", name) if ref is not None else "{name}"
    paths = {option.name for option in describe(benchmark_class(entry.benchmark).Options) if option.file}

    def fill(key: str, value: Scalar) -> str:
        text = _text(value).replace("{name}", label).replace("{model}", spec)
        return _path(file, text) if key in paths else text

    return {
        key: [fill(key, each) for each in value] if isinstance(value, list) else fill(key, value)
        for key, value in entry.options.items()
    }


def _data(file: SuiteFile, name: str) -> str:
    """The name of a data set or an address as it is; anything else is a path, and must be there."""
    if name in DATA_NAMES:
        return name
    if not is_elsewhere(name):
        return _path(file, name)
    path = Path(name.removeprefix(HUB).partition(":")[0])
    on_hub = not path.exists() and not path.is_absolute() and ".." not in path.parts
    if not (on_hub if name.startswith(HUB) else REMOTE.match(name) and "::" not in name):
        raise UsageError(
            f"'{name}': a suite's file names no such address: give https://…, or a path below it"
        )
    return name


def _path(file: SuiteFile, name: str) -> str:
    """A path of the suite's file that is there; what is not may be a name."""
    path = file.find(name) if name else None
    return str(path) if path is not None and path.exists() else name


def _text(value: Scalar) -> str:
    """A scalar as the command line has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _identity(benchmark: str, settings: Mapping[str, Any], hashes: list[str]) -> str:
    """A digest of all that decides what is asked."""
    spec = settings.get("model")
    runtime = runtime_options(split_spec(spec)[0].partition(":")[0]) if spec else {}
    deciding = {key: value for key, value in settings.items() if key not in (*RUNTIME, "data")}
    deciding["model_args"] = {
        key: value for key, value in settings.get("model_args", {}).items() if not runtime.get(key)
    }
    content = msgspec.json.encode([benchmark, hashes, deciding], order="deterministic")
    return hashlib.sha256(content).hexdigest()


def _check(ref: ModelRef, allowed: Collection[str]) -> None:
    """A file may come from anyone: it has no code run that comes with a model, and sends a key only to the
    provider whose key it is, or to a host that the person who runs it names."""
    check_spec(ref.spec, ref.args)
    bare, args = split_spec(ref.spec)
    if str({**ref.args, **args}.get(CODE, "false")).lower() not in ("false", "0", ""):
        raise UsageError(
            f"the model '{bare}': {CODE} cannot be set in a suite, whose file runs no code. Run the model by "
            "itself: sealegs run --model-arg"
        )
    hosts = {*allowed, *configuration.read_section("hosts")}
    for key in called_hosts(ref):
        if key.key and not key.belongs and not hosts & {key.host, key.host.rpartition(":")[0] or key.host}:
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
            busy |= {THIS_MACHINE} if scheme != SMALL_MODEL else set()
        elif role == "model" or "model" not in refs:
            address = str({**ref.args, **args}.get("base_url", ""))
            busy.add(urllib.parse.urlsplit(address).netloc or scheme)
    return frozenset(busy)
