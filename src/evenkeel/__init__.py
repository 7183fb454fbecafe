"""How steady is a language model? Four published reliability benchmarks in one harness.

    import evenkeel as ek

    run = ek.run("mirae", model="embedded", lang=["en"], limit=8)
    run.summary["mean_similarity"]

What there is, under the names of the command line:

    run, score, rescore      ask a model; score answers recorded elsewhere; score a run's answers again
    suite                    benchmarks on several models from one file, and their leaderboards
    dry_run                  what a run would ask, and what that would cost
    data_problem             why a benchmark cannot read a data set
    build, review            make a data set, from a seed or from your own texts; look through it
    compare, gate            runs against each other; a run against a baseline
    leaderboard              runs by their headline; those that do not differ significantly share a rank
    flips, both              the samples on which two runs differ; one of them in both
    explained                what each metric of a benchmark means, and what to be careful about
    scorecard, export        a model's runs side by side; a run as CSV, Parquet, published or shared files
    render                   the page of a run, or of several side by side, as HTML
    charts, tables, settings  the pictures and tables of a run, and what it was asked with
    Run, load_run            a run's folder: figures, records, a data frame
    load_runs                the figures of many runs as one data frame
    list_runs, open_run      the runs below a folder with their states; one of them by its name
    read_progress, stop      how far a run is that a process is writing; ask it to stop
    start, start_build, started  runs and builds as processes of their own
    start_again              go on with one of them that stopped or failed
    MiraeOptions, RgbOptions, MironOptions, MultiviewOptions
    load_model               a model by its spec; it answers a stream of requests
    presets                  well-known servers of models; which keys are set
    list_benchmarks, describe  the benchmarks by name; the options of a class
    Generate, LogLikelihood, StringLikelihood, Embed, Rank, Entail, Message, Sampling, Response
    Benchmark, Metric, Sample, Score
    EvenkeelError, UsageError

Each function has an example in its help; docs/extending.md shows a benchmark of your own. Nothing heavy is
loaded until it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenkeel.analysis.comparison import compare
    from evenkeel.analysis.gate import gate
    from evenkeel.analysis.leaderboard import leaderboard
    from evenkeel.api.build import build
    from evenkeel.api.explained import explained
    from evenkeel.api.launch import start, start_again, start_build, started
    from evenkeel.api.plan import dry_run
    from evenkeel.api.readable import data_problem
    from evenkeel.api.run import rescore, run, score
    from evenkeel.api.suite.suite import suite
    from evenkeel.benchmarks.mirae.benchmark import MiraeOptions
    from evenkeel.benchmarks.miron.benchmark import MironOptions
    from evenkeel.benchmarks.multiview.benchmark import MultiviewOptions
    from evenkeel.benchmarks.rgb.options import RgbOptions
    from evenkeel.errors import EvenkeelError, UsageError
    from evenkeel.harness.benchmark import Benchmark
    from evenkeel.harness.control import read_progress, stop
    from evenkeel.harness.folder import Run, load_run
    from evenkeel.harness.registry import list_benchmarks
    from evenkeel.harness.stored.figures import load_runs
    from evenkeel.harness.stored.listing import list_runs, open_run
    from evenkeel.make.review import review
    from evenkeel.models.presets import presets
    from evenkeel.models.registry import load_model
    from evenkeel.options import describe
    from evenkeel.page.metrics import Metric
    from evenkeel.report.export import export
    from evenkeel.report.html_page import render
    from evenkeel.report.pictures import charts, settings, tables
    from evenkeel.report.samples.flips import flips, compare_sample
    from evenkeel.report.scorecard import scorecard
    from evenkeel.types import (
        Embed,
        Entail,
        Generate,
        LogLikelihood,
        Message,
        Rank,
        Response,
        Sample,
        Sampling,
        Score,
        StringLikelihood,
    )

__version__ = "0.2.0"

_MODULES = {
    "evenkeel.analysis.comparison": "compare",
    "evenkeel.report.samples.flips": "flips compare_sample",
    "evenkeel.analysis.gate": "gate",
    "evenkeel.analysis.leaderboard": "leaderboard",
    "evenkeel.api.build": "build",
    "evenkeel.api.launch": "start start_again start_build started",
    "evenkeel.api.plan": "dry_run",
    "evenkeel.api.readable": "data_problem",
    "evenkeel.api.run": "rescore run score",
    "evenkeel.api.suite.suite": "suite",
    "evenkeel.benchmarks.mirae.benchmark": "MiraeOptions",
    "evenkeel.benchmarks.miron.benchmark": "MironOptions",
    "evenkeel.benchmarks.multiview.benchmark": "MultiviewOptions",
    "evenkeel.benchmarks.rgb.benchmark": "RgbOptions",
    "evenkeel.errors": "EvenkeelError UsageError",
    "evenkeel.make.review": "review",
    "evenkeel.models.presets": "presets",
    "evenkeel.models.registry": "load_model",
    "evenkeel.options": "describe",
    "evenkeel.page.metrics": "Metric",
    "evenkeel.report.export": "export",
    "evenkeel.report.html_page": "render",
    "evenkeel.report.pictures": "charts settings tables",
    "evenkeel.report.scorecard": "scorecard",
    "evenkeel.harness.benchmark": "Benchmark",
    "evenkeel.harness.control": "read_progress stop",
    "evenkeel.api.explained": "explained",
    "evenkeel.harness.folder": "Run load_run",
    "evenkeel.harness.stored.figures": "load_runs",
    "evenkeel.harness.stored.listing": "list_runs open_run",
    "evenkeel.harness.registry": "list_benchmarks",
    "evenkeel.types": "Embed Entail Generate LogLikelihood Message Rank Response Sample Sampling Score "
    "StringLikelihood",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "Benchmark",
    "Embed",
    "Entail",
    "EvenkeelError",
    "Generate",
    "LogLikelihood",
    "Message",
    "Metric",
    "MiraeOptions",
    "MironOptions",
    "MultiviewOptions",
    "Rank",
    "Response",
    "RgbOptions",
    "Run",
    "Sample",
    "Sampling",
    "Score",
    "StringLikelihood",
    "UsageError",
    "__version__",
    "build",
    "charts",
    "compare",
    "data_problem",
    "describe",
    "dry_run",
    "explained",
    "export",
    "flips",
    "gate",
    "leaderboard",
    "list_benchmarks",
    "list_runs",
    "load_model",
    "load_run",
    "load_runs",
    "open_run",
    "presets",
    "read_progress",
    "render",
    "rescore",
    "review",
    "run",
    "compare_sample",
    "score",
    "scorecard",
    "settings",
    "start",
    "start_again",
    "start_build",
    "started",
    "stop",
    "suite",
    "tables",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'evenkeel' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
