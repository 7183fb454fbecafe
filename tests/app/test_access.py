"""Who may use the app and what a page may do, over HTTP; and the link that would send a key elsewhere."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import html5lib
import pytest

from commandline import sealegs
from scripted import Scripted
from sealegs.api.launch import started
from sealegs.app.access import CLOSED, is_strangers, user_of
from sealegs.app.rendering import ACTIONS, LARGEST_UPLOAD_BYTES, PAGES
from sealegs.app.settings import AppSettings
from sealegs.errors import UsageError
from serving import Serving, Visitor, address, serving


@pytest.fixture(scope="module")
def read_only(runs: Path) -> Iterator[Serving]:
    with serving(runs, read_only=True) as app:
        yield app


@pytest.mark.parametrize("path", [*PAGES, "/static/app.css", "/run?run=one", "/samples?run=one", "/nothing"])
def test_another_user_of_the_machine_reads_nothing(app: Serving, path: str) -> None:
    stranger = Visitor(app.port)
    reply = stranger.get(path)
    assert (reply.status, reply.text.startswith("refused: open the address")) == (403, True)
    stranger.cookie = f"sealegs-{app.port}=guess"
    assert stranger.get(path).status == 403


def test_the_token_becomes_a_cookie_and_leaves_the_address(app: Serving) -> None:
    visitor = Visitor(app.port)
    reply = visitor.get(f"/run?run=one&token={app.token}")
    assert (reply.status, 'url=/run?run=one"' in reply.text, app.token in reply.text) == (200, True, False)
    cookie = reply.headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Strict", "Path=/"))
    assert cookie.startswith(f"sealegs-{app.port}="), "two apps of one browser keep a cookie each"
    visitor.cookie = cookie.partition(";")[0]
    assert visitor.get("/").status == 200
    assert visitor.get("/?token=guess").status == 403
    assert app.token not in visitor.get("/").text


TCP = """
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2257 00000000:0000 0A 00000000:00000000 00:00000000 0     0 0 1084180 1 0 100 0 0 10 0
   8: 0100007F:AF5C 0100007F:2257 01 00000000:00000000 00:00000000 0 65534 0 1104595 2 0 20 0
   9: 0100007F:AF6A 0100007F:2257 05 00000000:00000000 03:00001753 0     0 0 0 3 0
4041: 0100007F:2257 0100007F:AF5C 01 00000000:00000000 00:00000000 00000000     0        0 1104594 1 0 20
"""
TCP6 = """
   0: 0000000000000000FFFF00000100007F:AF7E 0000000000000000FFFF00000100007F:2257 01 0:0 0:0 0 65534 0 1105 1
   1: 00000000000000000000000001000000:AF7E 00000000000000000000000001000000:2257 01 0:0 0:0 0  1000 0 1106 1
"""
"""As a machine of little-endian words lists them."""


@pytest.mark.skipif(sys.byteorder != "little", reason="the lists are of a little-endian machine")
@pytest.mark.parametrize(
    ("end", "server", "user"),
    [
        (("127.0.0.1", 0xAF5C), "127.0.0.1", 65534),
        (("127.0.0.1", 0xAF6A), "127.0.0.1", CLOSED),
        (("127.0.0.1", 0xAF7E), "127.0.0.1", 65534),
        (("::1", 0xAF7E, 0, 0), "::1", 1000),
        (("127.0.0.2", 0xAF5C), "127.0.0.1", None),
        (("127.0.0.1", 0x1234), "127.0.0.1", None),
    ],
)
def test_linux_lists_whose_a_connection_is(end: tuple[Any, ...], server: str, user: int | None) -> None:
    lines = f"{TCP.lstrip()}{TCP6.strip()}".splitlines()
    assert user_of(lines, end, (server, 0x2257)) == user


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux lists whose a connection is")
@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::ffff:127.0.0.1")]
)
@pytest.mark.parametrize("lingers", [0, 1])
def test_a_connection_that_nobody_reads_may_be_anyones(
    family: socket.AddressFamily, host: str, lingers: int
) -> None:
    """Another user could send a request, not wait for the reply, and be taken for root."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(family) as visitor:
        visitor.connect((host, listener.getsockname()[1]))
        connection, _ = listener.accept()
        with connection:
            assert not is_strangers(connection)
            visitor.sendall(b"x")
            visitor.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", lingers, 0))
            visitor.close()
            assert connection.recv(1) == b"x", "the request is there"
            assert is_strangers(connection)


