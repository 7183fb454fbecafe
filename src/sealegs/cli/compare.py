"""Commands that compare runs: `compare` and `gate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sealegs.cli import options
from sealegs.cli.options import examples
from sealegs.cli.output import print_result, say_prose
from sealegs.errors import UsageError


@click.command(
    name="compare",
    epilog=examples(
        "sealegs compare runs/yesterday runs/today",
        "sealegs compare runs/a runs/b --metric mean_similarity --metric mean_similarity/lang=ko",
        "sealegs compare runs/a runs/b runs/c",
        "sealegs compare runs/mine runs/haiku --by level",
        "sealegs compare runs/a runs/b --json",
        "sealegs compare logs/a.eval logs/b.eval",
        "sealegs compare lm-eval/model-a lm-eval/model-b --by task",
        "sealegs compare results.csv",
    ),
)
@options.results_argument
@options.metric_option("of two runs every metric shown, of more the headline")
@click.option(
    "--by",
    multiple=True,
    metavar="TAG",
    help="Break the metrics (the headline, if none is named) down by a tag: level, domain, lang; repeat.",
)
@options.reference_option
@options.json_option("the comparison")
def compare_command(runs: tuple[Path, ...], json: bool, **settings: Any) -> None:
    """Compare runs on the samples they share: paired differences, each with its interval.

    Two runs are compared by every metric that their benchmark shows (where methods are under test, by the
    headline of each shared method), more than two by its headline. Recorded answers (`sealegs score`) are
    compared with a run over the same questions; settings that are unknown are listed.

    A RUN may also be what another harness wrote: a log of Inspect, a folder of lm-evaluation-harness, or a
    table (CSV, JSON lines, Parquet) of id and score, with group, model and metric where it has them.
    """
    from sealegs.analysis.comparison import compare

    print_result(compare(*runs, **settings), json=json)


@click.command(
    name="gate",
    options_metavar="--baseline RUN [OPTIONS]",
    epilog=examples(
        "sealegs gate runs/today --baseline runs/yesterday --max-drop 0.01",
        "sealegs gate runs/today --baseline runs/yesterday --metric mean_similarity --metric refusals",
        "sealegs gate runs/today --baseline runs/yesterday --metric accuracy@bm25",
        "sealegs gate runs/today --baseline runs/yesterday --metric estimated_tokens --higher-is-worse",
        "sealegs gate runs/today --baseline runs/yesterday --format junit --out gate.xml",
        "sealegs gate logs/today.json --baseline logs/yesterday.json",
        "sealegs gate results.csv::new --baseline results.csv::old --max-drop 0.02",
    ),
)
@click.argument("run", type=options.RESULTS)
@click.option("--baseline", type=options.RESULTS, help="The run that it is compared with.  [required]")
@options.metric_option("the benchmark's headline")
@click.option(
    "--max-drop",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="How much worse it may be, in the metric's own unit (0.05 of a share is five points): how far it "
    "may fall, or rise where lower is better.",
)
@click.option(
    "--higher-is-worse",
    is_flag=True,
    help="Treat a rise as a change for the worse, for metrics without a better direction.",
)
@options.min_coverage_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "html", "junit", "github", "json"]),
    default="text",
    show_default=True,
    help="Lines to read, a table, a page, a JUnit file, annotations of GitHub Actions, or all as JSON.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it to this file, and the text to the terminal as well.",
)
@click.pass_context
def gate_command(
    ctx: click.Context, /, run: Path, baseline: Path | None, form: str, out: Path | None, **settings: Any
) -> None:
    """Exit with 1 on a significant drop below a baseline, or if too few requests were answered.

    It is worse where the 95% interval of the difference, paired by sample, lies wholly beyond --max-drop; for
    several metrics, where that holds after Holm's correction for their number. Each metric declares whether a
    fall or a rise is the bad change. Runs with too little in common are refused with exit code 2. Files of
    other harnesses are taken as `compare` takes them.
    """
    if baseline is None:
        raise UsageError(f"give the run that {run} is compared with: sealegs gate {run} --baseline RUN")
    from sealegs.analysis.gate import gate
    from sealegs.files.cache import write_whole
    from sealegs.report.gate import FORMATS

    result = gate(run, baseline, **settings)
    if out:
        write_whole(out, FORMATS[form](result))
    if out or form == "text":
        for line in FORMATS["text"](result).splitlines():
            say_prose(line, hanging=6 if line.startswith(("pass  ", "FAIL  ")) else 0)
    else:
        click.echo(FORMATS[form](result), nl=False)
    ctx.exit(0 if result.passed else 1)
