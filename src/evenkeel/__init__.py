"""How steady is a language model? Four published reliability benchmarks in one harness.

    import evenkeel as ek

    run = ek.run("mirae", model="embedded", lang=["en"], limit=8)
    run.summary["mean_similarity"]

What there is, under the names of the command line:

    run, score, rescore      ask a model; score answers recorded elsewhere; score a run's answers again
    suite                    benchmarks on several models from one file, and their leaderboards
    dry_run                  what a run would ask, and what that would cost
    build                    make a data set, from a seed or from your own texts
    compare, gate            runs against each other; a run against a baseline
    leaderboard              runs by their headline; those that do not differ significantly share a rank
    flips, compare_sample    the samples on which two runs differ; one of them in both
    explained                what each metric of a benchmark means, and what to be careful about
    scorecard, export        a model's runs side by side; a run as CSV, Parquet, published or shared files
    render                   the page of a run, or of several side by side, as HTML
    charts, tables, settings, notes_of  a run's pictures and tables, what it was asked with, its warnings
    Run, load_run            a run's folder: figures, records, a data frame
    load_runs                the figures of many runs as one data frame
    list_runs, open_run      the runs below a folder with their states; one of them by its name
    read_progress, stop      how far a run is; ask its process to stop
    start, start_build, started  runs and builds as processes of their own
    MiraeOptions, RgbOptions, MironOptions, MultiviewOptions
    load_model               a model by its spec; it answers a stream of requests
    presets, try_model       well-known servers and which keys are set; what a model can do
    list_benchmarks, describe  the benchmarks by name; the options of a class
    Generate, LogLikelihood, StringLikelihood, Embed, Rank, Message, Sampling, Response
    Benchmark, Metric, Sample, Score
    EvenkeelError, UsageError

Each function has an example in its help; docs/extending.md shows a benchmark of your own. Nothing heavy is
loaded until it is used: `__init__.pyi` lists each public name with its module.
"""

from __future__ import annotations

import lazy_loader

__version__ = "0.3.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
