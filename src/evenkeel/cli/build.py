"""`evenkeel build BENCHMARK`: make a data set, from a seed or from your own questions and documents."""

from __future__ import annotations

from typing import Any

import click

from evenkeel.cli import options, say, say_error
from evenkeel.run.budget import Limits
from evenkeel.run.registry import chosen_class

EXAMPLES = {
    "mirae": (
        "evenkeel build mirae --questions mine.txt --out mine.json",
        "evenkeel build mirae --seed 7 --out fresh.json",
        "evenkeel build mirae --questions mine.csv --on-bad skip --tokenizer hf:PATH --out mine.json",
        "evenkeel build mirae --questions mine.txt --model openai:NAME --translate ko,zh --out mine.json",
    ),
    "rgb": (
        "evenkeel build rgb --docs my-documents/ --model openai:NAME --out data/mine",
        "evenkeel build rgb --seed 7 --lang en,zh",
    ),
    "miron": ("evenkeel build miron --seed 7 --per-category 200 --lang en,ru",),
    "multiview": (
        "evenkeel build multiview --docs clues.csv --criterion hint --description 'How the clue hints' "
        "--judge openai:NAME --triplets 200 --out data/clues",
        "evenkeel build multiview --docs labelled.jsonl --label-field topic --criterion topic "
        "--description 'What it is about' --triplets 200 --out data/topics",
        "evenkeel build multiview --starter --seed 7",
    ),
}


@click.group(
    cls=options.BenchmarkGroup,
    name="build",
    subcommand_metavar="BENCHMARK [OPTIONS]",
    epilog=options.examples(EXAMPLES),
)
def command() -> None:
    """Make a data set: from a seed, or from your own questions and documents."""


@command.make
def _command(name: str) -> click.Command:
    builder = chosen_class(name).builder()
    out: dict[str, Any] = {
        "required": True, "type": click.Path(dir_okay=False), "help": "The file to write."
    }  # fmt: skip
    if builder.folder:
        folder = click.Path(file_okay=False)
        out = {
            "default": f"data/{name}",
            "show_default": True,
            "type": folder,
            "help": "The folder to write to.",
        }

    @click.command(name=name, help=f"Make a data set for {name}.", epilog=options.examples(EXAMPLES, name))
    @click.option("--out", **out)
    @options.from_struct(builder.Options)
    @options.model_args
    @options.base_url
    @options.concurrency
    @options.from_struct(Limits)
    @click.pass_context
    def build(ctx: click.Context, /, **given: Any) -> None:
        ctx.exit(_build(name, **given))

    return build


def _build(name: str, *, model_args: tuple[str, ...], **given: Any) -> int:
    from evenkeel import api
    from evenkeel.report.progress import Watcher
    from evenkeel.run.registry import parse_args

    paths, built = api.build(name, model_args=parse_args(model_args), progress=Watcher(), **given)
    for note in built.notes:
        say(note, err=True)
    for path in paths:
        say(path)
    if built.failures:
        listed = "\n  ".join(built.failures)
        say_error(f"not written well enough:\n  {listed}")
    return 1 if built.failures else 0
