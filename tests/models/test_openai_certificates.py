"""A server whose certificate does not hold is sent nothing, and is named at once."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from evenkeel.errors import ModelUnreachable
from models.hostile import KEY, chat, model_of, one

pytestmark = pytest.mark.slow


@contextlib.contextmanager
def https_server(folder: Path, received: list[bytes]) -> Iterator[str]:
    """The address of a server that signed its own certificate and keeps what it is sent."""
    key, certificate = folder / "key", folder / "certificate"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", key, "-out", certificate, "-subj", "/CN=keel", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    address: Future[str] = Future()
    ended = threading.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.read(100))
        writer.close()

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


def test_a_certificate_that_does_not_hold_is_named_and_nothing_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    received: list[bytes] = []
    with https_server(tmp_path, received) as url, pytest.raises(ModelUnreachable) as raised:
        one(model_of(url), chat("q"))
    assert str(raised.value).startswith(f"{url}: certificate not trusted: ")
    assert "self-signed certificate" in str(raised.value)
    assert not any(received)
    assert "anary" not in str(raised.value)
