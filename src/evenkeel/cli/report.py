"""`evenkeel report RUN…`: the HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from evenkeel.cli import say
from evenkeel.errors import UsageError


@click.command(
    name="report",
    epilog="\b\nExamples:\n  evenkeel report runs/mine\n  evenkeel report runs/a runs/b --out both.html",
)
@click.argument(
    "runs", nargs=-1, required=True, metavar="RUN…", type=click.Path(exists=True, file_okay=False)
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False),
    help="Where to write it.  [default: RUN/report.html; report.html for several]",
)
def command(runs: tuple[str, ...], out: str | None) -> None:
    """Write a run's HTML page again: one file, no script, nothing loaded from anywhere.

    With several runs of one benchmark, the first has the page and the others stand beside it.
    """
    from evenkeel.files.cache import write_whole
    from evenkeel.report.page import render
    from evenkeel.run.folder import load_run

    loaded = [load_run(run) for run in runs]
    if len({run.spec.benchmark for run in loaded}) > 1:
        raise UsageError("these runs are of different benchmarks: report them one by one.")
    target = Path(out or (Path(runs[0], "report.html") if len(runs) == 1 else "report.html"))
    write_whole(target, render(*loaded))
    say(f"Report: {target}")
