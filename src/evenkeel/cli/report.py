"""`evenkeel report RUN`: the HTML page."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(name="report", epilog="\b\nExample:\n  evenkeel report runs/mine --out mine.html")
@click.argument("run", type=click.Path(exists=True, file_okay=False))
@click.option("--out", type=click.Path(dir_okay=False), help="Where to write it.  [default: RUN/report.html]")
def command(run: str, out: str | None) -> None:
    """Write a run's HTML page again: one file, no script, nothing loaded from anywhere."""
    from evenkeel.cache import replacing
    from evenkeel.report.page import render
    from evenkeel.store import load_run

    target = Path(out) if out else Path(run, "report.html")
    with replacing(target) as draft:
        draft.write_text(render(load_run(run)), encoding="utf-8")
    click.echo(f"Report: {target}")
