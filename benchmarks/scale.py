"""What does ten times, or a hundred times, the work cost? Whole commands, from the shell to the page.

    python benchmarks/scale.py [--only WORDS]

Chat requests go to a server on loopback; answers are embedded, and texts are scored and continued, by the
embedded models on this machine. Prints the seconds, those of the processor, and the peak of the memory.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from peers import write_questions
from requests import REPEATS, server

TIMES = (1, 10, 100)


def measure(argv: list[str]) -> tuple[float, float, float]:
    """Seconds, seconds of the processor, and megabytes at the peak, of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "evenkeel", "run", *argv],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"evenkeel run {' '.join(argv)} ended with {process.returncode}"
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def mirae(url: str, folder: Path, requests: int, embedder: str) -> list[str]:
    questions = write_questions(folder / f"{embedder.replace(':', '-')}-{requests}.json", requests // REPEATS)
    return [
        "mirae", "--model=openai:loop", f"--base-url={url}", f"--data={questions}", "--levels=1",
        f"--samples={REPEATS}", f"--embedder={embedder}", "--concurrency=256",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="WORDS", help="only the paths whose name holds them")
    only = parser.parse_args().only
    with tempfile.TemporaryDirectory() as name, server() as url:
        folder = Path(name)
        paths: dict[str, Callable[[int], tuple[int, list[str]]]] = {
            "chat requests, 256 connections": lambda times: (
                200 * times, mirae(url, folder, 200 * times, "openai:embed")
            ),
            "long answers embedded by embedded-embedder": lambda times: (
                15 * times, mirae(url, folder, 15 * times, "embedded-embedder")
            ),
            "MIRON examples, embedded model": lambda times: (
                4 * times, ["miron", "--model=embedded", f"--limit={4 * times}", "--lang=en"]
            ),
        }  # fmt: skip
        print(f"{'':44}  {'number':>7}  {'seconds':>8}  {'CPU s':>8}  {'ms each':>8}  {'peak MB':>8}")
        for title, command in paths.items():
            for times in TIMES if only in title else ():
                number, argv = command(times)
                seconds, cpu, megabytes = measure([*argv, f"--out={folder / f'{title[:5]}-{times}'}"])
                each = 1000 * seconds / number
                print(
                    f"{title:44}  {number:7,}  {seconds:8.2f}  {cpu:8.2f}  {each:8.1f}  {megabytes:8,.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
