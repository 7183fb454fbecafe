"""Set a run up: models opened and tried out, samples read, and the spec of what is asked."""

from __future__ import annotations

import contextlib
import platform
import subprocess
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, get_origin

import msgspec
from msgspec import Struct

import sealegs
from sealegs.errors import CapabilityError, DataError, MissingExtra, SealegsError, UsageError, place_of
from sealegs.files import datasets
from sealegs.files.cache import storage_errors
from sealegs.files.remote.sources import HUB, naming_source, parse_columns
from sealegs.harness.benchmark import Benchmark, degraded, helper_specs, inputs_type, subject_models
from sealegs.harness.data import ChosenSamples, Data
from sealegs.harness.declarations import check_layout, check_tags
from sealegs.harness.folder.layout import STARTED, is_unused
from sealegs.harness.folder.spec import FORMAT, read_spec, served_at
from sealegs.harness.gate import RequestGate
from sealegs.harness.limits import Limits
from sealegs.harness.model import Model, ServedModel, SupportsPromptLogprobs, addresses_of
from sealegs.harness.progress import Progress, watch
from sealegs.harness.registry import benchmark_name, load_benchmark
from sealegs.make.builder import Builder
from sealegs.models.engines.engine import Engine
from sealegs.models.prices import prices_by_role, require_prices, shown_prices, thinking_by_role
from sealegs.models.registry import on_server, preset_of, split_spec
from sealegs.options import identity_options
from sealegs.types import LogLikelihood, ModelRef, RunSpec, Sample, to_jsonable

ABILITIES = {
    "loglikelihood": "give log-likelihoods",
    "stringlikelihood": "give the probability of a string, as models on this machine can (hf:, embedded)",
}
"""The words for a capability whose name is not a verb."""
ASSIGNED_GATE: ContextVar[RequestGate | None] = ContextVar("assigned_gate", default=None)
"""The gate of the run that this thread executes, where it shares limits with others."""
EXAMPLES = 3
"""Texts of each language that a server is tried out with."""


class Setup(Struct, frozen=True):
    """A run that is ready to begin: nothing was asked yet, no model is loaded."""

    benchmark: Benchmark
    spec: RunSpec
    samples: list[Sample]
    models: dict[str, Model]
    untried: bool = False
    """Whether what its models can do is known from an earlier start, which may have asked other servers."""


def prepare(
    engine: Engine,
    benchmark: Benchmark,
    name: str,
    refs: Mapping[str, ModelRef],
    *,
    data: str | Path | Sequence[str | Path],
    column: Mapping[str, str] | Sequence[str],
    lang: str | Sequence[str] | None,
    limit: int | None,
    label: str | None,
    gate: RequestGate,
    path: Path,
    fresh: bool,
    progress: Progress,
) -> Setup:
    """Open the models, read the samples, try out what the models must be able to do, which may ask them; not
    again where the run was begun in its folder, whose spec says what they can. In a new folder the settings
    are stored before: a run that is killed then can be resumed."""
    if "model" in benchmark.roles and "model" not in refs:
        raise UsageError(f"{name} needs a model to ask: --model SPEC; `sealegs list models` lists them.")

    def set_up(benchmark: Benchmark) -> Setup:
        needed = {role: ref for role, ref in refs.items() if role in benchmark.roles}
        models = open_models(engine, benchmark, name, needed)
        samples, source = read_samples(benchmark, name, data, lang, limit, column)
        spec = make_spec(name, benchmark, models, source, limit=limit, label=label)
        return Setup(benchmark, spec, samples, models)

    stored = read_spec(path) if not fresh and (path / "spec.json").exists() else None
    less = degraded(benchmark, {"loglikelihood"})
    if stored is not None and less is not None and stored.options == _options(less, stored.data):
        benchmark = less
    while True:
        try:
            setup = set_up(benchmark)
            if stored is not None:  # where it is another run, its folder says what differs
                return msgspec.structs.replace(setup, untried=not _has_tried(stored, setup.spec))
            with storage_errors(path / STARTED):
                if is_unused(path):
                    path.mkdir(parents=True, exist_ok=True)
                    progress.began(path)
            try_out(setup.benchmark, setup.models, setup.samples, progress, gate)
        except CapabilityError as error:
            less = degraded(benchmark, error.lacking)
            if less is None:
                raise
            progress.note(f"{error} The run continues without.")
            benchmark = less
        else:
            return setup


