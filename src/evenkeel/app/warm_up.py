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
    finished = [run for run in ek.list_runs(folder) if run.state == "finished"]
    # A page reads the newest run first: from the other end, it and this process share the work.
    for run in reversed(finished):
        with contextlib.suppress(ek.EvenkeelError, OSError):  # the page will say what is wrong
            ek.load_run(run.path).samples()
        ek.leaderboard([run.path])


if __name__ == "__main__":
    main(*sys.argv[1:])
