"""How much longer does a suite of three models on servers take than its slowest model alone?

Each model is on a server of its own on loopback that takes its time for every answer, as a model does. Alone
and together, from the shell to the leaderboard; everything is asked anew.

    python benchmarks/suite.py
    python benchmarks/suite.py --latency 0.05 0.05 0.05      all end at the same time, and are scored at once
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from peers import write_questions
from server import server
from table import Row, show

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what pip installs is compiled
REPEATS = 5


def write_suite(folder: Path, urls: dict[str, str], requests: int, concurrency: int) -> Path:
    """MIRAE on a model of each server; the same server embeds its answers."""
    write_questions(folder / "questions.json", requests // REPEATS)
    models = [f"  - {{spec: 'openai:{name}', base_url: '{url}'}}" for name, url in urls.items()]
    benchmarks = [
        f"  - {{benchmark: mirae, name: {name}, models: [{name}], data: questions.json, concurrency: "
        f"{concurrency}, options: {{levels: 1, repeats: {REPEATS}, embedder: 'openai:e?base_url={url}'}}}}"
        for name, url in urls.items()
    ]
    path = folder / "suite.yaml"
    path.write_text("\n".join(["models:", *models, "benchmarks:", *benchmarks, ""]))
    return path


def seconds(path: Path, out: Path, *only: str) -> tuple[float, float]:
    """How long a suite takes, and how much of the processor."""
    start, before = time.perf_counter(), os.times()
    command = [sys.executable, "-m", "sealegs", "suite", str(path), "--out", str(out)]
    subprocess.run(
        [*command, *(part for name in only for part in ("--only", f"{name}-*"))],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    after = os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - start, processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=1000, help="of each model")
    parser.add_argument(
        "--latency",
        type=float,
        nargs="+",
        default=[0.02, 0.035, 0.05],
        help="seconds for an answer, by server",
    )
    parser.add_argument("--concurrency", type=int, default=8, help="requests at once to each server")
    arguments = parser.parse_args()
    requests, latencies = arguments.requests, arguments.latency
    names = [f"model{number}" for number in range(1, len(latencies) + 1)]
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        servers = [stack.enter_context(server(latency=latency)) for latency in latencies]
        path = write_suite(folder, dict(zip(names, servers, strict=True)), requests, arguments.concurrency)
        alone = max(seconds(path, folder / name, name) for name in names)
        together = seconds(path, folder / "all")
    rows: list[Row] = [
        (f"{title} ({processor:.1f} s of the processor)", wall, count * requests / wall)
        for title, count, (wall, processor) in (
            ("the slowest alone", 1, alone),
            (f"all {len(names)} together", len(names), together),
        )
    ]
    shown = ", ".join(f"{latency * 1000:g}" for latency in latencies)
    show(
        f"a suite: {requests:,} requests to each of {len(names)} servers, {arguments.concurrency} at once, "
        f"answered in {shown} ms",
        rows,
    )


if __name__ == "__main__":
    main()
