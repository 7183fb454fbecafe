"""Does a run end whole on a bad server? 20,000 chat requests at 512 connections, of which 10 % go wrong.

The server (a process of its own) fails in every way of `tests/faults.py`. Each answer is checked against its
question, and what is still open at the end is counted.

    python benchmarks/hard_use.py
    python benchmarks/hard_use.py --requests 2000 --connections 64 --fail 0.3
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import re
import subprocess
import sys
import threading
import time
import urllib.request
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

import evenkeel as ek
from evenkeel.types import Generate, Message, Response, Sampling

SERVER = Path(__file__).parents[1] / "tests" / "loopback.py"


@contextmanager
def server(fail: float) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, str(SERVER), "--words", "220", "--fail", str(fail), "--every-fault"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def memory(name: str) -> float:
    """MB of this process: VmRSS or VmHWM."""
    match = re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(match[1]) / 1024 if match else 0.0


def open_now() -> dict[str, int]:
    """What this process has open."""
    gc.collect()
    tasks = sum(isinstance(each, asyncio.Task) and not each.done() for each in gc.get_objects())
    return {
        "file descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "threads": threading.active_count(),
        "asyncio tasks": tasks,
    }


def is_right(text: str, response: Response) -> bool:
    return response.status == "ok" and f"{zlib.crc32(text.encode()):08x}" in response.text


def counters(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url.replace("/v1", "/stats")) as reply:
        stats: dict[str, Any] = msgspec.json.decode(reply.read())
    return stats


def measure(requests: int, at_once: int, fail: float, timeout: float) -> None:
    with server(fail) as url:
        model: Any = ek.load_model("openai:loop", base_url=url, concurrency=at_once, timeout=timeout)
        list(model.answer([_question("warm up")]))
        before, start_mb = open_now(), memory("VmRSS")
        statuses: Counter[str] = Counter()
        reasons: Counter[str] = Counter()
        wrong, slowest, last = 0, 0.0, time.perf_counter()
        start, processor = last, time.process_time()
        for request, response in model.answer(_question(f"question {n}") for n in range(requests)):
            now = time.perf_counter()
            slowest, last = max(slowest, now - last), now
            statuses[response.status] += 1
            if response.status != "ok":
                reasons[response.reason[:100]] += 1
            elif not is_right(request.prompt[0].content, response):
                wrong += 1
        seconds, processor = time.perf_counter() - start, time.process_time() - processor
        model.close()
        after = open_now()
        time.sleep(1.0)  # the server learns of a closed connection from its loop
        stats = counters(url)
    print(f"{requests:,} requests, {at_once} connections, {fail:.0%} faults of every kind")
    rows: dict[str, object] = {
        "coverage": f"{statuses['ok'] / requests} ({statuses['ok']:,} of {requests:,})",
        "answers that belong to another question": wrong,
        "requests that the server saw": f"{stats['requests']:,}",
        "seconds": f"{seconds:.1f} ({requests / seconds:,.0f} a second)",
        "seconds of the processor": f"{processor:.1f}",
        "longest time without an answer": f"{slowest:.1f} s",
        "memory": f"{start_mb:.0f} MB before, peak {memory('VmHWM'):.0f} MB",
        "left open": ", ".join(f"{after[name] - before[name]:+d} {name}" for name in after),
        "connections that the server still has": stats["connections"] - 1,  # less the one that asks
    }
    for name, value in rows.items():
        print(f"  {name:40} {value}")
    for reason, count in reasons.most_common(10):
        print(f"  {count} times: {reason}")


def _question(text: str) -> Generate:
    return Generate(prompt=(Message("user", text),), sampling=Sampling(max_tokens=256))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--connections", type=int, default=512)
    parser.add_argument("--fail", type=float, default=0.1)
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds that one try may take")
    arguments = parser.parse_args()
    measure(arguments.requests, arguments.connections, arguments.fail, arguments.timeout)


if __name__ == "__main__":
    main()
