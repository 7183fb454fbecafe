"""A key goes to its server and nowhere else: every byte that a run writes or prints is searched for it.

The server is hostile: it repeats what it was sent, in many spellings, in answers, errors and headers.
"""

from __future__ import annotations

import base64
import contextlib
import html
import json
import os
import pickle
import re
import subprocess
import traceback
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

import sealegs as sl
from commandline import command, sealegs
from loopback import Loopback
from models.hostile import Hostile, chat, fixed, model_of, one
from sealegs.api.launch import start
from sealegs.errors import ModelUnreachable, UsageError
from sealegs.models.openai.endpoint import endpoints
from sealegs.models.presets import presets
from sealegs.types import ModelRef

pytestmark = pytest.mark.slow

CANARY = "sk-Canary7f3a9b2cXy4Zt8Qw1d0e"


def spellings(secret: str = CANARY) -> list[bytes]:
    """What is searched for: the secret itself, and as people encode it, at every offset of base64."""
    raw = secret.encode()
    forms = [raw, urllib.parse.quote(secret, safe="").encode()]
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + raw)
        forms.append(encoded[4:-4])
        forms.append(encoded[4:-4].replace(b"+", b"-").replace(b"/", b"_"))
    return [form.lower() for form in forms]


def leaks(data: bytes) -> list[bytes]:
    lower = data.lower()
    return [form for form in spellings() if form in lower]


def repeated(request: web.BaseRequest) -> list[str]:
    """Everything that could be a secret of what was sent, as it came and decoded."""
    sent = [request.path_qs, urllib.parse.unquote(request.path_qs)]
    for name in ("Authorization", "api-key", "x-api-key", "Proxy-Authorization"):
        value = request.headers.get(name, "")
        sent.append(value)
        if value.startswith("Basic "):
            sent.append(base64.b64decode(value[6:]).decode())
    return [text for text in sent if text]


class Echo(Hostile):
    """Repeats what it is sent in all spellings, in answers, errors and headers by turns."""

    def __init__(self) -> None:
        super().__init__(lambda _, request: self.respond(request))
        self.received = 0

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        sent = [*repeated(request), body.decode(errors="replace")]
        self.received += any(CANARY in text for text in sent)
        text = " ".join(
            form
            for each in sent
            for form in (
                each,
                base64.b64encode(each.encode()).decode(),
                base64.urlsafe_b64encode(b"ab" + each.encode()).decode(),
                urllib.parse.quote(each, safe=""),
                "".join(f"\\u{ord(character):04x}" for character in each[:2000]),
                html.escape(each),
            )
        )
        headers = {
            "X-RateLimit-Limit-Requests": re.sub(r"[^ -~]", "", text)[:500],
            "X-Request-Id": CANARY,
            "Server": CANARY,
            "Retry-After": "0",
        }
        if request.path.endswith("/embeddings"):
            count = len(msgspec.json.decode(body)["input"])
            data = [{"index": index, "embedding": [1.0, 0.5, index]} for index in range(count)]
            return web.json_response({"data": data, "model": text}, headers=headers)
        turn = self.requests % 5
        if turn == 1:
            return web.json_response({"error": {"message": text, "code": text}}, status=500, headers=headers)
        if turn == 2:
            return web.Response(body=f"<title>{text}</title>".encode(), status=503, headers=headers)
        if turn == 3:
            reply = web.StreamResponse(headers={**headers, "Content-Type": "application/json"})
            await reply.prepare(request)
            content = json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})
            for start in range(0, len(content), 7):  # a secret is split over chunks
                await reply.write(content[start : start + 7].encode())
            return reply
        if turn == 4 and self.requests > 5:
            return web.json_response({"error": text}, status=429, headers=headers)
        message = {"content": f"It is {text}", "reasoning_content": text}
        return web.json_response(
            {"choices": [{"message": message, "finish_reason": "stop"}], "model": text}, headers=headers
        )


@pytest.fixture
def echo() -> Iterator[Echo]:
    with Echo() as server:
        yield server


WAYS: dict[str, tuple[list[str], dict[str, str]]] = {
    "environment": (["--model=openai:m"], {"OPENAI_API_KEY": CANARY, "OPENAI_BASE_URL": "{url}"}),
    "a variable that is named": (
        ["--model=openai:m", "--base-url={url}", "--model-arg=api_key_env=MY_KEY"],
        {"MY_KEY": CANARY},
    ),
    "proxy": (
        ["--model=openai:m", "--base-url=http://models.test/v1"],
        {"http_proxy": f"{{scheme}}me:{CANARY}@{{host}}"},
    ),
}
"""Ways in for a key: arguments, and the environment; others are in `tests/models/test_openai_keys.py`."""


def run_process(
    *args: object, folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[bytes]:
    """The command line at its most talkative, with every folder that it may write to below one."""
    places = {name: str(folder / name.lower()) for name in ("HOME", "TMPDIR", "SEALEGS_CACHE")}
    places |= {
        f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CACHE", "CONFIG", "DATA", "STATE")
    }
    for path in places.values():
        Path(path).mkdir(exist_ok=True)
    talkative = {"PYTHONASYNCIODEBUG": "1", "NO_COLOR": "1"}
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "LANG")}
    return subprocess.run(
        command(*args),
        cwd=folder,
        env={**kept, **places, **talkative, **environment},
        capture_output=True,
        check=False,
    )


def written(folder: Path, *, but: set[str]) -> dict[str, bytes]:
    """Every file below a folder, Parquet as text too, and the names of all."""
    contents = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_file() and name not in but:
            contents[name] = os.fsencode(path) + path.read_bytes()
            if path.suffix == ".parquet":
                import polars

                contents[f"{name} as text"] = polars.read_parquet(path).write_json().encode()
    return contents


