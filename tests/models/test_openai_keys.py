"""No key of the openai backend is ever shown, whatever a server makes of it."""

from __future__ import annotations

import base64
import json
import re
import urllib.parse

import msgspec
import pytest

from evenkeel.errors import UsageError
from loopback import Loopback
from models.hostile import KEY, chat, fixed, model_of, one, says

pytestmark = pytest.mark.slow


def spellings() -> dict[str, str]:
    return {
        "plain": KEY,
        "escaped": json.dumps(f'{KEY}"')[1:-3],
        "percent": urllib.parse.quote(KEY, safe=""),
        "percent lower": re.sub("%..", lambda match: match[0].lower(), urllib.parse.quote(KEY, safe="")),
        "basic": base64.b64encode(f"user:{KEY}".encode()).decode(),
        "base64": base64.b64encode(KEY.encode()).decode(),
        "base64 url": base64.urlsafe_b64encode(f"Bearer {KEY}".encode()).decode(),
        "base64 url, other place": base64.urlsafe_b64encode(f"me:{KEY}".encode()).decode(),
    }


def readings(text: str) -> str:
    """Everything that a reader could make of a text."""
    forms = [text, urllib.parse.unquote(text)]
    for word in re.findall(r"[\w+/=-]{12,}", text):
        for start in range(4):
            part = word[start:].replace("-", "+").replace("_", "/").rstrip("=")
            forms.append(base64.b64decode(part[: len(part) // 4 * 4]).decode("latin-1"))
    return "|".join(forms)


@pytest.mark.parametrize("spelling", spellings())
def test_a_key_is_replaced_however_a_server_spells_it(spelling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with fixed(says("Key SPELLED given").replace(b"SPELLED", spellings()[spelling].encode())) as server:
        shown = one(model_of(server), chat("q")).text
    assert shown.startswith("Key ")
    assert shown.endswith(" given")
    half = len(KEY) // 2
    assert not [i for i in range(half) if KEY[i : i + half] in readings(shown)], shown


@pytest.mark.parametrize("key", ["EMPTY", "sk-no-key-required", "anything"])
def test_a_placeholder_for_a_key_leaves_answers_alone(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    text = "That is not needed; no key required, 0.000000000000000000 or 1,234,567,890. Empty."
    with fixed(says(text)) as server:
        assert one(model_of(server), chat("q")).text == text


QUOTED = urllib.parse.quote(KEY, safe="")


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ("http://HOST/v1?code=KEY&api-version=2024-02-01#KEY", "http://HOST/v1?code&api-version"),
        ("http://HOST/v1?x=KEY", "http://HOST/v1?x"),
        ("http://KEY@HOST/v1", "http://HOST/v1"),
        ("http://me:KEY@HOST/v1", "http://HOST/v1"),
    ],
)
def test_a_key_in_the_address_is_not_shown(form: str, shown: str) -> None:
    with fixed(b'{"error": "bad ' + KEY.encode() + b'"}', status=400) as server:
        host = server.url.removeprefix("http://").removesuffix("/v1")
        model = model_of(form.replace("HOST", host).replace("KEY", QUOTED))
        response = one(model, chat("q"))
    assert model.address == shown.replace("HOST", host)
    assert response.reason == "HTTP 400: bad [key]"
    assert "anary" not in repr([model, model.address, model.identity(), response, vars(model)["_options"]])


def test_a_key_in_the_path_is_not_shown() -> None:
    key = KEY.replace("/", "-")
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


def test_what_a_server_says_is_printable(monkeypatch: pytest.MonkeyPatch) -> None:
    message = "\x1b[31mred\x1b[0m \x9b2J \u202ereversed\u2066 \x07 bell"
    with fixed(msgspec.json.encode({"error": {"message": message, "code": "\x1b[2J"}}), status=400) as server:
        reason = one(model_of(server), chat("q")).reason
    assert reason.isprintable()
    assert "\\x1b[31mred" in reason


def test_a_secret_of_the_extra_body_is_replaced() -> None:
    secret = "tok-93bX77q0LmZ2"
    with fixed(says(f"You sent {secret}, low.")) as server:
        extra = json.dumps({"headers": [{"token": secret}], "reasoning_effort": "low"})
        assert one(model_of(server, extra_body=extra), chat("q")).text == "You sent [key], low."


def test_credentials_in_the_address_are_sent() -> None:
    with Loopback(key="Basic bWU6aHVudGVyMg==") as server:
        assert one(model_of(server.url.replace("//", "//me:hunter2@")), chat("q")).status == "ok"
