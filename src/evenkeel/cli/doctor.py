"""`evenkeel doctor`: what is installed, what is missing, and the line that mends it."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from evenkeel.cli.checks import Diagnosis

MARKS = {"ok": ("✓", ""), "absent": ("–", "yellow"), "lacking": ("✗", "bold red")}


@click.command(name="doctor", epilog="\b\nExamples:\n  evenkeel doctor\n  evenkeel doctor --json")
@click.option("--json", "as_json", is_flag=True, help="Print all that was found as JSON.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Say what is installed and what is missing, and below each lack the line that mends it.

    Exits with 0 where the embedded models can be run, with 1 where they cannot. Of keys it says whether
    they are set, never what they are.
    """
    from rich.console import Console

    from evenkeel.cli.checks import diagnose
    from evenkeel.cli.outcome import print_json

    found = diagnose()
    if as_json:
        print_json(found)
    else:
        show(Console(), found)
    ctx.exit(0 if found.ready else 1)


def show(console: Console, found: Diagnosis) -> None:
    from rich.text import Text

    from evenkeel.page.format import visible

    def line(text: Text) -> None:
        console.print(text, highlight=False, soft_wrap=True)  # a line to copy must not be broken

    width = max(len(check.name) for check in found.checks)
    for part, checks in groupby(found.checks, key=lambda check: check.part):
        line(Text(part, style="bold"))
        for check in checks:
            mark, style = MARKS[check.state]
            line(Text.assemble("  ", (mark, style), f" {check.name:<{width}}  {visible(check.found)}"))
            if check.mend:
                line(Text(f"{'':<{width + 6}}{check.mend}", style="dim"))
    console.print()
    if found.ready:
        line(Text("The embedded models can be run: evenkeel demo"))
    else:
        line(Text("The embedded models cannot be run yet: mend what is marked ✗.", style="red"))