def _has_tried(stored: RunSpec, spec: RunSpec) -> bool:
    """Whether an earlier start has tried out all servers of a run. One of several may have been away."""
    servers = served_at(spec)
    return served_at(stored) == servers and all(len(addresses) == 1 for addresses in servers.values())


def opener(
    setup: Setup, models: Mapping[str, Model], progress: Progress, gate: RequestGate
) -> Callable[[str], Model]:
    """Gives the model of a role when something is left to ask it, tried out first where that is due: the
    tries count in the run's journal, which is open by then."""

    @cache
    def opened(role: str) -> Model:
        if setup.untried:
            try_out(setup.benchmark, {role: setup.models[role]}, setup.samples, progress, gate)
        return models[role]

    return opened


def try_out(
    benchmark: Benchmark,
    models: Mapping[str, Model],
    samples: Sequence[Sample],
    progress: Progress,
    gate: RequestGate,
) -> None:
    """Have models show that they can do what their roles need, in the languages of the data, too."""
    probe(benchmark, models, progress, gate)
    _probe_languages(benchmark, models, samples)


def probe(
    benchmark: Benchmark | Builder, models: Mapping[str, Model], progress: Progress, gate: RequestGate
) -> None:
    """Have every model probed for what its role needs; the tries count in the run's budget."""
    for role, model in models.items():
        watch(model, progress)
        if isinstance(model, ServedModel):
            model.count_with(gate, role)
        model.probe(frozenset(benchmark.roles[role]))


def _probe_languages(benchmark: Benchmark, models: Mapping[str, Model], samples: Sequence[Sample]) -> None:
    """Try out log-probabilities on a few texts of each language in the data, where a server gives them."""
    examples: defaultdict[str, defaultdict[str, list[LogLikelihood]]] = defaultdict(lambda: defaultdict(list))
    servers = {role: model for role, model in models.items() if isinstance(model, SupportsPromptLogprobs)}
    for sample in samples if any("loglikelihood" in benchmark.roles[role] for role in servers) else ():
        lang = str(sample.tags.get("lang", "the data"))
        if len(examples["model"][lang]) < EXAMPLES:
            for request in benchmark.requests(sample):
                if isinstance(request, LogLikelihood):
                    examples[request.role][lang].append(request)
    for role, model in servers.items():
        if examples[role]:
            model.probe_logprobs(examples[role])


def with_sampling(
    model: str | None, args: Mapping[str, Any] | None, top_p: float | None, top_k: int | None
) -> dict[str, Any]:
    """The arguments of a model with the run's sampling, which is options of its backend."""
    sampling = {"top_p": top_p, "top_k": top_k} if model else {}
    return {**(args or {}), **{name: value for name, value in sampling.items() if value is not None}}


def model_refs(
    benchmark: Benchmark | Builder,
    name: str,
    model: str | None = None,
    args: Mapping[str, Any] | None = None,
    base_url: str | None = None,
) -> dict[str, ModelRef]:
    """The models of all roles, by name. Arguments without a model under test are for the one helper there
    is."""
    helpers = helper_specs(benchmark) if isinstance(benchmark, Benchmark) else benchmark.helpers
    refs = {role: ModelRef(spec) for role, spec in helpers.items() if role != "model"}
    if model:
        if "model" not in benchmark.roles:
            raise UsageError(f"{name} takes no --model: see `sealegs run {name} --help`.")
        refs = {"model": ModelRef(model, dict(args or {})), **refs}
    elif args:
        if len(refs) != 1:
            raise UsageError("--model-arg goes with one model, and here there is none, or several.")
        refs = {role: ModelRef(helper.spec, dict(args)) for role, helper in refs.items()}
    return with_base_url(refs, base_url)


