"""How long until something happens? Python itself, the command line, the import, the first request sent.

Beside lm-eval and Inspect where they are installed (on the PATH).

    python benchmarks/startup.py
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from memory import Peaks
from peers import INSPECT, LM_EVAL
from table import Row, show

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what pip installs is compiled
TRIES = 5


def seconds(argv: list[str]) -> float:
    """The median of a few runs, after one that warms the file cache."""
    times = []
    for _ in range(TRIES + 1):
        start = time.perf_counter()
        subprocess.run(argv, capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def until_first_request() -> tuple[float, str]:
    """From the shell to the first byte of a request at a server, which is not answered; and the memory."""
    with socket.create_server(("127.0.0.1", 0)) as listener, tempfile.TemporaryDirectory() as folder:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        argv = [sys.executable, "-m", "sealegs", "run", "mirae", "--model", "openai:x", "--base-url", url]
        start = time.perf_counter()
        process = subprocess.Popen(
            [*argv, "--embedder", "openai:y", "--out", f"{folder}/run"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        peaks = Peaks(process.pid)
        connection, _ = listener.accept()
        with connection:
            connection.recv(1)
            taken = time.perf_counter() - start
        process.kill()
        process.wait()
    return taken, str(peaks)


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    python = sys.executable
    ways = {
        "python -c pass": [python, "-c", "pass"],
        "python -c 'import click'": [python, "-c", "import click"],
        "import sealegs": [python, "-c", "import sealegs"],
        "sealegs --help": [python, "-m", "sealegs", "--help"],
        "sealegs run mirae --help": [python, "-m", "sealegs", "run", "mirae", "--help"],
    }
    rows: list[Row] = [(name, taken := seconds(argv), 1 / taken) for name, argv in ways.items()]
    first, used = until_first_request()
    rows.append((f"sealegs run: first request sent ({used})", first, 1 / first))
    for peer in (LM_EVAL, INSPECT):
        if shutil.which(peer):
            taken = seconds([peer, "--help"])
            rows.append((f"{peer} --help", taken, 1 / taken))
        else:
            print(f"({peer} is not installed)")
    show("Start-up, median of five", rows)


if __name__ == "__main__":
    main()
