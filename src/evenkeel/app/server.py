"""The app's server: Streamlit's application behind a guard, with settings of ours alone.

Streamlit reads settings from files and variables that are meant for a person's own apps; none of them counts
here.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import ipaddress
import logging
import os
import pkgutil
import re
import signal
import socket
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from evenkeel.app.guard import Guard
from evenkeel.app.settings import UPLOAD_MB
from evenkeel.errors import MissingExtra, UsageError

Say: TypeAlias = Callable[[str], None]

SCRIPT = Path(__file__).with_name("main.py")
NAME = re.compile(r"[\w-]+(\.[\w-]+)*|https?://[\w-]+(\.[\w-]+)*(:\d+)?", re.ASCII)
ORIGIN = re.compile(r"https?://(\*\.)?[\w-]+(\.[\w-]+)*(:\d+)?", re.ASCII)
SHUTDOWN_S = 2
"""How long open connections are waited for at the end."""
SETTINGS: dict[str, Any] = {
    "browser.gatherUsageStats": False,
    "server.showEmailPrompt": False,
    "server.headless": True,  # a browser is opened here, and no address is looked up elsewhere
    "server.fileWatcherType": "none",
    "server.runOnSave": False,
    "server.allowRunOnSave": False,
    "server.enableCORS": True,
    "server.enableXsrfProtection": True,
    "server.enableStaticServing": False,
    "server.maxUploadSize": UPLOAD_MB,
    "client.toolbarMode": "minimal",
    "client.showErrorLinks": False,
    "client.allowedOrigins": [],
    "logger.hideWelcomeMessage": True,
    "runner.magicEnabled": False,
    "theme.light.primaryColor": "#2a6cc6",
    "theme.dark.primaryColor": "#2f74d0",
}
"""Streamlit's settings; all others are at its defaults."""


class Server(Struct, frozen=True, kw_only=True):
    """Where the app listens, and who may ask."""

    runs: Path
    models: Path | None = None
    data: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8501
    read_only: bool = False
    allow_hosts: tuple[str, ...] = ()
    """Further names of this server, as a proxy before it has, or its origins: `https://NAME:PORT`."""
    allow_frames: tuple[str, ...] = ()
    """Origins of pages that may show the app in a frame."""
    open_browser: bool = False

    def __post_init__(self) -> None:
        for name in self.allow_hosts:
            if not NAME.fullmatch(name):
                raise UsageError(
                    f"--allow-host {name}: give a name, such as runs.example.org, or an origin, such as "
                    "https://runs.example.org:8443."
                )
        for origin in self.allow_frames:
            if not ORIGIN.fullmatch(origin):
                raise UsageError(f"--allow-frame {origin}: give an origin, such as https://example.org.")

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def exposed(self) -> str:
        """What it means that others can reach it; empty where they cannot."""
        if self.on_loopback:
            return ""
        more = "" if self.read_only else ", and can start runs and builds with the keys of this environment"
        switch = "" if self.read_only else " --read-only allows looking only."
        return (
            f"--host {self.host}: everyone who can reach this address sees all runs below {self.runs}{more}. "
            f"There is no password and no encryption.{switch}"
        )

    def url(self, port: int) -> str:
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def environment(self) -> dict[str, str]:
        """What the app's pages read."""
        folders = {"RUNS": self.runs, "MODELS": self.models, "DATA": self.data}
        paths = {
            f"EVENKEEL_APP_{name}": str(path.resolve()) if path else "" for name, path in folders.items()
        }
        return {**paths, "EVENKEEL_APP_READ_ONLY": "1" if self.read_only else ""}

    @property
    def origins(self) -> list[str]:
        """Those of pages that a proxy serves. A name alone stands for the usual ports: on any other port of
        the same machine may be the pages of somebody else."""
        return [
            origin.lower()
            for name in self.allow_hosts
            for origin in ([name] if "://" in name else [f"https://{name}", f"http://{name}"])
        ]

    def settings(self) -> dict[str, Any]:
        """Streamlit's, for this address."""
        details = "full" if self.on_loopback and not self.read_only else "none"
        return {
            **SETTINGS,
            "server.address": self.host,
            "server.port": self.port,
            "server.corsAllowedOrigins": self.origins,
            "client.showErrorDetails": details,
        }


