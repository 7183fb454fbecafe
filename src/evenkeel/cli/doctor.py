"""`evenkeel doctor`: what this machine has for Evenkeel, what is missing, and the command that fixes it; with
`--model SPEC`, what a model can do."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import metadata
from itertools import groupby
from typing import TYPE_CHECKING, Literal, TypeAlias

import click
from msgspec import Struct

import evenkeel
from evenkeel.cli import options
from evenkeel.cli.options import examples, json_option
from evenkeel.cli.output import print_result, say
from evenkeel.errors import MissingExtra, UsageError, first_line
from evenkeel.page.format import visible
from evenkeel.page.grid import show_line

if TYPE_CHECKING:
    from packaging.requirements import Requirement
    from rich.console import Console

    from evenkeel.api.trial import ModelTrial

State: TypeAlias = Literal["ok", "absent", "missing"]
"""`absent` is optional; without what is `missing`, the embedded models do not run."""

MARKS = {
    "ok": ("✓", ""),
    "absent": ("–", "yellow"),
    "not supported": ("–", "yellow"),
    "unclear": ("?", "yellow"),
    "missing": ("✗", "bold red"),
    "failed": ("✗", "bold red"),
}
EMBEDDED = {"embedded": "hf", "embedded-embedder": "sbert"}
"""The embedded models, and the extra that each needs."""
EXTRAS = {
    "hf": "models of transformers, including the embedded one",
    "sbert": "embedders, including the embedded one",
    "words": "Chinese and Korean word splitting, for BM25",
    "frames": "Parquet files and data frames, with polars",
    "data": "data sets of the Hub, addresses and compressed files (--data)",
    "app": "the web app",
    "ray": "models on a Ray cluster: --engine ray",
}


class Check(Struct, frozen=True, kw_only=True):
    """One thing that was checked."""

    part: str
    name: str
    state: State = "ok"
    detail: str
    fix: str = ""
    """The command that fixes it, where something is missing."""


class Diagnosis(Struct, frozen=True, kw_only=True):
    """Everything that was checked, and whether the embedded models can be run."""

    ready: bool
    checks: list[Check]


@click.command(
    name="doctor",
    epilog=examples(
        "evenkeel doctor",
        "evenkeel doctor --all",
        "evenkeel doctor --model groq:openai/gpt-oss-20b",
        "evenkeel doctor --model openai:NAME --base-url http://127.0.0.1:8000/v1",
    ),
)
@click.option("--model", metavar="SPEC", help="Try this model out: see `evenkeel list models`.")
@options.model_args_option
@options.base_url_option
@click.option("--all", "everything", is_flag=True, help="Show everything that was checked.")
@json_option("every check")
@click.pass_context
def doctor_command(
    ctx: click.Context,
    model: str | None,
    model_args: tuple[str, ...],
    base_url: str | None,
    everything: bool,
    json: bool,
) -> None:
    """Show what is missing, each with the command that fixes it.

    Exits with 0 if the embedded models can be run, with 1 if not.

    With --model, a few small requests are sent to that model, one of each kind that a benchmark needs.
    Exits with 0 if it answers chats, with 1 if not, and with 3 if it is not reached.
    """
    if model is None and (model_args or base_url):
        raise UsageError("--model-arg and --base-url go with --model SPEC.")
    if model is None:
        diagnosis = diagnose()
        print_result(diagnosis, partial(show, everything=everything), json=json)
        ctx.exit(0 if diagnosis.ready else 1)
    from evenkeel.api.trial import MOST_REQUESTS, try_model
    from evenkeel.models.registry import parse_args, split_spec

    bare = split_spec(model)[0].rstrip(":")
    say(f"{bare}: at most {MOST_REQUESTS} small requests are sent.", err=True)
    trial = try_model(model, model_args=parse_args(model_args), base_url=base_url)
    print_result(trial, show_trial, json=json)
    ctx.exit(0 if trial.enough else 1)


def show_trial(console: Console, trial: ModelTrial) -> None:
    """What a model can do, and which benchmarks that is enough for."""
    where = f" at {', '.join(trial.addresses)}" if trial.addresses else ""
    for title, trials in ((f"{trial.model}{where}", trial.trials), ("benchmarks", trial.benchmarks)):
        _show_rows(
            console, title, [(each.state, each.name, each.detail or each.state, "") for each in trials]
        )
    if trial.latency_s is not None:
        show_line(console, f"latency: {trial.latency_s:.2f} s (median)")
    for note in trial.notes:
        show_line(console, note, "yellow")


def show(console: Console, diagnosis: Diagnosis, *, everything: bool = False) -> None:
    """The problems and how to fix them, or every check."""
    shown = [check for check in diagnosis.checks if everything or check.state == "missing"]
    for part, checks in groupby(shown, key=lambda check: check.part):
        _show_rows(console, part, [(check.state, check.name, check.detail, check.fix) for check in checks])
    if diagnosis.ready:
        show_line(console, "No problems found. The embedded models can be run: evenkeel demo")
    else:
        show_line(console, "The embedded models cannot be run yet: fix what is marked ✗.", "red")
    if not everything:
        show_line(console, "evenkeel doctor --all lists everything that was checked.", "dim")


def _show_rows(console: Console, title: str, rows: Sequence[tuple[str, str, str, str]]) -> None:
    """A line for each state, name and detail, and below it the command that fixes it, if there is one."""
    from rich.text import Text

    show_line(console, title, "bold")
    width = max(len(name) for _, name, _, _ in rows)
    for state, name, detail, fix in rows:
        line = Text.assemble("  ", MARKS[state], f" {name:<{width}}  {visible(detail)}")
        console.print(line, highlight=False, soft_wrap=True)
        if fix:
            show_line(console, f"{'':<{width + 6}}{fix}", "dim")  # not broken: it is to be copied


def diagnose() -> Diagnosis:
    """Check everything. Nothing is fetched and no weights are read; torch is loaded, if it is installed."""
    parts = (_system, _extras, _devices, _embedded)
    checks = [check for part in parts for check in part()]
    return Diagnosis(ready=all(check.state != "missing" for check in checks), checks=checks)


def _system() -> Iterator[Check]:
    machine = f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores"
    yield Check(part="system", name="evenkeel", detail=evenkeel.__version__)
    yield Check(part="system", name="Python", detail=f"{platform.python_version()}, {sys.executable}")
    yield Check(part="system", name="platform", detail=machine)


def _extras() -> Iterator[Check]:
    for extra, purpose in EXTRAS.items():
        packages = _requirements(extra)
        problems = [f"{package.name} {problem}" for package in packages if (problem := _problem(package))]
        if problems:
            state: State = "missing" if extra in EMBEDDED.values() else "absent"
            detail, fix = f"{purpose}: {', '.join(problems)}", f'pip install "evenkeel-bench[{extra}]"'
            yield Check(part="extras", name=extra, state=state, detail=detail, fix=fix)
        elif packages:
            versions = ", ".join(f"{package.name} {metadata.version(package.name)}" for package in packages)
            yield Check(part="extras", name=extra, detail=versions)


def _requirements(extra: str) -> list[Requirement]:
    """The packages that Evenkeel's metadata require with an extra alone."""
    from packaging.requirements import Requirement

    def required(package: Requirement, extra: str) -> bool:
        return package.marker is None or package.marker.evaluate({"extra": extra})

    try:
        packages = [Requirement(line) for line in metadata.requires("evenkeel-bench") or ()]
    except metadata.PackageNotFoundError:
        return []
    return [p for p in packages if required(p, extra) and not required(p, "")]


