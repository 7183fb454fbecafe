"""What is available: `list benchmarks|metrics|models|runs`, and `tokenizers`, which compares some."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sealegs.cli.options import data_option, examples, json_option, lang_option
from sealegs.cli.output import print_result, say, say_prose
from sealegs.page.format import as_json

if TYPE_CHECKING:
    from sealegs.harness.stored.listing import ListedRun
    from sealegs.page.grid import Content, Grid
    from sealegs.types import Figure


@click.group(name="list", epilog=examples("sealegs list models", "sealegs list runs"))
def list_command() -> None:
    """List benchmarks, metrics, models and runs."""


@list_command.command(name="benchmarks")
def list_benchmarks() -> None:
    """Benchmarks that can be run."""
    from sealegs.harness import registry

    for name, benchmark in registry.list_benchmarks().items():
        say_prose(f"{name:<10} {benchmark.layout.question}", hanging=11)


@list_command.command(
    name="metrics", epilog=examples("sealegs list metrics", "sealegs list metrics rgb --json")
)
@click.argument("benchmark", default="")
@json_option("the metrics")
def list_metrics(benchmark: str, json: bool) -> None:
    """Metrics of a BENCHMARK, or of all: what each means, and what to be careful about."""
    from sealegs.harness import registry

    names = [benchmark] if benchmark else list(registry.list_benchmarks())
    by_benchmark = {name: registry.benchmark_class(name).layout.metrics for name in names}
    if json:
        click.echo(as_json(by_benchmark))
        return
    for name, metrics in by_benchmark.items():
        say(f"{name}\n")
        for metric in metrics:
            for line in [metric.overview().title, *metric.overview().lines]:
                say_prose(line)
            say("")


@list_command.command(
    name="models", epilog=examples("sealegs list models", "sealegs list models --ask --json")
)
@click.option("--ask", is_flag=True, help="Ask local servers, and those with a key, which models they have.")
@json_option("the models")
def list_models(ask: bool, json: bool) -> None:
    """Kinds of model with their --model-arg keys, and providers by name: which have their key set."""
    from sealegs.api.listing import model_kinds, providers, suggestions_date

    kinds, known = model_kinds(), providers(ask=ask)
    if json:
        click.echo(as_json({"kinds": kinds, "providers": known}))
        return
    for kind in kinds:
        say(kind.form)
        say_prose(f"    {kind.about}", hanging=4)
        for name, description in kind.options.items():
            say_prose(f"    {name:<18} {description}", hanging=23)
    say("\nProviders and local servers, through openai:, with the same keys\n")
    for provider in known:
        key_state = "set" if provider.key_is_set else "not set"
        key = f"{provider.key} {key_state}" if provider.key else "no key"
        say_prose(f"{f'{provider.name}:NAME':<16} {provider.title}, {provider.address}, {key}", hanging=17)
        for name in provider.models:
            say(f"    {provider.name}:{name}")
        if provider.suggested and not provider.models:
            models = ", ".join(provider.suggested)
            say_prose(f"    such as {models} (as of {suggestions_date()})", hanging=4)
        if provider.problem:
            say_prose(f"    {provider.problem}", hanging=4)


@list_command.command(name="runs", epilog=examples("sealegs list runs", "sealegs list runs results --json"))
@click.argument("folder", default="runs", type=click.Path(file_okay=False, path_type=Path))
@json_option("the runs")
def list_runs(folder: Path, json: bool) -> None:
    """Runs below FOLDER, newest first: finished, running, unfinished or broken."""
    from sealegs.harness.stored.listing import list_runs as read_runs

    runs = read_runs(folder)
    if not runs:
        say(f"no runs below {folder}", err=True)
    if runs or json:
        print_result(runs, _grid(runs).overview(), json=json)
    for run in runs:
        if run.problem:
            say(f"broken: {run.problem}", err=True)


def _grid(runs: list[ListedRun]) -> Grid:
    """A row for each run, or for each method of one that compares several."""
    from sealegs.page.grid import Grid

    def name(text: str) -> str:
        return text.replace("\n", "␊") or "–"

    rows: list[tuple[str, list[Content]]] = []
    for run in runs:
        figures: dict[str, Figure | None] = {**run.subjects} or {run.model: run.headline}
        for subject, figure in figures.items():
            cells: list[Content] = [run.state, name(run.benchmark), name(subject), figure, run.path]
            rows.append((name(run.created[:16].replace("T", " ")), cells))
    columns = ["state", "benchmark", "model", "headline", "run"]
    return Grid("", "created (UTC)", columns, rows, left=1 + len(columns))


@click.command(
    name="tokenizers",
    epilog=examples(
        "sealegs tokenizers embedded",
        "sealegs tokenizers embedded path/to/tokenizer.json path/to/spiece.model --out tokenizers.html",
        "sealegs tokenizers hf:path/to/one hf:path/to/other --lang ru",
        "sealegs tokenizers embedded --data my_examples.jsonl --json",
    ),
)
@click.argument("specs", nargs=-1, required=True, metavar="SPEC…")
@data_option
@lang_option
@click.option("--out", type=click.Path(path_type=Path), help="Write a page with charts: FILE.html.")
@json_option("the comparison")
def tokenizers_command(
    specs: tuple[str, ...], data: tuple[str, ...], lang: str | None, out: Path | None, json: bool
) -> None:
    """Compare tokenizers on MIRON's examples: tokens per word, characters per token, words that are one
    token, and boundary merges.

    A tokenizer is named by its model (embedded, hf:ID-or-path, of which no weights are loaded), or it is a
    file or folder of its own: tokenizer.json, a SentencePiece model, a .tiktoken file.
    """
    from sealegs.api.setup import parse_langs
    from sealegs.harness.registry import TOKENIZERS

    tokenizers = importlib.import_module(TOKENIZERS)
    comparison = tokenizers.compare(tokenizers.read(data, parse_langs(lang)), specs)
    print_result(comparison.summaries, comparison.overview(), json=json)
    if out:
        from sealegs.files.cache import write_whole
        from sealegs.report.html_page import render_tokenizers

        write_whole(out, render_tokenizers(comparison))
        if not json:
            say(f"Page: {out}")
