"""Commands that end with a run's figures: `run`, `score`, `rescore` and `demo`."""

from __future__ import annotations

import contextlib
import os
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sealegs.cli import options
from sealegs.cli.options import BenchmarkGroup, SectionedCommand, compose, examples, from_struct
from sealegs.cli.output import check_coverage, print_result, say, show_run
from sealegs.errors import BatchesPending, StorageError, UsageError
from sealegs.harness.limits import Limits
from sealegs.harness.registry import check_option_names, chosen_class, list_benchmarks, load_benchmark
from sealegs.page.format import FLOOR, as_json

if TYPE_CHECKING:
    from sealegs.api.launch import ProcessTask
    from sealegs.report.terminal.progress import Watcher

MODEL_OPTIONS = compose(
    click.option(
        "--model", required=True, metavar="SPEC", help="The model under test: see `sealegs list models`."
    ),
    options.model_args_option,
)
SAMPLING_OPTIONS = compose(
    click.option(
        "--top-p",
        type=click.FloatRange(0, 1, min_open=True),
        help="Sample among the likeliest tokens that have this share of the probability together.",
    ),
    click.option(
        "--top-k", type=click.IntRange(min=1), help="Sample among this many of the likeliest tokens."
    ),
)
"""For benchmarks whose temperature can be chosen: the others take the likeliest token."""
BATCH_OPTION = click.option(
    "--batch",
    is_flag=False,
    flag_value="wait",
    type=click.Choice(["wait", "submit"]),
    help="Ask through the provider's batches, at its lower price; `submit` ends without the answers: "
    "`sealegs resume` fetches them later.",
)
"""For benchmarks whose model only writes."""
RUN_OPTIONS = compose(
    options.base_url_option,
    options.data_option,
    click.option(
        "--column",
        multiple=True,
        metavar="FIELD=COLUMN",
        help="Read a field from a column of another name: query=question; repeat.",
    ),
    options.lang_option,
    click.option("--limit", type=int),
    click.option(
        "--seed",
        type=int,
        default=0,
        show_default=True,
        help="Seed of sampling on this machine; a server gets one with --model-arg send_seed=true.",
    ),
    options.out_option,
    click.option(
        "--resume/--fresh",
        "resume",
        default=True,
        help="Continue the run in --out, or discard it and start again.",
    ),
    click.option(
        "--reuse",
        type=click.Path(exists=True, file_okay=False),
        help="Take answers from another run's journal.",
    ),
    click.option(
        "--concurrency",
        type=click.IntRange(min=1),
        help="At most this many requests at once, to each server.",
    ),
    click.option(
        "--engine",
        default="local",
        show_default=True,
        help="Where models run: local (this process) or ray (a Ray cluster).",
    ),
    click.option(
        "--engine-arg",
        "engine_args",
        multiple=True,
        metavar="KEY=VALUE",
        help="An option of --engine ray: address, workers or gpus_per_worker; repeat.",
    ),
    click.option("--dry-run", is_flag=True, help="Count requests and estimate tokens; ask nothing."),
    from_struct(Limits),
    options.min_coverage_option,
    options.json_option("the summary"),
)


def _make_run(name: str) -> click.Command:
    from sealegs.api.run import RUN_ARGUMENTS

    benchmark = chosen_class(name)
    check_option_names(benchmark, RUN_ARGUMENTS)
    roles = getattr(benchmark, "roles", None) or load_benchmark(name, {}).roles

    decorators = [from_struct(benchmark.Options), RUN_OPTIONS]
    if "model" in roles:
        decorators.append(MODEL_OPTIONS)
    if "model" in roles and "temperature" in benchmark.Options.__struct_fields__:
        decorators.append(SAMPLING_OPTIONS)
    if roles.get("model", {"generate"}) == {"generate"}:
        decorators.append(BATCH_OPTION)

    @compose(*decorators)
    @click.pass_context
    def run(ctx: click.Context, /, **settings: Any) -> None:
        ctx.exit(_run(name, **settings))

    epilog = examples(*options.usage("run", name))
    text = "\n\n".join(filter(None, (benchmark.layout.question, benchmark.help.about)))
    metavar = f"--{benchmark.subjects.tag} SPEC [OPTIONS]"
    command = click.command(name, RunCommand, help=text, epilog=epilog, options_metavar=metavar)(run)
    for option in command.params:
        if isinstance(option, click.Option) and option.name == "data":
            option.show_default = bool(benchmark.starter.sha256)
        if isinstance(option, click.Option) and option.name == "limit":
            option.help = f"Use at most this many {benchmark.help.limit}."
    return command


