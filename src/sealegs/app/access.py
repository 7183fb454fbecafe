"""Who may use the app, and what a browser may do with its pages.

The address that the terminal prints has a token, which becomes a cookie that only this browser has: another
person of the same machine, and a page elsewhere, are refused. A browser sends that cookie to every port of
this machine, also to a server of another person: on Linux a connection of another user than this process's,
root excepted, is refused whatever it sends. A read-only app has no token and nothing can be started in it.
Host and Origin are checked as Jupyter does, so that no page elsewhere reaches the app through
a name of its own (DNS rebinding). Every form has a token too.
"""

from __future__ import annotations

import hashlib
import hmac
import html
import ipaddress
import os
import secrets
import socket
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit
from weakref import WeakKeyDictionary

from aiohttp import web
from multidict import MultiMapping

from sealegs.app.rendering import READING, Handler
from sealegs.app.settings import AppSettings
from sealegs.errors import UsageError

COOKIE = "sealegs-{}"
"""The cookie, by the port: a browser sends the cookies of one port to the others too."""
TOKEN = "token"
"""The parameter of the printed address, and the field of every form."""
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'"
)
"""What the browser holds every page to: nothing is loaded from elsewhere and nothing is sent there."""
LEADING = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Sealegs</title>
<link rel="icon" href="data:,">
<meta http-equiv="refresh" content="0; url={0}"><p><a href="{0}">Open Sealegs</a></p></html>
"""
SOCKETS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""Linux's lists of sockets, with the user of each."""
CLOSED = -1
"""The user of a socket that its process has closed: the list gives root."""
ESTABLISHED = 1
STRANGER = "refused: this connection is of another user of this machine than the one who started the app."
PRIVATE = "refused: open the address that `sealegs app` printed; it has a token that this browser lacks."