def serve(server: Server, say: Say) -> None:
    """Serve the app until Ctrl-C or SIGTERM."""
    try:
        import streamlit  # noqa: F401
        import uvicorn
        from streamlit.starlette import App
    except ImportError:
        raise MissingExtra(
            "the web app", package="streamlit", install="pip install 'evenkeel[app]'"
        ) from None
    with _listening(server.host, server.port) as listener:
        os.environ.update(server.environment())
        _configure(server.settings())
        port = listener.getsockname()[1]
        application = Guard(App(SCRIPT), server)
        config = uvicorn.Config(
            application,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=SHUTDOWN_S,
            ws="websockets-sansio",
        )

        class UntilSignal(uvicorn.Server):
            """Ends on a signal, and well: a server is ended in no other way."""

            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets=sockets)
                if self.started:
                    say(f"Evenkeel is at {server.url(port)} (Ctrl-C ends it)")
                    if server.open_browser:
                        threading.Thread(
                            target=webbrowser.open, args=(server.url(port),), daemon=True
                        ).start()

            @contextlib.contextmanager
            def capture_signals(self) -> Iterator[None]:
                numbers = (signal.SIGINT, signal.SIGTERM)
                before = {number: signal.signal(number, self.handle_exit) for number in numbers}
                try:
                    yield
                finally:
                    for number, handler in before.items():
                        signal.signal(number, handler)

        _load_pages()
        if server.exposed:
            say(f"warning: {server.exposed}")
        running = UntilSignal(config)
        with _warming_up(server.runs):
            running.run(sockets=[listener])
        if not running.started:
            raise UsageError("the app could not be started; the lines above say why.")


def _load_pages() -> None:
    """Import what the pages use, so that the first visitor does not wait for it: the public API and its
    libraries, which it loads when they are used."""
    from evenkeel.app import screens

    pages = (f"{screens.__name__}.{each.name}" for each in pkgutil.iter_modules(screens.__path__))
    logging.disable(logging.WARNING)  # Streamlit wonders where its runtime is: it comes next
    for module in ("polars", "rapidfuzz.fuzz", *pages):
        importlib.import_module(module)
    logging.disable(logging.NOTSET)
    public = importlib.import_module("evenkeel")
    for name in public.__all__:
        getattr(public, name)


def can_open_browser() -> bool:
    """Whether there is a person with a screen: a browser in the terminal would take it over."""
    screen = sys.platform in ("darwin", "win32") or {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ)
    return bool(screen) and sys.stderr is not None and sys.stderr.isatty()


@contextlib.contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens, or an error that says why it cannot."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise UsageError(f"--host {host}: this is not an address of this machine ({error}).") from None
    with socket.socket(family, kind, protocol) as listener:
        if os.name != "nt":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(128)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                problem = f"--port {port}: this port is in use. Choose another, or 0 for any that is free."
            elif error.errno == errno.EACCES:
                problem = f"--port {port}: this port is reserved. Choose one from 1024 on."
            else:
                problem = f"--host {host} --port {port}: cannot listen there ({error.strerror or error})."
            raise UsageError(problem) from None
        listener.setblocking(False)
        yield listener


def _configure(settings: dict[str, Any]) -> None:
    """Give Streamlit these settings, whatever a person's files and variables say."""
    from streamlit import config

    for name in [name for name in os.environ if name.startswith("STREAMLIT_")]:
        del os.environ[name]
    config.get_config_files = lambda file_name: []
    config.get_config_options(force_reparse=True, options_from_flags=settings)
