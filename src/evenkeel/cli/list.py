"""`evenkeel list benchmarks|models|runs`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from evenkeel.cli import say
from evenkeel.cli.suggesting import SuggestingGroup
from evenkeel.types import Figure

if TYPE_CHECKING:
    from rich.table import Table


@click.group(cls=SuggestingGroup, name="list")
def command() -> None:
    """List benchmarks, models and runs."""


@command.command()
def benchmarks() -> None:
    """What can be run."""
    from evenkeel.run.registry import usable_benchmarks

    for name, cls in usable_benchmarks():
        click.echo(f"{name:<10} {cls.layout.question}")


@command.command()
def models() -> None:
    """The kinds of model, each with the arguments that --model-arg takes."""
    from evenkeel.options import describe
    from evenkeel.run.registry import backend_class, backends

    for scheme, backend in backends().items():
        click.echo(f"{scheme}:NAME" if backend.named else scheme)
        click.echo(f"    {backend.about}")
        for option in describe(backend_class(scheme).Options):
            click.echo(f"    {option.name:<18} {option.description}")


class Found(Struct, frozen=True, kw_only=True):
    """A run in a list. One that is not finished has no headline yet."""

    path: str
    benchmark: str
    model: str
    created: str
    metric: str = ""
    headline: Figure | None = None
    """Without a value where there are several subjects."""
    subjects: dict[str, Figure] = {}
    """The headline of each subject, where several can be set side by side."""


@command.command(epilog="\b\nExamples:\n  evenkeel list runs\n  evenkeel list runs results --json")
@click.argument("folder", default="runs", type=click.Path(file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print the runs as JSON.")
def runs(folder: str, as_json: bool) -> None:
    """The runs below FOLDER, the newest first: when, what, which model, the headline and its coverage."""
    from rich.console import Console

    from evenkeel.cli.outcome import print_json
    from evenkeel.report.terminal import show_table

    found = find_runs(Path(folder))
    if as_json:
        print_json(found)
    elif found:
        show_table(Console(), _table(found))
    else:
        say(f"no runs below {folder}", err=True)


def find_runs(folder: Path) -> list[Found]:
    """The runs below a folder, the newest first. What looks like one and cannot be read is told on stderr."""
    from evenkeel.errors import EvenkeelError, place_of

    found = []
    for path in sorted(spec.parent for spec in folder.rglob("spec.json")):
        try:
            found.append(_found(path))
        except Exception as error:  # noqa: BLE001  # a folder may hold anything; the others are still listed
            told = isinstance(error, EvenkeelError | OSError)
            problem = error if told else f"{path} is not as Evenkeel writes it ({place_of(error)})."
            say(f"left out: {problem}", err=True)
    return sorted(found, key=lambda run: run.created, reverse=True)


def _found(path: Path) -> Found:
    from evenkeel.run.folder import load_run
    from evenkeel.run.registry import benchmark_class

    run = load_run(path)
    spec = run.spec
    finished = (path / "summary.json").is_file()
    return Found(
        path=str(path),
        benchmark=spec.benchmark,
        model=spec.subject,
        created=str(spec.provenance.get("created", "")),
        metric=benchmark_class(spec.benchmark).layout.headline if finished else "",
        headline=run.headline if finished else None,
        subjects=dict(zip(run.subjects, run.headlines.values(), strict=True))
        if finished and run.subjects
        else {},
    )


def _table(found: list[Found]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from evenkeel.page.examples import shortened
    from evenkeel.page.format import interval, share, value, visible

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in ("made (UTC)", "benchmark", "model", "headline", "coverage", "run"):
        table.add_column(name, justify="right" if name in ("headline", "coverage") else "left", no_wrap=True)
    for run in found:
        made = run.created[:16].replace("T", " ") or "–"
        outcome = [Text("not finished", style="yellow"), Text("–")]
        if (figure := run.headline) is not None:
            # One line for each subject.
            figures = list(run.subjects.values()) if len(run.subjects) > 1 else [figure]
            said = [f"{value(each)} {interval(each, short=True)}".rstrip() for each in figures]
            outcome = [Text("\n".join(said)), Text(share(figure.coverage))]
        subjects = list(run.subjects) or [run.model]
        model = "\n".join(visible(shortened(name, 60)).replace("\n", "␊") for name in subjects)
        names = [*(Text(visible(shortened(name, 60))) for name in (made, run.benchmark)), Text(model)]
        table.add_row(*names, *outcome, Text(visible(run.path)))
    return table
