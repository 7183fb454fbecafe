"""What the form of a new run holds: read from it, or filled from an earlier run.

Addresses, variables of keys, specs of models and methods decide where a key goes. They are typed or chosen in
the form, or come from a run that this person started; never from an address, nor from a folder of a stranger.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct
from multidict import MultiMapping

from sealegs.api.launch import ProcessTask, own_process
from sealegs.api.run import RUN_ARGUMENTS, run
from sealegs.api.setup import parse_data
from sealegs.app import fields
from sealegs.app.settings import AppSettings
from sealegs.errors import UsageError
from sealegs.harness.folder import Run
from sealegs.harness.registry import benchmark_class, benchmark_names
from sealegs.models.presets import NO_KEY, presets
from sealegs.models.registry import split_spec
from sealegs.options import describe

SIZES = {"5": "Quick: 5 {}", "50": "Standard: 50 {}", "": "Full: all"}
"""As a form sends them, with words for what a benchmark counts."""
WORDS = ("starter", "published")
"""Data that is not a file."""
SERVER_EXAMPLE = "http://127.0.0.1:8000/v1"
ADDRESS = re.compile(r"https?://[^\s/]+(/\S*)?")
LANGUAGES = re.compile(r"[a-z_, -]{0,100}")
DEFAULTS = {name: signature(run).parameters[name].default for name in RUN_ARGUMENTS}
AMOUNTS = {name: fields.title(name) for name in ("price_in", "price_out", "max_usd")}


class RunRequest(Struct, frozen=True, kw_only=True):
    """What a form asks for: the arguments of `sealegs.run`."""

    benchmark: str
    model: str | None
    data: str
    limit: int | None
    lang: str
    seed: int
    options: dict[str, Any]
    amounts: dict[str, float]

    @property
    def sources(self) -> list[str]:
        """Each path or name of data."""
        return self.data.split(fields.SEPARATOR)

    @property
    def arguments(self) -> dict[str, Any]:
        given = {
            "model": self.model,
            "data": self.sources,
            "limit": self.limit,
            "lang": self.lang or None,
            "seed": self.seed or None,
        }
        return {name: value for name, value in given.items() if value is not None} | (
            self.options | self.amounts
        )


# Read from a form


def chosen_of(settings: AppSettings, form: MultiMapping[Any]) -> RunRequest:
    name = str(form.get("benchmark", ""))
    if name not in benchmark_names():
        raise UsageError(f"{name!r} is not a benchmark. Available: {', '.join(benchmark_names())}.")
    benchmark = benchmark_class(name)

    return RunRequest(
        benchmark=name,
        model=_model(settings, form) if benchmark.subjects.tag == "model" else None,
        data=fields.file_of(settings, form, "data") or "starter",
        limit=_whole(form, "size", "Size"),
        lang=str(form.get("lang", "")).strip(),
        seed=_whole(form, "seed", "Seed") or 0,
        options=fields.options_of(benchmark.Options, settings, form),
        amounts={
            key: fields.number(text, float, title)
            for key, title in AMOUNTS.items()
            if (text := _text(form, key))
        },
    )


def _text(form: MultiMapping[Any], name: str) -> str:
    return str(form.get(name, "")).strip()


def _whole(form: MultiMapping[Any], name: str, title: str) -> int | None:
    text = _text(form, name)
    return fields.number(text, int, title) if text else None


def _model(settings: AppSettings, form: MultiMapping[Any]) -> str:
    """The spec of the model that was chosen."""
    source = str(form.get("source", "embedded"))
    if source == "embedded":
        return "embedded"
    if source == "folder":
        folders = settings.model_folders()
        if (folder := str(form.get("folder", ""))) not in folders:
            raise UsageError("choose a folder of models.")
        return f"hf:{folders[folder]}"
    name = _text(form, "name")
    if not name or "?" in name:  # arguments could send the key to another server
        raise UsageError("give the name of the model, without a '?'.")
    if source in presets():
        return presets()[source].spec(name)
    address, variable = _text(form, "address"), str(form.get("variable", NO_KEY))
    if re.search(r"[@?#]", address):
        raise UsageError("the address must not contain a password or a key: set it in a variable.")
    if not ADDRESS.fullmatch(address):
        raise UsageError(f"{address!r} is not an address. Example: {SERVER_EXAMPLE}")
    return f"openai:{name}?{urlencode({'base_url': address, 'api_key_env': variable})}"


# Filled from an earlier run


class Filled(Struct, frozen=True, kw_only=True):
    """What a form begins with."""

    benchmark: str = ""
    values: dict[str, str] = {}
    options: dict[str, Any] = {}
    note: str = ""
    """What could not be taken over."""


def from_address(settings: AppSettings, query: Mapping[str, str]) -> Filled:
    """What a link may fill in: the benchmark, a data set of this app, the size and the languages."""
    data, size, lang = (query.get(name, "") for name in ("data", "size", "lang"))
    values = {
        "data": data if data in (*WORDS, *settings.data_sets()) else "",
        "size": size if size.isascii() and size.isdigit() else "",
        "lang": lang if LANGUAGES.fullmatch(lang) else "",
    }
    values = {name: text for name, text in values.items() if text}
    return Filled(benchmark=query.get("benchmark", ""), values=values)


def from_run(settings: AppSettings, like: Run) -> Filled:
    """Benchmark, data and sizes of a run; its models and methods where this person started it."""
    spec, process = like.spec, own_process(like.path)
    if process is not None and process.kind == "run" and process.task.benchmark == spec.benchmark:
        return _from_task(settings, process.task)
    source = str(spec.data.get("source", ""))
    values = {
        "data": source if source in WORDS else "",
        "size": "" if spec.limit is None else str(spec.limit),
        "lang": ",".join(map(str, spec.data.get("lang") or ())),
        "seed": str(spec.seed) if spec.seed else "",
    }
    kept = fields.harmless(benchmark_class(spec.benchmark).Options, spec.options)
    missing = [
        fields.title(name) for name, value in spec.options.items() if value is not None and name not in kept
    ]
    missing += [] if values["data"] else ["Data"]
    note = f"You did not start this run on this machine: choose {', '.join(missing)}." if missing else ""
    return Filled(benchmark=spec.benchmark, values=values, options=kept, note=note)


def _from_task(settings: AppSettings, task: ProcessTask) -> Filled:
    given, lang = task.settings, task.settings.get("lang") or ""
    names = {str(path): name for name, path in settings.data_sets().items()}
    paths = [
        str(path) if source not in WORDS and (path := Path(task.directory, source)).exists() else source
        for source in parse_data(given.get("data") or "starter")
    ]
    values = {
        "data": fields.SEPARATOR.join(names.get(path, path) for path in paths),
        "size": str(given.get("limit") or ""),
        "lang": lang if isinstance(lang, str) else ",".join(lang),
        "seed": str(given.get("seed") or ""),
        **{name: f"{given[name]:g}" for name in AMOUNTS if given.get(name)},
        **_from_spec(settings, str(given.get("model") or ""), given.get("base_url")),
    }
    known = {option.name for option in describe(benchmark_class(task.benchmark).Options)}
    options = {name: value for name, value in given.items() if name in known}
    left_out = [
        fields.title(name)
        for name, value in given.items()
        if value
        and value != DEFAULTS.get(name, value)
        and name not in {*values, "limit", "model", "base_url"}
    ]
    note = f"Not in this form, and not taken over: {', '.join(left_out)}." if left_out else ""
    return Filled(benchmark=task.benchmark, values=values, options=options, note=note)


def _from_spec(settings: AppSettings, spec: str, base_url: Any) -> dict[str, str]:
    """A model's spec as fields; empty where the form cannot give it."""
    bare, args = split_spec(spec)
    scheme, _, name = bare.partition(":")
    address = str(args.get("base_url") or base_url or "")
    if bare == "embedded":
        return {"source": "embedded"}
    if scheme == "hf":
        folders = {str(path): folder for folder, path in settings.model_folders().items()}
        return {"source": "folder", "folder": folders[name]} if name in folders else {}
    if address:
        variable = str(args.get("api_key_env") or NO_KEY)
        return {"source": "server", "name": name, "address": address, "variable": variable}
    return {"source": scheme, "name": name} if scheme in presets() else {}
