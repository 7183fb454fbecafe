"""The `sealegs` command: which command is in which module, and how errors become exit codes."""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import importlib
import io
import signal
import sys
import warnings
from typing import Any

import click

from sealegs import __version__
from sealegs.cli.options import examples
from sealegs.cli.output import say, say_error
from sealegs.cli.signals import stopping
from sealegs.errors import SealegsError, StorageError, UsageError, suggestion
from sealegs.files.remote.telemetry import switch_off_telemetry
from sealegs.page.format import escape_controls

COMMANDS = {
    "demo": ("run", "Try it: a small run on the embedded models, with a report."),
    "run": ("run", "Ask a model, score its answers, write the report."),
    "resume": ("resume", "Resume a run that was stopped or failed."),
    "suite": ("suite", "Run benchmarks on several models from one file, and rank them."),
    "score": ("run", "Score answers recorded elsewhere, in the published formats."),
    "rescore": ("run", "Score a run's stored answers again."),
    "build": ("data", "Make a data set, from a seed or from your own texts."),
    "compare": ("compare", "Compare runs: paired differences with intervals."),
    "gate": ("compare", "Exit with 1 if a run is worse than a baseline, for CI."),
    "tokenizers": ("list", "Compare tokenizers on MIRON's examples, without a model."),
    "scorecard": ("report", "Put a model's runs on one page, without an overall score."),
    "report": ("report", "Write a run's HTML page again."),
    "export": ("report", "Write a run as CSV, Parquet or the published files."),
    "data": ("data", "List and fetch the published data sets."),
    "list": ("list", "List benchmarks, models, metrics and runs."),
    "app": ("app", "Open the web app: run, watch, explore, compare."),
    "doctor": ("doctor", "Show what is installed, what is missing, and how to fix it."),
}
"""By command: its module, in which it is `<command>_command`, and its line of help."""

LISTS = ("benchmarks", "models", "metrics", "runs")
"""What `list` lists: each is taken for a command by people who have not met it."""

NOT_WRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}
"""A disk that is full, fails or is read-only."""

EPILOG = f"""{
    examples(
        "sealegs demo",
        "sealegs run mirae --model embedded --limit 4 --levels 1-3",
        "sealegs run mirae --model openai:gpt-4o-mini --max-usd 2 --price-in 0.15 --price-out 0.6",
        "sealegs run rgb --model openai:llama --base-url http://127.0.0.1:8000/v1",
        "sealegs run multiview --method bm25 --method embed:embedded-embedder",
        "sealegs compare runs/old runs/new",
        "sealegs suite suite.yaml",
    )
}

\b
Environment:
  OPENAI_API_KEY, OPENAI_BASE_URL  the key and the address of a server
  SEALEGS_CACHE                    the folder for fetched data and converted models
  SEALEGS_MIRROR                   another host for published data, with the same paths
  SEALEGS_BENCHMARKS               Python files with benchmarks of your own, separated as in PATH

Exit codes: 0 done, 1 a gate or the coverage failed or a limit was reached, 2 wrong usage or bad input, 3 a
server was not reached; 130 stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP: the answers received so far are
saved."""


class LazyGroup(click.Group):
    """Commands by name and one line of help; a command's module is imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        if cmd_name not in COMMANDS:
            hint = suggestion(cmd_name, [*COMMANDS, *LISTS]).replace(f"'{cmd_name}'", f"'list {cmd_name}'")
            raise UsageError(f"unknown command '{cmd_name}'.{hint} Available: {', '.join(COMMANDS)}.")
        module = importlib.import_module(f"sealegs.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="sealegs")
@click.option(
    "--verbose",
    is_flag=True,
    help="Show on stderr what was chosen for this machine: device, batch sizes, threads.",
)
def cli(verbose: bool) -> None:
    """Measure how reliable a language model is: published benchmarks, with intervals."""
    if verbose:
        import logging

        log = logging.getLogger("sealegs")
        log.setLevel(logging.INFO)
        log.addHandler(logging.StreamHandler())


def main() -> None:
    """Run the command and exit: a user's mistake is one message and an exit code, never a traceback."""
    switch_off_telemetry()
    atexit.register(gc.freeze)  # otherwise Python looks for cycles among all objects before it ends
    if sys.__stdout__ is not None and sys.stdout is sys.__stdout__:
        sys.stdout = _wrapped(sys.stdout)
    if sys.__stderr__ is not None and sys.stderr is sys.__stderr__:
        sys.stderr = _wrapped(sys.stderr)
    with warnings.catch_warnings(), stopping() as received:
        # One line, like an error, such as of a plug-in that cannot be used.
        warnings.showwarning = lambda message, *_, **__: say(f"warning: {message}", err=True)
        try:
            code = _run_command()
        except BaseException as error:
            if not received and not isinstance(error, KeyboardInterrupt | click.Abort):
                raise
            with contextlib.suppress(OSError):  # the terminal may have closed with the signal
                click.echo("stopped.", err=True)
                _show_notes(error.__cause__ or error)  # click wraps the interrupt, which carries the note
            code = 128 + signal.SIGINT
    # 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP, whatever the command made of the interrupt.
    sys.exit(128 + received[0] if received else code)


class _Output(io.FileIO):
    """A standard stream to which writing does nothing once its reader (head, less) has left: a command ends
    with its own exit code."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return len(data)


def _wrapped(stream: Any) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(_Output(stream.fileno(), "w", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering or stream.write_through,  # PYTHONUNBUFFERED
    )


def _run_command() -> int:
    """The command's exit code; errors raised on purpose are printed."""
    try:
        return int(cli(prog_name="sealegs", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.message = escape_controls(error.message)  # type: ignore[misc]  # it quotes what was typed
        error.show()
        return error.exit_code
    except SealegsError as error:
        say_error(error.on_command_line)
        _show_notes(error)
        return error.exit_code
    except click.Abort:  # Ctrl-C
        raise
    except OSError as error:  # a path that cannot be read or written
        say_error(error)
        return StorageError.exit_code if error.errno in NOT_WRITABLE else 2


def _show_notes(error: BaseException) -> None:
    for note in getattr(error, "__notes__", ()):
        say(note, err=True)
