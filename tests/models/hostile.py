"""A server on loopback whose replies a test writes itself, a watcher that records what is reported to it,
and how the tests ask the openai backend."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from aiohttp import web

from loopback import Loopback
from sealegs.errors import ModelUnreachable
from sealegs.harness.progress import Progress
from sealegs.models.openai.backend import OpenAI
from sealegs.models.registry import load_model
from sealegs.types import Generate, Message, Request, Response, Sampling

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

KEY = "sk-Canary/7f3a9b2c1d+~~~Xy4Zt8Qw"
CHUNK = b"a" * 2**16


def socket_buffers() -> int:
    """Bytes that the kernel takes from a sender whose receiver reads nothing: the buffers of two sockets."""
    sizes = (Path(f"/proc/sys/net/ipv4/tcp_{name}").read_text() for name in ("rmem", "wmem"))
    return sum(int(size.split()[-1]) for size in sizes)


class Hostile(Loopback):
    """A server whose replies are written by the test; it counts the bytes that were taken from it."""

    def __init__(self, respond: Callable[[Hostile, web.BaseRequest], Awaitable[web.StreamResponse]]) -> None:
        super().__init__()
        self._respond = respond
        self.sent = 0

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests += 1
        await request.read()
        return await self._respond(self, request)

    async def endless(self, request: web.BaseRequest, status: int = 200) -> web.StreamResponse:
        reply = web.StreamResponse(status=status)
        await reply.prepare(request)
        while True:
            await reply.write(CHUNK)
            self.sent += len(CHUNK)


class Recorder(Progress):
    """A watcher that records what is reported to it."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.waits: list[str] = []

    def waiting(self, text: str) -> None:
        self.waits.append(text)

    def loaded(self) -> None:
        self.waits.append("loaded")

    def note(self, text: str) -> None:
        self.notes.append(text)


def fixed(body: bytes, **more: Any) -> Hostile:
    """A server that always sends this."""
    more = {"content_type": "application/json", **more}

    async def respond(_: Hostile, request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=body, **more)

    return Hostile(respond)


def packed(body: bytes, encoding: str) -> Hostile:
    return fixed(body, headers={"Content-Encoding": encoding})


def model_of(server: Loopback | str, **options: Any) -> OpenAI:
    url = server if isinstance(server, str) else server.url
    model = load_model("openai:loop", base_url=url, **options)
    assert isinstance(model, OpenAI)
    return model


def chat(text: str, *, repeat: int = 0, schema: str = "", **sampling: Any) -> Generate:
    settings = Sampling(**sampling)
    return Generate(prompt=(Message("user", text),), sampling=settings, repeat=repeat, schema=schema)


def one(model: OpenAI, request: Request) -> Response:
    [(answered, response)] = model.answer([request])
    assert answered is request
    return response


def answers(model: OpenAI, requests: Iterable[Request]) -> dict[Request, Response]:
    return dict(model.answer(requests))


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def failing(server: Hostile, **options: Any) -> tuple[str, str]:
    """The reason of a request's error, and the run's error when no other came through."""
    seen: list[Response] = []
    with server, pytest.raises(ModelUnreachable) as raised:
        for _, response in model_of(server, **options).answer([chat("q")]):
            seen.append(response)
    return seen[0].reason if seen else "", str(raised.value)


def says(text: str) -> bytes:
    return msgspec.json.encode({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})
