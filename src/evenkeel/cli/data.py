"""`evenkeel data list|fetch|verify`: the published data sets."""

from __future__ import annotations

import sys
import time

import click

from evenkeel.cli import say
from evenkeel.cli.suggesting import SuggestingChoice, SuggestingGroup
from evenkeel.errors import DataError
from evenkeel.files import datasets as data

name = click.argument("name", type=SuggestingChoice(list(data.published_sets())))


@click.group(cls=SuggestingGroup, name="data")
def command() -> None:
    """List, fetch and verify the published data sets. They keep their own licences and are never bundled."""


@command.command(name="list")
def list_() -> None:
    """What is published, how each file is pinned, and what of it lies in the cache."""
    for key, chosen in data.published_sets().items():
        click.echo(f"{key:<7} {chosen.title} ({chosen.licence})")
        click.echo(f"        {chosen.home} at {chosen.revision[:12]}")
        for file in chosen.files:
            click.echo(f"        {data.state(key, file):<9}  by {file.pinned_by}  {file.path}")
    click.echo(
        "\nby digest: the content is checked against a digest that comes with Evenkeel.\n"
        "by commit: fetched at that commit, and checked against the commit and digest the server names;\n"
        "           no digest comes with Evenkeel, so that of the first fetch is recorded and holds."
    )


@command.command(epilog="\b\nExample:\n  evenkeel data fetch mirae")
@name
def fetch(name: str) -> None:
    """Download a data set into the cache: pinned, checked, resumed where it broke off.

    Exits with 3 where a file cannot be reached, and says where to place it by hand. EVENKEEL_CACHE is the
    folder of the cache; EVENKEEL_MIRROR is another host that serves the same paths.
    """
    for path in data.fetch(name, progress=_show):
        say(path)
    for file in data.published_set(name).files:
        if file.pinned_by == "commit":
            digest = data.recorded(data.place(name, file))
            click.echo(f"{file.path}: pinned by commit alone; recorded as sha256 {digest}", err=True)


@command.command()
@name
def verify(name: str) -> None:
    """Check every file of a data set against its published digest, or the one recorded at its first fetch."""
    files = data.published_set(name).files
    states = [data.state(name, file) for file in files]
    for file, state in zip(files, states, strict=True):
        click.echo(f"{state:<9}  by {file.pinned_by}  {file.path}")
    if any(state != "whole" for state in states):
        raise DataError(name, f"not every file is there and whole. Run: evenkeel data fetch {name}")


def _show(file: data.PublishedFile, done: int, total: int | None) -> None:
    end = done == total
    if sys.stderr.isatty() and (end or time.monotonic() % 0.2 < 0.05):
        share = f" of {total:,}" if total else ""
        click.echo(f"\r{file.path}: {done:,}{share} bytes", nl=end, err=True)
