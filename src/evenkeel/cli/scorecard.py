"""`evenkeel scorecard RUN…`: a model's runs on one page."""

from __future__ import annotations

from pathlib import Path

import click

from evenkeel.cli import say

EPILOG = """\b
Examples:
  evenkeel scorecard runs/mirae runs/rgb runs/miron runs/multiview
  evenkeel scorecard runs/*/ --out runs/scorecard.html
  evenkeel scorecard runs/one-model runs/another --mixed
  evenkeel scorecard runs/*/ --json"""


@click.command(name="scorecard", epilog=EPILOG)
@click.argument(
    "runs", nargs=-1, required=True, metavar="RUN…", type=click.Path(exists=True, file_okay=False)
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the page.  [default: scorecard.html; with --json no page]",
)
@click.option("--mixed", is_flag=True, help="Runs of different models may stand on one page.")
@click.option("--json", "as_json", is_flag=True, help="Print the scorecard as JSON.")
def command(runs: tuple[str, ...], out: Path | None, mixed: bool, as_json: bool) -> None:
    """Put a model's runs on one page: each benchmark's headline with its interval and coverage.

    Runs of one benchmark stand side by side. There is no overall score: the figures measure different things.
    """
    from rich.console import Console

    from evenkeel.cli.outcome import print_json
    from evenkeel.files.cache import write_whole
    from evenkeel.report.scorecard import render, scorecard, show_scorecard
    from evenkeel.run.folder import load_run

    card = scorecard([load_run(run) for run in runs], mixed=mixed)
    if as_json:
        print_json(card)
    else:
        show_scorecard(Console(), card)
        out = out or Path("scorecard.html")
    if out:
        write_whole(out, render(card, out))
    if out and not as_json:
        say(f"Scorecard: {out}")
