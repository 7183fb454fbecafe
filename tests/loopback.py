"""A real HTTP server on 127.0.0.1 that speaks the OpenAI protocol, and misbehaves where it is told to.

In a test:

    with Loopback(fail=0.3) as server:
        model = load_model("openai:loop", base_url=server.url)
        ...
        assert server.statuses[429] > 0

For a benchmark, as a process of its own that prints its address first:

    python tests/loopback.py --port 0 --words 220 --fail 0.3 --latency 0.05

An answer is a function of the prompt and of how many times that prompt was *answered* before, modulo
`variants` (or of the seed, where one is sent). So a prompt that is asked five times gets the same five
answers in whatever order the requests come, and however many of them had to be sent again.

A prompt, a document or a text to embed with [poison] in it is a 400.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import random
import re
import socket
import ssl
import struct
import threading
import zlib
from collections import Counter
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal, Self

import msgspec
from aiohttp import web

from faults import FAULTS

PROSE = (
    "the keel holds a steady course while wind and water press on every plank so that a ship which "
    "leans will right itself again and carry its people over the long grey sea to harbour"
)
VOCABULARY = PROSE.split()
DIMENSIONS = 384
HEAD = b'{"id":"loop","model":"loop","choices":[{"index":0,"message":{"role":"assistant","content":"'
TAIL = b'"},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}'


@dataclass
class Behaviour:
    """What the server does. Every field can be changed while it runs."""

    words: int = 220
    """Length of an answer."""
    variants: int = 5
    """How many answers a prompt has."""
    latency: float = 0.0
    """Seconds before each reply."""
    fail: float = 0.0
    """Share of requests that go wrong, one of `faults` each, chosen by a seeded generator."""
    faults: tuple[str, ...] = ("429", "500", "drop", "broken")
    """A status, `drop` (the connection is cut), or any other of `faults.py`."""
    script: tuple[str, ...] = ()
    """Faults for the first requests, in order; `ok` for none."""
    retry_after: str = "0"
    """The Retry-After header of 429 and 503; none if empty."""
    always: int = 0
    """A status that every request gets."""
    says: str = "the keel is cracked"
    """The message of an error."""
    code: str = "loopback_error"
    dies_after: int = 0
    """From this many answers on, every connection is cut."""
    holds_after: int = 0
    """From this many answers on, replies wait until this is changed."""
    overload_above: int = 0
    """More requests at once than this get 429."""
    key: str = ""
    """The key without which there is a 401."""
    echo_key: bool = False
    """Put the key received into every error and every answer."""
    logprobs: Literal["sound", "missing", "zero", "null", "equal", "positive", "huge"] = "sound"
    bos: str = ""
    """A special token in front of an echoed prompt (vLLM)."""
    min_tokens: int = 0
    """The smallest max_tokens that is accepted."""
    vectors: Literal["as asked", "float"] = "as asked"
    wants_completion_tokens: str = ""
    """How it refuses max_tokens on /chat/completions, as OpenAI's reasoning models do."""
    record: bool = False
    """Keep every body received in `bodies`."""


class _Turn(msgspec.Struct):
    content: str


class _Body(msgspec.Struct):
    messages: list[_Turn] = []
    prompt: str = ""
    input: list[str] | str = ""
    seed: int | None = None
    temperature: float | None = None
    echo: bool = False
    max_tokens: int | None = None
    logprobs: int | None = None
    encoding_format: str = "float"
    query: str = ""
    documents: list[str] = []


async def accept_no_more(listener: socket.socket) -> None:
    """Before a server is closed: asyncio loses, with a warning, a connection that it accepted just before."""
    asyncio.get_running_loop().remove_reader(listener)
    for _ in range(4):
        await asyncio.sleep(0)


