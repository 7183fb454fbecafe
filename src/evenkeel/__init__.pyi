"""The public names, each with its module: what type checkers read, and what is loaded when it is used."""

from .analysis.comparison import compare as compare
from .analysis.gate import gate as gate
from .analysis.leaderboard import leaderboard as leaderboard
from .api.build import build as build
from .api.explained import explained as explained
from .api.launch import (
    start as start,
    start_build as start_build,
    started as started,
)
from .api.plan import dry_run as dry_run
from .api.recorded import score as score
from .api.run import rescore as rescore, run as run
from .api.suite.suite import suite as suite
from .api.trial import try_model as try_model
from .benchmarks.mirae.benchmark import MiraeOptions as MiraeOptions
from .benchmarks.miron.benchmark import MironOptions as MironOptions
from .benchmarks.multiview.benchmark import MultiviewOptions as MultiviewOptions
from .benchmarks.rgb.benchmark import RgbOptions as RgbOptions
from .errors import EvenkeelError as EvenkeelError, UsageError as UsageError
from .harness.benchmark import Benchmark as Benchmark, make_score as make_score
from .harness.control import read_progress as read_progress, stop as stop
from .harness.folder import Run as Run, load_run as load_run
from .harness.registry import list_benchmarks as list_benchmarks
from .harness.stored.figures import load_runs as load_runs
from .harness.stored.listing import list_runs as list_runs, open_run as open_run
from .models.presets import presets as presets
from .models.registry import load_model as load_model
from .options import describe as describe
from .page.metrics import Metric as Metric
from .report.export import export as export
from .report.html_page import render as render
from .report.notes import notes_of as notes_of
from .report.describe import charts as charts, settings as settings, tables as tables
from .report.samples.flips import compare_sample as compare_sample, flips as flips
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
    StringLikelihood as StringLikelihood,
)

__all__: list[str]
__version__: str
