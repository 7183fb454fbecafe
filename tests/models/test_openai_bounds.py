"""How much of a reply the openai backend reads, and for how long."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

from commandline import python
from models.hostile import Hostile, answers, chat, failing, fixed, model_of, one, packed, says, socket_buffers
from sealegs.models.openai.retry import LARGE_REPLIES
from sealegs.models.openai.transport import ERROR_BODY, LARGE_REPLY_BYTES, LARGEST_REPLY_BYTES, Deadlines


def test_a_reply_without_end_is_cut_off() -> None:
    async def respond(server: Hostile, request: web.BaseRequest) -> web.StreamResponse:
        return await server.endless(request)

    server = Hostile(respond)
    assert failing(server, retries=0)[0].startswith("broken reply: it has more than 3,145,728 bytes")
    assert server.sent < LARGEST_REPLY_BYTES + 2 * socket_buffers()


@pytest.mark.parametrize("unit", [b"{},", b"[" * 400 + b"]" * 400 + b","])
@pytest.mark.parametrize("field", [b"content", b"reasoning_details", b"other"])
def test_a_reply_of_very_many_parts_is_not_read(unit: bytes, field: bytes) -> None:
    """Each reply would take seconds, in which nothing else is done: Ctrl-C would wait for 64 of them."""
    parts = unit * ((LARGEST_REPLY_BYTES - 1000) // len(unit))
    body = b'{"choices":[{"message":{"%b":[%b[]]},"finish_reason":"stop"}]}' % (field, parts)
    problem = "broken reply: it has more than 100,000 lists and objects"
    assert failing(fixed(body), retries=0)[0].startswith(problem)


def test_the_log_probabilities_of_a_long_reply_are_not_too_many_parts() -> None:
    place = b'{"token":" keel","logprob":-0.1,"top_logprobs":[%b]}' % b",".join(
        [b'{"token":"a","logprob":-9.25}'] * 20
    )
    shown = b'"logprobs":{"content":[%b]}' % b",".join([place] * 4000)
    body = says("a keel").replace(b'"finish_reason"', shown + b',"finish_reason"', 1)
    assert LARGEST_REPLY_BYTES * 0.7 < len(body) < LARGEST_REPLY_BYTES
    with fixed(body) as server:
        assert one(model_of(server), chat("q")).text == "a keel"


def test_a_decompression_bomb_is_cut_off() -> None:
    bomb = gzip.compress(says("a" * 2 * LARGEST_REPLY_BYTES))
    assert failing(packed(bomb, "gzip"), retries=0)[0].startswith("broken reply: it has more than")


@pytest.mark.parametrize(("pack", "encoding"), [(gzip.compress, "gzip"), (zlib.compress, "deflate")])
def test_a_compressed_reply_is_read(pack: Callable[[bytes], bytes], encoding: str) -> None:
    with packed(pack(says("decompressed")), encoding) as server:
        assert one(model_of(server), chat("q")).text == "decompressed"


def test_an_error_without_end_is_read_at_its_beginning_only() -> None:
    async def respond(server: Hostile, request: web.BaseRequest) -> web.StreamResponse:
        return await server.endless(request, status=400)

    server = Hostile(respond)
    with server:
        response = one(model_of(server), chat("q"))
    assert response.reason.startswith("HTTP 400: aaaa")
    assert len(response.reason) < 400
    assert server.sent < 64 * ERROR_BODY + 2 * socket_buffers()


def test_a_reply_that_drips_has_no_more_time_than_any() -> None:
    async def respond(_: Hostile, request: web.BaseRequest) -> web.StreamResponse:
        reply = web.StreamResponse(headers={"Content-Length": "100000"})
        await reply.prepare(request)
        while True:
            await reply.write(b" ")
            await asyncio.sleep(0.02)

    assert failing(Hostile(respond), retries=0, timeout=0.5)[0] == "timeout: no reply within 0.5 s"


def test_one_timer_ends_every_try_that_is_due() -> None:
    ended: list[str] = []

    async def attempt(deadlines: Deadlines, name: str) -> None:
        try:
            with deadlines:
                await asyncio.Event().wait()
        except TimeoutError:
            ended.append(name)

    async def scenario() -> None:
        deadlines = Deadlines(0.05)
        tasks = [asyncio.create_task(attempt(deadlines, name)) for name in ("first", "second", "stopped")]
        await asyncio.sleep(0)
        tasks[2].cancel()  # it is no timeout, also where it is due by then
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(result) for result in results] == [type(None), type(None), asyncio.CancelledError]
        await attempt(deadlines, "later")

    asyncio.run(scenario())
    assert ended == ["first", "second", "later"]


PEAK = r"""
import re, resource, sys
from pathlib import Path

def megabytes():
    # What getrusage gives begins with the size of the process that began this one.
    status = Path("/proc/self/status")
    peak = re.search(r"VmHWM:\s+(\d+)", status.read_text()) if status.exists() else None
    return (int(peak[1]) if peak else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) // 1024
"""
RUN = r"""
import sealegs as sl
run = sl.run("rgb", "openai:loop", base_url=sys.argv[1], out=sys.argv[2], limit=12, progress=None)
print(sum(len(record.answers) for record in run.records()), *run.problems, megabytes())
"""
ASK = r"""
import sealegs as sl
model = sl.load_model("openai:loop", base_url=sys.argv[1], concurrency=8, retries=1)
prompts = [(sl.Message("user", str(number)),) for number in range(8)]
try:
    list(model.answer(sl.Generate(prompt=prompt, sampling=sl.Sampling()) for prompt in prompts))
except sl.SealegsError:
    print(megabytes())
"""


def test_replies_of_the_largest_size_fit_into_memory(tmp_path: Path) -> None:
    """At 64 connections, whose replies come at the same time; then they are scored, published and shown.
    One emoji in a text, and Python takes four bytes for each of its characters; half a character is replaced
    before it is read."""
    body = says(f"HALF{'a' * (LARGEST_REPLY_BYTES - 1000)}\N{GRINNING FACE}").replace(b"HALF", rb"\ud800")
    with fixed(body) as server:
        answers, megabytes = map(int, python(PEAK + RUN, server.url, tmp_path / "run").split())
    assert answers * LARGEST_REPLY_BYTES > 2 * 500 * 2**20 / 3
    assert megabytes < 500


@pytest.mark.parametrize("broken", [says("a" * LARGEST_REPLY_BYTES), says("a" * LARGE_REPLY_BYTES)[:-1]])
def test_large_replies_that_cannot_be_read_leave_room_for_others(broken: bytes) -> None:
    fine = says("a" * 2 * LARGE_REPLY_BYTES)

    async def respond(server: Hostile, _: web.BaseRequest) -> web.StreamResponse:
        body = broken if server.requests <= LARGE_REPLIES else fine
        return web.Response(body=body, content_type="application/json")

    with Hostile(respond) as server:
        model = model_of(server, retries=3, concurrency=LARGE_REPLIES)
        responses = answers(model, [chat(str(number)) for number in range(2 * LARGE_REPLIES)])
    assert {response.status for response in responses.values()} == {"ok"}


def test_a_call_that_waits_for_its_next_try_holds_no_reply() -> None:
    """A reply of 3 MB becomes 70 MB of objects, which are let go before the pause."""
    body = b'{"choices":[%b{}]}' % (b"{}," * (LARGEST_REPLY_BYTES // 3 - 10))
    with fixed(body) as server:
        assert int(python(PEAK + ASK, server.url)) < 350
