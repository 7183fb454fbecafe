"""`sealegs app`: the web app on this machine."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from sealegs.cli.options import examples
from sealegs.cli.output import say
from sealegs.errors import UsageError

FOLDER = click.Path(file_okay=False, path_type=Path)


def existing_runs(ctx: click.Context, option: click.Parameter, folder: Path) -> Path:
    """A folder that a person names must be there; the usual one may come with the first run."""
    named = ctx.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
    if named and not folder.is_dir():
        raise UsageError(
            f"--runs {folder}: there is no such folder. Give the folder that your runs' folders are in "
            "(without --runs: ./runs)."
        )
    return folder


EXISTING = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command(
    name="app",
    context_settings={"allow_extra_args": True},
    epilog=examples(
        "sealegs app",
        "sealegs app --runs results --models ~/models --data data",
        "sealegs app --port 0 --no-open",
        "sealegs app --host 0.0.0.0 --read-only --allow-host runs.example.org",
    ),
)
@click.option(
    "--runs", type=FOLDER, default="runs", show_default=True, envvar="SEALEGS_APP_RUNS",
    callback=existing_runs, help="The folder of runs.",
)  # fmt: skip
@click.option(
    "--models", type=EXISTING, envvar="SEALEGS_APP_MODELS", help="A folder of models to choose from."
)
@click.option("--data", type=EXISTING, envvar="SEALEGS_APP_DATA", help="A folder of data to choose from.")
@click.option(
    "--host", default="127.0.0.1", show_default=True,
    help="The address to listen on; any but this machine's own needs --read-only.",
)  # fmt: skip
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8501, show_default=True, help="0 for any free one."
)
@click.option(
    "--read-only", is_flag=True, envvar="SEALEGS_APP_READ_ONLY",
    help="Show runs; start, stop, build and mark nothing.",
)  # fmt: skip
@click.option(
    "--allow-host", "allow_hosts", multiple=True, metavar="NAME", envvar="SEALEGS_APP_ALLOW_HOST",
    help="Another name of this server, for a proxy in front of it; repeat.",
)  # fmt: skip
@click.option(
    "--open/--no-open", "open_browser", default=None,
    help="Open a browser.  [default: on a terminal with a screen]",
)  # fmt: skip
@click.pass_context
def app_command(ctx: click.Context, /, open_browser: bool | None, **settings: Any) -> None:
    """Open the web app: run, watch, explore, compare.

    It listens on this machine alone unless --host says otherwise, and sends nothing elsewhere.
    """
    if ctx.args:
        raise UsageError(f"the folder of runs is an option: sealegs app --runs {shlex.quote(ctx.args[0])}")
    from sealegs.app.server import can_open_browser, serve
    from sealegs.app.settings import AppSettings

    opens = can_open_browser() if open_browser is None else open_browser
    serve(AppSettings(open_browser=opens, **settings), lambda text: say(text, err=True))
