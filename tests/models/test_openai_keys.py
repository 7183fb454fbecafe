"""A key goes only where it is meant for, and is never shown, whatever a server makes of it."""

from __future__ import annotations

import base64
import html
import html.entities
import json
import re
import urllib.parse
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loopback import Loopback
from models.hostile import KEY, chat, fixed, model_of, one, says
from sealegs.errors import ModelUnreachable, UsageError
from sealegs.models.openai.endpoint import endpoints
from sealegs.models.registry import load_model
from sealegs.types import Response

NAMED = {character: f"&{name}" for name, character in html.entities.html5.items() if name.endswith(";")}


def spellings() -> dict[str, str]:
    return {
        "plain": KEY,
        "escaped": json.dumps(f'{KEY}"')[1:-3],
        "escaped by PHP": KEY.replace("/", r"\/"),
        "escaped twice": KEY.replace("/", r"\\/"),
        "escaped by .NET": re.sub(r"\W", lambda match: rf"\u{ord(match[0]):04X}", KEY),
        "escaped throughout": "".join(rf"\u{ord(character):04x}" for character in KEY),
        "base64, escaped": base64.b64encode(KEY.encode())
        .decode()
        .replace("/", r"\/")
        .replace("+", r"\u002b"),
        "percent": urllib.parse.quote(KEY, safe=""),
        "percent lower": re.sub("%..", lambda match: match[0].lower(), urllib.parse.quote(KEY, safe="")),
        "percent throughout": "".join(f"%{byte:02x}" for byte in KEY.encode()),
        "HTML": "".join(f"&#{ord(character)};" for character in KEY),
        "HTML, names": html.escape(KEY).replace("/", "&#x2F;").replace("+", "&#43;"),
        "HTML, all names": "".join(NAMED.get(character, character) for character in KEY),
        "percent, escaped": urllib.parse.quote(KEY, safe="").replace("%", r"\u0025"),
        "basic": base64.b64encode(f"user:{KEY}".encode()).decode(),
        "base64": base64.b64encode(KEY.encode()).decode(),
        "base64 url": base64.urlsafe_b64encode(f"Bearer {KEY}".encode()).decode(),
        "base64 url, other place": base64.urlsafe_b64encode(f"me:{KEY}".encode()).decode(),
    }


