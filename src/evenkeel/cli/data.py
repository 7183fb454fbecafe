"""`evenkeel data list|fetch|verify`: the published data sets."""

from __future__ import annotations

import sys
import time

import click

from evenkeel import data
from evenkeel.errors import DataError

name = click.argument("name", type=click.Choice(list(data.published_sets())))


@click.group(name="data")
def command() -> None:
    """List, fetch and verify the published data sets. They keep their own licences and are never bundled."""


@command.command(name="list")
def list_() -> None:
    """What is published, and what of it lies in the cache."""
    for key, chosen in data.published_sets().items():
        click.echo(
            f"{key:<7} {chosen.title} ({chosen.licence})\n        {chosen.home} at {chosen.revision[:12]}"
        )
        for file in chosen.files:
            click.echo(f"        {data.state(key, file):<8} {file.path}")


@command.command(epilog="\b\nExample:\n  evenkeel data fetch mirae")
@name
def fetch(name: str) -> None:
    """Download a data set into the cache: pinned, checked, resumed where it broke off."""
    for path in data.fetch(name, progress=_show):
        click.echo(str(path))


@command.command()
@name
def verify(name: str) -> None:
    """Check every file of a data set against its published id."""
    states = {file.path: data.state(name, file) for file in data.published_set(name).files}
    for path, state in states.items():
        click.echo(f"{state:<8} {path}")
    if any(state != "whole" for state in states.values()):
        raise DataError(name, f"not every file is there and whole. Run: evenkeel data fetch {name}")


def _show(file: data.PublishedFile, done: int, total: int | None) -> None:
    end = done == total
    if sys.stderr.isatty() and (end or time.monotonic() % 0.2 < 0.05):
        share = f" of {total:,}" if total else ""
        click.echo(f"\r{file.path}: {done:,}{share} bytes", nl=end, err=True)
