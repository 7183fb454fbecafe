"""The app's server: aiohttp over the same templates as the report. One module per page (`pages/`)."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TypeAlias

from aiohttp import web
from msgspec.structs import replace

from sealegs.app.access import TOKEN, AccessControl, leading_page
from sealegs.app.rendering import LARGEST_UPLOAD_BYTES, add_routes, with_problems
from sealegs.app.settings import SETTINGS, AppSettings
from sealegs.errors import UsageError

Say: TypeAlias = Callable[[str], None]

SHUTDOWN_S = 2.0
"""How long open connections are waited for at the end."""


def application(settings: AppSettings) -> tuple[web.Application, str]:
    """The app, and the token of its address; empty where it is read-only."""
    access = AccessControl(settings)
    app = web.Application(
        middlewares=[access.middleware, with_problems, access.check_form],
        client_max_size=LARGEST_UPLOAD_BYTES,
    )
    app[SETTINGS] = replace(
        settings,
        runs=settings.runs.resolve(),
        models=settings.models and settings.models.resolve(),
        data=settings.data and settings.data.resolve(),
        form_token=access.form_token,
    )
    add_routes(app)
    return app, access.token


def serve(settings: AppSettings, say: Say) -> None:
    """Serve the app until Ctrl-C."""
    if settings.runs.exists() and not settings.runs.is_dir():
        raise UsageError(f"--runs {settings.runs}: this is not a folder.")
    if not settings.runs.exists():
        if settings.read_only:
            raise UsageError(f"--runs {settings.runs} does not exist: a read-only app has nothing to show.")
        say(f"{settings.runs} does not exist yet: runs that you start in the app are stored there.")
    app, token = application(settings)
    with _listener(settings.host, settings.port) as listener:
        url = settings.url(listener.getsockname()[1])
        address = f"{url}/?{TOKEN}={token}" if token else url
        say(f"Sealegs is at {address} (Ctrl-C ends it)")
        with browser_opened(address) if settings.open_browser else nullcontext():
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


def can_open_browser() -> bool:
    """Whether there is a person with a screen: a browser in the terminal would take it over."""
    screen = sys.platform in ("darwin", "win32") or {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ)
    return bool(screen) and sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def browser_opened(address: str) -> Iterator[None]:
    """Open a page that leads to the address, in a folder that only this person can read.

    Everyone on the machine can read what a browser is started with, and the address has the token. The folder
    is in the person's own: a browser in a sandbox sees no other temporary file.
    """
    with tempfile.TemporaryDirectory(prefix="sealegs-", dir=Path.home()) as folder:
        page = Path(folder) / "open.html"
        page.touch(mode=0o600)
        page.write_text(leading_page(address), encoding="utf-8")
        threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()
        yield
