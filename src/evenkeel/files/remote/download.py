"""Files from web addresses, in chunks."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from evenkeel.errors import DataUnreachable

CHUNK = 1 << 16
TIMEOUT = 30
CLAIMS = ("x-repo-commit", "x-linked-etag", "etag")
"""Headers of the Hugging Face Hub: a file's commit; SHA-256 of a large file, Git's id of a small one."""


def stream(
    address: str,
    start: int = 0,
    claims: dict[str, str] | None = None,
    *,
    hint: str,
    shown: str = "",
) -> Iterator[tuple[bytes | None, int | None]]:
    """Chunks of a file from byte `start` on, each with the total size; None first where it starts again.

    `claims` receives what the server says of the file: the headers of the first response that has each. An
    error names the address as `shown` (default: without login) and ends with `hint`.
    """
    import urllib.error
    import urllib.request
    from http.client import HTTPException, HTTPMessage

    def keep_claims(headers: HTTPMessage) -> None:
        for name in CLAIMS:
            if claims is not None and headers.get(name):
                claims.setdefault(name, headers[name])

    class Redirects(urllib.request.HTTPRedirectHandler):
        """The Hub names commit and digest where it redirects; the storage behind it does not."""

        def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
            keep_claims(headers)
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    parts = urlsplit(address)
    login, _, host = parts.netloc.rpartition("@")
    public = urlunsplit(parts._replace(netloc=host))
    request = urllib.request.Request(public, headers={"User-Agent": "evenkeel"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    if login:
        encoded = base64.b64encode(unquote(login).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {encoded}")
    try:
        try:
            response = urllib.request.build_opener(Redirects).open(request, timeout=TIMEOUT)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 416:  # nothing is left to send: the part is the whole file
                    return
                raise OSError(f"HTTP {error.code} {error.reason}") from None
        with response:
            keep_claims(response.headers)
            received = start if response.status == 206 else 0
            length = response.headers.get("Content-Length")
            total = int(length) + received if length else None
            if start and not received:
                yield None, total
            while chunk := response.read(CHUNK):
                received += len(chunk)
                yield chunk, total
            if total is not None and received < total:
                raise OSError(f"the connection was lost after {received:,} of {total:,} bytes")
    except (OSError, HTTPException, ValueError) as error:  # urllib's errors are OSErrors
        raise DataUnreachable(
            f"{shown or public} could not be fetched ({getattr(error, 'reason', None) or error}). {hint}"
        ) from None