def _problem(package: Requirement) -> str:
    """Why the installed package cannot be used; empty if it can."""
    try:
        version = metadata.version(package.name)
    except metadata.PackageNotFoundError:
        return "not installed"
    fits = package.specifier.contains(version, prereleases=True)
    return "" if fits else f"{version}, not {package.specifier}"


def _devices() -> Iterator[Check]:
    if importlib.util.find_spec("torch") is None:
        return  # reported among the extras
    from evenkeel.models.local.devices import devices

    try:
        for name, detail in devices().items():
            yield Check(part="devices", name=name, state="absent" if name == "CUDA" else "ok", detail=detail)
    except (ImportError, OSError, RuntimeError) as error:  # another machine's build
        reason = first_line(error) or type(error).__name__
        detail, fix = f"cannot be loaded: {reason.rstrip('.')}", "pip install --force-reinstall torch"
        yield Check(part="devices", name="torch", state="missing", detail=detail, fix=fix)


def _embedded() -> Iterator[Check]:
    from evenkeel.models.registry import BACKENDS, load_model

    for spec in EMBEDDED:
        try:
            load_model(spec).close()
            yield Check(part="embedded models", name=spec, detail=BACKENDS[spec].about)
        except MissingExtra as error:
            problem, _, fix = str(error).rpartition(" Run: ")
            yield Check(part="embedded models", name=spec, state="missing", detail=problem, fix=fix)
