"""What the command line and Python call: ask, score, build, plan."""

from evenkeel.api.build import build
from evenkeel.api.plan import dry_run
from evenkeel.api.run import read_recorded, rescore, run, score

__all__ = ["build", "dry_run", "read_recorded", "rescore", "run", "score"]
