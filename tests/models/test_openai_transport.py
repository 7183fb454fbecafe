"""The openai backend against servers that send too much, too slowly, or what was never asked for."""

from __future__ import annotations

import asyncio
import base64
import gzip
import html
import json
import re
import urllib.parse
import zlib
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from aiohttp import web

from evenkeel.errors import ModelUnreachable, UsageError
from evenkeel.models import load_model
from evenkeel.models.openai import client as openai_client
from evenkeel.models.openai import reply as openai_reply
from evenkeel.models.openai import throttle
from evenkeel.models.openai.backend import OpenAI
from evenkeel.models.openai.redaction import Redaction
from evenkeel.models.openai.reply import CEILING, FLOOR, VECTOR, reply_limit
from evenkeel.models.openai.throttle import asked_wait
from evenkeel.types import Embed, Generate, Message, Request, Response, Sampling, Weigh
from loopback import Loopback, embedding

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

KEY = "sk-Canary/7f3a9b2c1d+Xy4Zt8Qw"
PIECE = b"a" * 2**16


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "BACK_OFF_S", 0.02)
    monkeypatch.setattr(throttle, "OVERLOAD_BACK_OFF_S", 0.02)


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
            await reply.write(PIECE)
            self.sent += len(PIECE)


class Recorder:
    """A watcher that remembers what it was told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.counts: list[int] = []

    def phase(self, title: str, *, total: int, done: int) -> None: ...

    def answered(self, response: Response, *, usd: float) -> None: ...

    def retrying(self, count: int) -> None:
        self.counts.append(count)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def finish(self) -> None: ...


def fixed(body: bytes, **more: Any) -> Hostile:
    """A server that always sends this."""
    more = {"content_type": "application/json", **more}

    async def respond(_: Hostile, request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=body, **more)

    return Hostile(respond)


def packed(body: bytes, encoding: str) -> Hostile:
    async def respond(_: Hostile, request: web.BaseRequest) -> web.StreamResponse:
        headers = {"Content-Encoding": encoding, "Content-Type": "application/json"}
        return web.Response(body=body, headers=headers)

    return Hostile(respond)


def model_of(server: Loopback | str, **options: Any) -> OpenAI:
    url = server if isinstance(server, str) else server.url
    model = load_model("openai:loop", base_url=url, **options)
    assert isinstance(model, OpenAI)
    return model


def chat(text: str, **sampling: Any) -> Generate:
    return Generate(prompt=(Message("user", text),), sampling=Sampling(**sampling))


def one(model: OpenAI, request: Request) -> Response:
    [(_, response)] = model.answer([request])
    return response


def failing(server: Hostile, **options: Any) -> tuple[str, str]:
    """The reason of a request's error, and what the run is told when no other came through."""
    seen: list[Response] = []
    with server, pytest.raises(ModelUnreachable) as raised:
        for _, response in model_of(server, **options).answer([chat("q")]):
            seen.append(response)
    return seen[0].reason if seen else "", str(raised.value)


