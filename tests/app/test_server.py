"""The app's server: whom it answers, what it sends, and that it calls no one."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import aiohttp
import pytest

from commandline import evenkeel
from evenkeel.app import server
from evenkeel.app.guard import Guard
from evenkeel.app.server import Server
from evenkeel.errors import UsageError

pytestmark = pytest.mark.slow

pytest.importorskip("streamlit")

T = TypeVar("T")
PATIENCE = 120
"""Seconds after which a test gives up; none of them waits that long on an idle machine."""
CHILD = """
import socket, sys
from pathlib import Path

def report(address):
    if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost"):
        print(f"outside: {address}", file=sys.stderr, flush=True)
        raise OSError("nothing outside may be reached")

def checked(name):
    original = getattr(socket.socket, name)
    setattr(socket.socket, name, lambda self, address: (report(address), original(self, address))[1])

checked("connect"), checked("connect_ex")
look_up = socket.getaddrinfo
socket.getaddrinfo = lambda host, *rest, **more: (report((host,)), look_up(host, *rest, **more))[1]
from evenkeel.app import server
server.SCRIPT = Path(sys.argv.pop(1))
from evenkeel.cli import main
main()
"""
SCRIPT = """
import json, os
from pathlib import Path
import streamlit as st

st.title("Evenkeel")
names = ["browser.gatherUsageStats", "server.enableXsrfProtection", "server.enableCORS",
         "client.showErrorDetails", "client.toolbarMode"]
settings = {name: st.get_option(name) for name in names}
environment = {name: value for name, value in os.environ.items() if name.startswith("EVENKEEL_APP")}
Path(os.environ["FACTS"]).write_text(json.dumps({"settings": settings, "environment": environment}))
"""
HOSTILE = """
[browser]
gatherUsageStats = true
[server]
enableXsrfProtection = false
enableCORS = false
"""
RERUN = b"\x5a\x00"
"""What a browser sends to have the page made: a BackMsg with an empty rerun_script."""


class App(NamedTuple):
    process: subprocess.Popen[str]
    url: str
    facts: Path
    log: Path

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")


def begin(folder: Path, *options: str, **environment: str) -> App:
    """An app on a free port, of a person whose own settings say otherwise."""
    (folder / ".streamlit").mkdir()
    (folder / ".streamlit" / "config.toml").write_text(HOSTILE)
    shutil.copytree(server.SCRIPT.with_name(".streamlit"), folder / "app" / ".streamlit")
    (folder / "app" / "main.py").write_text(SCRIPT)
    settings = {"HOME": str(folder), "STREAMLIT_BROWSER_GATHER_USAGE_STATS": "true", "NO_COLOR": "1"}
    facts, log = folder / "facts.json", folder / "log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD, folder / "app" / "main.py", "app", "--port=0", *options],
            cwd=folder,
            stderr=file,
            text=True,
            env={**os.environ, **settings, "FACTS": str(facts), **environment},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    end = time.monotonic() + PATIENCE
    while " is at http" not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end
        time.sleep(0.05)
    return App(process, log.read_text().partition(" is at ")[2].split()[0], facts, log)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    folder = tmp_path_factory.mktemp("app")
    running = begin(folder, f"--runs={folder / 'runs'}", "--no-open")
    yield running
    running.process.kill()
    running.process.communicate()


def asked(work: Callable[[aiohttp.ClientSession], Awaitable[T]]) -> T:
    async def ask() -> T:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(PATIENCE)) as session:
            return await work(session)

    return asyncio.run(ask())


def status(app: App, method: str, path: str, **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def work(session: aiohttp.ClientSession) -> int:
        async with session.request(method, f"{app.url}{path}", headers=named) as response:
            return response.status

    return asked(work)


def visit(app: App, **headers: str) -> int:
    """The status of a WebSocket's handshake; one that is accepted has the page made."""

    async def work(session: aiohttp.ClientSession) -> int:
        try:
            async with session.ws_connect(
                f"{app.url}/_stcore/stream", headers=headers, protocols=["streamlit"]
            ) as stream:
                await stream.send_bytes(RERUN)
                await stream.receive_bytes(timeout=PATIENCE)
                while not app.facts.exists():
                    await asyncio.sleep(0.05)
                return 101
        except aiohttp.WSServerHandshakeError as error:
            return error.status

    return asked(work)


def test_the_page_is_made_with_settings_of_ours_and_calls_no_one(app: App) -> None:
    assert visit(app, Origin=app.url) == 101
    facts = json.loads(app.facts.read_text())
    assert facts["settings"] == {
        "browser.gatherUsageStats": False,
        "server.enableXsrfProtection": True,
        "server.enableCORS": True,
        "client.showErrorDetails": "none",
        "client.toolbarMode": "minimal",
    }
    runs = facts["environment"].pop("EVENKEEL_APP_RUNS")
    assert Path(runs).is_absolute()
    assert not any(facts["environment"].values())
    assert len(app.log.read_text().splitlines()) == 1, "no one outside is called, no request is logged"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost.evil.example"},
        {"Origin": "null"},
        {"Origin": "https://user@{host}"},
        {"Origin": "http://evil.example", "Host": "evil.example"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "evil.example@127.0.0.1"},
    ],
)
def test_another_pages_websocket_is_refused(app: App, headers: dict[str, str]) -> None:
    assert visit(app, **{name: value.format(host=app.host) for name, value in headers.items()}) == 403
    assert "outside" not in app.log.read_text()


