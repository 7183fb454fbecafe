"""`evenkeel export RUN --to csv|parquet|published`: a run for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenkeel.cli import say
from evenkeel.cli.suggesting import SuggestingChoice

if TYPE_CHECKING:
    from evenkeel.report.export import Form

EPILOG = """\b
Examples:
  evenkeel export runs/mine --to csv
  evenkeel export runs/mine --to parquet --out mine.parquet
  evenkeel export runs/mine --to published --out folder"""


@click.command(name="export", epilog=EPILOG)
@click.argument("run", type=click.Path(exists=True, file_okay=False))
@click.option(
    "--to",
    "form",
    required=True,
    type=SuggestingChoice(["csv", "parquet", "published"]),
    help="A table, or the files that the benchmark's own publication has.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="The file to write; for published, the folder.  [default: RUN/export/records.csv, …]",
)
def command(run: str, form: Form, out: Path | None) -> None:
    """Write a run for other programs: one row a sample, every column typed, every answer in full.

    A row holds the sample's id and group, its tags, how its requests ended, its values, the answers (answer,
    answer_2, …) and those of its inputs that are single texts or numbers. In CSV, a text that a spreadsheet
    would take for a formula stands behind an apostrophe; in Parquet every text is as it came.
    """
    from evenkeel.report.export import export
    from evenkeel.run.folder import load_run

    for path in export(load_run(run), form, out):
        say(path)
