"""`evenkeel compare RUN RUN…`: differences with intervals."""

from __future__ import annotations

import click

EPILOG = """\b
Examples:
  evenkeel compare runs/yesterday runs/today
  evenkeel compare runs/a runs/b --metric mean_similarity --metric mean_similarity/lang=ko
  evenkeel compare runs/a runs/b runs/c
  evenkeel compare runs/a runs/b --json"""


@click.command(name="compare", epilog=EPILOG)
@click.argument(
    "runs", nargs=-1, required=True, metavar="RUN RUN…", type=click.Path(exists=True, file_okay=False)
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="A value of the samples, of some alone with a scope: NAME/lang=ko; repeat.",
)
@click.option(
    "--unpaired", is_flag=True, help="Compare runs that were asked different things, as unrelated samples."
)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
def command(runs: tuple[str, ...], metrics: tuple[str, ...], unpaired: bool, as_json: bool) -> None:
    """Set runs against each other: paired by sample on what both have, each difference with its interval.

    Two runs are compared by every metric that their benchmark shows (where methods are under test, by the
    headline of each that both have), more than two by its headline.
    """
    from rich.console import Console

    from evenkeel.analysis.comparability import Unpairable
    from evenkeel.analysis.comparison import compare
    from evenkeel.cli.outcome import print_json
    from evenkeel.report.comparison import show_comparison

    try:
        found = compare(*runs, metrics=metrics, unpaired=unpaired)
    except Unpairable as error:
        raise Unpairable(f"{error} To take them as unrelated samples: --unpaired.") from None
    if as_json:
        print_json(found)
    else:
        show_comparison(Console(), found)
