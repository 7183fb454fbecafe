"""What this machine has for Evenkeel, what it lacks, and the line that mends each lack."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from importlib import metadata
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

import evenkeel
from evenkeel.errors import MissingExtra
from evenkeel.files import datasets as data
from evenkeel.files.cache import cache_dir
from evenkeel.models.local.weights import first_line
from evenkeel.run.model import BACKENDS, load_model

if TYPE_CHECKING:
    from packaging.requirements import Requirement

State: TypeAlias = Literal["ok", "absent", "lacking"]
"""`absent` can be done without; without what is `lacking`, the embedded models do not run."""

EMBEDDED = ("embedded", "embedded-embedder")
EMBEDDED_NEED = ("hf", "sbert")
EXTRAS = {
    "hf": "models of transformers, the embedded one among them",
    "sbert": "embedders, the embedded one among them",
    "words": "words of Chinese and Korean, for BM25",
}
VARIABLES = {
    "OPENAI_API_KEY": "the key of a server that asks for one",
    "OPENAI_BASE_URL": "where openai: models are, unless --base-url says it",
    "HF_TOKEN": "for gated models of the Hugging Face Hub",
    "HF_HUB_OFFLINE": "1: load models from this machine alone",
    "EVENKEEL_CACHE": "the folder for fetched data and converted models",
    "EVENKEEL_MIRROR": "another host for published data, with the same paths",
    "EVENKEEL_TRACEBACK": "1: show the whole error where a run's folder is damaged",
    "NO_COLOR": "1: no colours",
}


class Check(Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    part: str
    name: str
    state: State = "ok"
    found: str
    mend: str = ""
    """The line that mends it, where something is missing."""


class Diagnosis(Struct, frozen=True, kw_only=True):
    """All that was looked at, and whether the embedded models can be run."""

    ready: bool
    checks: list[Check]


def diagnose() -> Diagnosis:
    """Look at everything. Nothing is fetched and no weights are read; torch is loaded, if it is there."""
    looks = (_system, _packages, _extras, _devices, _embedded, _cache, _published, _variables)
    checks = [check for look in looks for check in look()]
    return Diagnosis(ready=all(check.state != "lacking" for check in checks), checks=checks)


def _system() -> Iterator[Check]:
    yield Check(part="system", name="evenkeel", found=evenkeel.__version__)
    yield Check(part="system", name="Python", found=f"{platform.python_version()}, {sys.executable}")
    where = f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores"
    yield Check(part="system", name="platform", found=where)


def _packages() -> Iterator[Check]:
    wanted = _requirements()
    if not wanted:
        yield Check(
            part="packages", name="evenkeel", state="absent", mend="pip install .",
            found="not installed as a package, so what it needs cannot be told",
        )  # fmt: skip
    for package in wanted:
        version, problem = _version(package), _problem(package)
        yield Check(
            part="packages", name=package.name, state="lacking" if problem else "ok",
            found=problem or version or "", mend=f'pip install "{_line(package)}"' if problem else "",
        )  # fmt: skip


def _extras() -> Iterator[Check]:
    for extra, purpose in EXTRAS.items():
        wanted = _requirements(extra)
        problems = [f"{package.name} {problem}" for package in wanted if (problem := _problem(package))]
        if problems:
            yield Check(
                part="extras", name=extra, state="lacking" if extra in EMBEDDED_NEED else "absent",
                found=f"{purpose}: {', '.join(problems)}", mend=f'pip install "evenkeel[{extra}]"',
            )  # fmt: skip
        elif wanted:
            versions = ", ".join(f"{package.name} {_version(package)}" for package in wanted)
            yield Check(part="extras", name=extra, found=versions)


def _requirements(extra: str = "") -> list[Requirement]:
    """What Evenkeel's own metadata ask for: always, or with an extra alone."""
    from packaging.requirements import Requirement

    def asked(package: Requirement, extra: str) -> bool:
        return package.marker is None or package.marker.evaluate({"extra": extra})

    try:
        listed = [Requirement(line) for line in metadata.requires("evenkeel") or ()]
    except metadata.PackageNotFoundError:
        return []
    return [p for p in listed if asked(p, extra) and not (extra and asked(p, ""))]


def _version(package: Requirement) -> str | None:
    try:
        return metadata.version(package.name)
    except metadata.PackageNotFoundError:
        return None


def _problem(package: Requirement) -> str:
    """Why a package will not do; empty where it will."""
    version = _version(package)
    if version is None:
        return "not installed"
    return (
        "" if package.specifier.contains(version, prereleases=True) else f"{version}, not {package.specifier}"
    )


def _line(package: Requirement) -> str:
    extras = f"[{','.join(sorted(package.extras))}]" if package.extras else ""
    return f"{package.name}{extras}{package.specifier}"


def _devices() -> Iterator[Check]:
    if importlib.util.find_spec("torch") is None:
        return  # said among the extras
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            import torch

            gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
        except (
            ImportError,
            OSError,
            RuntimeError,
        ) as error:  # a build for another machine, a missing library
            yield Check(
                part="devices", name="torch", state="lacking", found=f"cannot be loaded: {first_line(error)}",
                mend="pip install --force-reinstall torch",
            )  # fmt: skip
            return
    yield Check(part="devices", name="CPU", found=f"{torch.get_num_threads()} threads")
    for number in range(gpus):
        gpu = torch.cuda.get_device_properties(number)
        yield Check(
            part="devices", name=f"CUDA {number}", found=f"{gpu.name}, {gpu.total_memory / 2**30:.0f} GiB"
        )
    if not gpus:
        why = next((f": {str(warning.message).splitlines()[0]}" for warning in said), "")
        yield Check(part="devices", name="CUDA", state="absent", found=f"none{why}")
    if torch.backends.mps.is_available():
        yield Check(part="devices", name="MPS", found="there")


def _embedded() -> Iterator[Check]:
    for spec in EMBEDDED:
        about = BACKENDS[spec].about
        try:
            load_model(spec).close()
            yield Check(part="embedded models", name=spec, found=about)
        except MissingExtra as error:
            problem, _, mend = str(error).rpartition(" Run: ")
            yield Check(part="embedded models", name=spec, state="lacking", found=problem, mend=mend)


def _cache() -> Iterator[Check]:
    folder = cache_dir()
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        yield Check(part="cache", name="folder", found=f"{folder}, {size / 1e6:,.0f} MB")
    else:
        yield Check(
            part="cache", name="folder", state="lacking", found=f"{folder} cannot be written",
            mend="export EVENKEEL_CACHE=a/folder/of/yours",
        )  # fmt: skip


def _published() -> Iterator[Check]:
    for name, published in data.published_sets().items():
        number = len(published.files)
        states = Counter(data.state(name, file) for file in published.files)
        whole = states["whole"] == number
        yield Check(
            part="published data", name=name, state="ok" if whole else "absent",
            found=", ".join(f"{count} of {number} files {state}" for state, count in sorted(states.items())),
            mend="" if whole else f"evenkeel data fetch {name}",
        )  # fmt: skip


def _variables() -> Iterator[Check]:
    """Whether they are set; never what they hold."""
    for name, purpose in VARIABLES.items():
        given = bool(os.environ.get(name))
        yield Check(
            part="environment", name=name, state="ok" if given else "absent",
            found="set" if given else "not set", mend="" if given else f"export {name}=…  # {purpose}",
        )  # fmt: skip
