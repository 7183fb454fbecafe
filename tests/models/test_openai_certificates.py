"""A server whose certificate does not hold is sent nothing, and is named at once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ASK = """
import sys
from evenkeel.errors import ModelUnreachable
from evenkeel.models.registry import load_model
from evenkeel.types import Generate, Sampling
try:
    list(load_model("openai:m", base_url=sys.argv[1]).answer([Generate(prompt="q", sampling=Sampling())]))
except ModelUnreachable as error:
    print(error)
"""
REQUEST = ("openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def issue(folder: Path, name: str, days: int) -> tuple[Path, Path]:
    """A key and its certificate, signed by itself."""
    key, request, certificate, names = (folder / part for part in ("key", "request", "certificate", "names"))
    names.write_text(f"subjectAltName={name}")
    signed = ("-signkey", key, "-days", str(days), "-extfile", names, "-out", certificate)
    for command in (
        (*REQUEST, "-keyout", key, "-out", request, "-subj", "/CN=keel"),
        ("openssl", "x509", "-req", "-in", request, *signed),
    ):
        subprocess.run(command, check=True, capture_output=True)
    return key, certificate


@contextlib.contextmanager
def https_server(key: Path, certificate: Path, received: list[bytes]) -> Iterator[str]:
    """The address of a server that keeps what it is sent."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.read(100))
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    address: Future[str] = Future()
    ended = threading.Event()

    async def serve() -> None:
        async with await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context) as server:
            address.set_result(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        yield address.result()
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize(
    ("name", "days", "trusted", "problem"),
    [
        ("IP:127.0.0.1", 1, False, "self-signed certificate"),
        ("IP:127.0.0.1", -1, True, "certificate has expired"),
        ("DNS:elsewhere.example", 1, True, "IP address mismatch"),
    ],
    ids=["not trusted", "expired", "of another host"],
)
def test_a_certificate_that_does_not_hold_is_named_and_nothing_is_sent(
    name: str, days: int, trusted: bool, problem: str, tmp_path: Path
) -> None:
    key, certificate = issue(tmp_path, name, days)
    received: list[bytes] = []
    trust = {"SSL_CERT_FILE": str(certificate)} if trusted else {}
    with https_server(key, certificate, received) as url:
        done = subprocess.run(
            [sys.executable, "-c", ASK, url],
            env={**os.environ, "OPENAI_API_KEY": "sk-canary-7f3a9b2c1d", **trust},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    assert done.stdout.startswith(f"{url}: certificate not trusted: ")
    assert problem in done.stdout
    assert not any(received)
    assert "canary" not in done.stdout + done.stderr
