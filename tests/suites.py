"""Suites on loopback servers: their files, their outcomes, what their journals hold."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import sealegs as sl
from loopback import Loopback
from sealegs.report.suite import SuiteResult

PATIENCE = 180
"""Seconds after which a test gives up; none of them waits that long on an idle machine."""
SMALL = """
  - {benchmark: mirae, data: questions.json, options: {levels: "1", repeats: 2, embedder: "EMBED"}}
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
    return sl.suite(path, progress=False, **settings)


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