ANOTHER_USER = """
import encodings.idna, os, socket, sys
port, family, host = sys.argv[1:]
os.setuid(65534)
connection = socket.socket(getattr(socket, family))
connection.connect((host, int(port)))
connection.sendall(sys.stdin.buffer.read())
sys.stdout.write(connection.recv(2000).decode())
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0 or not Path("/proc/net/tcp").exists(),
    reason="only root of a Linux can be another user",
)
@pytest.mark.parametrize(("family", "host"), [("AF_INET", "127.0.0.1"), ("AF_INET6", "::ffff:127.0.0.1")])
def test_another_user_with_the_cookie_is_refused(app: Serving, family: str, host: str) -> None:
    """A browser sends the cookie to a server of another user's at another port: cookies know no ports."""
    command = [sys.executable, "-c", ANOTHER_USER, str(app.port), family, host]
    for path, cookie in (("/", app.visitor.cookie), (f"/?token={app.token}", "")):
        request = f"GET {path} HTTP/1.1\r\nHost: localhost:{app.port}\r\nCookie: {cookie}\r\n\r\n"
        reply = subprocess.run(command, input=request, capture_output=True, text=True, check=True).stdout
        assert reply.startswith("HTTP/1.1 403")
        assert "another user of this machine" in reply
    assert app.visitor.get("/").status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example@127.0.0.1", "[", ""]
)
def test_a_name_that_is_not_this_servers_is_refused(app: Serving, host: str) -> None:
    assert app.visitor.get("/", Host=host).status == 403


def test_the_names_of_this_machine_are_this_servers(app: Serving) -> None:
    for host in (f"localhost:{app.port}", f"LOCALHOST.:{app.port}", f"[::1]:{app.port}"):
        assert app.visitor.get("/", Host=host).status == 200
    assert app.visitor.get("/", Host="192.168.1.5").status == 403


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_from_elsewhere_or_without_the_token_is_refused(app: Serving, action: str) -> None:
    form = app.form("/new-run")
    for origin in ("http://evil.example", "http://127.0.0.1:1", "null"):
        assert app.visitor.post(action, form, Origin=origin).status == 403
    assert app.visitor.post(action, {}).status == 403
    assert app.visitor.post(action, {"token": app.token}).status == 403, "the forms have a token of their own"
    stranger = Visitor(app.port)
    assert stranger.post(action, form).status == 403
    for method in ("PUT", "DELETE", "PATCH"):
        assert app.visitor.send(method, action).status in (403, 405)


@pytest.mark.parametrize("action", ACTIONS)
def test_a_read_only_app_refuses_every_action(read_only: Serving, app: Serving, action: str) -> None:
    form = app.form("/new-run") | {"run": "one", "sample": "x", "verdict": "wrong", "benchmark": "rgb"}
    reply = read_only.visitor.post(action, form)
    assert (reply.status, reply.text) == (403, "refused: this app shows runs only.\n")


def test_a_read_only_app_has_no_token_and_no_form_that_does_anything(read_only: Serving, runs: Path) -> None:
    assert read_only.token == ""
    for path in (
        "/",
        "/run?run=one",
        "/sample?run=one",
        "/compare",
        "/leaderboard",
        "/scorecard",
        "/explained",
    ):
        reply = read_only.visitor.get(path)
        assert reply.status == 200
        assert 'method="post"' not in reply.text
        assert str(runs) not in reply.text, "where the runs lie is not for strangers"
    for path in ("/new-run", "/build", "/tokenizers"):
        assert "this app is read-only" in read_only.visitor.get(path).text
    assert str(runs) not in read_only.visitor.get("/run?run=absent").text
    assert not list(runs.rglob("marks.jsonl"))


@pytest.mark.parametrize(
    "path", ["/", "/run?run=one", "/samples?run=one", "/static/app.js", "/absent", "/run?run=x"]
)
def test_every_response_has_the_headers(app: Serving, path: str) -> None:
    for visitor in (app.visitor, Visitor(app.port)):
        headers = visitor.get(path).headers
        policy = headers["content-security-policy"].split("; ")
        assert {
            "default-src 'none'", "script-src 'self'", "connect-src 'self'", "form-action 'self'",
            "base-uri 'none'", "frame-ancestors 'none'",
        } <= set(policy)  # fmt: skip
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers
        assert "aiohttp" not in headers["server"]


def test_only_a_read_only_app_may_be_in_a_frame(read_only: Serving) -> None:
    assert "frame-ancestors" not in read_only.visitor.get("/").headers["content-security-policy"]


def test_an_upload_that_is_too_large_is_refused(app: Serving, runs: Path) -> None:
    form = app.form("/new-run") | {"benchmark": "rgb", "source": "embedded"}
    content = b"x" * (LARGEST_UPLOAD_BYTES + 1)
    reply = app.visitor.upload("/new-run/review", form, "data-upload", "en.jsonl", content)
    assert reply.status == 413
    assert "more than 20 MB" in reply.text
    assert 'href="/"' in reply.text, "it is a page of the app"
    assert not (runs / "data").exists()


@pytest.mark.parametrize("body", [b"--a\r\nx\r\n\r\n--a--\r\n", b"--a\r\n\r\n--a--\r\n", b""])
def test_a_form_that_cannot_be_read_is_refused_on_a_page(app: Serving, body: bytes) -> None:
    kind = "multipart/form-data; boundary=a"
    reply = app.visitor.send("POST", "/new-run/review", body, Content_Type=kind)
    assert reply.status in (403, 422)
    assert reply.status == 403 or "this form cannot be read" in reply.text