HOW_TO_NAME = (
    "Which model? `sealegs run {name} --model embedded` asks the small one that comes with Sealegs, "
    "`--model openai:NAME` one on a server; `sealegs list models` lists all kinds."
)


MEANT = {"--samples": "--repeats", "--n": "--repeats", "--max-samples": "--limit"}
"""Options by the names that they have elsewhere."""


class RunCommand(SectionedCommand):
    """A command that says how a model is given, to someone who gave it another way."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as error:
            if error.param is None or "--model" not in error.param.opts:
                raise
            if not given or given[0].startswith("-"):
                raise click.UsageError(HOW_TO_NAME.format(name=self.name), ctx) from None
            raise click.UsageError(f"The model is an option: --model {given[0]}", ctx) from None
        except click.NoSuchOption as error:
            names = {name for option in self.params for name in option.opts}
            if (meant := MEANT.get(error.option_name)) in names:
                raise click.UsageError(f"No such option '{error.option_name}': it is {meant}.", ctx) from None
            if error.option_name != "--model":
                raise
            subject = f"--{chosen_class(str(self.name)).subjects.tag}"
            raise click.UsageError(
                f"{self.name} takes no --model: {subject} says what is compared.", ctx
            ) from None


run_command = BenchmarkGroup(
    "run",
    _make_run,
    help="""Ask a model, score its answers, write the report.

    `sealegs run BENCHMARK --help` lists a benchmark's options.""",
)


def _run(
    name: str,
    *,
    dry_run: bool,
    json: bool,
    resume: bool,
    model_args: tuple[str, ...] = (),
    batch: str | None = None,
    min_coverage: float,
    **settings: Any,
) -> int:
    from sealegs import api
    from sealegs.models.registry import parse_args

    settings |= {"model_args": parse_args(model_args), "batch": batch is not None, "wait": batch != "submit"}
    settings["engine_args"] = parse_args(settings["engine_args"])
    if not dry_run:
        from sealegs.api.launch import ProcessTask

        out = settings.pop("out")
        settings = {name: value for name, value in settings.items() if value is not None}
        task = ProcessTask(kind="run", benchmark=name, settings=settings, min_coverage=min_coverage)
        return run_and_show(task, out=out, fresh=not resume, json=json)
    from sealegs.models.engines.engine import engine_options

    engine_options(settings["engine"], settings["engine_args"])
    plan = api.dry_run(name, **settings)
    print_result(plan, json=json)
    return UsageError.exit_code if plan.problem else 0


def run_and_show(
    task: ProcessTask, *, out: str | Path | None, fresh: bool = False, json: bool = False
) -> int:
    """Run a benchmark, with its settings stored for `sealegs resume`, print its figures, and return the exit
    code."""
    from sealegs import api

    try:
        run = api.run(task.benchmark, **task.settings, out=out, fresh=fresh, progress=storing(task))
    except BatchesPending as pending:
        say(str(pending), err=json)
        return pending.exit_code
    return show_run(run, min_coverage=task.min_coverage, json=json)


def storing(task: ProcessTask) -> Watcher:
    """The terminal's watcher, which stores the settings for `sealegs resume` once the folder is ours."""
    from sealegs.api.launch import record
    from sealegs.report.terminal.progress import Watcher

    class Storing(Watcher):
        def began(self, folder: Path) -> None:
            with contextlib.suppress(UsageError, StorageError):  # it is resumed by the same command
                record(folder, task, os.getpid())

    return Storing()


def _make_score(name: str) -> click.Command:
    benchmark = chosen_class(name)
    settings = compose(
        from_struct(benchmark.Options, lambda option: not option.asking),
        click.option("--lang", help="Language of a file that states none: en."),
        options.base_url_option,
        options.out_option,
        options.json_option("the summary"),
    )

    @click.argument("files", nargs=-1, required=True, metavar="FILE…", type=click.Path(path_type=Path))
    @(settings if benchmark.recordings else compose())
    @click.pass_context
    def score(ctx: click.Context, /, **settings: Any) -> None:
        ctx.exit(_score(name, **settings))

    text = (
        f"Score recorded answers of {name}. Files of one model are one run where {name} can combine them (as "
        "MIRAE does languages); others are shown side by side."
    )
    epilog = examples(*options.usage("score", name))
    return click.command(name=name, cls=SectionedCommand, help=text, epilog=epilog)(score)


score_command = BenchmarkGroup(
    "score",
    _make_score,
    help="Score answers recorded elsewhere, in the published formats.",
    offered=lambda benchmark: benchmark.recordings is not None,
)


