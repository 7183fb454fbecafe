"""The command line: parse, call the API, print. A command's module is loaded when the command is called."""

from sealegs.cli.entry import cli, main

__all__ = ["cli", "main"]
