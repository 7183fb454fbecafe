"""`evenkeel rescore RUN`: score stored answers again."""

from __future__ import annotations

import click

from evenkeel.cli import options

EPILOG = """\b
Examples:
  evenkeel rescore runs/20261115-180400-mirae-embedded
  evenkeel rescore runs/mine --model openai:NAME --base-url http://127.0.0.1:8000/v1"""


@click.command(name="rescore", epilog=EPILOG)
@click.argument("run", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="SPEC",
    help="A model of the run (an embedder, a judge) that may be asked for what was never asked; repeat.",
)
@options.model_args
@options.base_url
@options.min_coverage
@options.as_json
@click.pass_context
def command(
    ctx: click.Context,
    run: str,
    models: tuple[str, ...],
    model_args: tuple[str, ...],
    base_url: str | None,
    min_coverage: float,
    as_json: bool,
) -> None:
    """Score a run's stored answers again, in place; nothing is asked that was answered before.

    Where scoring needs more than is stored, only the bundled models and those that you name with --model are
    asked: a run's folder may come from anyone, and does not choose whom this machine talks to.
    """
    from evenkeel import api
    from evenkeel.cli.outcome import show
    from evenkeel.report.progress import Watcher
    from evenkeel.run.registry import parse_args

    args = parse_args(model_args)
    scored = api.rescore(run, models=models, model_args=args, base_url=base_url, progress=Watcher())
    ctx.exit(show(scored, min_coverage=min_coverage, as_json=as_json))
