"""`sealegs doctor`: what this machine has for Sealegs, what is missing, and the command that fixes it; with
`--model SPEC`, what a model can do."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from itertools import groupby
from typing import TYPE_CHECKING, Literal, TypeAlias

import click
from msgspec import Struct

import sealegs
from sealegs.cli import options
from sealegs.cli.options import examples, json_option
from sealegs.cli.output import say, say_prose
from sealegs.errors import MissingExtra, UsageError, first_line
from sealegs.page.format import as_json

if TYPE_CHECKING:
    from sealegs.api.trial import Trial

State: TypeAlias = Literal["ok", "absent", "missing"]
"""`absent` is optional; without what is `missing`, the embedded models do not run."""

MARKS = {"ok": "✓", "absent": "–", "not supported": "–", "unclear": "?", "missing": "✗", "failed": "✗"}
EMBEDDED = {"embedded": "hf", "embedded-embedder": "sbert"}
"""The embedded models, and the extra that each needs."""
EXTRAS = {
    "hf": "models of transformers, including the embedded one",
    "sbert": "embedders, including the embedded one",
    "words": "Chinese and Korean word splitting, for BM25",
    "frames": "Parquet files and data frames, with polars",
    "data": "data sets of the Hub, addresses and compressed files (--data)",
    "ray": "models on a Ray cluster: --engine ray",
}


class Diagnosis(Struct, frozen=True, kw_only=True):
    """One thing that was checked."""

    part: str
    name: str
    state: State = "ok"
    detail: str
    fix: str = ""
    """The command that fixes it, where something is missing."""


@click.command(
    name="doctor",
    epilog=examples(
        "sealegs doctor",
        "sealegs doctor --model groq:openai/gpt-oss-20b",
        "sealegs doctor --model openai:NAME --base-url http://127.0.0.1:8000/v1",
    ),
)
@click.option("--model", metavar="SPEC", help="Try this model out: see `sealegs list models`.")
@options.model_args_option
@options.base_url_option
@json_option("every check")
@click.pass_context
def doctor_command(
    ctx: click.Context, model: str | None, model_args: tuple[str, ...], base_url: str | None, json: bool
) -> None:
    """Show what is installed, and what is missing with the command that fixes it.

    Exits with 0 if the embedded models can be run, with 1 if not.

    With --model, a few small requests are sent to that model, one of each kind that a benchmark needs.
    Exits with 0 if it answers chats, with 1 if not, and with 3 if it is not reached.
    """
    if model is not None:
        ctx.exit(_try(model, model_args, base_url, json=json))
    if model_args or base_url:
        raise UsageError("--model-arg and --base-url go with --model SPEC.")
    checks = [*_system(), *_extras(), *_devices(), *_embedded()]
    ready = all(check.state != "missing" for check in checks)
    if json:
        click.echo(as_json({"ready": ready, "checks": checks}))
        ctx.exit(0 if ready else 1)
    for part, group in groupby(checks, key=lambda check: check.part):
        _show(part, list(group))
    if ready:
        say("No problems found. The embedded models can be run: sealegs demo")
    else:
        say("The embedded models cannot be run yet: fix what is marked ✗.")
    ctx.exit(0 if ready else 1)


def _try(model: str, model_args: Sequence[str], base_url: str | None, *, json: bool) -> int:
    """Show what a model can do, and which benchmarks that is enough for."""
    from sealegs.api.trial import MOST_REQUESTS, try_model
    from sealegs.models.registry import parse_args, split_spec

    name = split_spec(model)[0].rstrip(":")
    say(f"{name}: at most {MOST_REQUESTS} small requests are sent.", err=True)
    trial = try_model(model, model_args=parse_args(model_args), base_url=base_url)
    if json:
        click.echo(as_json(trial))
        return 0 if trial.enough else 1
    address = f" at {', '.join(trial.addresses)}" if trial.addresses else ""
    for title, trials in ((f"{trial.model}{address}", trial.trials), ("benchmarks", trial.benchmarks)):
        _show(title, trials)
    if trial.latency_s is not None:
        say(f"latency: {trial.latency_s:.2f} s (median)")
    for note in trial.notes:
        say(note)
    return 0 if trial.enough else 1


def _show(title: str, checks: Sequence[Diagnosis | Trial]) -> None:
    """A line for each, and below it the command that fixes it, if there is one."""
    say(title)
    width = max(len(check.name) for check in checks)
    for check in checks:
        line = f"  {MARKS[check.state]} {check.name:<{width}}  {check.detail or check.state}"
        say_prose(line, hanging=width + 6)
        if isinstance(check, Diagnosis) and check.fix:
            say(f"{'':<{width + 6}}{check.fix}")


def _system() -> Iterator[Diagnosis]:
    machine = f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores"
    yield Diagnosis(part="system", name="sealegs", detail=sealegs.__version__)
    yield Diagnosis(part="system", name="Python", detail=f"{platform.python_version()}, {sys.executable}")
    yield Diagnosis(part="system", name="platform", detail=machine)


def _extras() -> Iterator[Diagnosis]:
    """The packages that Sealegs's metadata require with each extra, and whether they fit."""
    from packaging.requirements import Requirement

    try:
        requirements = [Requirement(line) for line in metadata.requires("sealegs") or ()]
    except metadata.PackageNotFoundError:  # a source tree on the path
        return
    for extra, purpose in EXTRAS.items():
        versions, problems = [], []
        for package in requirements:
            marker = package.marker
            if marker is None or not marker.evaluate({"extra": extra}) or marker.evaluate({"extra": ""}):
                continue
            try:
                version = metadata.version(package.name)
            except metadata.PackageNotFoundError:
                problems.append(f"{package.name} not installed")
                continue
            versions.append(f"{package.name} {version}")
            if not package.specifier.contains(version, prereleases=True):
                problems.append(f"{package.name} {version}, not {package.specifier}")
        if problems:
            state: State = "missing" if extra in EMBEDDED.values() else "absent"
            detail, fix = f"{purpose}: {', '.join(problems)}", f'pip install "sealegs[{extra}]"'
            yield Diagnosis(part="extras", name=extra, state=state, detail=detail, fix=fix)
        else:
            yield Diagnosis(part="extras", name=extra, detail=", ".join(versions))


def _devices() -> Iterator[Diagnosis]:
    if importlib.util.find_spec("torch") is None:
        return  # reported among the extras
    from sealegs.models.local.devices import devices

    try:
        for name, detail in devices().items():
            yield Diagnosis(
                part="devices", name=name, state="absent" if name == "CUDA" else "ok", detail=detail
            )
    except (ImportError, OSError, RuntimeError) as error:  # another machine's build
        reason = first_line(error) or type(error).__name__
        detail, fix = f"cannot be loaded: {reason.rstrip('.')}", "pip install --force-reinstall torch"
        yield Diagnosis(part="devices", name="torch", state="missing", detail=detail, fix=fix)


def _embedded() -> Iterator[Diagnosis]:
    from sealegs.models.registry import BACKENDS, load_model

    for spec in EMBEDDED:
        try:
            load_model(spec).close()
            yield Diagnosis(part="embedded models", name=spec, detail=BACKENDS[spec].about)
        except MissingExtra as error:
            problem, _, fix = str(error).rpartition(" Run: ")
            yield Diagnosis(part="embedded models", name=spec, state="missing", detail=problem, fix=fix)
