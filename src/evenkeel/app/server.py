"""The app's server: Streamlit's application behind a guard. `.streamlit/config.toml` has its settings."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from evenkeel.app.guard import Guard
from evenkeel.errors import MissingExtra, UsageError

Say: TypeAlias = Callable[[str], None]

SCRIPT = Path(__file__).with_name("main.py")
NAME = re.compile(r"[\w-]+(\.[\w-]+)*", re.ASCII)
SHUTDOWN_S = 2
"""How long open connections are waited for at the end."""


class Server(Struct, frozen=True, kw_only=True):
    """Where the app listens, and who may ask."""

    runs: Path
    models: Path | None = None
    data: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8501
    read_only: bool = False
    allow_hosts: tuple[str, ...] = ()
    """Further names of this server, as a proxy before it has."""
    open_browser: bool = False

    def __post_init__(self) -> None:
        for name in self.allow_hosts:
            if not NAME.fullmatch(name):
                raise UsageError(f"--allow-host {name}: give a name, such as runs.example.org.")
        if not (self.read_only or self._on_loopback):
            raise UsageError(
                f"--host {self.host} lets others in, and there is no password: add --read-only, so that they "
                "see the runs and cannot start any with the keys of this environment."
            )

    @property
    def _on_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name.lower() for name in (self.host, *self.allow_hosts))

    def url(self, port: int) -> str:
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def environment(self) -> dict[str, str]:
        """What the app's pages read."""
        folders = {"RUNS": self.runs, "MODELS": self.models, "DATA": self.data}
        return {
            **{f"EVENKEEL_APP_{name}": str(path.resolve()) if path else "" for name, path in folders.items()},
            "EVENKEEL_APP_READ_ONLY": "1" if self.read_only else "",
        }


def serve(server: Server, say: Say) -> None:
    """Serve the app until Ctrl-C."""
    try:
        import uvicorn
        from streamlit.starlette import App
    except ImportError:
        raise MissingExtra(
            "the web app", package="streamlit", install="pip install 'evenkeel-bench[app]'"
        ) from None
    os.environ.update(server.environment())
    with _listener(server.host, server.port) as listener:
        url = server.url(listener.getsockname()[1])
        config = uvicorn.Config(
            Guard(App(SCRIPT), names=server.names, read_only=server.read_only),
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=SHUTDOWN_S,
        )
        say(f"Evenkeel is at {url} (Ctrl-C ends it)")
        if server.open_browser:
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        uvicorn.Server(config).run(sockets=[listener])


def can_open_browser() -> bool:
    """Whether there is a person with a screen: a browser in the terminal would take it over."""
    screen = sys.platform in ("darwin", "win32") or {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ)
    return bool(screen) and sys.stderr is not None and sys.stderr.isatty()


def _listener(host: str, port: int) -> socket.socket:
    """A socket that listens, or an error that says why it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        both = host == "::" and socket.has_dualstack_ipv6()
        return socket.create_server((host, port), family=family, backlog=128, dualstack_ipv6=both)
    except OSError as error:
        raise UsageError(
            f"--host {host} --port {port}: {error.strerror}. Choose another port, or 0 for any that is free."
        ) from None
