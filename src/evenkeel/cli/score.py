"""`evenkeel score BENCHMARK FILE…`: figures from answers that were recorded elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evenkeel.cli import options, say
from evenkeel.run.registry import chosen_class

EXAMPLES = {
    "mirae": (
        "evenkeel score mirae MIRAE_claude_haiku_results_english.json --out runs/haiku",
        "evenkeel score mirae A.json B.json C.json",
        "evenkeel score mirae A.json --embedder embedded-embedder --embedder sbert:path/to/model --chunked",
    ),
    "rgb": ("evenkeel score rgb prediction_en_NAME_temp0.2_noise0.4_passage5_correct0.0.json",),
    "miron": ("evenkeel score miron miron_en.jsonl",),
    "multiview": ("evenkeel run multiview --data triplets.jsonl --method bm25",),
}


@click.group(
    cls=options.BenchmarkGroup,
    name="score",
    subcommand_metavar="BENCHMARK FILE… [OPTIONS]",
    epilog=options.examples(EXAMPLES),
)
def command() -> None:
    """Score answers recorded elsewhere, in the published formats."""


@command.make
def _command(name: str) -> click.Command:
    @click.command(
        name=name,
        help=f"Score recorded answers of {name}; several files stand side by side.",
        epilog=options.examples(EXAMPLES, name),
    )
    @click.argument("files", nargs=-1, required=True, metavar="FILE…", type=click.Path())
    @options.from_struct(chosen_class(name).Options, asking=False)
    @options.lang
    @options.base_url
    @options.out
    @options.fresh
    @options.concurrency
    @options.min_coverage
    @options.as_json
    @click.pass_context
    def score(ctx: click.Context, /, files: tuple[str, ...], **given: Any) -> None:
        ctx.exit(_score(name, [Path(file) for file in files], **given))

    return score


def _score(
    benchmark: str,
    files: list[Path],
    *,
    out: str | None,
    resume: bool,
    min_coverage: float,
    as_json: bool,
    **given: Any,
) -> int:
    from rich.console import Console

    from evenkeel import api
    from evenkeel.cli.outcome import check_coverage, print_json, show
    from evenkeel.report.progress import Watcher
    from evenkeel.report.terminal import show_side_by_side

    for file in files:  # a file that cannot be read is found before the others are embedded
        api.read_recorded(benchmark, file, lang=given["lang"])
    runs = []
    stems = [file.stem for file in files]
    for number, file in enumerate(files):
        name = file.stem if stems.count(file.stem) == 1 else f"{file.stem}-{number + 1}"
        folder = Path(out, name) if out and len(files) > 1 else out
        runs.append(api.score(benchmark, file, out=folder, fresh=not resume, progress=Watcher(), **given))
    for file, run in zip(files, runs, strict=True):
        if (agreement := run.agreement()) is not None:
            say(f"{file.name}: {agreement}", err=True)
    if len(runs) == 1:
        return show(runs[0], min_coverage=min_coverage, as_json=as_json)
    if as_json:
        print_json({str(run.path): run.summary for run in runs})
        return max(check_coverage(run, min_coverage) for run in runs)
    show_side_by_side(Console(), runs, chosen_class(benchmark).layout)
    for run in runs:
        say(f"Report: {run.path / 'report.html'}")
    return max(check_coverage(run, min_coverage) for run in runs)
