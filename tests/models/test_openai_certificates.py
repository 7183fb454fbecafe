"""A server whose certificate does not hold is sent nothing, and is named at once."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest

from loopback import Loopback
from models.hostile import KEY, chat, model_of, one
from sealegs.errors import ModelUnreachable


def test_a_certificate_that_does_not_hold_is_named_and_nothing_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", key, "-out", certificate, "-subj", "/CN=keel", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with Loopback(context=context) as server, pytest.raises(ModelUnreachable) as raised:
        one(model_of(server, api_key_env="OPENAI_API_KEY"), chat("q"))
    assert str(raised.value).startswith(f"{server.url}: certificate not trusted: ")
    assert "self-signed certificate" in str(raised.value)
    assert server.requests == 0
    assert "anary" not in str(raised.value)
