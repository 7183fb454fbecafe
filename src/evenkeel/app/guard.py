"""Who may use the app: pages that it serves itself; others than this machine's people may only look.

The Host and the Origin of a request are checked as Jupyter does, so that a page elsewhere can neither reach
the app through a name of its own (DNS rebinding) nor send it anything.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Set
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self' data: blob: {sockets}; worker-src 'self' blob:; object-src 'none'; "
    "base-uri 'self'; form-action 'self'"
)
"""What the browser holds the page to: everything comes from here, and nothing is sent elsewhere."""


class Guard:
    """An ASGI application before another: refuses what comes from other pages, adds headers to responses."""

    def __init__(self, application: ASGIApp, *, names: Set[str], read_only: bool) -> None:
        self._application = application
        self._names = LOOPBACK | names
        self._read_only = read_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._application(scope, receive, send)
            return
        headers = {bytes(name).lower(): bytes(text).decode("latin-1") for name, text in scope["headers"]}
        host = headers.get(b"host", "")
        problem = self._problem(scope, host, headers.get(b"origin"))
        if problem and scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": problem})
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self._headers(host)]
            await send(message)

        if problem:
            plain = [(b"content-type", b"text/plain; charset=utf-8")]
            await with_headers({"type": "http.response.start", "status": 403, "headers": plain})
            await with_headers({"type": "http.response.body", "body": f"{problem}\n".encode()})
        else:
            await self._application(scope, receive, with_headers)

    def _problem(self, scope: Scope, host: str, origin: str | None) -> str:
        """Why a request is refused; empty where it is not."""
        if not self._is_ours(_name_of(f"//{host}")):
            return "refused: this server does not have that name (see `evenkeel app --help`, --allow-host)."
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            return ""
        if scope["type"] == "http" and self._read_only:
            return "refused: this app shows runs only."
        if origin is None:  # not a browser
            return ""
        if urlsplit(origin).netloc.lower() == host.lower() or _name_of(origin) in self._names - LOOPBACK:
            return ""
        return "refused: the request comes from another origin."

    def _is_ours(self, name: str) -> bool:
        """Whether a host is this server: by one of its names, or by an address where others are let in, which
        cannot be made to lead here from elsewhere as a name in the DNS can."""
        return name in self._names or (self._read_only and _is_address(name))

    def _headers(self, host: str) -> list[tuple[bytes, bytes]]:
        sockets = f"ws://{host} wss://{host}" if self._is_ours(_name_of(f"//{host}")) else ""
        headers = {"Content-Security-Policy": POLICY.format(sockets=sockets)}
        if not self._read_only:  # there is nothing to click in an app that only shows runs
            headers["Content-Security-Policy"] += "; frame-ancestors 'none'"
        headers["X-Content-Type-Options"] = "nosniff"
        headers["Referrer-Policy"] = "no-referrer"
        headers["Cross-Origin-Resource-Policy"] = "same-origin"
        return [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]


def _name_of(url: str) -> str:
    """The host of a URL without its port; empty where it is not one."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # refused where it is not a number
    except ValueError:
        return ""
    plain = not (parts.username or parts.password or parts.path or parts.query or parts.fragment)
    return (parts.hostname or "").rstrip(".") if plain else ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
