"""What the command line and Python call: ask, score, build, plan."""

from evenkeel.api.build import build
from evenkeel.api.plan import dry_run
from evenkeel.api.run import group_files, rescore, run, score

__all__ = ["build", "dry_run", "group_files", "rescore", "run", "score"]
