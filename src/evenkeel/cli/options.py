"""Options that several commands share, and the way from an options struct to click's options."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import click
from msgspec import Struct

from evenkeel.cli.suggesting import SuggestingChoice, SuggestingGroup
from evenkeel.options import Option, describe
from evenkeel.run.registry import benchmark_names, usable_benchmarks


def from_struct(
    options: type[Struct], *, asking: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that gives a command one option for each field of an options struct.

    Without `asking`, those that only matter when a model is asked are left out.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed([o for o in describe(options) if asking or not o.asking]):
            function = _click_option(option)(function)
        return function

    return decorate


def _click_option(option: Option) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    flag = f"--{option.name.replace('_', '-')}"
    kind = option.type
    if get_origin(kind) in (types.UnionType, Union):
        kind = next(part for part in get_args(kind) if part is not type(None))
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) is tuple:
        return click.option(
            flag,
            option.name,
            multiple=True,
            default=option.default,
            show_default=True,
            help=option.description,
        )
    if get_origin(kind) is Literal:
        kind = SuggestingChoice(get_args(kind))
    if kind is bool:
        return click.option(flag, option.name, is_flag=True, default=option.default, help=option.description)
    shown = option.default not in (None, 0.0, "")
    return click.option(
        flag, option.name, type=kind, default=option.default, show_default=shown, help=option.description
    )


class BenchmarkGroup(SuggestingGroup):
    """One command for each benchmark, made from the benchmark's own options when it is called."""

    def make(self, function: Callable[[str], click.Command]) -> Callable[[str], click.Command]:
        """Say how the command of a benchmark is made."""
        self._make = function
        return function

    def list_commands(self, ctx: click.Context) -> list[str]:
        return benchmark_names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self._make(cmd_name) if cmd_name.endswith(".py") or cmd_name in benchmark_names() else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Benchmarks"):
            formatter.write_dl([(name, cls.layout.question) for name, cls in usable_benchmarks()])


def examples(by_benchmark: Mapping[str, Sequence[str]], name: str | None = None) -> str:
    """An epilog of examples: those of one benchmark, or the first of each."""
    lines = by_benchmark.get(name, ()) if name else [own[0] for own in by_benchmark.values()]
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def compose(decorators: Sequence[Callable[..., Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


lang = click.option(
    "--lang",
    help="Languages, separated by commas: en,ko.  [default: what the data has; en, mostly, of a starter set]",
)
base_url = click.option("--base-url", help="Where an OpenAI-compatible server listens, for openai: models.")
model_args = click.option(
    "--model-arg", "model_args", multiple=True, metavar="KEY=VALUE", help="An option of its backend; repeat."
)
concurrency = click.option(
    "--concurrency", type=click.IntRange(min=1), help="At most this many requests at once."
)
out = click.option(
    "--out", type=click.Path(file_okay=False), help="The run's folder.  [default: runs/<date>-<time>-…]"
)
fresh = click.option(
    "--resume/--fresh",
    "resume",
    default=True,
    help="Go on with the run in --out, or discard it and start over.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
min_coverage = click.option(
    "--min-coverage",
    type=click.FloatRange(0, 1),
    default=0.95,
    show_default=True,
    help="Exit with 1 where a smaller share of the requests was answered.",
)