@pytest.mark.parametrize(
    ("names", "host", "status"),
    [
        ((), "x.hf.space", 403),
        ((), "192.168.1.5:7860", 200),
        (("x.hf.space",), "x.hf.space", 200),
        (("X.hf.space",), "10.0.0.1:7860", 200),
        (("x.hf.space",), "y.hf.space", 403),
    ],
)
def test_behind_a_proxy_the_allowed_names_are_its_own(
    names: tuple[str, ...], host: str, status: int, runs: Path
) -> None:
    with serving(runs, host="0.0.0.0", read_only=True, allow_hosts=names) as app:
        assert app.visitor.get("/explained", Host=host).status == status


# The link


DANGEROUS = (
    "address", "variable", "name", "source", "folder", "model", "base_url", "api_key_env", "model_arg",
    "judge",
    "embedder", "method", "option-judge", "option-embedder", "option-method", "option-model_arg", "data",
    "option-prompts", "option-prompts-upload", "option-max_tokens", "seal", "price_in", "seed",
)  # fmt: skip
"""Fields of the form, and names of what it could be taken for."""


@pytest.mark.parametrize("benchmark", ["mirae", "rgb", "multiview"])
def test_a_link_fills_nothing_that_decides_where_a_key_goes(app: Serving, benchmark: str) -> None:
    plain = app.visitor.get(address("/new-run", benchmark=benchmark)).text
    for field in DANGEROUS:
        for value in ("openai:x?base_url=http://evil.example/v1", "server", "OPENAI_API_KEY"):
            reply = app.visitor.get(address("/new-run", benchmark=benchmark, **{field: value}))
            assert (reply.status, reply.text) == (200, plain), field


@pytest.mark.parametrize("benchmark", ["mirae", "rgb", "multiview"])
def test_a_link_to_a_build_fills_in_nothing(app: Serving, benchmark: str) -> None:
    plain = app.visitor.get(address("/build", benchmark=benchmark)).text
    everything = dict.fromkeys(DANGEROUS, "openai:x?base_url=http://evil.example/v1")
    reply = app.visitor.get(address("/build", benchmark=benchmark, **everything))
    assert (reply.status, reply.text) == (200, plain)


def test_a_link_with_every_field_sends_nothing(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was done: the link is opened, the form sent as it is, and Start pressed."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789")
    with Scripted(lambda prompt: "x") as thief, serving(runs) as app:
        evil = {
            "source": "server", "address": thief.url, "name": "m", "variable": "OPENAI_API_KEY",
            "data": thief.url,
            "option-judge": f"openai:j?base_url={thief.url}&api_key_env=OPENAI_API_KEY",
        }  # fmt: skip
        link = address("/new-run", benchmark="rgb", **evil)
        page = app.visitor.get(link).text
        assert thief.url not in page
        token = app.form("/new-run")
        for path in ("/new-run/start", "/new-run/test", "/new-run/review", "/build", "/build/review"):
            # What a link says of an action is not read either.
            reply = app.visitor.post(f"{path}?{link.partition('?')[2]}", token)
            assert reply.status == 422
        assert started(runs) == []
        assert thief.requests == 0


def test_what_was_looked_at_is_what_is_started(app: Serving, runs: Path) -> None:
    form = {"benchmark": "multiview", "size": "5", "option-method": "bm25"}
    review = app.visitor.submit("/new-run/review", app.visitor.get("/new-run").text, form)
    assert "everything runs on this machine" in review.text
    sealed = hidden(review.text)
    assert sealed["size"] == "5"
    changed = sealed | {"size": "500"}
    assert app.visitor.post("/new-run/start", changed).status == 422
    assert app.visitor.post("/new-run/start", sealed | {"seal": "é"}).status == 422
    assert app.visitor.post("/new-run/test", changed).status == 422
    assert started(runs) == []


def hidden(page: str) -> dict[str, str]:
    """The hidden fields of the last form of a page."""
    tree = html5lib.parse(page, namespaceHTMLElements=False)
    form = tree.findall(".//form")[-1]
    return {
        field.get("name") or "": field.get("value") or ""
        for field in form.iter("input")
        if field.get("type") == "hidden"
    }


# At the terminal


def test_a_port_in_use_is_said_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = sealegs("app", "--port", port, "--no-open")
    assert done.code == 2
    assert f"--port {port}: Address already in use" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_address_that_lets_others_in_needs_read_only() -> None:
    done = sealegs("app", "--host", "0.0.0.0", "--no-open")
    assert done.code == 2
    assert "add --read-only" in done.stderr
    for host, read_only in (("0.0.0.0", True), ("::1", False)):
        AppSettings(runs=Path("runs"), host=host, read_only=read_only)
    with pytest.raises(UsageError, match="allow-host"):
        AppSettings(runs=Path("runs"), allow_hosts=("https://x/y",))


def test_a_read_only_app_needs_a_folder_of_runs(tmp_path: Path) -> None:
    done = sealegs("app", "--runs", tmp_path / "absent", "--read-only", "--no-open")
    assert done.code == 2
    assert "absent" in done.stderr