def _score(
    benchmark: str,
    *,
    files: tuple[Path, ...],
    out: str | None = None,
    json: bool = False,
    lang: str | None = None,
    **settings: Any,
) -> int:
    from rich.console import Console

    from sealegs import api
    from sealegs.page.grid import Overview
    from sealegs.report.describe import describe
    from sealegs.report.notes import notes_of
    from sealegs.report.terminal.progress import Watcher

    # A file that cannot be read is reported before the others are embedded.
    groups = api.group_files(benchmark, files, lang=lang)
    stems = [group[0].stem for group in groups]
    runs = []
    for number, (group, stem) in enumerate(zip(groups, stems, strict=True), 1):
        name = stem if stems.count(stem) == 1 else f"{stem}-{number}"
        folder = Path(out, name) if out and len(groups) > 1 else out
        run = api.score(benchmark, group, out=folder, lang=lang, progress=Watcher(), **settings)
        runs.append(run)
        notes = [note.text for note in notes_of(run)] if len(groups) > 1 else []
        names = ", ".join(file.name for file in group)
        for text in filter(None, [run.agreement(), *notes]):
            say(text if text.startswith(names) else f"{names}: {text}", err=True)
    if len(runs) == 1:
        return show_run(runs[0], min_coverage=FLOOR, json=json)
    if json:
        click.echo(as_json({str(run.path): run.summary for run in runs}))
    else:
        Overview("", grids=describe(*runs).beside).show(Console())
        for run in runs:
            say(f"Report: {run.path / 'report.html'}")
    return max(check_coverage(run, FLOOR) for run in runs)


@click.command(
    name="rescore",
    epilog=examples(
        "sealegs rescore runs/20261115-180400-mirae-embedded",
        "sealegs rescore runs/mine --model openai:NAME --base-url http://127.0.0.1:8000/v1",
    ),
)
@options.run_argument
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="SPEC",
    help="A model of the run (an embedder, a judge) that may be asked for what is not stored; repeat.",
)
@options.model_args_option
@options.base_url_option
@options.json_option("the summary")
@click.pass_context
def rescore_command(
    ctx: click.Context, /, run: Path, model_args: tuple[str, ...], json: bool, **settings: Any
) -> None:
    """Score a run's stored answers again, in place; no stored answer is asked for again.

    Where scoring needs more than is stored, only the bundled models and those named with --model are asked:
    a run's folder may come from anyone, and does not choose which servers this machine talks to.
    """
    from sealegs import api
    from sealegs.models.registry import parse_args
    from sealegs.report.terminal.progress import Watcher

    scored = api.rescore(run, model_args=parse_args(model_args), progress=Watcher(), **settings)
    ctx.exit(show_run(scored, min_coverage=FLOOR, json=json))


NEXT_STEP = "sealegs run rgb --model openai:gpt-4o-mini --limit 12 --dry-run"
"""What the demo ends with: it needs no key."""
GALLERY = Path("docs", "gallery", "index.md")
"""Finished examples: the pages of complete runs, in a checkout."""


def examples_at() -> str:
    """Where the finished examples are: a path in the checkout, else the address of the documentation."""
    import sealegs

    checkout = Path(sealegs.__file__).resolve().parents[2]
    if (checkout / GALLERY).is_file():
        return str(GALLERY if Path.cwd() == checkout else checkout / GALLERY)
    addresses = dict(url.split(", ", 1) for url in metadata.metadata("sealegs").get_all("Project-URL") or ())
    return f"{addresses['Documentation']}gallery/"


@click.command(name="demo", epilog=examples("sealegs demo"))
@click.pass_context
def demo_command(ctx: click.Context) -> None:
    """Try it: a small run of every benchmark on the embedded models, and one page for all."""
    from rich.console import Console

    from sealegs import api
    from sealegs.api.launch import ProcessTask
    from sealegs.api.run import RUNS, new_folder
    from sealegs.models.engines.engine import load_engine
    from sealegs.report.scorecard import scorecard

    folder = new_folder(RUNS, "demo", "embedded")
    runs = []
    with load_engine() as engine:
        for name, benchmark in list_benchmarks().items():
            if benchmark.help.demo:
                say(f"{name}: {benchmark.layout.question}", err=True)
                settings = dict(benchmark.help.demo)
                watcher = storing(ProcessTask(kind="run", benchmark=name, settings=settings))
                runs.append(api.run(name, out=folder / name, engine=engine, progress=watcher, **settings))
    page = folder / "scorecard.html"
    card = scorecard(runs, out=page)
    card.overview().show(Console())
    click.echo("The slices are small, so the intervals are wide; the page links to each benchmark's report.")
    say(f"Report: {page}")
    click.echo(f"Next, a model of your own: what would be asked, and what it would cost?\n  {NEXT_STEP}")
    click.echo(f"Finished examples, with figures that mean something: {examples_at()}")
    ctx.exit(max(check_coverage(run, FLOOR) for run in runs))
