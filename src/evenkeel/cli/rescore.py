"""`evenkeel rescore RUN`: score stored answers again."""

from __future__ import annotations

import click

from evenkeel.cli import options


@click.command(name="rescore", epilog="\b\nExample:\n  evenkeel rescore runs/20261115-180400-mirae-embedded")
@click.argument("run", type=click.Path(exists=True, file_okay=False))
@options.min_coverage
@options.as_json
@click.pass_context
def command(ctx: click.Context, run: str, min_coverage: float, as_json: bool) -> None:
    """Score a run's stored answers again, in place; nothing is asked that was answered before."""
    from evenkeel import api
    from evenkeel.cli.outcome import show
    from evenkeel.cli.progress import Watcher

    ctx.exit(show(api.rescore(run, progress=Watcher()), min_coverage=min_coverage, as_json=as_json))
