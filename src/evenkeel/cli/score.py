"""`evenkeel score BENCHMARK FILE…`: figures from answers that were recorded elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evenkeel.benchmarks import BENCHMARKS, benchmark_class
from evenkeel.cli import options

EPILOG = """\b
Examples:
  evenkeel score mirae MIRAE_claude_haiku_results_english.json --out runs/haiku
  evenkeel score mirae A.json B.json C.json"""


@click.command(name="score", epilog=EPILOG)
@click.argument("benchmark", type=click.Choice(list(BENCHMARKS)))
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=click.Path())
@click.option("--embedder", help="The model that turns answers into vectors.")
@options.lang
@options.base_url
@options.out
@options.fresh
@options.concurrency
@options.min_coverage
@options.as_json
@click.pass_context
def command(ctx: click.Context, /, benchmark: str, files: tuple[str, ...], **given: Any) -> None:
    """Score answers recorded elsewhere, in the published formats.

    Several files are scored one by one and shown side by side; with --out each has a folder below it.
    """
    ctx.exit(_score(benchmark, [Path(file) for file in files], **given))


def _score(
    benchmark: str,
    files: list[Path],
    *,
    embedder: str | None,
    out: str | None,
    resume: bool,
    min_coverage: float,
    as_json: bool,
    **given: Any,
) -> int:
    from rich.console import Console

    from evenkeel import api
    from evenkeel.cli.outcome import check_coverage, print_json, show
    from evenkeel.cli.progress import Watcher
    from evenkeel.report.terminal import show_side_by_side

    if embedder:
        given["embedder"] = embedder
    runs = []
    for file in files:
        folder = Path(out, file.stem) if out and len(files) > 1 else out
        runs.append(api.score(benchmark, file, out=folder, fresh=not resume, progress=Watcher(), **given))
    for file, run in zip(files, runs, strict=True):
        if (agreement := run.agreement()) is not None:
            click.echo(f"{file.name}: {agreement}", err=True)
    if len(runs) == 1:
        return show(runs[0], min_coverage=min_coverage, as_json=as_json)
    if as_json:
        print_json({str(run.path): run.summary for run in runs})
        return max(check_coverage(run, min_coverage) for run in runs)
    show_side_by_side(Console(), runs, benchmark_class(benchmark).layout)
    for run in runs:
        click.echo(f"Report: {run.path / 'report.html'}")
    return max(check_coverage(run, min_coverage) for run in runs)
