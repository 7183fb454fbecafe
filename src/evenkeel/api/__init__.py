"""What the command line and Python call."""

from evenkeel.api.calls import (
    Plan,
    build,
    default_folder,
    dry_run,
    parse_langs,
    read_recorded,
    rescore,
    run,
    score,
)

__all__ = [
    "Plan",
    "build",
    "default_folder",
    "dry_run",
    "parse_langs",
    "read_recorded",
    "rescore",
    "run",
    "score",
]