class AccessControl:
    """The middleware before every page."""

    def __init__(self, settings: AppSettings) -> None:
        self._names = LOOPBACK | {name.lower() for name in (settings.host, *settings.allow_hosts)}
        self._read_only = settings.read_only
        # A proxy may be any user's.
        self._checks_user = not (settings.read_only or settings.allow_hosts)
        self._strangers = WeakKeyDictionary[Any, bool]()
        """By connection."""
        self.token = "" if settings.read_only else secrets.token_urlsafe(24)

    @property
    def form_token(self) -> str:
        """What every form sends back. It is of this server's token, and does not give that away."""
        return hmac.new(self.token.encode(), b"form", hashlib.sha256).hexdigest()

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if problem := self._problem(request):
            response: web.StreamResponse = web.Response(status=403, text=f"{problem}\n")
        elif not self._read_only and TOKEN in request.query and request.method in READING:
            response = self._enter(request)
        elif not self._has_cookie(request):
            response = web.Response(status=403, text=f"{PRIVATE}\n")
        else:
            try:
                response = await handler(request)
            except web.HTTPException as error:
                self._add_headers(error)
                raise
        if not response.prepared:
            self._add_headers(response)
        return response

    def _problem(self, request: web.Request) -> str:
        """Why a request is refused whatever cookie it has; empty where it is not."""
        if self._checks_user and self._is_strangers(request):
            return STRANGER
        host = request.headers.get("Host", "")
        if not self._is_ours(_name_of(f"//{host}")):
            return "refused: this server does not have that name (see `sealegs app --help`, --allow-host)."
        if request.method in READING:
            return ""
        if self._read_only:
            return "refused: this app shows runs only."
        origin = request.headers.get("Origin")
        # A browser names the origin of every form; what is no browser has to know the token of forms.
        if origin is None or urlsplit(origin).netloc.lower() == host.lower():
            return ""
        if _name_of(origin) in self._names - LOOPBACK:
            return ""
        return "refused: the request comes from another origin."

    def _is_strangers(self, request: web.Request) -> bool:
        connection = request.transport
        if connection is None:
            return True  # it is closed: see `is_strangers`
        if connection not in self._strangers:
            self._strangers[connection] = is_strangers(connection.get_extra_info("socket"))
        return self._strangers[connection]

    def _is_ours(self, name: str) -> bool:
        """Whether a host is this server: by one of its names, or by an address where others are let in, which
        cannot be made to lead here from elsewhere as a name in the DNS can."""
        return name in self._names or (self._read_only and _is_address(name))

    def _has_cookie(self, request: web.Request) -> bool:
        given = request.cookies.get(COOKIE.format(request.url.port), "")
        return self._read_only or hmac.compare_digest(given.encode(), self.token.encode())

    def _enter(self, request: web.Request) -> web.Response:
        """The token of the printed address becomes a cookie and leaves the address."""
        if not hmac.compare_digest(request.query[TOKEN].encode(), self.token.encode()):
            return web.Response(status=403, text=f"{PRIVATE}\n")
        rest = [(name, value) for name, value in request.query.items() if name != TOKEN]
        address = request.path + (f"?{urlencode(rest)}" if rest else "")
        # Not a redirect: where a page or a file led here, a browser would follow it without this cookie.
        response = web.Response(text=leading_page(address), content_type="text/html")
        response.set_cookie(
            COOKIE.format(request.url.port), self.token, httponly=True, samesite="Strict", path="/"
        )
        return response

    @web.middleware
    async def check_form(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The middleware behind that which makes pages of errors: a form that cannot be read has one too."""
        if request.method not in READING:
            given = str((await read_form(request)).get(TOKEN, ""))
            if not hmac.compare_digest(given.encode(), self.form_token.encode()):
                raise web.HTTPForbidden(
                    text="refused: this form is not of a page of this app. Reload the page.\n"
                )
        return await handler(request)

    def _add_headers(self, response: web.StreamResponse) -> None:
        # There is nothing to click in an app that only shows runs, so that a page may show it in a frame.
        frames = "" if self._read_only else "; frame-ancestors 'none'"
        response.headers["Content-Security-Policy"] = POLICY + frames
        response.headers["X-Content-Type-Options"] = "nosniff"
        # Not `no-referrer`: a browser would then send its own forms without their origin.
        response.headers["Referrer-Policy"] = "same-origin"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        response.headers["Server"] = "Sealegs"
        response.headers.setdefault("Cache-Control", "no-store")


def is_strangers(connection: socket.socket) -> bool:
    """Whether the other end of a connection is of another user of this machine, root excepted.

    One that was closed at once has no user any more: nobody reads the reply, but anyone may have sent the
    request. Where the system has no list, or that end is not in it, the token alone decides.
    """
    if not (lists := [path for path in SOCKETS if os.access(path, os.R_OK)]):
        return False
    try:
        lines = [line for path in lists for line in path.read_text().splitlines()]
        user = user_of(lines, connection.getpeername(), connection.getsockname())
        if user is None:
            return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != ESTABLISHED
    except OSError:
        return True
    return user not in (os.getuid(), 0)


def user_of(lines: Iterable[str], end: tuple[Any, ...], other: tuple[Any, ...]) -> int | None:
    """Whose the socket at `end` is that is connected with `other`; None where it is not listed."""
    ends, others = _listed_as(end), _listed_as(other)
    for line in lines:
        _, here, there, _, _, _, _, user, _, inode, *_ = line.split()
        if here in ends and there in others:
            return int(user) if inode != "0" else CLOSED
    return None


def _listed_as(end: tuple[Any, ...]) -> set[str]:
    """An address and a port as Linux lists them: in words of 32 bits, each in the machine's own order. An
    address of IPv4 has two forms, since a socket of IPv6 may use it."""
    packed = ipaddress.ip_address(end[0]).packed
    forms = [packed, bytes(10) + b"\xff\xff" + packed] if len(packed) == 4 else [packed]
    words = ["".join(f"{word:08X}" for (word,) in struct.iter_unpack("=I", form)) for form in forms]
    return {f"{address}:{end[1]:04X}" for address in words}


async def read_form(request: web.Request) -> MultiMapping[Any]:
    """The fields of a form, which is kept with its request."""
    try:
        return await request.post()
    except web.HTTPRequestEntityTooLarge:
        raise
    except Exception:  # noqa: BLE001  # headers, encodings and boundaries can be wrong in many ways
        raise UsageError("this form cannot be read. Go back and send it again.") from None


def leading_page(address: str) -> str:
    """A page that leads to an address at once."""
    return LEADING.format(html.escape(address))


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