def says(text: str) -> bytes:
    return msgspec.json.encode({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


# Bounds


def test_a_reply_without_end_is_cut_off_and_not_asked_for_again() -> None:
    async def respond(server: Hostile, request: web.BaseRequest) -> web.StreamResponse:
        return await server.endless(request)

    server = Hostile(respond)
    reason, _ = failing(server)
    assert reason.startswith("reply too large: more than 1,0")
    assert server.requests == 1
    assert server.sent < 16 * FLOOR  # what fits into the buffers of two sockets


def test_a_reply_that_announces_too_much_is_not_read() -> None:
    async def respond(server: Hostile, request: web.BaseRequest) -> web.StreamResponse:
        reply = web.StreamResponse(headers={"Content-Length": str(2**30)})
        await reply.prepare(request)
        while True:
            await reply.write(PIECE)

    assert failing(Hostile(respond))[0].startswith("reply too large")


@pytest.mark.parametrize(
    ("pack", "encoding"), [(gzip.compress, "gzip"), (zlib.compress, "deflate"), (raw_deflate, "deflate")]
)
def test_a_small_body_that_unfolds_without_measure_is_cut_off(
    pack: Callable[[bytes], bytes], encoding: str
) -> None:
    bomb = pack(says("a" * 2**23))
    assert len(bomb) < 2**16
    server = packed(bomb, encoding)
    assert failing(server)[0].startswith("reply too large")
    assert server.requests == 1


def test_nothing_is_unfolded_beyond_the_room_that_there_is() -> None:
    unfold = openai_reply._Unfolding("gzip")
    bomb = gzip.compress(b"a" * 2**23)
    assert [len(unfold(bomb, 1000)), len(unfold.rest(10)), len(unfold.rest(2**20))] == [1000, 10, 2**20]


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
    with packed(pack(says("unfolded")), encoding) as server:
        assert one(model_of(server), chat("q")).text == "unfolded"


@pytest.mark.parametrize(
    ("body", "encoding", "reason"),
    [
        (b"\x0b\x02\x80", "br", "which was not asked for"),
        (says("plain"), "gzip", "not in the encoding 'gzip'"),
        (gzip.compress(says("a" * 100))[:-20], "gzip", "breaks off"),
        (gzip.compress(says("a")), "gzip, gzip", "which was not asked for"),
    ],
)
def test_an_encoding_that_does_not_hold_is_a_broken_reply(body: bytes, encoding: str, reason: str) -> None:
    found, _ = failing(packed(body, encoding), retries=1)
    assert found.startswith("broken reply after 2 tries")
    assert reason in found


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
    assert server.sent < 16 * FLOOR


def test_a_reply_that_stands_still_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_client, "STALL_S", 0.2)

    async def respond(_: Hostile, request: web.BaseRequest) -> web.StreamResponse:
        reply = web.StreamResponse(headers={"Content-Length": "100"})
        await reply.prepare(request)
        await reply.write(b'{"choices"')
        await asyncio.sleep(30)
        return reply

    assert failing(Hostile(respond), retries=0)[0] == "timeout: the reply began and did not go on"


# Keys


def spellings() -> dict[str, str]:
    codes = [ord(character) for character in KEY]
    basic = base64.b64encode(f"user:{KEY}".encode()).decode()
    return {
        "plain": KEY,
        "slash": KEY.replace("/", "\\/"),
        "unicode": "".join(f"\\u{code:04x}" for code in codes),
        "unicode capitals": "".join(f"\\u{code:04X}" for code in codes),
        "unicode twice": "".join(f"\\\\u{code:04x}" for code in codes),
        "braces": "".join(f"\\\\u{{{code:x}}}" for code in codes),
        "some unicode": KEY.replace("-", "\\u002d").replace("a", "\\u0061"),
        "percent": urllib.parse.quote(KEY, safe=""),
        "percent all": "".join(f"%{code:02x}" for code in codes),
        "percent twice": urllib.parse.quote(urllib.parse.quote(KEY, safe="")),
        "entities": "".join(f"&#{code};" for code in codes),
        "hex entities": "".join(f"&#x{code:x};" for code in codes),
        "one entity": KEY.replace("+", "&plus;").replace("/", "&sol;"),
        "basic": basic,
        "base64": base64.b64encode(KEY.encode()).decode(),
        "base64 url": base64.urlsafe_b64encode(f"Bearer {KEY}".encode()).decode(),
        "hex": KEY.encode().hex(),
        "upper": KEY.upper(),
        "lower": KEY.lower(),
        "spaced": " ".join(KEY),
        "lines": "\\n".join(KEY),
        "wrapped": f"{KEY[:10]}\\r\\n  {KEY[10:]}",
        "zero width": "\u200b".join(KEY),
        "first half": KEY[: len(KEY) // 2 + 1],
        "last half": KEY[len(KEY) // 2 :],
        "without punctuation": re.sub("[^A-Za-z0-9]", "", KEY),
    }


def readings(text: str) -> str:
    """Everything that a reader could make of a text, in lower case without punctuation."""
    found = [text, text.encode().decode("unicode_escape", "replace"), html.unescape(text)]
    found += [urllib.parse.unquote(text), urllib.parse.unquote(urllib.parse.unquote(text))]
    found.append(re.sub(r"\\+u00(..)", lambda match: chr(int(match[1], 16)), text))
    for word in re.findall(r"[\w+/=-]{12,}", text):
        for start in range(4):
            part = word[start:].replace("-", "+").replace("_", "/").rstrip("=")
            found.append(base64.b64decode(part[: len(part) // 4 * 4]).decode("latin-1"))
        if re.fullmatch("[0-9a-f]+", word):
            found.append(bytes.fromhex(word[: len(word) // 2 * 2]).decode("latin-1"))
    return "|".join(re.sub("[^a-z0-9]", "", reading.lower()) for reading in found)


@pytest.mark.parametrize("spelling", spellings())
@pytest.mark.parametrize("where", ["error", "content", "reasoning"])
def test_a_key_is_struck_out_however_a_server_spells_it(
    spelling: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    told = f"Incorrect key {spellings()[spelling]} given"
    message = {"content": "ok", "reasoning_content": "so", "finish_reason": "stop"}
    if where == "error":
        server = fixed(f'{{"error": {{"message": "{told}"}}}}'.encode(), status=400)
    else:
        message["content" if where == "content" else "reasoning_content"] = "TOLD"
        body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})
        server = fixed(body.replace("TOLD", told).encode())
    with server:
        response = one(model_of(server), chat("q"))
    shown = f"{response.text} {response.reasoning} {response.reason}"
    assert "Incorrect key" in shown
    assert "given" in shown
    plain = re.sub("[^a-z0-9]", "", KEY.lower())
    half = len(plain) // 2
    assert not [i for i in range(half) if plain[i : i + half] in readings(shown)], shown


def test_a_key_among_tokens_leaves_the_tokens_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    strike = Redaction([KEY])
    tokens = [KEY[i : i + 4] for i in range(0, len(KEY), 4)]
    struck = json.loads(strike(json.dumps({"tokens": ["a", *tokens, "b"], "logprobs": [-0.5]}).encode()))
    assert len(struck["tokens"]) == len(tokens) + 2
    assert (struck["tokens"][0], struck["tokens"][-1], struck["logprobs"]) == ("a", "b", [-0.5])
    assert "7f3a" not in "".join(struck["tokens"])


@pytest.mark.parametrize(
    "key", ["not-needed", "EMPTY", "sk-no-key-required", "sk-000000000000000", "123456789"]
)
def test_a_placeholder_for_a_key_leaves_answers_alone(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    text = "That is not needed; no key required, 0.000000000000000000 or 1,234,567,890. Empty."
    with fixed(says(text)) as server:
        assert one(model_of(server), chat("q")).text == text
    vectors = [0.0] * 50 + [1.23456789e-05, 0.123, 0.456, 0.789]
    with fixed(msgspec.json.encode({"data": [{"embedding": vectors}]})) as server:
        assert one(model_of(server), Embed(text="q")).status == "ok"


@pytest.mark.parametrize("key", ["1234567890", "hunter22", "correct horse", "not-needed"])
def test_a_weak_key_is_struck_out_as_it_is(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    escaped = "".join(f"\\u{ord(character):04x}" for character in key)
    with fixed(f'{{"error": "bad key {key} or {escaped}"}}'.encode(), status=400) as server:
        assert one(model_of(server), chat("q")).reason == "HTTP 400: bad key [key] or [key]"


@pytest.mark.parametrize(
    "name", ["code", "pass", "jwt", "sig", "token", "key", "auth", "secret", "x", "subscription"]
)
def test_no_value_of_a_query_is_shown(name: str) -> None:
    with fixed(b'{"error": "bad ' + KEY.encode() + b'"}', status=400) as server:
        quoted = urllib.parse.quote(KEY, safe="")
        model = model_of(f"{server.url}?{name}={quoted}&api-version=2024-02-01#{quoted}")
        response = one(model, chat("q"))
    assert model.address == f"{server.url}?{name}&api-version"
    assert response.reason == "HTTP 400: bad [key]"
    assert "anary" not in repr([model, model.address, model.identity(), response])


def test_a_user_name_that_is_a_key_is_not_shown() -> None:
    with fixed(b'{"error": "bad ' + KEY.encode() + b'"}', status=400) as server:
        model = model_of(server.url.replace("//", f"//{urllib.parse.quote(KEY, safe='')}@"))
        assert one(model, chat("q")).reason == "HTTP 400: bad [key]"
    assert model.address == server.url


def test_a_key_in_the_path_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    key = KEY.replace("/", "-")
    monkeypatch.setenv("OPENAI_API_KEY", key)
    assert model_of(f"http://127.0.0.1:1/{key}/v1").address == "http://127.0.0.1:1/[key]/v1"


@pytest.mark.parametrize("character", ["\n", "\r", "\udcff"])
def test_a_key_that_no_header_can_hold_is_refused_unseen(
    character: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"sk-canary{character}7f3a")
    with pytest.raises(UsageError) as raised:
        model_of("http://127.0.0.1:1/v1")
    assert "OPENAI_API_KEY" in str(raised.value)
    assert "canary" not in str(raised.value)


def test_a_redirect_is_named_without_its_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    location = f"https://elsewhere.test/v1/chat?token=hidden&key={KEY}"
    reason, told = failing(fixed(b"", status=307, headers={"Location": location}))
    assert "it redirects to https://elsewhere.test/v1/chat" in told
    assert "hidden" not in reason + told


def test_what_a_server_says_is_printable(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "\x1b[31mred\x1b[0m \x9b2J \u202ereversed\u2066 \x07 bell"
    with fixed(msgspec.json.encode({"error": {"message": said, "code": "\x1b[2J"}}), status=400) as server:
        reason = one(model_of(server), chat("q")).reason
    assert reason.isprintable()
    assert "\\x1b[31mred" in reason


# Odd replies


@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize("opening", [b'{"a":', b"["])
def test_a_deeply_nested_reply_is_one_error(status: int, opening: bytes) -> None:
    deep = opening * 50_000 + b"1" + (b"}" if opening[:1] == b"{" else b"]") * 50_000
    body = b'{"choices":[{"message":{"content":"a","reasoning":' + deep + b'},"finish_reason":"stop"}]}'
    with Loopback(script=("ok",)) as plain:
        one(model_of(plain), chat("first"))
    with fixed(body, status=status) as server:
        model = model_of(server, retries=1)
        model._standing.answered()
        response = one(model, chat("q"))
    assert response.status == "error"
    assert response.reason.startswith("broken reply" if status == 200 else f"HTTP {status}")


@pytest.mark.parametrize(
    "given",
    [
        "Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 +1400", "Fri, 31 Dec 9999 23:59:59 -1400",
        "Fri, 31 Dec 99999999999999999999 23:59:59 GMT", "Fri, 99 Foo 2020 99:99:99 GMT", "0000", "-5",
        "nan", "inf", "-inf", "1e999", "9" * 5000, "", " ", "٣", "soon\u00e9", "1, 2", "Fri", "\x1b[31m",
        "Fri, 31 Dec 2020 23:59:59 +999999999999",
    ],
)  # fmt: skip
def test_no_retry_after_is_too_absurd_to_read(given: str) -> None:
    for name in ("Retry-After", "retry-after-ms"):
        wait = asked_wait({name: given})
        assert wait is None or wait >= 0


def test_a_pause_that_is_too_long_is_named() -> None:
    with Loopback(script=("ok", "429"), retry_after="Fri, 31 Dec 9999 23:59:59 GMT") as server:
        model = model_of(server, concurrency=1)
        one(model, chat("first"))
        reason = one(model, chat("second")).reason
    assert re.search(r"it asks for a pause of [\d,]{12,} s, which is too long to wait for", reason)
    assert server.requests == 2


def test_half_a_character_in_a_prompt_is_one_error() -> None:
    with Loopback() as server:
        got = dict(
            model_of(server, concurrency=1).answer([chat("fine"), chat("half \ud83d"), chat("fine too")])
        )
    assert sorted(response.status for response in got.values()) == ["error", "ok", "ok"]


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("http://127.0.0.1:99999/v1", "port"),
        ("http://127.0.0.1:0/v1", "port"),
        ("http://127.0.0.1:-1/v1", "port"),
        ("http://127.0.0.1:http/v1", "port"),
        ("http://", "host"),
        ("http:///v1", "host"),
        ("ftp://127.0.0.1/v1", "http://"),
        ("127.0.0.1:8000/v1", "http://"),
        ("http://two words/v1", "malformed"),
        ("http://[::1/v1", "malformed"),
        ("http://a..b/v1", "malformed"),
        (f"http://{'a' * 64}.test/v1", "malformed"),
        ("http://\u0130\u0307..test/v1", "malformed"),
        ("http://ho\x00st/v1", "malformed"),
        ("http://%zz/v1", "malformed"),
        (f"http://me:{KEY}@127.0.0.1:99999/v1", "port"),
    ],
)
def test_an_address_that_is_none_is_refused(address: str, problem: str) -> None:
    with pytest.raises(UsageError, match="is not a web address") as raised:
        load_model("openai:m", base_url=address)
    assert problem in str(raised.value)
    assert "Canary" not in str(raised.value)


@pytest.mark.parametrize(
    "address", ["http://[::1]:8000/v1", "http://a_b-c:80/v1/", "http://é.test", "https://10.0.0.1/v1"]
)
def test_an_address_of_another_form_is_taken(address: str) -> None:
    assert load_model("openai:m", base_url=address).identity()["spec"] == "openai:m"


@pytest.mark.parametrize("args", [{}, {"token_field": "max\udcff"}])
def test_a_name_that_is_not_utf_8_is_refused(args: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="is not valid UTF-8") as raised:
        load_model("openai:m" if args else "openai:m\udcff", **args)
    assert str(raised.value).isascii()


# At the start and later


PAGE = b"<!DOCTYPE html><html><head><title>Welcome to <b>nginx</b></title></head></html>"


@pytest.mark.parametrize("path", ["", "/v1"])
def test_a_web_page_is_told_after_a_few_replies_with_a_hint(path: str) -> None:
    server = fixed(PAGE, content_type="text/html")
    with server, pytest.raises(ModelUnreachable) as raised:
        root = server.url.removesuffix("/v1")
        list(model_of(root + path, concurrency=1).answer(chat(f"q{i}") for i in range(5)))
    assert server.requests == 3
    assert str(raised.value).startswith(f"{root}{path} does not answer as an OpenAI-compatible API does. ")
    assert "a web page ('Welcome to')" in str(raised.value)
    hint = "Is this the address of an OpenAI-compatible API?" if path else f"Did you mean {root}/v1?"
    assert str(raised.value).endswith(hint)


@pytest.mark.parametrize(
    ("path", "status", "hinted"),
    [
        ("", 404, "/v1"), ("", 405, "/v1"), ("/api", 404, "/api/v1"), ("/v1/chat/completions", 404, "/v1"),
        ("/v1", 404, None), ("/v1beta/openai", 405, None), ("", 401, None),
    ],
)  # fmt: skip
def test_an_address_without_v1_is_doubted_where_there_is_nothing(
    path: str, status: int, hinted: str | None
) -> None:
    server = fixed(b'{"detail": "Not Found"}', status=status)
    with server, pytest.raises(ModelUnreachable) as raised:
        root = server.url.removesuffix("/v1")
        one(model_of(root + path), chat("q"))
    assert server.requests == 1
    assert ("Did you mean" in str(raised.value)) == (hinted is not None)
    assert hinted is None or str(raised.value).endswith(f"Did you mean {root}{hinted}?")


def test_a_missing_model_is_no_reason_to_doubt_the_address() -> None:
    server = fixed(b'{"error": {"message": "model loop not found"}}', status=404)
    with (
        server,
        pytest.raises(ModelUnreachable, match="refuses the requests. HTTP 404: model loop not found$"),
    ):
        one(model_of(server.url.removesuffix("/v1")), chat("q"))


def test_a_web_page_after_an_answer_is_a_hiccup() -> None:
    async def respond(server: Hostile, request: web.BaseRequest) -> web.StreamResponse:
        if 1 < server.requests < 6:
            return web.Response(body=PAGE, content_type="text/html")
        return web.Response(body=says("here"), content_type="application/json")

    with Hostile(respond) as server:
        model = model_of(server, concurrency=1)
        assert [one(model, chat(text)).text for text in "ab"] == ["here", "here"]
    assert server.requests == 6


def test_the_first_failure_is_told_at_once_with_what_comes_next() -> None:
    watcher = Recorder()
    with Loopback(always=500) as server, pytest.raises(ModelUnreachable):
        model = model_of(server, retries=2)
        model.watch(watcher)
        list(model.answer(chat(f"q{i}") for i in range(5)))
    assert len(watcher.notes) == 1  # not one for each of five requests
    assert re.fullmatch(
        rf"{server.url} answered 500 Internal Server Error: the keel is cracked \(loopback_error\)\. "
        r"Trying again \(1 of 2\), next in 0\.0 s\.",
        watcher.notes[0],
    )


def test_what_waits_to_be_tried_again_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    watcher = Recorder()
    with Loopback(script=("500",) * 4, retry_after="") as server:
        monkeypatch.setattr(openai_client, "back_off", lambda *_, **__: 0.3)
        model = model_of(server)
        model.watch(watcher)
        got = dict(model.answer(chat(f"q{i}") for i in range(4)))
    assert {response.status for response in got.values()} == {"ok"}
    assert max(watcher.counts) == 4


def test_a_server_that_never_answered_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(openai_client, "back_off", lambda *_, **__: 30.0)
    monkeypatch.setattr(openai_client, "LONGEST_WAIT_IN_DOUBT_S", 0.01)

    class Watcher(Recorder):
        def note(self, text: str) -> None:
            waits.append(float(text.rpartition("next in ")[2].removesuffix(" s.")))

    with Loopback(always=500) as server, pytest.raises(ModelUnreachable, match="HTTP 500 after 9 tries"):
        model = model_of(server)
        model.watch(Watcher())
        one(model, chat("q"))
    assert waits == [0.0]


def test_a_dead_server_is_told_of_while_it_is_probed() -> None:
    watcher = Recorder()
    model = model_of("http://127.0.0.1:1/v1", retries=1)
    model.watch(watcher)
    with pytest.raises(ModelUnreachable):
        model.probe(frozenset({"weigh"}))
    assert watcher.notes[0].startswith(
        "http://127.0.0.1:1/v1: no connection: Connection refused. Trying again"
    )


def test_a_watcher_without_a_count_is_told_the_rest() -> None:
    class Plain:
        def __init__(self) -> None:
            self.notes: list[str] = []

        def note(self, text: str) -> None:
            self.notes.append(text)

    watcher: Any = Plain()
    with Loopback(script=("500",)) as server:
        model = model_of(server)
        model.watch(watcher)
        assert one(model, Weigh(prefix="a ship", continuation=" at sea")).status == "ok"
    assert len(watcher.notes) == 1
