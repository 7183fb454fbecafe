"""What a bad server does: faults by name, each of which is sent by the aiohttp server of `loopback.py`.

A name such as `503` is a status; the others are functions of FAULTS, which write to the connection what no
server should.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from aiohttp import web

Answer: TypeAlias = Callable[[], bytes]
"""Gives the right body, and counts it as answered."""
Fault: TypeAlias = Callable[[web.BaseRequest, Answer], Awaitable[web.StreamResponse | None]]
"""Sends something; the reply that is still to be sent, or None to cut the connection."""

JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
HALF = b'{"id":"half","choices":[{"message":{"content":"the keel'
CHUNK = b"a" * 2**16


def _write(request: web.BaseRequest, data: bytes) -> None:
    if request.transport is not None and not request.transport.is_closing():
        request.transport.write(data)


async def _gone(request: web.BaseRequest, wait: float = 60.0) -> None:
    """Wait until the client has closed the connection."""
    end = time.monotonic() + wait
    while request.transport is not None and not request.transport.is_closing() and time.monotonic() < end:
        await asyncio.sleep(0.02)


def _raw(data: bytes, *, stays_open: bool = False) -> Fault:
    """Write these bytes, then close the connection, or leave it open until the client closes it."""

    async def send(request: web.BaseRequest, answer: Answer) -> None:
        _write(request, data)
        if stays_open:
            await _gone(request)

    return send


def _json(body: bytes, media_type: str = "application/json", **headers: str) -> Fault:
    async def send(request: web.BaseRequest, answer: Answer) -> web.Response:
        return web.Response(body=body, headers={"Content-Type": media_type, **headers})

    return send


def _reset(data: bytes) -> Fault:
    """Write these bytes, then have the kernel answer with RST."""

    async def send(request: web.BaseRequest, answer: Answer) -> None:
        _write(request, data)
        await asyncio.sleep(0.005)
        if request.transport is not None and (sock := request.transport.get_extra_info("socket")):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return send


def _endless(head: bytes, part: bytes) -> Fault:
    async def send(request: web.BaseRequest, answer: Answer) -> None:
        _write(request, head)
        sent = 0
        while request.transport is not None and not request.transport.is_closing() and sent < 2**28:
            if request.transport.get_write_buffer_size() < 2**20:
                _write(request, part)
                sent += len(part)
            await asyncio.sleep(0)

    return send


async def _slow(request: web.BaseRequest, answer: Answer) -> web.StreamResponse:
    """The right answer in eight parts with a pause before each."""
    body = answer()
    reply = web.StreamResponse(headers={"Content-Type": "application/json"})
    await reply.prepare(request)
    size = len(body) // 8 + 1
    for start in range(0, len(body), size):
        await asyncio.sleep(0.01)
        await reply.write(body[start : start + size])
    return reply


async def _other_type(request: web.BaseRequest, answer: Answer) -> web.Response:
    return web.Response(body=answer(), content_type="text/html")


def _redirect(location: str, status: int = 307) -> Fault:
    async def send(request: web.BaseRequest, answer: Answer) -> web.Response:
        return web.Response(status=status, headers={"Location": location})

    return send


BOMB = gzip.compress(b" " * 2**24)

FAULTS: dict[str, Fault] = {
    # The connection
    "reset": _reset(b""),
    "cut in the body": _raw(JSON + b"Content-Length: 900\r\n\r\n" + HALF),
    "stall before the headers": _raw(b"", stays_open=True),
    "stall in the body": _raw(JSON + b"Content-Length: 900\r\n\r\n" + HALF, stays_open=True),
    # HTTP
    "not HTTP": _raw(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "headers without end": _endless(JSON, b"".join(b"X-%d: a\r\n" % i for i in range(1000))),
    "informational without end": _endless(b"", b"HTTP/1.1 102 Processing\r\n\r\n" * 100),
    "chunks of garbage": _raw(JSON + b"Transfer-Encoding: chunked\r\n\r\nkeel\r\nkeel\r\n"),
    "no content": _raw(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"),
    "not modified": _raw(b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n"),
    # The body
    "empty": _json(b""),
    "broken": _json(HALF),
    "a list": _json(b"[]"),
    "shape": _json(b'{"status":"warming up"}'),
    "no choices": _json(b'{"choices":[],"data":[],"results":[]}'),
    "content is a number": _json(b'{"choices":[{"message":5,"text":5}],"data":[5],"results":[5]}'),
    "an object as content": _json(
        b'{"choices":[{"message":{"content":{}},"text":{}}],"data":[],"results":[]}'
    ),
    "not UTF-8": _json(
        b'{"choices":[{"message":{"content":"\xff\xfe"},"text":"\xff","finish_reason":"stop"}]}'
    ),
    "nested": _json(b'{"choices":' + b"[" * 100_000),
    "a page": _json(b"<html><title>Bad gateway</title></html>", "text/html"),
    "error in a success": _json(b'{"error":{"message":"overloaded","code":529}}'),
    "without end": _endless(JSON + b"\r\n", CHUNK),
    "a bomb": _json(BOMB, **{"Content-Encoding": "gzip"}),
    "not gzip": _json(HALF, **{"Content-Encoding": "gzip"}),
    # Elsewhere
    "redirect": _redirect("https://elsewhere.test/v1/chat/completions"),
    # Right answers, sent badly
    "slow": _slow,
    "another type": _other_type,
}

STATUSES = ("408", "409", "425", "429", "500", "501", "502", "503", "504", "529")
