"""The process that `ek.start`, `ek.start_build` or a suite began: it reads its settings from a file."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(name="started", hidden=True)
@click.argument("file", type=click.Path(path_type=Path))
@click.pass_context
def started_command(ctx: click.Context, file: Path) -> None:
    """Carry out what FILE says."""
    from evenkeel.api.launch import read_task
    from evenkeel.cli.data import build_and_show
    from evenkeel.cli.run import run_and_show

    task = read_task(file)
    if task.kind == "build":
        ctx.exit(build_and_show(task.benchmark, out=task.out, **task.settings))
    ctx.exit(run_and_show(task.benchmark, min_coverage=task.min_coverage, out=task.out, **task.settings))