def readings(text: str) -> str:
    """Everything that a reader could make of a text."""
    forms = [text, urllib.parse.unquote(text), html.unescape(text)]
    for word in re.findall(r"[\w+/=-]{12,}", text):
        for start in range(4):
            part = word[start:].replace("-", "+").replace("_", "/").rstrip("=")
            forms.append(base64.b64decode(part[: len(part) // 4 * 4]).decode("latin-1"))
    return "|".join(forms)


@pytest.mark.parametrize("spelling", spellings())
def test_a_key_is_replaced_however_a_server_spells_it(spelling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with fixed(says("Key SPELLED given").replace(b"SPELLED", spellings()[spelling].encode())) as server:
        shown = one(model_of(server, api_key_env="OPENAI_API_KEY"), chat("q")).text
    assert shown.startswith("Key ")
    assert shown.endswith(" given")
    half = len(KEY) // 2
    assert not [i for i in range(half) if KEY[i : i + half] in readings(shown)], shown


def test_a_key_with_spaces_is_replaced_as_forms_write_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "my secret key/0123")
    with fixed(says("my+secret+key%2F0123, my+secret+key/0123")) as server:
        assert one(model_of(server, api_key_env="OPENAI_API_KEY"), chat("q")).text == "[key], [key]"


@pytest.mark.parametrize(
    "message",
    [
        {"content": [{"type": "text", "text": KEY[:15]}, {"type": "text", "text": KEY[15:]}]},
        {"content": f"{KEY[:15]}<think>well</think>{KEY[15:]}"},
        {"content": "4", "reasoning_details": [{"text": [KEY[:15], KEY[15:]]}]},
    ],
)
def test_a_key_that_comes_in_parts_is_replaced(
    message: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
    with fixed(body) as server:
        response = one(model_of(server, api_key_env="OPENAI_API_KEY"), chat("q"))
    assert "[key]" in response.text + response.reasoning
    assert KEY not in response.text + response.reasoning


@pytest.mark.parametrize("key", ["EMPTY", "sk-no-key-required", "anything"])
def test_a_placeholder_for_a_key_leaves_answers_alone(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    text = "That is not needed; no key required, 0.000000000000000000 or 1,234,567,890. Empty."
    with fixed(says(text)) as server:
        assert one(model_of(server, api_key_env="OPENAI_API_KEY"), chat("q")).text == text


@pytest.mark.parametrize(
    ("address", "part"),
    [
        ("http://me:KEY@127.0.0.1:1/v1", "a user or a password"),
        ("http://KEY@127.0.0.1:1/v1", "a user or a password"),
        ("http://127.0.0.1:1/v1?api-version=1&code=KEY", "the field 'code'"),
        ("http://127.0.0.1:1/v1,http://127.0.0.1:2/v1?subscription-key=KEY", "the field 'subscription-key'"),
        ("http://127.0.0.1:1/v1#KEY", "what follows a '#'"),
    ],
)
def test_a_key_in_an_address_is_refused_by_its_fields_name(
    address: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = address.replace("KEY", urllib.parse.quote(KEY, safe=""))
    for named in (f"openai:m?base_url={urllib.parse.quote(address)}", "openai:m"):
        with pytest.raises(UsageError, match=re.escape(f"base_url may not hold {part}")) as raised:
            load_model(named, **({"base_url": address} if named == "openai:m" else {}))
        assert "anary" not in str(raised.value)
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    with pytest.raises(UsageError, match=re.escape(f"OPENAI_BASE_URL may not hold {part}")) as raised:
        load_model("openai:m")
    assert "anary" not in str(raised.value)


def test_what_only_looks_like_a_key_is_left_alone() -> None:
    """The version of an interface, the id of a tenant, a long text of the extra body."""
    text = "Answer as Zt8Qw7f3a9b2c1dXy4Zt8Qw7f3a9b2 would, in one line."
    extra = json.dumps({"instructions": text, "max_tokens": 5, "prompt_cache_key": "7f3a9b2c1dXy4Zt8Qw"})
    query = "api-version=2024-10-21-preview&tenant=7f3a9b2c1dXy4Zt8Qw7f3a9b2c"
    with fixed(says(f"{text} 2024-10-21-preview 7f3a9b2c1dXy4Zt8Qw7f3a9b2c")) as server:
        model = model_of(f"{server.url}?{query}", extra_body=extra)
        assert one(model, chat("q")).text == f"{text} 2024-10-21-preview 7f3a9b2c1dXy4Zt8Qw7f3a9b2c"
        assert model.addresses == [f"{server.url}?api-version&tenant"]


# Where a key goes


def sent_to(server: Loopback, **options: Any) -> Response:
    """What a server answers that takes nothing without the key."""
    return one(model_of(server, **options), chat("q"))


def test_the_usual_key_goes_to_an_address_only_where_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Loopback(key=KEY) as server:
        with pytest.raises(ModelUnreachable, match="No key was sent: OPENAI_API_KEY goes to") as raised:
            for _ in range(4):
                sent_to(server, retries=0)
        assert "--model-arg api_key_env=NAME" in str(raised.value)
        assert sent_to(server, api_key_env="OPENAI_API_KEY").status == "ok"
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert one(load_model("openai:loop"), chat("q")).status == "ok"  # type: ignore[arg-type]
        assert sent_to(server).status == "ok"


def test_the_usual_key_goes_to_one_address_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    ours, theirs = "http://llm.example/v1", "https://api.openai.com/v1"

    def keys(address: str | None) -> list[str]:
        return [endpoint.headers.get("Authorization", "") for endpoint in endpoints(address, None)]

    assert (keys(None), keys(theirs), keys(ours)) == ([f"Bearer {KEY}"], [f"Bearer {KEY}"], [""])
    monkeypatch.setenv("OPENAI_BASE_URL", ours)
    assert (keys(None), keys(theirs), keys(ours)) == ([f"Bearer {KEY}"], [""], [f"Bearer {KEY}"])


@pytest.mark.parametrize("character", ["\n", "\r", "\udcff"])
def test_a_key_that_no_header_can_hold_is_refused_unseen(
    character: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"sk-canary{character}7f3a")
    with pytest.raises(UsageError) as raised:
        model_of("http://127.0.0.1:1/v1", api_key_env="OPENAI_API_KEY")
    assert "OPENAI_API_KEY" in str(raised.value)
    assert "canary" not in str(raised.value)


def test_what_a_server_says_is_printable(monkeypatch: pytest.MonkeyPatch) -> None:
    message = "\x1b[31mred\x1b[0m \x9b2J \u202ereversed\u2066 \x07 bell"
    with fixed(msgspec.json.encode({"error": {"message": message, "code": "\x1b[2J"}}), status=400) as server:
        reason = one(model_of(server), chat("q")).reason
    assert reason.isprintable()
    assert "\\x1b[31mred" in reason


def test_a_key_in_the_extra_body_is_refused_by_its_fields_name() -> None:
    extra = json.dumps({"headers": [{"x-api-key": KEY}], "reasoning_effort": "low"})
    with pytest.raises(UsageError, match="extra_body may not hold the field 'x-api-key'") as raised:
        model_of("http://127.0.0.1:1/v1", extra_body=extra)
    assert "anary" not in str(raised.value)


SENTENCE = (
    "A key goes to the provider that it is for (`OPENAI_API_KEY` to the address in `OPENAI_BASE_URL` where "
    "that is set, else to OpenAI), and to any other address only where you name its variable: "
    "`--model-arg api_key_env=NAME`."
)
PAGES = ("integrations", "environment", "reliability", "scaling", "suites", "app")


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{name}.md" for name in PAGES)])
def test_every_page_says_the_same_of_where_a_key_goes(page: str) -> None:
    text = (Path(__file__).parents[2] / page).read_text()
    assert SENTENCE in " ".join(text.split())
