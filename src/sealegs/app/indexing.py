"""Indexes of runs that were made elsewhere, before anyone opens them: the first opening of a run with
thousands of samples would wait for its own. A run that was made here has one: its report reads it.

A process of the lowest priority makes them, which takes nothing from the pages, and ends with the app.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from sealegs.files.record_index import MOST_STORED, is_read_quickly, state_of
from sealegs.harness.folder import load_run
from sealegs.harness.stored.listing import list_runs


def index_runs(folder: Path) -> list[str]:
    """Index the newest runs that are not yet, and return which. Runs that are being written are left
    alone."""
    finished = [run for run in list_runs(folder) if run.state == "finished"]
    missing = [run.path for run in finished[:MOST_STORED] if not _is_indexed(Path(run.path), run.metric)]
    if missing:
        subprocess.run(
            [sys.executable, "-P", "-m", __name__, str(os.getpid()), *missing],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C at the app's terminal is not for it
            check=False,
        )
    return missing


def _is_indexed(run: Path, headline: str) -> bool:
    records = (run / "records.jsonl").resolve()
    try:
        return is_read_quickly(records, state_of(records), headline)
    except OSError:
        return True  # its own page says why it cannot be read


def main(parent: str, runs: Sequence[str]) -> None:
    if hasattr(os, "nice"):
        os.nice(19)
    for path in runs:
        if hasattr(os, "getppid") and str(os.getppid()) != parent:
            return
        with contextlib.suppress(Exception):  # a folder may hold anything; the others are still indexed
            load_run(path).samples()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
