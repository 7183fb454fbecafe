"""The app on a port of this machine, in a thread of the test, and someone who visits it."""

from __future__ import annotations

import asyncio
import http.client
import re
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from aiohttp import web

from loopback import accept_no_more
from sealegs.api.launch import started
from sealegs.app.server import application
from sealegs.app.settings import AppSettings

PATIENCE_S = 120
FORM = re.compile(r'name="token" value="([0-9a-f]+)"')


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    """By names in lower case."""
    text: str


class Visitor:
    """A browser without a script: it keeps the cookie, and follows no redirect by itself."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cookie = ""

    def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> Reply:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        named.setdefault("Host", f"127.0.0.1:{self.port}")
        if self.cookie:
            named.setdefault("Cookie", self.cookie)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, body, named)
            response = connection.getresponse()
            text = response.read().decode()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, found, text)
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        return self.send("GET", path, b"", **headers)

    def settled(self, path: str) -> str:
        """A page, once what is answered by now is scored: it waits for that no longer than a reader would."""
        end = time.monotonic() + PATIENCE_S
        while "is being scored" in (text := self.get(path).text) and time.monotonic() < end:
            time.sleep(0.05)
        return text

    def enter(self, token: str) -> Reply:
        """Open the address that the terminal prints."""
        reply = self.get(f"/?token={token}")
        self.cookie = reply.headers.get("set-cookie", "").partition(";")[0]
        return reply

    def post(self, path: str, fields: Sequence[tuple[str, str]] | dict[str, str], **headers: str) -> Reply:
        pairs = list(fields.items()) if isinstance(fields, dict) else list(fields)
        headers.setdefault("Content_Type", "application/x-www-form-urlencoded")
        return self.send("POST", path, urlencode(pairs).encode(), **headers)

    def submit(self, path: str, page: str, fields: dict[str, str], **headers: str) -> Reply:
        """Send a form of a page, with its token."""
        match = FORM.search(page)
        assert match, "the page has no form"
        return self.post(path, {"token": match[1], **fields}, **headers)

    def upload(self, path: str, fields: dict[str, str], name: str, filename: str, content: bytes) -> Reply:
        mark = uuid.uuid4().hex
        parts = [
            f'--{mark}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
            for key, value in fields.items()
        ]
        head = f'--{mark}\r\nContent-Disposition: form-data; name="{name}"; filename="{filename}"\r\n\r\n'
        body = b"".join([*parts, head.encode(), content, f"\r\n--{mark}--\r\n".encode()])
        return self.send("POST", path, body, Content_Type=f"multipart/form-data; boundary={mark}")


class Serving(NamedTuple):
    port: int
    token: str
    visitor: Visitor
    """Who opened the printed address."""

    @property
    def address(self) -> str:
        query = f"/?token={self.token}" if self.token else ""
        return f"http://127.0.0.1:{self.port}{query}"

    def form(self, path: str) -> dict[str, str]:
        """The token of the form of a page."""
        match = FORM.search(self.visitor.get(path).text)
        assert match
        return {"token": match[1]}


@contextmanager
def serving(runs: Path, **settings: Any) -> Iterator[Serving]:
    """The app over a folder of runs."""
    app, token = application(AppSettings(runs=runs, **settings))
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    listener = socket.create_server(("127.0.0.1", 0))

    async def begin() -> int:
        await runner.setup()
        await web.SockSite(runner, listener).start()
        return int(listener.getsockname()[1])

    async def end() -> None:
        await accept_no_more(listener)
        await runner.cleanup()

    def serve() -> None:
        loop.run_forever()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()

    # All of it in its own thread: a test with a browser has a loop already.
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    port = asyncio.run_coroutine_threadsafe(begin(), loop).result(PATIENCE_S)
    try:
        visitor = Visitor(port)
        if token:
            visitor.enter(token)
        yield Serving(port, token, visitor)
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result(PATIENCE_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        started(runs)  # asks processes that have ended for their state


def address(path: str, **query: str) -> str:
    return f"{path}?{urlencode(query, quote_via=quote)}"
