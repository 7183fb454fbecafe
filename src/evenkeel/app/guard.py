"""What the app's server answers: a guard before Streamlit's application.

It refuses what comes from other web pages: a name that is not this server's (DNS rebinding), a WebSocket or a
request that changes something from another origin.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from evenkeel.app.server import Server

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "::1")
READING = ("GET", "HEAD")
"""Methods that change nothing."""


class Guard:
    """An ASGI application before another: refuses other pages' requests, adds headers to every response."""

    def __init__(self, application: Application, server: Server) -> None:
        self._application = application
        self._frames = " ".join(server.allow_frames) or "'none'"
        self._origins = server.origins
        self._names = {*LOOPBACK, server.host.lower().rstrip("."), *map(_name_of, server.origins)}
        self._any_address = not server.on_loopback
        self._read_only = server.read_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._application(scope, receive, send)
            return
        headers = _Headers(scope["headers"])
        problem = self._problem(scope, headers)
        if problem and scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": problem})
            return
        added = self._headers(headers.one(b"host"))

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name for name, _ in added}
                others = [pair for pair in message.get("headers", ()) if bytes(pair[0]).lower() not in names]
                message["headers"] = [*others, *added]
            await send(message)

        if problem:
            await with_headers(
                {
                    "type": "http.response.start",
                    "status": 403,
                    "headers": [(b"content-type", b"text/plain; charset=utf-8")],
                }
            )
            await with_headers({"type": "http.response.body", "body": f"{problem}\n".encode()})
        else:
            await self._application(scope, receive, with_headers)

    def _problem(self, scope: Scope, headers: _Headers) -> str:
        """Why a request is refused; empty where it is not."""
        host = headers.one(b"host")
        if not self._is_ours(host):
            return "refused: this server does not have that name (see `evenkeel app --help`, --allow-host)."
        if scope["type"] == "http" and scope["method"] in READING:
            return ""
        if scope["type"] == "http" and self._read_only:
            return "refused: this app shows runs only."
        origins = headers.all(b"origin")
        if not all(self._is_same(origin, host) for origin in origins) or len(origins) > 1:
            return "refused: the request comes from another origin."
        if not origins and headers.one(b"sec-fetch-site") not in ("", "same-origin", "none"):
            return "refused: the request comes from another site."
        return ""

    def _is_ours(self, host: str) -> bool:
        """Whether a Host is this server: by a name of its own, or, where others can reach it, by an address.

        An address in numbers cannot be made to lead here from elsewhere, as a name in the DNS can.
        """
        name = _name_of(f"//{host}") if host else ""
        return name in self._names or (self._any_address and _is_address(name))

    def _is_same(self, origin: str, host: str) -> bool:
        if origin.lower() in self._origins:
            return True  # behind a proxy, which may change the Host
        return (
            urlsplit(origin).scheme in ("http", "https") and urlsplit(origin).netloc.lower() == host.lower()
        )

    def _headers(self, host: str) -> list[tuple[bytes, bytes]]:
        """What the browser must hold the page to: everything from here, nothing framed by others."""
        here = host if self._is_ours(host) else ""
        sockets = f" ws://{here} wss://{here}" if here else ""
        policy = {
            "default-src": "'self'",
            "script-src": "'self' 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval' blob:",
            "style-src": "'self' 'unsafe-inline'",
            "img-src": "'self' data: blob:",
            "media-src": "'self' data: blob:",
            "font-src": "'self' data:",
            "connect-src": f"'self' data: blob:{sockets}",
            "worker-src": "'self' blob:",
            "frame-src": "'self' data: blob:",
            "object-src": "'none'",
            "base-uri": "'self'",
            "form-action": "'self'",
            "frame-ancestors": self._frames,
        }
        headers = {
            "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        }
        if self._frames == "'none'":
            headers["X-Frame-Options"] = "DENY"
        return [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]


class _Headers:
    """The headers of a request, as ASGI gives them."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._headers = list(headers)

    def all(self, name: bytes) -> list[str]:
        return [value.decode("latin-1") for key, value in self._headers if key.lower() == name]

    def one(self, name: bytes) -> str:
        """The value of a header; empty where there is none, or several."""
        values = self.all(name)
        return values[0] if len(values) == 1 else ""


def _name_of(url: str) -> str:
    """The host of a URL without its port; empty where it is not one."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # refused where it is not a number
        plain = not (parts.username or parts.password or parts.path or parts.query or parts.fragment)
        return (parts.hostname or "").rstrip(".") if plain else ""
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