def open_models(
    engine: Engine, benchmark: Benchmark | Builder, name: str, refs: Mapping[str, ModelRef]
) -> dict[str, Model]:
    """The models of all roles, refused here if one cannot do what its role needs. Loads none of them."""
    models = {}
    for role, ref in refs.items():
        try:
            models[role] = engine.open(ref)
        except MissingExtra as error:
            if role != "model" and ":" not in role:  # the option of its name says who has a role
                error.add_note(f"Or ask a server for it: --{role} openai:NAME.")
            raise
        lacking = frozenset(benchmark.roles[role] - models[role].capabilities)
        if lacking:
            offers = ", ".join(sorted(models[role].capabilities)) or "nothing"
            needs = " and ".join(ABILITIES.get(capability, capability) for capability in sorted(lacking))
            raise CapabilityError(
                f"the {role} of {name} must be able to {needs}; '{ref.spec}' offers: {offers}.",
                lacking=lacking,
            )
    return models


def gate_for(
    limits: Limits,
    refs: Mapping[str, ModelRef],
    benchmark: Benchmark | Builder,
    progress: Progress,
    *,
    batched: Collection[str] = (),
) -> RequestGate:
    """A run's gate with the price of each model; an error where a limit in dollars could not be kept."""
    prices, unknown = prices_by_role(limits, refs, benchmark.roles, batched=batched)
    require_prices(limits, unknown)
    if limits.max_usd is not None and (lines := shown_prices(prices, refs)):
        progress.note(f"--max-usd counts, in dollars per million tokens: {'; '.join(lines)}.")
    return RequestGate(limits, prices, thinking_by_role(refs))


def data_problem(benchmark: str | Path, data: str | Path) -> str:
    """Why a benchmark cannot read a file or folder of data; empty where it can."""
    problem = ""
    for lang in (None, "en"):  # a file that does not state its language takes the one that is asked for
        try:
            read_samples(load_benchmark(benchmark, {}), benchmark_name(benchmark), data, lang, 1)
        except DataError as error:
            problem = problem or str(error)
        except UsageError:
            return ""  # the data can be read; what is chosen of it has to be another
        else:
            return ""
    return problem


@naming_source()
def read_samples(
    benchmark: Benchmark,
    name: str,
    data: str | Path | Sequence[str | Path],
    lang: str | Sequence[str] | None,
    limit: int | None,
    column: Mapping[str, str] | Sequence[str] = (),
) -> tuple[list[Sample], dict[str, Any]]:
    """The samples of all that `--data` names, and what the spec says of it."""
    if limit is not None and limit < 1:
        raise UsageError(f"--limit {limit}: must be at least 1.")
    chosen, langs, columns = parse_data(data), parse_langs(lang), parse_columns(column)
    shown = " --data ".join(chosen)
    listed = datasets.find(name, chosen, langs, starter=benchmark.starter, columns=columns)
    files = Data(listed, langs=langs, limit=limit)
    try:
        read = benchmark.samples(files)
        samples = read if isinstance(read, ChosenSamples) else files.choose(list(read))
    except (SealegsError, MemoryError):
        raise
    except Exception as error:
        raise DataError(shown, f"{name} cannot read this data: {place_of(error)}: {error}.") from error
    check_samples(benchmark, samples, shown)
    sources = dict.fromkeys(map(_kind_of_source, chosen))
    hashes = [file.sha256 for file in files]
    facts = samples.facts | ({"columns": columns} if columns else {})
    return samples, {"source": " and ".join(sources), "sha256": hashes, "lang": langs, **facts}


def parse_data(data: str | Path | Sequence[str | Path]) -> list[str]:
    """One path or name of data, or several."""
    several = [data] if isinstance(data, str | Path) else list(data)
    if not several:
        raise UsageError("--data: give at least one path, 'starter' or 'published'.")
    return [str(each) for each in several]


def parse_langs(lang: str | Sequence[str] | None) -> list[str] | None:
    """`"en,ko"` or `["en", "ko"]` as a list; None is whatever the data has."""
    if lang is None:
        return None
    parts = lang.split(",") if isinstance(lang, str) else lang
    return list(dict.fromkeys(part.strip() for part in parts if part.strip())) or None


