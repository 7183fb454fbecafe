"""What commands print: lines, errors, JSON, a finished run and the exit code of its coverage."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import click

from sealegs.page.format import as_json, escape_controls, share

if TYPE_CHECKING:
    from sealegs.harness.folder import Run
    from sealegs.page.grid import Overview

SCORED_REASONS = ("truncated", "truncated: length", "truncated: max_tokens")
"""Answers cut off by max-tokens are scored as far as they go, so they count as covered."""


def say(text: object, *, err: bool = False) -> None:
    """Print a line whose text may come from elsewhere: a server, a model, a file's name."""
    click.echo(escape_controls(str(text)), err=err)


def say_prose(text: str, *, hanging: int = 0) -> None:
    """Print a line, on a terminal broken between words at its width, with further lines indented by so much;
    a path stays whole."""
    if not sys.stdout.isatty():
        say(text)
        return
    width, indent = shutil.get_terminal_size().columns, " " * hanging
    for line in textwrap.wrap(
        escape_controls(text), width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ):
        click.echo(line)


def say_error(text: object) -> None:
    """Print `error: …` to stderr, in red unless NO_COLOR is set."""
    label = "error:" if os.environ.get("NO_COLOR") else click.style("error:", fg="red", bold=True)
    click.echo(f"{label} {escape_controls(str(text))}", err=True)


def print_result(value: Any, overview: Overview | None = None, *, json: bool) -> None:
    """Print a value as JSON, or an overview, by default its own."""
    if json:
        click.echo(as_json(value))
        return
    from rich.console import Console

    (overview or value.overview()).show(Console())


def show_run(run: Run, *, min_coverage: float, json: bool) -> int:
    """Print a run's tables, or its summary as JSON, and return the exit code."""
    if json:
        click.echo(as_json(run.summary))
        return check_coverage(run, min_coverage)
    from rich.console import Console

    from sealegs.report.describe import describe

    describe(run).overview(whole=True).show(Console())
    if (run.path / "report.html").is_file():
        say(f"Report: {run.path / 'report.html'}")
    return check_coverage(run, min_coverage)


def check_coverage(run: Run, floor: float) -> int:
    """1, with an error, where a coverage is below the floor or a file of the run could not be written."""
    from sealegs.harness.folder.layout import how_to_resume

    for problem in run.problems:
        say_error(f"{run.path}: {problem}")
    for metric, coverage in run.coverages.items():
        if coverage < floor:
            name = f"coverage of {metric}" if metric else "coverage"
            failures = run.failures()
            for reason in SCORED_REASONS:
                del failures[reason]
            reasons = ", ".join(f"{reason} ×{count:,}" for reason, count in failures.most_common(8))
            retry = f" Retry the errors with {how_to_resume(run.path)}."
            asked = run.spec.data.get("source") != "recorded"
            say_error(
                f"{name} {share(coverage)} is under the floor of {share(floor)} (--min-coverage): "
                f"{reasons or 'there are no answers'}."
                f"{retry if asked and any(reason.startswith('error') for reason in failures) else ''}"
            )
            return 1
    return 1 if run.problems else 0
