"""`evenkeel tokenizers SPEC…`: what tokenizers make of MIRON's examples, without running a model."""

from __future__ import annotations

import click

from evenkeel.cli import options

EPILOG = """\b
Examples:
  evenkeel tokenizers embedded
  evenkeel tokenizers hf:path/to/one hf:path/to/other --lang ru
  evenkeel tokenizers embedded --data my_examples.jsonl --json"""


@click.command(name="tokenizers", epilog=EPILOG)
@click.argument("specs", nargs=-1, required=True, metavar="SPEC…")
@click.option("--data", default="starter", show_default=True, help="A path, 'starter' or 'published'.")
@options.lang
@options.as_json
def command(specs: tuple[str, ...], data: str, lang: str | None, as_json: bool) -> None:
    """Compare tokenizers on MIRON's examples: pieces a word, pieces of the target, boundary merges.

    A tokenizer is named by its model: embedded, or hf:ID-or-path. No weights are loaded.
    """
    from rich.console import Console

    from evenkeel.api.run import parse_langs
    from evenkeel.benchmarks.miron import tokenizers
    from evenkeel.cli.outcome import print_json
    from evenkeel.report.terminal import show_table

    compared = tokenizers.compare(tokenizers.read(data, parse_langs(lang)), specs)
    if as_json:
        print_json(compared)
        return
    console = Console()
    for grid in tokenizers.grids(compared):
        show_table(console, grid)
        console.print()
