"""The openai backend against odd replies, and servers that fail at the start or later."""

from __future__ import annotations

import re
from typing import Any

import pytest
from aiohttp import web

from evenkeel.errors import ModelUnreachable, UsageError
from evenkeel.models.openai import retry
from evenkeel.models.openai.transport import Reply, requested_wait
from evenkeel.models.registry import load_model
from evenkeel.types import LogLikelihood
from loopback import Loopback
from models.hostile import KEY, Hostile, Recorder, chat, fixed, model_of, one, says


@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize("opening", [b'{"a":', b"["])
def test_a_deeply_nested_reply_is_one_error(status: int, opening: bytes) -> None:
    deep = opening * 50_000 + b"1" + (b"}" if opening[:1] == b"{" else b"]") * 50_000
    body = b'{"choices":[{"message":{"content":"a","reasoning":' + deep + b'},"finish_reason":"stop"}]}'
    with Loopback(script=("ok",)) as plain:
        one(model_of(plain), chat("first"))
    with fixed(body, status=status) as server:
        model = model_of(server, retries=1)
        model._health.answered()
        response = one(model, chat("q"))
    assert response.status == "error"
    assert response.reason.startswith("broken reply" if status == 200 else f"HTTP {status}")


@pytest.mark.parametrize(
    "value",
    [
        "Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 +1400", "Fri, 31 Dec 9999 23:59:59 -1400",
        "Fri, 31 Dec 99999999999999999999 23:59:59 GMT", "Fri, 99 Foo 2020 99:99:99 GMT", "0000", "-5",
        "nan", "inf", "-inf", "1e999", "9" * 5000, "", " ", "٣", "soon\u00e9", "1, 2", "Fri", "\x1b[31m",
        "Fri, 31 Dec 2020 23:59:59 +999999999999",
    ],
)  # fmt: skip
def test_no_retry_after_is_too_absurd_to_read(value: str) -> None:
    for name in ("Retry-After", "retry-after-ms"):
        wait = requested_wait({name: value})
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
        responses = dict(
            model_of(server, concurrency=1).answer([chat("fine"), chat("half \ud83d"), chat("fine too")])
        )
    assert sorted(response.status for response in responses.values()) == ["error", "ok", "ok"]


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
def test_a_malformed_address_is_refused(address: str, problem: str) -> None:
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
def test_a_web_page_is_reported_after_a_few_replies_with_a_hint(path: str) -> None:
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


def test_the_first_failure_is_noted_at_once_with_what_comes_next() -> None:
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
        monkeypatch.setattr(retry, "back_off", lambda *_, **__: 0.3)
        model = model_of(server)
        model.watch(watcher)
        responses = dict(model.answer(chat(f"q{i}") for i in range(4)))
    assert {response.status for response in responses.values()} == {"ok"}
    assert max(watcher.counts) == 4


def test_a_server_that_never_answered_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(retry, "back_off", lambda *_, **__: 30.0)
    monkeypatch.setattr(retry, "LONGEST_WAIT_UNPROVEN_S", 0.01)

    class Watcher(Recorder):
        def note(self, text: str) -> None:
            waits.append(float(text.rpartition("next in ")[2].removesuffix(" s.")))

    with Loopback(always=500) as server, pytest.raises(ModelUnreachable, match="HTTP 500 after 9 tries"):
        model = model_of(server)
        model.watch(Watcher())
        one(model, chat("q"))
    assert waits == [0.0]


def test_a_dead_server_is_noted_while_it_is_probed() -> None:
    watcher = Recorder()
    model = model_of("http://127.0.0.1:1/v1", retries=1)
    model.watch(watcher)
    with pytest.raises(ModelUnreachable):
        model.probe(frozenset({"loglikelihood"}))
    assert watcher.notes[0].startswith(
        "http://127.0.0.1:1/v1: no connection: Connection refused. Trying again"
    )


def test_a_watcher_without_a_count_gets_the_notes() -> None:
    class Plain:
        def __init__(self) -> None:
            self.notes: list[str] = []

        def note(self, text: str) -> None:
            self.notes.append(text)

    watcher: Any = Plain()
    with Loopback(script=("500",)) as server:
        model = model_of(server)
        model.watch(watcher)
        assert one(model, LogLikelihood(prefix="a ship", continuation=" at sea")).status == "ok"
    assert len(watcher.notes) == 1


def test_an_error_page_of_titles_is_read_in_time() -> None:
    assert Reply(500, "text/html", b"<title" * 100_000, None, "").message() == "a web page"
