"""Options that several commands share, options made from a struct, and groups by benchmark.

A decorator here is one of click's, or several composed; a command lists the ones it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args, get_origin

import click
from msgspec import NODEFAULT, Struct

from sealegs.options import Option, describe

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

SECTIONS = {
    "Essentials": (
        "model", "method", "docs", "questions", "data", "limit", "dry_run", "base_url", "out",
    ),
    "Benchmark": (),
    "Data": ("lang", "column", "text_field", "label_field", "max_docs"),
    "Cost": ("max_usd", "price_in", "price_out", "max_requests", "batch"),
    "Scaling": ("concurrency", "engine", "engine_args"),
    "Expert": ("model_args", "top_p", "top_k", "seed", "resume", "reuse", "min_coverage", "json", "help"),
}  # fmt: skip
"""Options in the help of a benchmark's commands; that without names has all the others."""
RUN_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


class SectionedCommand(click.Command):
    """A command whose help has its options in sections, the essential ones first."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        records = {
            "help" if "--help" in parameter.opts else str(parameter.name): record
            for parameter in self.get_params(ctx)
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx))
        }
        listed = {name for names in SECTIONS.values() for name in names}
        for title, names in SECTIONS.items():
            chosen = names or [name for name in records if name not in listed]
            if rows := [records[name] for name in chosen if name in records]:
                with formatter.section(title):
                    formatter.write_dl(rows)


class BenchmarkGroup(click.Group):
    """One command for each benchmark, made by `make` from the benchmark's own options when it is called."""

    def __init__(
        self,
        name: str,
        make: Callable[[str], click.Command],
        *,
        help: str,
        offered: Callable[[Any], bool] = lambda benchmark: True,
    ) -> None:
        super().__init__(name, help=help, subcommand_metavar="BENCHMARK [OPTIONS]")
        self._make = make
        self._offered = offered
        """Whether the help lists a benchmark; of another one the command says why it cannot."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from sealegs.harness.registry import benchmark_names

        return benchmark_names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        return self._make(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from sealegs.harness.registry import list_benchmarks

        offered = [(name, cls) for name, cls in list_benchmarks().items() if self._offered(cls)]
        with formatter.section("Benchmarks"):
            formatter.write_dl([(name, cls.layout.question) for name, cls in offered])
        self.epilog = examples(*(usage(str(self.name), name)[0] for name, _ in offered))


def usage(command: str, benchmark: str) -> list[str]:
    """The examples of a command that a benchmark gives, or one that works for any."""
    from sealegs.harness.registry import chosen_class

    arguments = {"run": "--model SPEC", "score": "FILE", "build": "--out PATH"}[command]
    generic = [f"sealegs {command} {benchmark} {arguments}"]
    return list(chosen_class(benchmark).help.examples.get(command, generic))


def examples(*lines: str) -> str:
    """An epilog of examples, whose lines click does not wrap."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def compose(*decorators: Decorator) -> Decorator:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def from_struct(options: type[Struct], choose: Callable[[Option], bool] | None = None) -> Decorator:
    """One option for each field of a struct, or for each that is chosen."""
    return compose(*(_from_field(option) for option in describe(options) if not choose or choose(option)))


def _from_field(option: Option) -> Decorator:
    kind = option.type
    settings: dict[str, Any] = {"type": kind, "show_default": option.default not in (None, 0, "")}
    if get_origin(kind) is tuple:
        settings = {"multiple": True, "show_default": True}
    elif get_origin(kind) is Literal:
        settings["type"] = click.Choice(get_args(kind))
    elif kind is bool:
        settings = {"is_flag": True}
    if option.default is NODEFAULT:
        settings |= {"required": True, "show_default": False}
    else:
        settings["default"] = option.default
    flag = f"--{option.name.replace('_', '-')}"
    return click.option(flag, option.name, help=option.description, **settings)


def json_option(what: str) -> Decorator:
    return click.option("--json", "json", is_flag=True, help=f"Print {what} as JSON.")


def metric_option(default: str) -> Decorator:
    text = (
        f"A metric, of some samples (NAME/lang=ko) or one method (NAME@METHOD); repeat.  [default: {default}]"
    )
    return click.option("--metric", "metrics", multiple=True, metavar="NAME", help=text)


class ResultsPath(click.Path):
    """A run's folder, or what another harness wrote: a file, a folder, or FILE::MODEL."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        name, mark, _ = str(value).rpartition("::")
        if mark and not Path(value).exists():
            super().convert(name, param, ctx)
            return Path(value)
        return super().convert(value, param, ctx)


RESULTS = ResultsPath(exists=True, path_type=Path)
run_argument = click.argument("run", type=RUN_FOLDER)
results_argument = click.argument("runs", nargs=-1, required=True, metavar="RUN…", type=RESULTS)
runs_argument = click.argument("runs", nargs=-1, required=True, metavar="RUN…", type=RUN_FOLDER)
data_option = click.option(
    "--data",
    multiple=True,
    default=("starter",),
    show_default=True,
    help="A path, 'starter', 'published', hf:NAME[:SPLIT] or an address; repeat for several.",
)
lang_option = click.option(
    "--lang",
    help="Languages, separated by commas: en,ko.  [default: all in the data; mostly en for a starter set]",
)
base_url_option = click.option(
    "--base-url",
    multiple=True,
    callback=lambda ctx, param, values: ",".join(values) or None,
    help="The address of an OpenAI-compatible server; repeat for several that serve the same model.",
)
model_args_option = click.option(
    "--model-arg",
    "model_args",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the model's backend (see `sealegs list models`); repeat.",
)
min_coverage_option = click.option(
    "--min-coverage",
    type=click.FloatRange(0, 1),
    default=0.95,
    show_default=True,
    help="Exit with 1 if a smaller share of the requests was answered.",
)
out_option = click.option(
    "--out", type=click.Path(file_okay=False), help="The run's folder.  [default: runs/<date>-<time>-…]"
)

reference_option = click.option(
    "--reference",
    multiple=True,
    type=RUN_FOLDER,
    help="A run of your own, or a folder of runs such as a suite's, to show beside the published results.",
)
