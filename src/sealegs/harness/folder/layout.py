"""What lies in a run's folder.

A folder may come from a stranger: no link in it is followed.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from sealegs.errors import DataError

PROGRESS = "progress.json"
STOP, STOPPED = "stop", "stopped"
CONTROL = (PROGRESS, STOP, STOPPED)
"""Files of a run that is being written, which `harness/control.py` explains."""
STARTED, LOG = "started.json", "log"
"""What its process was begun with, and what one without a terminal printed: `api/launch.py`."""
MARKS = "marks.jsonl"
"""What people say of the scores: it outlives the run's own files."""
BATCHES = "batches.json"
"""The batches that were handed in, which `models/openai/batches/stored.py` explains."""
RESULTS = ("records.jsonl", "summary.json", "report.html", "export")
FILES = ("spec.json", "journal.sqlite", *RESULTS, BATCHES, *CONTROL, STARTED)
LOGS = ("journal.sqlite-wal", "journal.sqlite-shm")
LARGEST_BYTES = {"spec.json": 2**24, "summary.json": 2**28, PROGRESS: 2**16, STARTED: 2**24, MARKS: 2**26}
"""Bytes of a file that is read as a whole."""


def run_file(folder: Path, name: str) -> Path | None:
    """A file of a run by its name, or None where there is none. A link is refused: it may lead anywhere."""
    path = folder / name
    for part in (path, *path.parents):
        if part == folder:
            break
        if part.is_symlink():
            raise DataError(part, "this is a link. The files of a run must lie in its own folder.")
    if not path.is_file():
        if path.exists():
            raise DataError(path, "this is not a file.")
        return None
    if path.stat().st_size > LARGEST_BYTES.get(name, path.stat().st_size):
        raise DataError(path, f"this file is larger than {LARGEST_BYTES[name] >> 20} MiB.")
    return path


def is_unused(folder: Path) -> bool:
    """Whether a folder is not there, or holds no more than the settings of a run that has not begun."""
    return not folder.exists() or all(path.name == STARTED for path in folder.iterdir())


def how_to_resume(folder: Path) -> str:
    """The command that resumes a run, for a message; it is short where the folder has the settings."""
    if (folder / STARTED).is_file():
        return f"`{shlex.join(['sealegs', 'resume', str(folder)])}`"
    return f"the same command and --out {folder}"
