"""The public names, each with its module: what type checkers read, and what is loaded when it is used."""

from .analysis.comparison import compare as compare
from .analysis.gate import gate as gate
from .analysis.leaderboard import leaderboard as leaderboard
from .api.build import build as build
from .api.plan import dry_run as dry_run
from .api.recorded import score as score
from .api.run import rescore as rescore, run as run
from .api.suite.suite import suite as suite
from .benchmarks.mirae.benchmark import MiraeOptions as MiraeOptions
from .benchmarks.miron.benchmark import MironOptions as MironOptions
from .benchmarks.multiview.benchmark import MultiviewOptions as MultiviewOptions
from .benchmarks.rgb.benchmark import RgbOptions as RgbOptions
from .errors import SealegsError as SealegsError, UsageError as UsageError
from .harness.benchmark import Benchmark as Benchmark, make_score as make_score
from .harness.folder import Run as Run, load_run as load_run
from .harness.registry import list_benchmarks as list_benchmarks
from .harness.stored.figures import load_runs as load_runs
from .harness.stored.listing import list_runs as list_runs
from .models.registry import load_model as load_model
from .page.layout import (
    Bars as Bars,
    Column as Column,
    Curve as Curve,
    Layout as Layout,
    Points as Points,
    Table as Table,
)
from .page.metrics import Metric as Metric
from .report.export import export as export
from .report.html_page import render as render
from .report.describe import charts as charts, tables as tables
from .report.samples.flips import flips as flips
from .report.scorecard import scorecard as scorecard
from .types import (
    Embed as Embed,
    Generate as Generate,
    LogLikelihood as LogLikelihood,
    Message as Message,
    Rank as Rank,
    Response as Response,
    Sample as Sample,
    Sampling as Sampling,
    Score as Score,
)

__all__: list[str]
__version__: str
