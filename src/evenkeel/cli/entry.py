"""The command line: parse, call the API, print. Each command is a module, loaded when it is called."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
from typing import Any

import click

from evenkeel import __version__
from evenkeel.cli.stopping import stopping
from evenkeel.cli.suggesting import SuggestingGroup
from evenkeel.errors import EvenkeelError, OptionError, place_of
from evenkeel.page.format import visible

COMMANDS = {
    "demo": "Try it: a small run on the embedded models, with a report.",
    "run": "Ask a model, score its answers, write the report.",
    "score": "Score answers recorded elsewhere, in the published formats.",
    "rescore": "Score a run's stored answers again.",
    "build": "Make a data set, from a seed or from your own questions.",
    "compare": "Set runs against each other, with intervals.",
    "gate": "Exit with 1 where a run is worse than a baseline, for CI.",
    "tokenizers": "Compare tokenizers on MIRON's examples, without a model.",
    "scorecard": "Put a model's runs on one page, without an overall score.",
    "report": "Write a run's HTML page again.",
    "export": "Write a run as CSV, Parquet or the published files.",
    "data": "List, fetch and verify the published data sets.",
    "list": "List benchmarks, models and runs.",
    "doctor": "Say what is installed, what is missing, and what mends it.",
}


READS_RUNS = {"compare", "gate", "scorecard", "report", "export", "list", "rescore"}


class LazyGroup(SuggestingGroup):
    """Commands by name and one line of help; a command's module is imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS]  # `list` is a command's module here

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"evenkeel.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items()])


EPILOG = """\b
Examples:
  evenkeel demo
  evenkeel run mirae --model embedded --limit 4 --levels 1-3
  evenkeel run mirae --model openai:gpt-4o-mini --max-usd 2 --price-in 0.15 --price-out 0.6
  evenkeel run rgb --model openai:llama --base-url http://127.0.0.1:8000/v1
  evenkeel run multiview --method bm25 --method embed:embedded-embedder
  evenkeel compare runs/old runs/new

\b
Environment (`evenkeel doctor` says which are set):
  OPENAI_API_KEY, OPENAI_BASE_URL  the key of a server, and where it is
  EVENKEEL_CACHE                   the folder for fetched data and converted models
  EVENKEEL_MIRROR                  another host for published data, with the same paths

Exit codes: 0 done, 1 gate or coverage failed, 2 wrong usage or bad input, 3 a server was not reached;
130 stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP: what was answered is kept."""


@click.group(
    cls=LazyGroup,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="evenkeel")
def cli() -> None:
    """How steady is a language model? Published benchmarks, with intervals."""


def main() -> None:
    """The `evenkeel` command. A person's mistake is one message and an exit code, never a traceback."""
    _bear_a_reader_that_leaves()
    with stopping() as state:
        try:
            code = _outcome()
            if state.number is not None:  # whatever the command made of being interrupted
                code = state.exit_code
        except BaseException as error:
            if state.number is None and not isinstance(error, KeyboardInterrupt | click.Abort):
                raise
            # The terminal may be gone with the signal; then nobody is there to be told.
            with contextlib.suppress(OSError):
                click.echo("stopped.", err=True)
                _show_notes(error.__cause__ or error)  # click wraps the interrupt, which carries the note
            code = state.exit_code
    sys.exit(code)


class _Out(io.FileIO):
    """The standard output, whose reader (head, less) may leave: the command goes on, and has its own code."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return len(data)


def _bear_a_reader_that_leaves() -> None:
    if sys.stdout is sys.__stdout__ and sys.stdout is not None:
        out = sys.stdout
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_Out(out.fileno(), "w", closefd=False)),
            encoding=out.encoding, errors=out.errors, line_buffering=out.line_buffering,
        )  # fmt: skip


def _outcome() -> int:
    """Run the command; what it raised on purpose is told, and becomes an exit code."""
    try:
        return int(cli(standalone_mode=False) or 0)
    except click.ClickException as error:
        # It quotes what was typed, and names of files.
        error.message = visible(error.message)  # type: ignore[misc]
        error.show()
        return error.exit_code
    except EvenkeelError as error:
        complain(error)
        return error.exit_code
    except BrokenPipeError:  # the reader (head, less) has gone; the interpreter must not try to flush to it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a path that cannot be read or written
        complain(error)
        return 2
    except Exception as error:
        if not set(sys.argv[1:2]) & READS_RUNS or os.environ.get("EVENKEEL_TRACEBACK"):
            raise
        # A run's folder may come from anyone and hold anything.
        say_error(
            f"a file of the run is not as Evenkeel writes it ({place_of(error)}). `evenkeel rescore` makes "
            "the files of a run anew from its journal; EVENKEEL_TRACEBACK=1 shows all of this error."
        )
        return 2


def complain(error: BaseException) -> None:
    """One message to stderr, with what to do next."""
    say_error(error.on_command_line if isinstance(error, OptionError) else str(error))
    _show_notes(error)


def say_error(text: str) -> None:
    """`error: …` to stderr, in red unless NO_COLOR asks for none."""
    mark = "error:" if os.environ.get("NO_COLOR") else click.style("error:", fg="red", bold=True)
    click.echo(f"{mark} {visible(text)}", err=True)


def say(text: object, *, err: bool = False) -> None:
    """A line of text that may come from elsewhere: a server, a model, a file's name."""
    click.echo(visible(str(text)), err=err)


def _show_notes(error: BaseException) -> None:
    for note in getattr(error, "__notes__", []):
        say(note, err=True)
