"""`evenkeel demo`: all four benchmarks on the embedded models, in slices of a minute or two on two cores."""

from __future__ import annotations

from typing import Any

import click

from evenkeel.cli import options, say
from evenkeel.run.registry import about

SLICES: dict[str, dict[str, Any]] = {
    "mirae": {"model": "embedded", "limit": 4, "levels": "1-3", "samples": 3, "max_tokens": 24},
    "rgb": {
        "model": "embedded",
        "limit": 4,
        "noise_rates": "0,0.6",
        "integration_rates": "0",
        "max_tokens": 24,
    },
    "miron": {"model": "embedded", "limit": 40},
    "multiview": {"method": ["bm25", "embed:embedded-embedder", "judge:embedded+logprobs"], "limit": 4},
}


@click.command(name="demo")
@options.min_coverage
@click.pass_context
def command(ctx: click.Context, min_coverage: float) -> None:
    """Try it: a small run of every benchmark on the embedded models, and one page for all."""
    from rich.console import Console

    from evenkeel import api
    from evenkeel.api.run import default_folder
    from evenkeel.cli.outcome import check_coverage
    from evenkeel.files.cache import write_whole
    from evenkeel.report.progress import Watcher
    from evenkeel.report.scorecard import render, scorecard, show_scorecard

    folder = default_folder("demo", "embedded")
    runs = []
    for name, settings in SLICES.items():
        click.echo(f"{name}: {about(name)}", err=True)
        runs.append(api.run(name, out=folder / name, progress=Watcher(), **settings))
    card, page = scorecard(runs), folder / "scorecard.html"
    write_whole(page, render(card, page))
    show_scorecard(Console(), card)
    click.echo("Small slices, so that the intervals are wide; the page leads to each benchmark's own report.")
    say(f"Report: {page}")
    ctx.exit(max(check_coverage(run, min_coverage) for run in runs))
