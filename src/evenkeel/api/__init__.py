"""What the command line and Python call: ask, score, build, plan."""

from evenkeel.api.build import build
from evenkeel.api.plan import dry_run
from evenkeel.api.recorded import group_files, score
from evenkeel.api.run import rescore, run

__all__ = ["build", "dry_run", "group_files", "rescore", "run", "score"]
