"""How fast does the app answer? Each page for a run, and the time until `sealegs app` is up.

python benchmarks/app.py RUNS NAME      NAME is a run below RUNS, of 5,000 samples say
"""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from urllib.parse import quote

PAGES = (
    "/", "/new-run", "/run?run={}", "/samples?run={}", "/sample?run={}", "/compare?run={}", "/leaderboard",
    "/scorecard?of={}", "/build", "/explained",
)  # fmt: skip
REPEATS = 5
SETTLE_S = 2.0
"""About what a person needs to read the first page: meanwhile the app loads the others."""


def main() -> None:
    runs, name = sys.argv[1:3]
    command = [sys.executable, "-m", "sealegs", "app", "--runs", runs, "--port", "0", "--no-open"]
    began = time.perf_counter()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if " is at " in line)
        print(f"up after {time.perf_counter() - began:.2f} s")
        address = line.partition(" is at ")[2].split()[0]
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        browser.open(address).close()
        time.sleep(SETTLE_S)
        for page in PAGES:
            times = []
            for _ in range(REPEATS):
                start = time.perf_counter()
                browser.open(address.partition("/?")[0] + page.format(quote(name))).read()
                times.append(1000 * (time.perf_counter() - start))
            print(f"{page:<20} first {times[0]:6.0f} ms, then {min(times[1:]):6.0f} ms")
        process.terminate()


if __name__ == "__main__":
    main()