class Loopback:
    """The server with its counters; as a context manager it runs in a thread of its own."""

    def __init__(
        self, *, port: int = 0, seed: int = 0, context: ssl.SSLContext | None = None, **behaviour: Any
    ) -> None:
        self.behaviour = Behaviour(**behaviour)
        self.requests = 0
        self.statuses: Counter[int] = Counter()
        """Replies by status; 0 for a connection that was cut."""
        self.answered: Counter[str] = Counter()
        """Answers per prompt or embedded text."""
        self.bodies: list[dict[str, Any]] = []
        self.peak = 0
        self.url = ""
        self._port, self._context = port, context
        self._active = 0
        self._answers = 0
        self._faults = random.Random(seed)
        self._decoder = msgspec.json.Decoder(_Body)
        self._fillers: dict[tuple[int, int], bytes] = {}

    # Running

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loopback", daemon=True)
        self._thread.start()
        self._runner = asyncio.run_coroutine_threadsafe(self.start(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _stop(self) -> None:
        await accept_no_more(self._socket)
        await self._runner.cleanup()
        # Handlers whose client was killed in the middle of a reply.
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def start(self) -> web.ServerRunner:
        # The low-level server: no router, no middleware, no access log.
        self._server = web.Server(self._handle, access_log=None)
        runner = web.ServerRunner(self._server, shutdown_timeout=0.1)
        await runner.setup()
        self._socket = socket.create_server(("127.0.0.1", self._port))
        await web.SockSite(runner, self._socket, backlog=1024, ssl_context=self._context).start()
        self.url = f"http{'s' if self._context else ''}://127.0.0.1:{runner.addresses[0][1]}/v1"
        return runner

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._server.connections)

    # Answering

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        self.requests += 1
        self._active += 1
        self.peak = max(self.peak, self._active)
        try:
            data = await request.read()
            reply = await self._reply(request, path, data)
        finally:
            self._active -= 1
        self.statuses[reply.status if reply else 0] += 1
        if reply is None:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        return reply

    async def _reply(self, request: web.BaseRequest, path: str, data: bytes) -> web.StreamResponse | None:
        behaviour = self.behaviour
        if behaviour.record:
            self.bodies.append({"path": path, **msgspec.json.decode(data)})
        if behaviour.latency:
            await asyncio.sleep(behaviour.latency)
        while behaviour.holds_after and self._answers >= behaviour.holds_after:
            await asyncio.sleep(0.01)
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        fault = self._fault(data)
        if behaviour.key and key != behaviour.key:
            return self._error(401, f"Incorrect API key provided: {key}.", "invalid_api_key")
        if behaviour.dies_after and self._answers >= behaviour.dies_after:
            fault = "drop"
        if fault == "drop":
            return None
        if fault.isdigit():
            said = f"{behaviour.says} {key}" if behaviour.echo_key else behaviour.says
            return self._error(int(fault), said, behaviour.code)
        try:
            body = self._decoder.decode(data)
        except msgspec.DecodeError as error:
            return self._error(400, str(error), "invalid_request_error")
        if (complaint := self._complaint(path, body)) is not None:
            return self._error(400, complaint, "invalid_request_error")

        def answer() -> bytes:
            self._answers += 1
            return self._answer(path, body, key if behaviour.echo_key else "")

        if fault:
            return await FAULTS[fault](request, answer)
        return json_reply(msgspec.Raw(answer()))

    def _fault(self, data: bytes) -> str:
        """The fault with which a request goes wrong; empty for none."""
        behaviour = self.behaviour
        if behaviour.script:
            fault, *rest = behaviour.script
            behaviour.script = tuple(rest)
            return "" if fault == "ok" else fault
        if behaviour.always:
            return str(behaviour.always)
        if behaviour.overload_above and self._active > behaviour.overload_above:
            return "429"
        if behaviour.fail and self._faults.random() < behaviour.fail:
            return self._faults.choice(behaviour.faults)
        return ""

    def _complaint(self, path: str, body: _Body) -> str | None:
        behaviour = self.behaviour
        if behaviour.wants_completion_tokens and path.endswith("/chat/completions") and body.max_tokens:
            return behaviour.wants_completion_tokens
        if body.echo and (body.max_tokens or 0) < behaviour.min_tokens:
            return f"max_tokens must be at least {behaviour.min_tokens}, got {body.max_tokens}."
        if "[poison]" in body.prompt or any(
            "[poison]" in text for text in [*body.input, *body.documents, *_contents(body)]
        ):
            return "this text is not accepted"
        return None

    def _error(self, status: int, message: str, code: str) -> web.Response:
        wait = self.behaviour.retry_after if status in (429, 503) else ""
        headers = {"Retry-After": wait} if wait else {}
        return json_reply({"error": {"message": message, "code": code}}, status=status, headers=headers)

    def _answer(self, path: str, body: _Body, key: str) -> bytes:
        if path == "/v1/embeddings":
            return self._embeddings(body)
        if path.endswith("/rerank"):
            return self._ranks(body)
        if path == "/v1/completions":
            return self._echo(body) if body.echo else self._completion(body, key)
        prompt = "\n".join(_contents(body))
        lead, filler = self._text(prompt, body.seed)
        tail = TAIL % (len(prompt) // 4 + 1, self.behaviour.words * 4 // 3)
        return b"".join((HEAD, lead.encode(), key.encode(), filler, tail))

    def _text(self, prompt: str, seed: int | None) -> tuple[str, bytes]:
        """The sentence that is the prompt's own, and the rest, which is made once for each variant."""
        variants, words = self.behaviour.variants, self.behaviour.words
        turn = (self.answered[prompt] if seed is None else seed) % variants
        self.answered[prompt] += 1
        filler = self._fillers.get((turn, words))
        if filler is None:
            size = len(VOCABULARY)
            # Every eighth word is the variant's own: the answers to a prompt are alike, not equal.
            chosen = (VOCABULARY[(i + turn * (i % 8 == 0)) % size] for i in range(words))
            filler = self._fillers[turn, words] = (" " + " ".join(chosen)).encode()
        return f"Answer {turn} to {zlib.crc32(prompt.encode()):08x}:", filler

    def _completion(self, body: _Body, key: str) -> bytes:
        lead, filler = self._text(body.prompt, body.seed)
        choice = {"text": f"{lead}{key}{filler.decode()}", "finish_reason": "stop"}
        return msgspec.json.encode(
            {"choices": [choice], "usage": {"prompt_tokens": len(body.prompt) // 4 + 1}}
        )

    def _echo(self, body: _Body) -> bytes:
        behaviour = self.behaviour
        self.answered[body.prompt] += 1
        tokens = [*([behaviour.bos] if behaviour.bos else []), *tokenise(body.prompt)]
        prompt_tokens = len(tokens)
        tokens += [" end"] * (body.max_tokens or 0)
        values: list[float | None] = [None, *(logprob(token) for token in tokens[1:])]
        made_up = {"zero": 0.0, "null": None, "equal": -1.0, "positive": 0.5, "huge": -1e308}
        if behaviour.logprobs in made_up:
            values = [made_up[behaviour.logprobs]] * len(tokens)
        logprobs = {"tokens": tokens, "token_logprobs": values}
        choice = {
            "text": body.prompt,
            "finish_reason": "length",
            "logprobs": None if behaviour.logprobs == "missing" else logprobs,
        }
        return msgspec.json.encode({"choices": [choice], "usage": {"prompt_tokens": prompt_tokens}})

    def _ranks(self, body: _Body) -> bytes:
        """How many words of the query a document has, the best first."""
        self.answered.update(body.documents)
        results = [
            {"index": index, "relevance_score": shared_words(body.query, document)}
            for index, document in enumerate(body.documents)
        ]
        results.sort(key=lambda result: -result["relevance_score"])
        return msgspec.json.encode({"results": results})

    def _embeddings(self, body: _Body) -> bytes:
        texts = [body.input] if isinstance(body.input, str) else body.input
        self.answered.update(texts)
        as_text = body.encoding_format == "base64" and self.behaviour.vectors == "as asked"
        data = []
        for index, text in enumerate(texts):
            vector = embedding(text)
            packed = struct.pack(f"<{DIMENSIONS}f", *vector)
            data.append(
                {"index": index, "embedding": base64.b64encode(packed).decode() if as_text else vector}
            )
        data.reverse()  # the order is told by `index` alone
        return msgspec.json.encode(
            {"data": data, "usage": {"prompt_tokens": sum(len(t) // 4 + 1 for t in texts)}}
        )


def json_reply(value: Any, **more: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json", **more)


def _contents(body: _Body) -> list[str]:
    return [turn.content for turn in body.messages]


def shared_words(query: str, document: str) -> float:
    return float(len(set(query.lower().split()) & set(document.lower().split())))


def tokenise(text: str) -> list[str]:
    """Pieces of up to four letters with the space before them, which span a prefix's end as real ones do."""
    return re.findall(r" ?[^\W_]{1,4}|.", text, flags=re.DOTALL)


def logprob(token: str) -> float:
    return -0.05 - zlib.crc32(token.encode()) % 1000 / 100


@cache
def _hashed(word: str) -> tuple[float, int, int, int]:
    bits = zlib.crc32(word.encode())
    first, second, third = ((bits >> shift) % DIMENSIONS for shift in (0, 9, 18))
    return 1.0 if bits >> 31 else 0.5, first, second, third


def embedding(text: str) -> list[float]:
    """A hashed bag of words: equal texts get equal vectors, texts that share words similar ones."""
    vector = [0.0] * DIMENSIONS
    for word, count in Counter(text.lower().split()).items():
        weight, *places = _hashed(word)
        for place in places:
            vector[int(place)] += weight * count
    vector[0] += 0.1  # a text without words has a direction too
    return vector


def main() -> None:
    parser = argparse.ArgumentParser(description="An OpenAI-compatible server on loopback, for tests.")
    parser.add_argument("--port", type=int, default=0, help="0 for any free one")
    parser.add_argument("--seed", type=int, default=0, help="of the faults")
    options = {"words": int, "variants": int, "latency": float, "fail": float}
    for field in fields(Behaviour):
        if field.name in options:
            parser.add_argument(f"--{field.name}", type=options[field.name], default=field.default)
    server = Loopback(**vars(parser.parse_args()))

    async def serve() -> None:
        await server.start()
        print(server.url, flush=True)
        await asyncio.Event().wait()

    asyncio.run(serve())


if __name__ == "__main__":
    main()
