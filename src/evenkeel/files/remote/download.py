"""Files from web addresses, in chunks."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit, urlunsplit

from evenkeel.errors import DataUnreachable

CHUNK = 1 << 16
TIMEOUT = 30


def stream(address: str, start: int = 0, *, hint: str) -> Iterator[tuple[bytes | None, int | None]]:
    """Chunks of a file from byte `start` on, each with the total size; None first where it starts again.

    An error names the address without its login, and ends with `hint`.
    """
    import urllib.error
    import urllib.request
    from http.client import HTTPException

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
            response = urllib.request.urlopen(request, timeout=TIMEOUT)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 416:  # nothing is left to send: the part is the whole file
                    return
                raise OSError(f"HTTP {error.code} {error.reason}") from None
        with response:
            received = start if response.status == 206 else 0
            length = response.headers.get("Content-Length")
            total = int(length) + received if length else None
            if start and not received:
                yield None, total
            while chunk := response.read1(CHUNK):  # what is there: a full block may take for ever to come
                received += len(chunk)
                yield chunk, total
            if total is not None and received < total:
                raise OSError(f"the connection was lost after {received:,} of {total:,} bytes")
    except (OSError, HTTPException, ValueError) as error:  # urllib's errors are OSErrors
        raise DataUnreachable(
            f"{public} could not be fetched ({getattr(error, 'reason', None) or error}). {hint}"
        ) from None
