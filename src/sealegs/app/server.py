"""The app's server: aiohttp over the same templates as the report. One module per page (`pages/`)."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TypeAlias

from aiohttp import web
from msgspec import Struct

from sealegs.app.access import TOKEN, AccessControl
from sealegs.app.opening import browser_opened
from sealegs.app.rendering import LARGEST_UPLOAD_BYTES, with_problems
from sealegs.app.routes import add_routes
from sealegs.app.settings import SETTINGS, AppSettings
from sealegs.errors import UsageError

Say: TypeAlias = Callable[[str], None]

NAME = re.compile(r"[\w-]+(\.[\w-]+)*", re.ASCII)
SHUTDOWN_S = 2.0
"""How long open connections are waited for at the end."""


class AppServer(Struct, frozen=True, kw_only=True):
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
                f"--host {self.host} lets others in: add --read-only, so that they see the runs and cannot "
                "start any with the keys of this environment."
            )

    @property
    def _on_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def url(self, port: int) -> str:
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def application(server: AppServer) -> tuple[web.Application, str]:
    """The app, and the token of its address; empty where it is read-only."""
    names = frozenset(name.lower() for name in (server.host, *server.allow_hosts))
    # A proxy may be any user's.
    checks_user = not (server.read_only or server.allow_hosts)
    access = AccessControl(names=names, read_only=server.read_only, checks_user=checks_user)
    app = web.Application(
        middlewares=[access.middleware, with_problems, access.check_form],
        client_max_size=LARGEST_UPLOAD_BYTES,
    )
    app[SETTINGS] = AppSettings(
        runs=server.runs.resolve(),
        models=server.models.resolve() if server.models else None,
        data=server.data.resolve() if server.data else None,
        read_only=server.read_only,
        form_token=access.form_token,
    )
    add_routes(app)
    return app, access.token


def serve(server: AppServer, say: Say) -> None:
    """Serve the app until Ctrl-C."""
    if server.runs.exists() and not server.runs.is_dir():
        raise UsageError(f"--runs {server.runs}: this is not a folder.")
    if not server.runs.exists():
        if server.read_only:
            raise UsageError(f"--runs {server.runs} does not exist: a read-only app has nothing to show.")
        say(f"{server.runs} does not exist yet: runs that you start in the app are stored there.")
    app, token = application(server)
    with _listener(server.host, server.port) as listener:
        url = server.url(listener.getsockname()[1])
        address = f"{url}/?{TOKEN}={token}" if token else url
        say(f"Sealegs is at {address} (Ctrl-C ends it)")
        with browser_opened(address) if server.open_browser else nullcontext():
            web.run_app(
                app, sock=listener, print=None, access_log=None, shutdown_timeout=SHUTDOWN_S,
                loop=asyncio.new_event_loop(),
            )  # fmt: skip


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
