"""`sealegs suite`: models × benchmarks from one file, and their leaderboards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sealegs.cli.options import examples, json_option
from sealegs.cli.output import print_result, say
from sealegs.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sealegs.api.suite.suite import PlannedCost
    from sealegs.page.grid import Content, Overview

DEFAULT = Path("suite.yaml")


@click.command(
    name="suite",
    epilog=examples(
        "sealegs suite --init",
        "sealegs suite suite.yaml --dry-run",
        "sealegs suite suite.yaml",
        "sealegs suite suite.yaml --only 'rgb-*' --only '*-mini'",
        "sealegs suite nightly.yaml --out runs/nightly --json",
    ),
)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="The suite's folder.  [default: runs/NAME beside the file]",
)
@click.option(
    "--only", multiple=True, metavar="PATTERN", help="Run only those whose name matches: 'rgb-*'; repeat."
)
@click.option(
    "--allow-host",
    "allow_hosts",
    multiple=True,
    metavar="HOST",
    help="Let the file send keys to this host; without it a key goes only to its own provider; repeat.",
)
@click.option("--dry-run", is_flag=True, help="List the runs, their requests and their cost; ask nothing.")
@click.option("--init", is_flag=True, help="Write a commented FILE to begin with.  [default: suite.yaml]")
@json_option("the outcome, or with --dry-run the plan,")
@click.pass_context
def suite_command(
    ctx: click.Context, /, file: Path | None, dry_run: bool, init: bool, json: bool, **settings: Any
) -> None:
    """Run each benchmark of FILE on each of its models, and rank the models.

    The same command resumes where it stopped: nothing that was answered is asked again. Runs of different
    servers go side by side, those of one server or of this machine one after the other. A run that fails
    stops no other. The leaderboards are in the suite's folder: leaderboard.html and leaderboard.md.

    Exit codes: 0 done, 1 a run, a coverage or the gate failed, 2 wrong usage, 3 no model was reached.
    """
    if init:
        _init(file or DEFAULT)
        return
    if file is None:
        raise UsageError("give the suite's file; `sealegs suite --init` writes one to begin with.")
    from sealegs.api.suite.suite import plan_suite, suite

    if dry_run:
        costs = plan_suite(file, **settings)
        print_result(costs, _plan(costs), json=json)
        return
    from sealegs.report.suite import MARKDOWN, PAGE

    result = suite(file, **settings)
    print_result(result, json=json)
    if not json:
        for name in (PAGE, MARKDOWN):
            say(Path(result.path) / name)
    ctx.exit(result.exit_code)


def _init(path: Path) -> None:
    from sealegs.api.suite.definition import example
    from sealegs.files.cache import write_whole

    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} exists already: give another name.")
    write_whole(path, example())
    say(f"Suite: {path}")
    say(f"Run it: sealegs suite {path}")


def _plan(costs: Sequence[PlannedCost]) -> Overview:
    """A row for each run, and what those that are not finished cost together."""
    from sealegs.page.format import nouns
    from sealegs.page.grid import Grid, Overview

    rows: list[tuple[str, list[Content]]] = []
    for cost in costs:
        plan = cost.plan
        counts = [
            f"{sum(by_kind.values()):,}" for by_kind in (plan.requests, plan.tokens_in, plan.tokens_out)
        ]
        usd = "–" if plan.usd is None else f"${plan.usd:,.2f}"
        rows.append((cost.name, [cost.state, ", ".join(cost.servers) or "–", *counts, usd]))
    columns = ["state", "where", "requests", "tokens in", "tokens out", "cost"]
    left = [cost.plan.usd for cost in costs if cost.state != "finished"]
    known = [usd for usd in left if usd is not None]
    total = f"at most ${sum(known):,.2f}" if known else "cost unknown: no prices given"
    if known and len(left) > len(known):
        total += f", plus {nouns(len(left) - len(known), 'runs')} without prices"
    return Overview(
        f"{len(left)} of {nouns(len(costs), 'runs')} not finished: {total}.",
        [f"Key: {key}." for key in dict.fromkeys(key for cost in costs for key in cost.plan.keys)],
        [Grid("", "run", columns, rows, left=3)],
        ["Tokens and costs are estimated; every answer is counted at its full length."],
        warnings=[f"{cost.name} would not begin: {cost.plan.problem}" for cost in costs if cost.plan.problem],
    )