@pytest.mark.parametrize("way", WAYS)
def test_the_key_is_sent_and_in_no_byte_that_is_written(
    way: str, echo: Echo, questions: Path, tmp_path: Path
) -> None:
    url = echo.url.rstrip("/")
    scheme, _, host = url.partition("//")
    (tmp_path / ".env").write_text(f"OPENAI_API_KEY={CANARY}\n")
    names = {"url": url, "scheme": f"{scheme}//", "host": host}
    arguments, variables = WAYS[way]
    environment = {name: value.format_map(names) for name, value in variables.items()}
    asked = [argument.format_map(names) for argument in arguments]
    embedder = f"openai:e?base_url={url}&api_key_env=NO_KEY"
    done = run_process(
        "--verbose", "run", "mirae", *asked, f"--data={questions.name}", "--levels=1", "--limit=2",
        "--repeats=2", f"--embedder={embedder}", "--out=run", folder=tmp_path, environment=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    printed = done.stdout + done.stderr
    later = [
        ("rescore", "run"),
        *(("export", "run", "--to", form, "--out", f"{form}.{form}")
          for form in ("csv", "parquet", "published", "every-eval-ever", "hub")),
        ("report", "run"), ("scorecard", "run", "--out=card.html"), ("list", "runs", "."),
        ("doctor",),
    ]  # fmt: skip
    for command_line in later if way == "environment" else ():
        with contextlib.chdir(tmp_path):
            outcome = sealegs(*command_line, **environment, SEALEGS_CACHE=str(tmp_path / "sealegs_cache"))
        assert outcome.code == 0 or command_line == ("doctor",), command_line
        printed += outcome.output.encode()
    assert echo.received > 3  # the key, or the password, was sent
    contents = {
        "what was printed": printed,
        **written(tmp_path, but={".env", questions.name}),
    }
    assert {"run/journal.sqlite", "run/records.jsonl", "run/report.html"} <= set(contents)
    assert {name: found for name, data in contents.items() if (found := leaks(data))} == {}
    assert b"[key]" in contents["run/records.jsonl"]


@pytest.mark.parametrize("status", [401, 500])
def test_an_error_holds_no_key(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", CANARY)
    with fixed(json.dumps({"error": CANARY}).encode(), status=status) as server:
        model = model_of(server, api_key_env="MY_KEY", retries=0)
        with pytest.raises(ModelUnreachable) as raised:
            for _ in range(4):
                one(model, chat("q"))
    shown = [repr(model), str(vars(model)), repr(ModelRef("openai:m", {"base_url": f"http://{CANARY}@h"}))]
    traced = traceback.TracebackException.from_exception(raised.value, capture_locals=True)
    shown += [*traced.format(), *getattr(raised.value, "__notes__", ())]
    assert leaks("\n".join(shown).encode()) == []


def test_a_model_with_a_key_cannot_be_pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with pytest.raises(TypeError, match="credentials"):
        pickle.dumps(model_of("http://127.0.0.1:1/v1", api_key_env="OPENAI_API_KEY"))


def test_an_address_with_a_key_is_no_part_of_a_spec(tmp_path: Path) -> None:
    spelled = f"http://a.test/v1,http://h.test/v1?key={CANARY}"
    with pytest.raises(UsageError, match="may not hold") as raised:
        sl.load_model(f"openai:m?base_url={urllib.parse.quote(spelled)}")
    assert leaks(str(raised.value).encode()) == []
    with pytest.raises(UsageError, match="may not hold"):  # its command would be stored, and shown by `ps`
        start(tmp_path, "rgb", "openai:m", base_url=spelled)
    assert list(tmp_path.iterdir()) == []


def test_a_preset_keeps_its_key_from_a_host_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    ollama = msgspec.structs.replace(presets()["ollama"], key="OLLAMA_KEY")
    monkeypatch.setenv("OLLAMA_KEY", CANARY)
    [at_home] = endpoints(None, None, preset=ollama)
    assert at_home.headers["Authorization"] == f"Bearer {CANARY}"
    monkeypatch.setenv("OLLAMA_HOST", "http://other.test:11434")
    [elsewhere] = endpoints(None, None, preset=ollama)
    assert "Authorization" not in elsewhere.headers


def test_a_redirect_takes_the_key_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with Loopback(record=True) as stranger:
        location = f"{stranger.url}/chat/completions?again={CANARY}"
        with (
            fixed(b"", status=307, headers={"Location": location}) as server,
            pytest.raises(ModelUnreachable) as raised,
        ):
            for _ in range(4):
                one(model_of(server, retries=0, api_key_env="OPENAI_API_KEY"), chat("q"))
    assert stranger.requests == 0
    assert leaks(str(raised.value).encode()) == []


def test_the_token_of_the_hub_is_not_repeated(tmp_path: Path) -> None:
    headers = {"X-Error-Message": f"the token {CANARY} is bad", "X-Error-Code": "Odd"}
    with fixed(json.dumps({"error": CANARY}).encode(), status=400, headers=headers) as hub:
        root = hub.url.removesuffix("/v1")
        environment = {"HF_ENDPOINT": root, "HF_TOKEN": CANARY, "HF_HOME": str(tmp_path / "hf")}
        for args in (
            ("run", "rgb", "--model=hf:some/model", "--limit=1", "--out=run"),
            ("run", "rgb", "--model=openai:m", "--base-url=http://127.0.0.1:1/v1", "--data=hf:some/data"),
        ):
            done = run_process(*args, folder=tmp_path, environment=environment)
            assert done.returncode in (2, 3), done.stderr.decode()
            assert leaks(done.stdout + done.stderr) == []
        assert hub.requests > 0
    assert {
        name: found for name, data in written(tmp_path, but=set()).items() if (found := leaks(data))
    } == {}
