"""What a finished run prints, and the exit code it ends with."""

from __future__ import annotations

from typing import Any

import click
import msgspec
from rich.console import Console

from evenkeel.cli import say, say_error
from evenkeel.page.format import escaped_json, share
from evenkeel.report.notes import notes_of
from evenkeel.report.terminal import show_run
from evenkeel.run.folder import Run
from evenkeel.run.registry import benchmark_class

SCORED = frozenset({"truncated: length", "truncated: max_tokens"})


def show(run: Run, *, min_coverage: float, as_json: bool) -> int:
    """The tables (or the summary as JSON), where the report lies, and 1 where coverage is under the floor."""
    if as_json:
        print_json(run.summary)
    else:
        benchmark = benchmark_class(run.spec.benchmark)
        show_run(Console(), run, benchmark.layout, min_coverage=min_coverage, notes=notes_of(run))
        if (run.path / "report.html").is_file():
            say(f"Report: {run.path / 'report.html'}")
    return check_coverage(run, min_coverage)


def print_json(value: Any) -> None:
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    click.echo(escaped_json(text))


def check_coverage(run: Run, floor: float) -> int:
    """1 where the headline, or what a benchmark wants covered beside it, is under the floor,
    or a file of the run could not be written."""
    for problem in run.problems:
        say_error(f"{run.path}: {problem}")
    beside = getattr(benchmark_class(run.spec.benchmark), "covered", ())
    coverages = {"coverage": run.headline.coverage}
    coverages |= {f"coverage of {name}": run.summary[name].coverage for name in beside if name in run.summary}
    low = {name: coverage for name, coverage in coverages.items() if coverage < floor}
    if not low:
        return 1 if run.problems else 0
    name, coverage = next(iter(low.items()))
    # What was cut off by max-tokens with some text is scored as far as it goes, and so covered.
    failures = {why: n for why, n in run.failures().most_common() if why not in ("truncated", *SCORED)}
    ends = ", ".join(f"{why} ×{count:,}" for why, count in list(failures.items())[:8])
    again = any(why.startswith("error") for why in failures)
    say_error(
        f"{name} {share(coverage)} is under the floor of {share(floor)} (--min-coverage): "
        f"{ends or 'there are no answers'}."
        + (
            f" The command that made the run, with --out {run.path}, asks again what ended in error."
            if again
            else ""
        )
    )
    return 1
