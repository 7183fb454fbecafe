"""`evenkeel demo`: the main job on the embedded models, over a slice that takes about a minute."""

from __future__ import annotations

from typing import Any

import click

from evenkeel.cli import options

SLICES: dict[str, dict[str, Any]] = {
    "mirae": {"lang": "en", "limit": 4, "levels": "1-4", "samples": 3, "max_tokens": 48}
}


@click.command(name="demo")
@options.min_coverage
@click.pass_context
def command(ctx: click.Context, min_coverage: float) -> None:
    """Try it: a small run on the embedded models, with a report."""
    from evenkeel import api
    from evenkeel.cli.outcome import show
    from evenkeel.cli.progress import Watcher

    code = 0
    for benchmark, settings in SLICES.items():
        run = api.run(benchmark, model="embedded", progress=Watcher(), **settings)
        code = max(code, show(run, min_coverage=min_coverage, as_json=False))
    ctx.exit(code)
