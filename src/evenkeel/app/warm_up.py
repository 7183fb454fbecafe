"""Read large runs once, in a process beside the app, so that no page has to wait for it.

`python -m evenkeel.app.warm_up RUNS` fills the cache from which samples and leaderboards are read.
"""

from __future__ import annotations

import contextlib
import os
import sys

import evenkeel as ek


def main(folder: str) -> None:
    with contextlib.suppress(OSError, AttributeError):
        os.nice(10)
    finished = [ek.load_run(run.path) for run in ek.list_runs(folder) if run.state == "finished"]
    for run in finished:
        with contextlib.suppress(ek.EvenkeelError, OSError):  # the page will say what is wrong
            run.samples()
    ek.leaderboard(finished)


if __name__ == "__main__":
    main(*sys.argv[1:])
