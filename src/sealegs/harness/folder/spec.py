"""A run's spec, as it is read from its folder. It may come from a stranger: its shape is checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from sealegs.errors import DataError, UsageError, listed
from sealegs.files.jsonfile import convert, depth, read_json
from sealegs.harness.folder.layout import run_file
from sealegs.harness.registry import benchmark_class, benchmark_names, current_names
from sealegs.options import describe, parse
from sealegs.types import RunSpec, to_jsonable

FORMAT = 2
DEEPEST_SPEC_LEVELS = 8
"""Levels of lists and objects in a spec."""


class _SpecModel(Struct):
    name: str
    spec: str
    identity: dict[str, Any]


class _SpecSource(Struct):
    source: str = ""
    sha256: list[str] = []


class _Provenance(Struct):
    created: str = ""
    sealegs: str = ""
    python: str = ""
    platform: str = ""
    packages: dict[str, str] = {}
    notes: dict[str, list[str]] = {}
    refused: dict[str, list[str]] = {}
    servers: dict[str, list[str]] = {}
    samples: int = 0
    records_bytes: int = 0
    exported: list[str] = []


class _Parts(Struct):
    """What is read of those parts of a spec that may hold more."""

    models: dict[str, _SpecModel]
    data: _SpecSource
    provenance: _Provenance


def spec_file(folder: Path) -> Path:
    """The spec of a run, or an error that says that the folder is none."""
    if (path := run_file(folder, "spec.json")) is None:
        if not folder.exists():
            raise DataError(folder, "there is no such folder.")
        inside = sorted(path.parent.name for path in folder.glob("*/spec.json"))
        runs = (
            f" Give one of the runs in it: {listed(str(folder / name) for name in inside)}." if inside else ""
        )
        raise DataError(folder, f"this is not a run's folder: it has no spec.json.{runs}")
    return path


def read_spec(folder: Path) -> RunSpec:
    """A run's spec, if it is of the format that this version writes and has its shape."""
    path = spec_file(folder)
    raw = read_json(path)
    if not isinstance(raw, dict) or depth(raw) > DEEPEST_SPEC_LEVELS:
        raise DataError(path, "this is not the spec of a run.")
    version = raw.get("format")
    if type(version) is not int or version != FORMAT:
        raise DataError(
            path,
            f"the run has format {shown(version)}; this Sealegs reads format {FORMAT}. "
            "Use the Sealegs that made it.",
        )
    spec: RunSpec = convert(path, raw, RunSpec)
    convert(path, raw, _Parts)
    spec = msgspec.structs.replace(spec, options=current_names(spec.benchmark, spec.options))
    _check_options(path, spec)
    return spec


def _check_options(path: Path, spec: RunSpec) -> None:
    """Values of the types that the benchmark's options have. What is not known here is only shown."""
    if spec.benchmark not in benchmark_names():
        return
    kind = benchmark_class(spec.benchmark).Options
    names = {option.name for option in describe(kind)}
    options = {name: value for name, value in spec.options.items() if name in names and value is not None}
    try:
        parse(kind, options, of=f"the benchmark '{spec.benchmark}'")
    except UsageError as error:
        raise DataError(path, str(error), where="options") from None


def spec_changes(stored: RunSpec, current: RunSpec) -> dict[str, tuple[Any, Any]]:
    """What two specs ask differently, by name; provenance does not count."""
    old, new = (_flat({**to_jsonable(spec), "provenance": None}) for spec in (stored, current))
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return {name: (old.get(name), new.get(name)) for name in names}


def refused_settings(spec: RunSpec) -> list[str]:
    """The settings that the server of the model under test refused: they were not sent."""
    refused: dict[str, list[str]] = spec.provenance.get("refused", {})
    return refused.get("model", [])


def served_at(spec: RunSpec) -> dict[str, list[str]]:
    """By role: the addresses at which its model was reached, where it is on a server."""
    servers: dict[str, list[str]] = spec.provenance.get("servers", {})
    return servers


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {k: v for name, part in value.items() for k, v in _flat(part, f"{prefix}{name}.").items()}
    return {prefix.rstrip("."): value}


def shown(value: Any) -> str:
    """A value of a spec in a message."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 80 else f"{text[:77]}..."
