"""`evenkeel run BENCHMARK --model SPEC`: ask, score, report."""

from __future__ import annotations

from typing import Any

import click

from evenkeel.cli import options
from evenkeel.options import describe
from evenkeel.run.budget import Limits
from evenkeel.run.registry import chosen_class

EXAMPLES = {
    "mirae": (
        "evenkeel run mirae --model embedded --limit 4 --levels 1-3",
        "evenkeel run mirae --model hf:path/to/model --model-arg dtype=bfloat16 --out runs/mine",
        "evenkeel run mirae --model openai:NAME --base-url http://127.0.0.1:8000/v1 --concurrency 256",
        "evenkeel run mirae --model openai:NAME --dry-run",
    ),
    "rgb": (
        "evenkeel run rgb --model embedded --ability all --limit 20",
        "evenkeel run rgb --model openai:NAME --ability noise --noise-rates 0,0.8 --doc-order balanced",
        "evenkeel run rgb --model openai:NAME --judge openai:OTHER --data published --lang en,zh",
    ),
    "miron": (
        "evenkeel run miron --model embedded --limit 200",
        "evenkeel run miron --model hf:path/to/base-model --lang ru --stop word",
    ),
    "multiview": (
        "evenkeel run multiview --method bm25 --method embed:embedded-embedder",
        "evenkeel run multiview --data triplets.jsonl --method judge:openai:NAME --method rerank:sbert:PATH",
    ),
}


@click.group(
    cls=options.BenchmarkGroup,
    name="run",
    subcommand_metavar="BENCHMARK --model SPEC [OPTIONS]",
    epilog=options.examples(EXAMPLES),
)
def command() -> None:
    """Ask a model, score its answers, write the report.

    `evenkeel run BENCHMARK --help` lists a benchmark's options.
    """


MODEL = options.compose(
    [
        click.option(
            "--model", required=True, metavar="SPEC", help="The model under test: see `evenkeel list models`."
        ),
        options.model_args,
    ]
)
COMMON = options.compose(
    [
        options.base_url,
        click.option(
            "--data", default="starter", show_default=True, help="A path, 'starter' or 'published'."
        ),
        options.lang,
        click.option(
            "--limit", type=int, help="Take only so many questions of each language, data set or task."
        ),
        click.option(
            "--seed", type=int, default=0, show_default=True, help="Of sampling and of the intervals."
        ),
        options.out,
        options.fresh,
        click.option(
            "--reuse",
            type=click.Path(exists=True, file_okay=False),
            help="Take answers from another run's journal.",
        ),
        options.concurrency,
        click.option("--engine", default="local", show_default=True, help="Where models run."),
        click.option("--dry-run", is_flag=True, help="Count requests and estimate tokens; ask nothing."),
        options.from_struct(Limits),
        options.min_coverage,
        options.as_json,
    ]
)


@command.make
def _command(name: str) -> click.Command:
    benchmark = chosen_class(name)

    @click.command(name=name, help=benchmark.layout.question, epilog=options.examples(EXAMPLES, name))
    @options.from_struct(benchmark.Options)
    @(options.compose([MODEL, COMMON]) if benchmark.subject == "model" else COMMON)
    @click.pass_context
    def run(ctx: click.Context, /, **given: Any) -> None:
        ctx.exit(_run(name, **given))

    return run


def _run(
    name: str,
    *,
    dry_run: bool,
    min_coverage: float,
    as_json: bool,
    resume: bool,
    model_args: tuple[str, ...] = (),
    model: str | None = None,
    **given: Any,
) -> int:
    from evenkeel import api
    from evenkeel.run.engines import load_engine
    from evenkeel.run.registry import parse_args

    args = parse_args(model_args)
    if dry_run:
        load_engine(given["engine"])
        asked = (chosen_class(name).Options, Limits)
        wanted = {"data", "lang", "limit", "seed", *(o.name for struct in asked for o in describe(struct))}
        plan = api.dry_run(name, model, model_args=args, **{key: given[key] for key in wanted})
        if as_json:
            from evenkeel.cli.outcome import print_json

            print_json(plan)
        else:
            print_plan(plan, given)
        return 0
    from evenkeel.cli.outcome import show
    from evenkeel.report.progress import Watcher

    run = api.run(name, model, **given, model_args=args, fresh=not resume, progress=Watcher())
    return show(run, min_coverage=min_coverage, as_json=as_json)


def print_plan(plan: Any, given: dict[str, Any]) -> None:
    """What a run would ask, and what that would cost at the most."""
    click.echo(f"{'kind':<10}{'requests':>12}{'tokens in':>14}{'tokens out':>14}")
    for kind in plan.requests:
        out = f"≤ {plan.tokens_out[kind]:,}" if plan.tokens_out.get(kind) else "–"
        click.echo(f"{kind:<10}{plan.requests[kind]:>12,}{plan.tokens_in[kind]:>14,}{out:>14}")
    click.echo("Tokens are estimated; every answer is taken at its full length.")
    if plan.usd is not None:
        counted = [kind for kind in plan.requests if kind not in ("embed", "rank")]
        partly = "" if given["price_in"] else ", for what is written; --price-in counts what is read too"
        if any(not plan.tokens_out.get(kind) for kind in counted if kind != "loglikelihood"):
            partly += "; what judges and writers of summaries write is not in it"
        click.echo(f"That costs at the most about ${plan.usd:,.2f}{partly}.")
