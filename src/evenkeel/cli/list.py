"""`evenkeel list benchmarks|models|runs`."""

from __future__ import annotations

from pathlib import Path

import click


@click.group(name="list")
def command() -> None:
    """List benchmarks, models and runs."""


@command.command()
def benchmarks() -> None:
    """What can be run."""
    from evenkeel.benchmarks import BENCHMARKS

    for name, entry in BENCHMARKS.items():
        click.echo(f"{name:<10} {entry.about}")


@command.command()
def models() -> None:
    """The kinds of model, each with the arguments that --model-arg takes."""
    from evenkeel.models import BACKENDS, backend_class
    from evenkeel.options import describe

    for scheme, backend in BACKENDS.items():
        click.echo(f"{scheme}:NAME" if backend.named else scheme)
        click.echo(f"    {backend.about}")
        for option in describe(backend_class(scheme).Options):
            click.echo(f"    {option.name:<18} {option.description}")


@command.command()
@click.argument("folder", default="runs", type=click.Path(file_okay=False))
def runs(folder: str) -> None:
    """The runs below FOLDER: when, what, which model, the headline and its coverage."""
    from evenkeel.errors import EvenkeelError
    from evenkeel.report.text import interval, share, value, visible
    from evenkeel.store import load_run

    found = sorted(path.parent for path in Path(folder).rglob("spec.json"))
    if not found:
        click.echo(f"no runs below {folder}", err=True)
    for path in found:
        try:
            run = load_run(path)
            spec = run.spec
            outcome = "not finished"
            if (path / "summary.json").is_file():
                figure = run.headline
                outcome = f"{value(figure)} {interval(figure, short=True)} coverage {share(figure.coverage)}"
        except EvenkeelError as error:
            click.echo(f"{path}: {error}", err=True)
            continue
        made, model = spec.provenance["created"][:16], visible(spec.subject)
        click.echo(f"{made}  {spec.benchmark:<9} {model:<28} {outcome:<34} {path}")
