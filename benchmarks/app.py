"""How fast does the app answer? Each page as the first that a new app is asked for, and once more.

In brackets the processor's time, which a busy machine hardly changes.

python benchmarks/app.py RUNS NAME [OTHER]      NAME is a run below RUNS, of 5,000 samples say
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

PAGES = (
    "/", "/new-run", "/run?run={0}", "/samples?run={0}", "/samples?run={0}&search=sail", "/sample?run={0}",
    "/compare?run={0}", "/compare?run={0}&run={1}", "/leaderboard", "/scorecard?of={0}",
    "/build", "/explained",
)  # fmt: skip
SETTLE_S = 2.0
"""About what a person needs to open a browser: meanwhile the app imports what pages need."""


@contextmanager
def app(runs: str) -> Iterator[tuple[str, float, int]]:
    """The address of an app, with its token, the seconds until it was up, and its process."""
    command = [sys.executable, "-m", "sealegs", "app", "--runs", runs, "--port", "0", "--no-open"]
    began = time.perf_counter()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if " is at " in line)
        try:
            yield line.partition(" is at ")[2].split()[0], time.perf_counter() - began, process.pid
        finally:
            process.terminate()


def processor_ms(pid: int) -> float:
    """What a process took so far, in steps of 10 ms; 0 where the system has no /proc."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def opened(browser: urllib.request.OpenerDirector, address: str, pid: int) -> str:
    start, before = time.perf_counter(), processor_ms(pid)
    browser.open(address).read()
    return f"{1000 * (time.perf_counter() - start):6.0f} ms ({processor_ms(pid) - before:.0f})"


def main() -> None:
    runs, names = sys.argv[1], [*map(quote, sys.argv[2:])]
    for page in PAGES:
        if "{1}" in page and len(names) < 2:
            continue
        with app(runs) as (address, seconds, pid):
            time.sleep(SETTLE_S)
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            browser.open(address.replace("/?", "/static/app.css?")).close()
            asked = address.partition("/?")[0] + page.format(*names)
            first, second = opened(browser, asked, pid), opened(browser, asked, pid)
        print(f"{page:<32} first {first}, then {second}; up after {seconds:.2f} s")


if __name__ == "__main__":
    main()
