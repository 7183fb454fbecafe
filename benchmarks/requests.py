"""How fast are many requests? 2,000 chat requests to a server on loopback at 256 connections.

Side by side, in one go: a bare aiohttp client that writes nothing, Sealegs from the shell to the finished
summary with every answer journaled, and lm-eval and Inspect where they are installed (on the PATH).

    python benchmarks/requests.py
    python benchmarks/requests.py --requests 2000 20000 200000     is the cost per request flat?
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import msgspec

import sealegs as sl
from memory import Peaks
from peers import INSPECT, LM_EVAL, inspect_command, lm_eval_command, write_questions
from sealegs.harness.dispatcher import Dispatcher
from sealegs.types import Request
from server import server
from table import Row, show

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what pip installs is compiled
REPEATS = 5
CONNECTIONS = 256
ROUNDS = 9
"""In which the bare client and the request phase take turns; the fastest of each counts, since other work on
the machine only ever slows one down."""


class Times(NamedTuple):
    seconds: float
    processor: float


def now() -> Times:
    return Times(time.perf_counter(), time.process_time())


def since(start: Times) -> Times:
    end = now()
    return Times(end.seconds - start.seconds, end.processor - start.processor)


def fastest(times: Sequence[Times]) -> Times:
    return Times(*map(min, zip(*times, strict=True)))


async def bare(url: str, prompts: list[str]) -> None:
    """The least that can be done: send, read, decode, forget."""
    bodies = iter(
        msgspec.json.encode(
            {"model": "loop", "messages": [{"role": "user", "content": prompt}], "max_tokens": 256}
        )
        for prompt in prompts
        for _ in range(REPEATS)
    )

    async def work(session: aiohttp.ClientSession) -> None:
        for body in bodies:
            async with session.post(f"{url}/chat/completions", data=body) as reply:
                msgspec.json.decode(await reply.read())

    connector = aiohttp.TCPConnector(limit=0)
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        await asyncio.gather(*(work(session) for _ in range(CONNECTIONS)))


class Stopwatch:
    """Measures the request phase of a run: until every answer is on disk, without starting up and scoring."""

    def __init__(self) -> None:
        self.times: list[Times] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        ask = Dispatcher.ask

        def timed(dispatcher: Dispatcher, role: str, requests: Callable[[], Iterator[Request]]) -> None:
            start = now()
            ask(dispatcher, role, requests)
            if role == "model":
                self.times.append(since(start))

        Dispatcher.ask = timed  # type: ignore[method-assign,assignment]
        try:
            yield
        finally:
            Dispatcher.ask = ask  # type: ignore[method-assign]


def settings(url: str, questions: Path, out: Path) -> dict[str, Any]:
    return {
        "base_url": url, "data": questions, "levels": "1", "repeats": REPEATS, "embedder": "openai:embed",
        "concurrency": CONNECTIONS, "out": out,
    }  # fmt: skip


def from_the_shell(url: str, questions: Path, out: Path) -> tuple[float, float, str]:
    """Seconds until the summary is there and until the command is done, and what it used."""
    options = [f"--{name.replace('_', '-')}={value}" for name, value in settings(url, questions, out).items()]
    start = time.time()
    process = subprocess.Popen(
        [sys.executable, "-m", "sealegs", "run", "mirae", "--model", "openai:loop", *options],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    peaks = Peaks(process.pid)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    whole = time.time() - start
    used = f"{peaks}, {usage.ru_utime + usage.ru_stime:.1f} s of the processor"
    return (out / "summary.json").stat().st_mtime - start, whole, used


def measure(requests: int, folder: Path, *, with_peers: bool) -> None:
    prompts = requests // REPEATS
    questions = write_questions(folder / f"questions-{requests}.json", prompts)
    texts = [item["level_1_text"] for item in msgspec.json.decode(questions.read_bytes())["questions"]]
    rows: list[Row] = []
    with server() as url:
        bare_times, watch = [], Stopwatch()
        for number in range(ROUNDS):
            start = now()
            asyncio.run(bare(url, texts))
            bare_times.append(since(start))
            with watch.watching():
                out = folder / f"api-{requests}-{number}"
                sl.run("mirae", "openai:loop", progress=False, **settings(url, questions, out))
        client, phase = fastest(bare_times), fastest(watch.times)
        rows.append(("bare aiohttp client, writes nothing", client.seconds, requests / client.seconds))
        rows.append(("sealegs, the request phase alone", phase.seconds, requests / phase.seconds))

        summary, whole, used = from_the_shell(url, questions, folder / f"shell-{requests}")
        rows.append(("sealegs, from the shell to the summary", summary, requests / summary))
        rows.append((f"sealegs, with the page too ({used})", whole, requests / whole))
        if with_peers:
            for name, command in ((LM_EVAL, lm_eval_command), (INSPECT, inspect_command)):
                if line := command(url, questions, folder, REPEATS, CONNECTIONS):
                    started = time.perf_counter()
                    subprocess.run(
                        line.argv, env={**os.environ, **line.env}, cwd=folder, check=True, capture_output=True
                    )
                    seconds = time.perf_counter() - started
                    rows.append((f"{name}, from the shell to its results", seconds, requests / seconds))
                else:
                    print(f"({name} is not installed)")
    show(f"{requests:,} chat requests, {CONNECTIONS} connections", rows)
    print(
        f"request phase against bare aiohttp: {client.seconds / phase.seconds:.2f} of its rate; "
        f"{client.processor:.2f} s of the processor against {phase.processor:.2f} s "
        f"({client.processor / phase.processor:.2f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, nargs="+", default=[2000])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for number in arguments.requests:
            measure(number, Path(folder), with_peers=number <= 2000)


if __name__ == "__main__":
    main()
