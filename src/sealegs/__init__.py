"""How steady is a language model? Four published reliability benchmarks in one harness.

    import sealegs as sl

    run = sl.run("mirae", model="embedded", lang=["en"], limit=8)
    run.summary["mean_similarity"]

What there is, under the names of the command line:

    run, score, rescore      ask a model; score answers recorded elsewhere; score a run's answers again
    suite                    benchmarks on several models from one file, and their leaderboards
    dry_run                  what a run would ask, and what that would cost
    build                    make a data set, from a seed or from your own texts
    compare, gate            runs against each other; a run against a baseline
    leaderboard              runs by their headline, each with how many are significantly better
    flips                    the samples on which two runs differ, the largest changes first
    scorecard, export        a model's runs side by side; a run as CSV, Parquet, published or shared files
    render                   the page of a run, or of several side by side, as HTML
    charts, tables           a run's pictures and tables
    Run, load_run            a run's folder: figures, records, a data frame
    load_runs, list_runs     the figures of many runs as one data frame; the runs below a folder
    MiraeOptions, RgbOptions, MironOptions, MultiviewOptions
    load_model               a model by its spec; it answers a stream of requests
    list_benchmarks          the benchmarks by name
    Generate, LogLikelihood, Embed, Rank, Message, Sampling, Response
    Benchmark, Metric, Sample, Score, make_score
    Layout, Table, Column, Curve, Bars, Points
    SealegsError, UsageError

Each function has an example in its help; docs/extending.md shows a benchmark of your own. Nothing heavy is
loaded until it is used: `__init__.pyi` lists each public name with its module.
"""

from __future__ import annotations

import lazy_loader

__version__ = "1.0.0rc1"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
