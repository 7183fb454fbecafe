"""The test server in a process of its own, for benchmarks that ask one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "tests" / "loopback.py"


@contextmanager
def server(*, latency: float = 0.0) -> Iterator[str]:
    """The address of a server whose replies have about 300 tokens and come after so many seconds."""
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), "--words", "220", "--latency", str(latency)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()
