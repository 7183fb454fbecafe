"""Options that several commands share, and the way from an options struct to click's options."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args, get_origin

import click
from msgspec import Struct

from evenkeel.options import Option, describe


def from_struct(options: type[Struct]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that gives a command one option for each field of an options struct."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(describe(options)):
            function = _click_option(option)(function)
        return function

    return decorate


def _click_option(option: Option) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    flag = f"--{option.name.replace('_', '-')}"
    kind = option.type
    if isinstance(kind, types.UnionType):
        kind = next(part for part in get_args(kind) if part is not type(None))
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
        kind = click.Choice(get_args(kind))
    if kind is bool:
        return click.option(flag, option.name, is_flag=True, default=option.default, help=option.description)
    shown = option.default not in (None, 0.0, "")
    return click.option(
        flag, option.name, type=kind, default=option.default, show_default=shown, help=option.description
    )


def compose(decorators: Sequence[Callable[..., Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


lang = click.option(
    "--lang", help="Languages, separated by commas: en,ko,zh.  [default: en, or what the data has]"
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
