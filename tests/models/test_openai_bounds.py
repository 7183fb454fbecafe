"""How much of a reply the openai backend reads, and for how long."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from aiohttp import web

from evenkeel.models.openai import transport
from evenkeel.models.openai.transport import CEILING, FLOOR, VECTOR, Decompression, reply_limit
from evenkeel.types import Embed
from loopback import embedding
from models.hostile import CHUNK, Hostile, chat, failing, fixed, model_of, one, packed, says, socket_buffers

if TYPE_CHECKING:
    from collections.abc import Callable


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def test_a_reply_without_end_is_cut_off_and_asked_for_twice_more() -> None:
    async def respond(server: Hostile, request: web.BaseRequest) -> web.StreamResponse:
        return await server.endless(request)

    server = Hostile(respond)
    reason, _ = failing(server)
    assert reason.startswith("reply too large after 3 tries: more than 1,0")
    assert server.requests == 3
    assert server.sent < 3 * (2 * FLOOR + socket_buffers())


def test_a_reply_that_announces_too_much_is_not_read() -> None:
    async def respond(server: Hostile, request: web.BaseRequest) -> web.StreamResponse:
        reply = web.StreamResponse(headers={"Content-Length": str(2**30)})
        await reply.prepare(request)
        while True:
            await reply.write(CHUNK)

    assert failing(Hostile(respond))[0].startswith("reply too large")


@pytest.mark.parametrize(
    ("pack", "encoding"), [(gzip.compress, "gzip"), (zlib.compress, "deflate"), (raw_deflate, "deflate")]
)
def test_a_decompression_bomb_is_cut_off(pack: Callable[[bytes], bytes], encoding: str) -> None:
    bomb = pack(says("a" * 2**23))
    assert len(bomb) < 2**16
    server = packed(bomb, encoding)
    assert failing(server)[0].startswith("reply too large after 3 tries")
    assert server.requests == 3


def test_nothing_is_decompressed_beyond_the_room() -> None:
    decompress = Decompression("gzip")
    bomb = gzip.compress(b"a" * 2**23)
    sizes = [len(decompress(bomb, 1000)), len(decompress(b"", 10)), len(decompress(b"", 2**20))]
    assert sizes == [1000, 10, 2**20]


@pytest.mark.parametrize(
    ("pack", "encoding"),
    [
        (gzip.compress, "gzip"),
        (gzip.compress, "x-gzip"),
        (zlib.compress, "deflate"),
        (raw_deflate, "deflate"),
        (lambda data: gzip.compress(data[:30]) + gzip.compress(data[30:]), "gzip"),
        (bytes, "identity"),
    ],
)
def test_a_compressed_reply_is_read(pack: Callable[[bytes], bytes], encoding: str) -> None:
    with packed(pack(says("decompressed")), encoding) as server:
        assert one(model_of(server), chat("q")).text == "decompressed"


@pytest.mark.parametrize(
    ("body", "encoding", "reason"),
    [
        (b"\x0b\x02\x80", "br", "which was not asked for"),
        (says("plain"), "gzip", "not in the encoding 'gzip'"),
        (gzip.compress(says("a" * 100))[:-20], "gzip", "breaks off"),
        (gzip.compress(says("a")), "gzip, gzip", "which was not asked for"),
    ],
    ids=["foreign", "plain", "cut", "twice"],  # a compressed body holds the time at which it was made
)
def test_an_encoding_that_does_not_hold_is_a_broken_reply(body: bytes, encoding: str, reason: str) -> None:
    error, _ = failing(packed(body, encoding), retries=1)
    assert error.startswith("broken reply after 2 tries")
    assert reason in error


def test_a_large_batch_of_vectors_is_read_whole_packed_or_not() -> None:
    vectors = [[*embedding(f"text {i}"), *(0.1 + 1e-9 * n for n in range(3000))] for i in range(64)]
    body = msgspec.json.encode({"data": [{"index": i, "embedding": v} for i, v in enumerate(vectors)]})
    assert len(body) > 2 * FLOOR
    texts = [Embed(text=f"text {i}") for i in range(64)]
    with fixed(body) as server:
        plain = [response.vector for _, response in model_of(server).answer(texts)]
    with packed(gzip.compress(body), "gzip") as server:
        assert [response.vector for _, response in model_of(server).answer(texts)] == plain
    assert len({vector for vector in plain if vector}) == 64


def test_the_bound_follows_what_was_asked() -> None:
    def limit(**body: Any) -> int:
        return reply_limit(msgspec.json.encode(body))

    plain = limit(messages=[], max_tokens=1000)
    assert FLOOR < plain < 2 * FLOOR
    assert limit(messages=[], max_tokens=10_000) > plain
    assert limit(messages=[], max_completion_tokens=10_000) > plain
    assert limit(messages=[], max_tokens=1000, n=50) > plain
    assert limit(messages=[], max_tokens=1000, logprobs=True, top_logprobs=20) > plain + 20 * 1000 * 100
    assert limit(prompt="a" * 5000, max_tokens=0, echo=True, logprobs=1) > FLOOR + 5000 * 200
    assert limit(input=["a"] * 64) > limit(input=["a"]) + 63 * VECTOR
    assert limit(messages=[]) > plain  # no limit on tokens
    assert limit(messages=[], max_tokens=2**60, n=2**60, logprobs=2**60) == CEILING
    assert limit(messages=[], max_tokens=-1, n="many", logprobs=None) > FLOOR


def test_an_error_without_end_is_read_at_its_beginning_only() -> None:
    async def respond(server: Hostile, request: web.BaseRequest) -> web.StreamResponse:
        return await server.endless(request, status=400)

    server = Hostile(respond)
    with server:
        response = one(model_of(server), chat("q"))
    assert response.reason.startswith("HTTP 400: aaaa")
    assert len(response.reason) < 400
    assert server.sent < 2 * FLOOR + socket_buffers()


def test_a_reply_that_stands_still_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "STALL_S", 0.2)

    async def respond(_: Hostile, request: web.BaseRequest) -> web.StreamResponse:
        reply = web.StreamResponse(headers={"Content-Length": "100"})
        await reply.prepare(request)
        await reply.write(b'{"choices"')
        await asyncio.sleep(30)
        return reply

    assert failing(Hostile(respond), retries=0)[0] == "timeout: the reply began and did not go on"


def test_a_reply_that_drips_has_no_more_time_than_any() -> None:
    async def respond(_: Hostile, request: web.BaseRequest) -> web.StreamResponse:
        reply = web.StreamResponse(headers={"Content-Length": "100000"})
        await reply.prepare(request)
        while True:
            await reply.write(b" ")
            await asyncio.sleep(0.02)

    assert failing(Hostile(respond), retries=0, timeout=0.5)[0] == "timeout: no reply within 0.5 s"
