"""A file from a web address."""

from __future__ import annotations

import base64
import time
from urllib.parse import unquote, urlsplit, urlunsplit

from sealegs.errors import DataUnreachable

TIMEOUT = 30
"""Seconds without a byte, after which a download is given up."""
LONGEST_S = 3600.0
"""Seconds that a file may take to arrive."""


def download(address: str, *, hint: str, longest_s: float = LONGEST_S) -> bytes:
    """The content at an address. An error names the address without its login, and ends with `hint`."""
    import urllib.error
    import urllib.request
    from http.client import HTTPException

    parts = urlsplit(address)
    login, _, host = parts.netloc.rpartition("@")
    public = urlunsplit(parts._replace(netloc=host))
    request = urllib.request.Request(public, headers={"User-Agent": "sealegs"})
    if login:
        encoded = base64.b64encode(unquote(login).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {encoded}")
    content, deadline = bytearray(), time.monotonic() + longest_s
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            while block := response.read1(2**20):
                content += block
                if time.monotonic() > deadline:
                    raise OSError(f"it took more than {longest_s / 60:.0f} minutes")
            if response.length:
                raise OSError(f"it broke off {response.length:,} bytes before its end")
            return bytes(content)
    except (OSError, HTTPException, ValueError) as error:  # urllib's errors are OSErrors
        reason: object = getattr(error, "reason", None) or error
        if isinstance(error, urllib.error.HTTPError):
            error.close()
            reason = f"HTTP {error.code} {error.reason}"
        raise DataUnreachable(f"{public} could not be fetched ({reason}). {hint}") from None
