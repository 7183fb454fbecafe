"""Data sets: `build` makes one, `data` lists and fetches the published ones."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from sealegs.cli import options
from sealegs.cli.options import BenchmarkGroup, SectionedCommand, compose, examples, from_struct
from sealegs.cli.output import say, say_error
from sealegs.errors import DataError
from sealegs.harness.limits import Limits

MODEL_OPTIONS = compose(
    options.model_args_option,
    options.base_url_option,
    from_struct(Limits, lambda limit: limit.name in ("max_requests", "max_usd")),
)
"""For builders that ask a model."""


def _make_build(name: str) -> click.Command:
    from sealegs.harness.benchmark import builder_class
    from sealegs.harness.registry import chosen_class

    builder = builder_class(chosen_class(name))

    @click.option(
        "--check",
        type=click.Path(exists=True, path_type=Path),
        expose_value=False,
        is_eager=True,
        callback=lambda ctx, _, path: path and ctx.exit(check_and_show(name, path)),
        help="Build nothing: say whether this data set is still valid after edits (exit code 0) or not (1).",
    )
    @click.option(
        "--out",
        type=click.Path(file_okay=False),
        default=f"data/{name}",
        show_default=True,
        help="The folder to write.",
    )
    @from_struct(builder.Options)
    @(MODEL_OPTIONS if builder.asks else compose())
    @click.pass_context
    def build(ctx: click.Context, /, model_args: tuple[str, ...] = (), **settings: Any) -> None:
        from sealegs.models.registry import parse_args
        from sealegs.report.terminal.progress import Watcher

        settings["model_args"] = parse_args(model_args)
        ctx.exit(build_and_show(name, progress=Watcher(), **settings))

    text = f"Make a data set for {name}."
    epilog = examples(*options.usage("build", name))
    return click.command(name=name, cls=SectionedCommand, help=text, epilog=epilog)(build)


build_command = BenchmarkGroup(
    "build", _make_build, help="Make a data set: from a seed, or from your own questions and documents."
)


def check_and_show(name: str, path: Path) -> int:
    """Say what is in a data set and what is wrong with it, and return the exit code."""
    from sealegs.api.check import check

    try:
        checked = check(name, path)
    except DataError as error:
        say_error(f"not valid for {name}: {error}")
        return 1
    for line in checked.lines():
        say(line)
    if checked.faults:
        say_error("\n  ".join([f"{path} can be read, but:", *checked.faults]))
        return 1
    say(f"{path} is valid for {name}.")
    return 0


def build_and_show(name: str, **settings: Any) -> int:
    """Build with the settings of `sealegs.build`, print what was written and what to run next, and return the
    exit code."""
    from sealegs import api
    from sealegs.api.setup import data_problem

    paths, built = api.build(name, **settings)
    overview = built.overview()
    for line in overview.lines:
        say(line, err=True)
    for path in paths:
        say(path)
    for warning in overview.warnings:
        say_error(warning)
    if not data_problem(name, settings["out"]):
        say(
            f"Next, what would be asked, and what would it cost?\n  {next_step(name, settings['out'])}",
            err=True,
        )
    return 1 if built.failures else 0


def next_step(name: str, data: str | Path) -> str:
    """The command that uses what was built, with the model of the demo: a person names their own in its
    place."""
    from sealegs.harness.registry import chosen_class

    benchmark = chosen_class(name)
    subject = benchmark.help.demo.get(benchmark.subjects.tag, "SPEC")
    first = subject if isinstance(subject, str) else subject[0]
    return shlex.join(
        ["sealegs", "run", name, "--data", str(data), f"--{benchmark.subjects.tag}", first, "--dry-run"]
    )


@click.group(name="data", epilog=examples("sealegs data list", "sealegs data fetch mirae"))
def data_command() -> None:
    """List and fetch the published data sets. They keep their own licences and are never bundled."""


@data_command.command(name="list")
def list_command() -> None:
    """List the published files, and their state in the cache."""
    from sealegs.files import datasets

    for name, published in datasets.published_sets().items():
        click.echo(f"{name:<7} {published.title} ({published.licence})")
        click.echo(f"        {published.home} at {published.revision[:12]}")
        for file in published.files:
            click.echo(f"        {datasets.state(name, file):<9}  by {file.pinned_by}  {file.path}")
    click.echo(
        "\nby digest: the content is checked against a digest that comes with Sealegs.\n"
        "by commit: fetched at that commit; Sealegs has no digest of it."
    )


@data_command.command(name="fetch", epilog=examples("sealegs data fetch mirae"))
@click.argument("name")
def fetch_command(name: str) -> None:
    """Download a data set into the cache.

    Files are pinned and checked. Exits with 3 if a file cannot be
    reached, and says where to put it by hand. SEALEGS_CACHE is the folder of the cache; SEALEGS_MIRROR is
    another host that serves the same paths.
    """
    from sealegs.files import datasets

    for path in datasets.fetch(name):
        say(path)
