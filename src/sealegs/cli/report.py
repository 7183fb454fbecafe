"""Commands that write a stored run for readers and other programs: `report`, `scorecard`, `export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from sealegs.cli.options import (
    RUN_FOLDER,
    examples,
    json_option,
    reference_option,
    results_argument,
    runs_argument,
)
from sealegs.cli.output import print_result, say
from sealegs.errors import UsageError

if TYPE_CHECKING:
    from sealegs.report.export import Form

FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(
    name="report",
    epilog=examples(
        "sealegs report runs/mine",
        "sealegs report runs/a runs/b --out both.html",
        "sealegs report runs/mine --no-samples",
    ),
)
@runs_argument
@click.option(
    "--out",
    type=FILE,
    help="The file to write.  [default: RUN/report.html; report.html for several runs]",
)
@click.option(
    "--samples/--no-samples",
    default=True,
    help="Whether the page holds the samples. Without them it has figures alone, no texts.",
)
@reference_option
def report_command(
    runs: tuple[Path, ...], out: Path | None, samples: bool, reference: tuple[Path, ...]
) -> None:
    """Write a run's HTML page again: one file, nothing loaded from anywhere.

    With several runs of one benchmark, the page is of the first and shows the others beside it.
    """
    from sealegs.files.cache import write_whole
    from sealegs.harness.folder import load_run
    from sealegs.harness.folder.layout import run_file
    from sealegs.report.html_page import render

    loaded = [load_run(run) for run in runs]
    if len({run.spec.benchmark for run in loaded}) > 1:
        raise UsageError("these runs are of different benchmarks: report them one by one.")
    target = out or (loaded[0].path / "report.html" if len(runs) == 1 else Path("report.html"))
    if out is None and len(runs) == 1:
        run_file(loaded[0].path, target.name)  # a link is refused
    write_whole(target, render(*loaded, reference=reference, samples=samples))
    say(f"Report: {target}")


@click.command(
    name="scorecard",
    epilog=examples(
        "sealegs scorecard runs/mirae runs/rgb runs/miron runs/multiview",
        "sealegs scorecard runs/*/ --out runs/scorecard.html",
        "sealegs scorecard runs/20261115-180400-demo-embedded",
        "sealegs scorecard runs/*/ --json",
    ),
)
@results_argument
@click.option("--out", type=FILE, help="The file to write.  [default: scorecard.html; with --json no page]")
@reference_option
@json_option("the scorecard")
def scorecard_command(
    runs: tuple[Path, ...], out: Path | None, reference: tuple[Path, ...], json: bool
) -> None:
    """Put a model's runs on one page: each benchmark's headline with its interval and coverage.

    A RUN may be a folder of runs, such as that of a demo. Runs of one benchmark are shown side by side. There
    is no overall score: the figures measure different things. Files of other harnesses are taken as `compare`
    takes them.
    """
    from sealegs.harness.stored.listing import run_folders
    from sealegs.report.scorecard import scorecard

    folders = [path for run in runs for path in sorted(run_folders(run)) or [run]]
    out = out or (None if json else Path("scorecard.html"))
    print_result(scorecard(folders, reference=reference, out=out), json=json)
    if not json:
        say(f"Scorecard: {out}")


def _loaded(_ctx: click.Context, _parameter: click.Parameter, run: Path) -> Path:
    """A folder that is no run is refused before what else is missing: the message names the runs in it."""
    from sealegs.harness.folder.spec import spec_file

    spec_file(run)
    return run


@click.command(
    name="export",
    epilog=examples(
        "sealegs export runs/mine --to csv",
        "sealegs export runs/mine --to parquet --out mine.parquet",
        "sealegs export runs/mine --to published --out folder",
        "sealegs export runs/mine --to inspect --out logs/mine.eval",
        "sealegs export runs/mine --to every-eval-ever --out datastore",
        "sealegs export runs/mine --to hub",
    ),
)
@click.argument("run", type=RUN_FOLDER, callback=_loaded)
@click.option(
    "--to",
    "form",
    required=True,
    type=click.Choice(["csv", "parquet", "published", "inspect", "every-eval-ever", "hub"]),
    help="A table, the files in the benchmark's published formats, a log that "
    "`inspect view` opens (needs the package inspect-ai), or the files of another project: Every Eval Ever, "
    "the Hugging Face Hub.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="The file to write (csv, parquet, inspect), or the folder.  [default: in RUN/export]",
)
def export_command(run: Path, form: Form | Literal["inspect"], out: Path | None) -> None:
    """Write a run for other programs: one row for each sample, every column typed, every answer in full.

    A row holds the sample's id and group, its tags, the statuses of its requests, its values, the answers
    (answer, answer_2, …) and those of its inputs that are single texts or numbers. In CSV, a text that a
    spreadsheet would take for a formula begins with an apostrophe; in Parquet every text is unchanged. Where
    scores were marked as wrong or right, marked and mark_comment say so, if the answers are still the same.
    """
    from sealegs.harness.folder import load_run
    from sealegs.report.export import export

    if form == "inspect":
        from sealegs.inspect.export import export_log

        say(export_log(load_run(run), out))
        return
    for path in export(load_run(run), form, out):
        say(path)