def test_another_name_is_refused_and_this_machines_are_not(app: App) -> None:
    port = app.host.rpartition(":")[2]
    assert status(app, "GET", "/", Host="evil.example") == 403
    assert status(app, "GET", "/", Host=f"localhost:{port}") == 200
    assert status(app, "GET", "/", Host=f"LOCALHOST.:{port}") == 200
    assert status(app, "GET", "/", Host="192.168.1.5") == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_another_page_uploads_and_deletes_nothing(app: App, method: str) -> None:
    path = "/_stcore/upload_file/session/file"
    assert status(app, method, path, Origin="http://evil.example") == 403


@pytest.mark.parametrize("path", ["/", "/_stcore/health", "/absent.js"])
def test_every_response_has_the_headers(app: App, path: str) -> None:
    async def work(session: aiohttp.ClientSession) -> list[dict[str, str]]:
        found = []
        for host in (app.host, "evil.example"):
            async with session.get(f"{app.url}{path}", headers={"Host": host}) as response:
                found.append({name.lower(): value for name, value in response.headers.items()})
        return found

    for headers in asked(work):
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "default-src 'self'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


def test_ctrl_c_ends_it_well_with_a_visitor_there(tmp_path: Path) -> None:
    runs = str(tmp_path / "runs")
    settings = {"EVENKEEL_APP_RUNS": runs, "EVENKEEL_APP_READ_ONLY": "1"}
    app = begin(tmp_path, "--no-open", **settings)

    async def work(session: aiohttp.ClientSession) -> None:
        async with session.ws_connect(f"{app.url}/_stcore/stream", headers={"Origin": app.url}) as stream:
            await stream.send_bytes(RERUN)
            await stream.receive_bytes(timeout=PATIENCE)
            while not app.facts.exists():
                await asyncio.sleep(0.05)
            async with session.put(f"{app.url}/_stcore/upload_file/a/b", headers={"Origin": app.url}) as put:
                assert (put.status, await put.text()) == (403, "refused: this app shows runs only.\n")
            app.process.send_signal(signal.SIGINT)
            await asyncio.to_thread(app.process.wait, PATIENCE)

    asked(work)
    assert app.process.returncode == 130, app.log.read_text()
    assert "Traceback" not in app.log.read_text()
    facts = json.loads(app.facts.read_text())
    assert facts["environment"]["EVENKEEL_APP_READ_ONLY"] == "1"
    assert facts["environment"]["EVENKEEL_APP_RUNS"] == runs


def test_a_port_in_use_is_said_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = evenkeel("app", "--port", port, "--no-open")
    assert done.code == 2
    assert f"--port {port}: Address already in use" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_streamlit_the_line_that_installs_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "streamlit.starlette", None)
    done = evenkeel("app", "--no-open")
    assert done.code == 2
    assert "pip install 'evenkeel-bench[app]'" in done.stderr


def test_an_address_that_lets_others_in_needs_read_only() -> None:
    done = evenkeel("app", "--host", "0.0.0.0", "--no-open")
    assert done.code == 2
    assert "add --read-only" in done.stderr
    for host, read_only in (("0.0.0.0", True), ("::1", False)):
        Server(runs=Path("runs"), host=host, read_only=read_only)
    with pytest.raises(UsageError, match="allow_host"):
        Server(runs=Path("runs"), allow_hosts=("https://x/y",))


@pytest.mark.parametrize(
    ("names", "host", "origin", "accepted"),
    [
        ((), "x.hf.space", "https://x.hf.space", False),
        ((), "192.168.1.5:7860", "http://192.168.1.5:7860", True),
        ((), "192.168.1.5:7860", "http://192.168.1.6:7860", False),
        (("x.hf.space",), "x.hf.space", "https://x.hf.space", True),
        (("X.hf.space",), "10.0.0.1:7860", "https://x.hf.space", True),
        (("x.hf.space",), "x.hf.space", "https://y.hf.space", False),
        (("x.hf.space",), "y.hf.space", "https://y.hf.space", False),
    ],
)
def test_behind_a_proxy_the_allowed_names_are_its_own(
    names: tuple[str, ...], host: str, origin: str, accepted: bool
) -> None:
    reached: list[str] = []

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["type"])

    async def send(message: Any) -> None: ...

    async def receive() -> Any: ...

    proxied = Server(runs=Path("runs"), host="0.0.0.0", read_only=True, allow_hosts=names)
    headers = [(b"host", host.encode()), (b"origin", origin.encode())]
    guard = Guard(inside, names=proxied.names, read_only=True)
    asyncio.run(guard({"type": "websocket", "headers": headers}, receive, send))
    assert bool(reached) is accepted