def _kind_of_source(data: str) -> str:
    """What the spec calls a value of `--data`: a data set by its name, anything else a file."""
    on_hub = data.startswith(HUB) and not Path(data.removeprefix(HUB).partition(":")[0]).exists()
    return data if data in ("starter", "published") or on_hub else "file"


def check_samples(benchmark: Benchmark, samples: Sequence[Sample], data: str) -> None:
    """Refuse samples that could not be stored or read again, before anything is asked."""
    if not samples:
        raise UsageError(f"--data {data} gives no samples.")
    declared = inputs_type(type(benchmark))
    kind = get_origin(declared) or declared
    seen: set[str] = set()
    for sample in samples:
        if not isinstance(sample, Sample) or not isinstance(sample.inputs, kind):
            raise UsageError(
                f"{type(benchmark).__name__}.samples must give samples whose inputs are {kind.__name__}, as "
                "its base class `Benchmark[…]` says."
            )
        if sample.id in seen:
            raise UsageError(f"--data {data}: the sample id '{sample.id}' appears twice. Ids must be unique.")
        seen.add(sample.id)
    check_tags(samples)
    check_layout(benchmark)


def make_spec(
    name: str,
    benchmark: Benchmark,
    models: Mapping[str, Model],
    source: dict[str, Any],
    *,
    limit: int | None = None,
    label: str | None = None,
) -> RunSpec:
    servers = {role: urls for role, model in models.items() if (urls := addresses_of(model))}
    return RunSpec(
        format=FORMAT,
        benchmark=name,
        options=_options(benchmark, source),
        models={role: _described(model.identity()) for role, model in models.items()},
        data=source,
        seed=benchmark.seed,
        limit=limit,
        provenance={**provenance(), "servers": servers},
        subjects=tuple(subject_models(benchmark))
        or (label or str(_described(models["model"].identity())["name"]),),
    )


def _options(benchmark: Benchmark, source: Mapping[str, Any]) -> dict[str, Any]:
    """The options that decide what is asked, as a spec has them."""
    asking = source.get("source") != "recorded"
    options: dict[str, Any] = to_jsonable(identity_options(benchmark.options, asking=asking))
    return options


def _described(identity: dict[str, Any]) -> dict[str, Any]:
    spec = identity["spec"]
    return {"name": identity.get("model") or model_name(spec), "spec": spec, "identity": identity}


def model_name(spec: str) -> str:
    return split_spec(spec)[0].partition(":")[2] or spec


def identities(spec: RunSpec) -> dict[str, dict[str, Any]]:
    return {role: model["identity"] for role, model in spec.models.items()}


def with_base_url(refs: Mapping[str, ModelRef], base_url: str | None) -> dict[str, ModelRef]:
    """The models with `--base-url`, as far as it is meant for them.

    It goes to those whose spec names no address: `openai:` and presets of local servers; to a provider's
    preset, which has an address of its own, only where there are no others.
    """
    if not base_url:
        return dict(refs)
    served = {role: preset_of(ref.spec) for role, ref in refs.items() if on_server(ref.spec)}
    if not served:
        raise UsageError("--base-url goes with a model on a server: --model openai:NAME, or a preset's name.")
    unplaced = [role for role in served if "base_url" not in split_spec(refs[role].spec)[1]]
    hosted = [role for role in unplaced if (preset := served[role]) is not None and preset.key]
    targets = [role for role in unplaced if role not in hosted] or hosted
    return {
        role: ModelRef(ref.spec, {"base_url": base_url, **ref.args}) if role in targets else ref
        for role, ref in refs.items()
    }


def provenance() -> dict[str, Any]:
    """Where and with what a run was made."""
    versions = {}
    for package in ("numpy", "torch", "transformers", "sentence-transformers"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return {
        "sealegs": sealegs.__version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": versions,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _commit() -> str | None:
    """The commit of Sealegs's own source, where it runs from a checkout."""
    root = Path(sealegs.__file__).parents[2]
    if not (root / ".git").exists():
        return None
    try:
        result = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
        )
    except OSError:  # no git on this machine
        return None
    return result.stdout.strip() or None
