"""Without a network everything works that needs none, and nothing tries to reach one: no telemetry either."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from offline import Offline

SCRIPT = Path(__file__).parents[1] / "offline_commands.py"
REPORTING = {
    "HF_HUB_DISABLE_TELEMETRY": "0", "HF_UPDATE_DOWNLOAD_COUNTS": "1", "RAY_USAGE_STATS_ENABLED": "1",
    "DO_NOT_TRACK": "0",
}  # fmt: skip
"""The settings of a user who lets libraries report."""
ATTEMPTS = """
import asyncio, socket
for attempt in (
    lambda: socket.create_connection(("example.com", 80)),
    lambda: socket.socket().connect_ex(("192.0.2.1", 80)),
    lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.2", 9)),
    lambda: socket.gethostbyname("example.org"),
    lambda: asyncio.run(asyncio.open_connection("192.0.2.3", 80)),
):
    try:
        attempt()
    except OSError:
        pass
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname()).close()
"""
OUTSIDE = re.compile(
    r"""(?:\b(?:src|srcset|action|poster|data|manifest)\s*=|<link\b[^>]*\bhref\s*=|\burl\(|@import)\s*["']?\s*"""
    r"""(?:https?:|wss?:|ftp:)?//[^"'\s)>]+""",
    re.IGNORECASE,
)
"""What a page loads from elsewhere; a link that a reader may follow is not loaded."""


class Session(NamedTuple):
    """What a script did without a network."""

    outcomes: list[tuple[str, int, str]]
    attempts: list[str]
    packets: int
    folder: Path


def without_network(folder: Path, what: str) -> Session:
    offline = Offline(folder / "guard")
    done = offline.python(SCRIPT, folder, what, **REPORTING)  # type: ignore[arg-type]
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    outcomes = msgspec.json.decode((folder / f"{what}.json").read_bytes(), type=list[tuple[str, int, str]])
    return Session(outcomes, offline.attempts(), offline.packets(), folder)


def test_the_guard_refuses_and_records_every_way_out(tmp_path: Path) -> None:
    offline = Offline(tmp_path / "guard")
    done = offline.python(
        "-c", f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {ATTEMPTS!r}], check=True)"
    )
    assert done.returncode == 0, done.stderr
    assert offline.attempts() == [
        "socket.getaddrinfo 'example.com'",
        "socket.connect '192.0.2.1'",
        "socket.sendto '192.0.2.2'",
        "socket.gethostbyname 'example.org'",
        "socket.connect '192.0.2.3'",
    ]
    assert offline.packets() == 0


def test_fetching_without_a_network_exits_with_3_and_says_what_to_do(tmp_path: Path) -> None:
    offline = Offline(tmp_path / "guard")
    cache = str(tmp_path / "cache")
    done = offline.python("-m", "sealegs", "data", "fetch", "mirae", SEALEGS_CACHE=cache)
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert "raw.githubusercontent.com" in done.stderr
    assert cache in done.stderr
    assert set(offline.attempts()) == {"socket.getaddrinfo 'raw.githubusercontent.com'"}
    assert offline.packets() == 0


def test_the_app_serves_its_page_without_a_network(tmp_path: Path) -> None:
    visited = without_network(tmp_path, "app")
    assert [(path, code) for path, code, _ in visited.outcomes] == [
        ("/", 0), ("/new-run", 0), ("/explained", 0), ("/static/app.css", 0)
    ]  # fmt: skip
    assert not OUTSIDE.search(visited.outcomes[0][2])
    assert visited.attempts == []
    assert visited.packets == 0


def test_commands_that_need_no_network_work_without_one(tmp_path: Path) -> None:
    pytest.importorskip("polars")
    pytest.importorskip("sentence_transformers")
    ran = without_network(tmp_path, "commands")
    assert [outcome for outcome in ran.outcomes if outcome[1] != 0] == []
    pages = list(tmp_path.rglob("*.html"))
    assert {page.name for page in pages} >= {"report.html", "scorecard.html", "tokenizers.html"}
    assert [page for page in pages if OUTSIDE.search(page.read_text())] == []
    assert ran.attempts == []
    assert ran.packets == 0
