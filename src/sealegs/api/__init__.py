"""What the command line and Python call: ask, score, build, plan."""

from sealegs.api.build import build
from sealegs.api.plan import dry_run
from sealegs.api.recorded import group_files, score
from sealegs.api.run import rescore, run

__all__ = ["build", "dry_run", "group_files", "rescore", "run", "score"]
