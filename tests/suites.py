"""Suites on loopback servers: their files, and one that is killed and resumed."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import evenkeel as ek
from commandline import command
from evenkeel.harness.stored.listing import list_runs
from evenkeel.report.suite import SuiteResult
from loopback import Loopback

PATIENCE = 180
"""Seconds after which a test gives up; none of them waits that long on an idle machine."""
SMALL = """
  - {benchmark: mirae, data: questions.json, options: {levels: "1", samples: 2, embedder: "EMBED"}}
"""
FOUR = """
  - {benchmark: mirae, data: questions.json, options: {levels: 1-2, samples: 3, embedder: "EMBED"}}
  - {benchmark: rgb, limit: 2, options: {passages: 2, noise_rates: "0,0.5"}}
  - {benchmark: miron, limit: 6}
  - {benchmark: multiview, limit: 2, options: {method: ["{name}=embed:{model}"]}}
"""


def write_suite(folder: Path, servers: dict[str, Loopback], benchmarks: str = SMALL, more: str = "") -> Path:
    """A suite of one model on each server, named after it."""
    models = "".join(
        f'  - {{spec: "openai:{name}", base_url: "{server.url}", args: {{send_seed: true}}, concurrency: 4}}'
        "\n"
        for name, server in servers.items()
    )
    embedder = f"openai:embed?base_url={next(iter(servers.values())).url}"
    path = folder / "suite.yaml"
    text = f"models:\n{models}benchmarks:{benchmarks.replace('EMBED', embedder)}{more}"
    path.write_text(text, encoding="utf-8")
    return path


@contextmanager
def serving(**behaviours: dict[str, Any]) -> Iterator[dict[str, Loopback]]:
    """A server for each model, by its name."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(Loopback(**each)) for name, each in behaviours.items()}


def outcome(path: Path, **settings: Any) -> SuiteResult:
    return ek.suite(path, progress=False, **settings)


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def journaled(folder: Path) -> int:
    """How many answers the journals of a suite hold."""
    total = 0
    for path in folder.glob("*/journal.sqlite"):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            try:
                total += connection.execute("SELECT count(*) FROM responses").fetchone()[0]
            except sqlite3.OperationalError:  # it is just being made
                return 0
    return total


def proof(folder: Path, servers: dict[str, Loopback], benchmarks: str) -> None:
    """A suite that is killed early and late ends like an undisturbed one, and asks nothing twice."""
    path = write_suite(folder, servers, benchmarks)
    whole, killed = folder / "whole", folder / "killed"
    result = outcome(path, out=whole)
    assert result.exit_code == 0, result
    assert {row.name for board in result.boards for row in board.rows} == set(servers)
    asked = sum(sum(server.answered.values()) for server in servers.values())
    answers = journaled(whole)
    for share in (0.2, 0.7):
        process = subprocess.Popen(command("suite", path, "--out", killed), stderr=subprocess.DEVNULL)
        while journaled(killed) < share * answers:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert outcome(path, out=killed).exit_code == 0
    asked_twice = sum(sum(server.answered.values()) for server in servers.values()) - 2 * asked
    assert (killed / "leaderboard.md").read_bytes() == (whole / "leaderboard.md").read_bytes()
    assert journaled(killed) == answers
    assert asked_twice <= 2 * len(servers) * 64  # on their way at each kill; texts are embedded 64 at a time
    assert {run.state for run in list_runs(killed)} == {"finished"}
    assert len(list_runs(killed)) == len(result.runs)
