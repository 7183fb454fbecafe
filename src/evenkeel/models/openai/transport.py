"""One try of a request over HTTP: what is sent, how much of the reply is read, and why it failed.

A body is read no further than what was asked for can take. The limit counts bytes as they come and as they
decompress: a small compressed body may hold gigabytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import re
import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import aiohttp
import msgspec

from evenkeel.errors import explain
from evenkeel.files.jsonfile import shallow
from evenkeel.models.openai.connections import Connector

if TYPE_CHECKING:
    from yarl import URL

    from evenkeel.models.openai.endpoint import Endpoint

R = TypeVar("R")

CONNECT_S = 10.0
STALL_S = 120.0
"""How long a reply that has begun may make no progress."""

FLOOR = 2**20
"""Bytes for what every reply may hold besides: reasoning that no limit counts, ids, usage."""
CEILING = 2**28
ERROR_BODY = 2**16
TOKEN = 128
"""Bytes of one token in JSON: a run of blanks, or a few characters as \\uXXXX."""
LOGPROB = 512
"""Bytes of a token with its log-probability, offset and bytes, and of each alternative to it."""
VECTOR = 3 * 2**17
"""Bytes of a vector: 12,288 numbers of 32 characters."""
UNLIMITED = 2**17
"""Tokens of an answer to a request that sets no limit."""
LARGE_AT_ONCE = 8
"""How many replies past the floor are read at the same time; the others wait, unread."""
LISTING = 2**23
"""Bytes of a list of models."""
FILE_S = 3600.0
"""Seconds that a file may take to be sent or received."""
LONGEST_LINE = 2**24
"""Bytes of one line of a file."""
DETAIL_LENGTH = 300
"""Characters of a server's message that are shown."""

RATE_LIMIT = "ratelimit"
"""In the name of a header: `x-ratelimit-remaining-requests`, `anthropic-ratelimit-tokens-reset`."""
PLAIN = re.compile(r"[a-z]{1,16}(-[a-z]{1,16})*")
"""Names of headers without a digit."""
MOST_LIMITS, LONGEST_LIMIT = 20, 60
LONGEST_RESET_S = 60.0
"""A limit is often back in full only much later than the first request is let through again."""
AMOUNT = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|[dhms])")
DURATION = re.compile(rf"(?:{AMOUNT.pattern}){{1,5}}")

TRANSIENT = frozenset({408, 409, 425, 429})
NO_SUCH_API = frozenset({301, 302, 303, 307, 308, 404, 405})


class RequestError(Exception):
    """Why one try of a request failed."""

    def __init__(
        self,
        kind: str,
        detail: str = "",
        *,
        status: int = 0,
        wait: float | None = None,
        foreign: bool = False,
        no_contact: bool = False,
        untrusted: bool = False,
        doubtful: bool = False,
        final: bool = False,
    ) -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind = kind
        self.detail = detail
        self.status = status
        self.wait = wait
        """The pause that the server asks for, in seconds."""
        self.foreign = foreign
        """Not in the protocol at all: a web page, say."""
        self.no_contact = no_contact
        self.untrusted = untrusted
        """Nothing was sent: the server's certificate does not hold."""
        self.doubtful = doubtful or 300 <= status < 400
        """May pass, and is more likely to come again: worth few further tries."""
        self.transient = not (final or self.doubtful) and (
            status in TRANSIENT or status >= 500 or status < 300
        )

    def after(self, tries: int) -> str:
        """For a response's reason: `HTTP 500 after 9 tries: the server is on fire`."""
        times = f" after {tries} tries" if tries > 1 else ""
        return f"{self.kind}{times}: {self.detail}" if self.detail else f"{self.kind}{times}"

    def at(self, server: str) -> str:
        """For a person: `http://… answered 500 Internal Server Error: the server is on fire`."""
        what = f": {self.kind}"
        if self.status and self.status != 200:
            known = {status.value: f" {status.phrase}" for status in HTTPStatus}
            what = f" answered {self.status}{known.get(self.status, '')}"
        return f"{server}{what}: {self.detail}" if self.detail else f"{server}{what}"

    @property
    def no_such_api(self) -> bool:
        """Whether the address is wrong, and not a name in the request."""
        names = ("model", "deployment")
        return self.foreign or (
            self.status in NO_SUCH_API and not any(name in self.detail.lower() for name in names)
        )


class Reply(NamedTuple):
    status: int
    media_type: str
    data: bytes
    wait: float | None
    """The pause that it asks for, in seconds."""
    location: str

    @property
    def is_page(self) -> bool:
        return self.media_type == "text/html" or self.data.lstrip()[:1] == b"<"

    def message(self) -> str:
        """What an error body says, in a few words."""
        if 300 <= self.status < 400:
            return f"it redirects to {shorten(self.location) or 'nowhere'}"
        data = self.data[:ERROR_BODY]
        text = data.decode(errors="replace")
        if self.is_page:
            title = re.search(r"<title[^<>]*>([^<]+)", text, re.IGNORECASE)
            return f"a web page ('{shorten(title[1])}')" if title else "a web page"
        try:
            body: Any = msgspec.json.decode(shallow(data))
        except (msgspec.DecodeError, ValueError, RecursionError):
            return shorten(text)
        if isinstance(body, list) and body:
            body = body[0]  # Google puts it into a list
        error = body.get("error", body) if isinstance(body, dict) else body
        if isinstance(error, dict):
            message = error.get("message") or error.get("detail")
            code = error.get("code") or error.get("type") or ""
            if isinstance(message, str):
                suffix = f" ({shorten(code)[:60]})" if isinstance(code, str) and code else ""
                return f"{shorten(message)}{suffix}"
        return shorten(error if isinstance(error, str) else text)

    def failure(self) -> RequestError:
        """The error that a reply without success is."""
        foreign = self.is_page and self.status < 500
        return RequestError(
            f"HTTP {self.status}", self.message(), status=self.status, wait=self.wait, foreign=foreign
        )

    def parse(self, read: Callable[[bytes], R]) -> R:
        """What `read` makes of a successful reply; RequestError where it is not what the protocol has."""
        if self.data.lstrip()[:1] not in (b"{", b"["):
            detail = self.message() or "it is empty"
            raise RequestError("reply is not JSON", detail, status=200, foreign=self.is_page)
        try:
            try:
                return read(shallow(self.data))
            except msgspec.DecodeError:
                # Half a character, as a cut-off answer may hold, or NaN, which Python writes so, is no
                # reason to lose the rest of it.
                if b"\\ud" not in self.data.lower() and not re.search(rb"NaN|Infinity", self.data):
                    raise
                return read(repaired(self.data))
        except RecursionError:
            raise RequestError("broken reply", "it is nested too deeply", status=200) from None
        except Exception as error:  # noqa: BLE001  # whatever a server makes up must not end the run
            detail = f"{shorten(_parse_problem(error))}; {self.message()}"
            raise RequestError("broken reply", detail, status=200) from None


def _parse_problem(error: Exception) -> str:
    if isinstance(error, msgspec.ValidationError):
        fault = explain(error, None)
        return f"{fault.field}: {fault.problem}" if fault.field else fault.problem
    if isinstance(error, msgspec.DecodeError):
        return "it is not JSON"
    if "int_max_str_digits" in str(error):
        return "a number in it is too large"
    return str(error) if isinstance(error, ValueError) else repr(error)


def repaired(data: bytes) -> bytes:
    """JSON with every lone surrogate, which no text can hold, as the replacement character, and null for
    NaN and infinity."""
    text = json.dumps(json.loads(data, parse_constant=lambda _: None), ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", "\ufffd", text).encode()


def shorten(text: str) -> str:
    """One line of at most DETAIL_LENGTH characters; what cannot be shown, such as an escape, by its code."""
    text = " ".join(text[: 4 * DETAIL_LENGTH].split())
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if len(text) <= DETAIL_LENGTH else text[: DETAIL_LENGTH - 1] + "…"


class Transport:
    """Connections to one server. It belongs to one event loop."""

    def __init__(self, endpoint: Endpoint, timeout: float) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._urls: dict[str, URL] = {}
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)
        self._http = aiohttp.ClientSession(
            connector=Connector(limit=0, ttl_dns_cache=300),
            headers=endpoint.headers,
            timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=min(timeout, CONNECT_S)),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,  # so that it is done within bounds
            proxy=endpoint.proxy(),
        )

    async def close(self) -> None:
        await self._http.close()

    async def get(self, path: str) -> None:
        """RequestError where nothing answers within CONNECT_S; the reply is not read."""
        timeout = aiohttp.ClientTimeout(total=min(self._timeout, CONNECT_S))
        try:
            async with self._http.get(
                self._endpoint.url(path), allow_redirects=False, timeout=timeout
            ) as reply:
                reply.close()
        except (aiohttp.ClientError, OSError):
            raise RequestError("no connection", no_contact=True) from None

    async def fetch(self, path: str) -> Reply:
        """Read what is at a path, up to LISTING bytes."""
        return await self._send("GET", path, None)

    async def post(self, path: str, body: bytes) -> Reply:
        """Send a body and read the reply, whatever its status, without any secret in it."""
        return await self._send("POST", path, body)

    async def _send(self, method: str, path: str, body: bytes | None) -> Reply:
        with _as_request_errors(self._timeout):
            async with self._http.request(
                method, self._address(path), data=body, allow_redirects=False
            ) as reply:
                return await self._read(reply, body)

    def _address(self, path: str) -> URL:
        return self._urls.get(path) or self._urls.setdefault(path, self._endpoint.url(path))

    async def exchange(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        content: bytes | AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send what is no question, such as a file, and read the reply up to LISTING bytes. A file that is
        sent as it is read may take FILE_S."""
        total = FILE_S if isinstance(content, AsyncIterator) else self._timeout
        timeout = aiohttp.ClientTimeout(total=total, sock_connect=CONNECT_S, sock_read=self._timeout)
        with _as_request_errors(self._timeout):
            async with self._http.request(
                method,
                self._endpoint.url(path).update_query(query or {}),
                data=content,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
            ) as reply:
                return await self._read(reply, None)

    async def lines(self, path: str, *, most: int) -> AsyncGenerator[bytes | None, None]:
        """The lines of a file as they come, without any secret; None for one that is longer than
        LONGEST_LINE. A file of more than `most` bytes is an error where they end."""
        timeout = aiohttp.ClientTimeout(total=FILE_S, sock_connect=CONNECT_S, sock_read=STALL_S)
        redacted, headers = self._endpoint.redacted, {"Accept-Encoding": "identity"}
        with _as_request_errors(STALL_S):
            async with self._http.get(
                self._endpoint.url(path), headers=headers, timeout=timeout, allow_redirects=False
            ) as reply:
                if reply.status != 200:
                    raise (await self._read(reply, None)).failure()
                if reply.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
                    raise Unreadable("the file is compressed, which was not asked for")
                size, rest, too_long = 0, bytearray(), False
                async for chunk in reply.content.iter_any():
                    size += len(chunk)
                    if size > most:
                        reply.close()
                        detail = f"more than {most:,} bytes for what was asked"
                        raise RequestError("file too large", detail, final=True)
                    *ended, begun = chunk.split(b"\n")
                    for part in ended:
                        too_long = too_long or len(rest) + len(part) > LONGEST_LINE
                        yield None if too_long else redacted(bytes(rest + part))
                        rest.clear()
                        too_long = False
                    too_long = too_long or len(rest) + len(begun) > LONGEST_LINE
                    if too_long:
                        rest.clear()
                    else:
                        rest += begun
                if rest or too_long:
                    yield None if too_long else redacted(bytes(rest))

    async def _read(self, reply: aiohttp.ClientResponse, request: bytes | None) -> Reply:
        ok = reply.status == 200
        data = await read_body(reply, request, large=self._large, stall_s=min(self._timeout, STALL_S))
        redacted, headers = self._endpoint.redacted, reply.headers
        if self._endpoint.rate_limits is not None:
            limits = rate_limits(headers)
            self._endpoint.rate_limits |= {name: redacted.text(limits[name]) for name in limits}
        return Reply(
            reply.status,
            reply.content_type.lower(),
            redacted(data).removeprefix(b"\xef\xbb\xbf"),
            wait=None if ok else requested_wait(headers),
            location="" if ok else redacted.text(headers.get("Location", "")).partition("?")[0],
        )


@contextlib.contextmanager
def _as_request_errors(timeout: float) -> Iterator[None]:
    """Whatever goes wrong on the way, as a RequestError."""
    try:
        yield
        return
    except aiohttp.ClientConnectorCertificateError as error:
        failure = RequestError("certificate not trusted", _os_reason(error), untrusted=True, final=True)
    except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
        failure = RequestError("no connection", _os_reason(error), no_contact=True)
    except Stalled:
        failure = RequestError("timeout", "the reply began and did not go on")
    except TimeoutError:
        failure = RequestError("timeout", f"no reply within {timeout:g} s")
    except Unreadable as error:
        failure = RequestError("broken reply", shorten(str(error)))
    except aiohttp.ClientResponseError:
        failure = RequestError("broken reply", "it breaks the rules of HTTP")
    except (aiohttp.ClientError, OSError) as error:
        # Only the kind: the text of such an error may hold the address with its credentials.
        failure = RequestError("connection lost", type(error).__name__)
    raise failure from None


def _os_reason(error: Exception) -> str:
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None)
    if cause is None:
        return "connecting took too long"
    if isinstance(cause, ssl.SSLError):  # its number is not one of the operating system
        return shorten(getattr(cause, "verify_message", "") or cause.reason or "the handshake failed")
    errno = getattr(cause, "errno", None) or 0
    return os.strerror(errno) if errno > 0 else shorten(getattr(cause, "strerror", None) or str(cause))


def requested_wait(headers: Mapping[str, str]) -> float | None:
    """The wait that a reply asks for, in seconds: `retry-after-ms`, Retry-After as a number or a date, or
    until a limit that is used up begins anew."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("Retry-After")
    seconds = _number(value)
    if seconds is not None:
        return seconds
    if value is None:
        return _until_reset(headers)
    try:
        moment = parsedate_to_datetime(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, IndexError, OverflowError):  # a date such as no calendar has
        return None


def rate_limits(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers about rate limits, at most MOST_LIMITS of them; a name that could hold a key is none."""
    lower = {name.lower(): value for name, value in headers.items()}
    named = [(name, value) for name, value in lower.items() if RATE_LIMIT in name and PLAIN.fullmatch(name)]
    return {shorten(name): shorten(value)[:LONGEST_LIMIT] for name, value in named[:MOST_LIMITS]}


def _until_reset(headers: Mapping[str, str]) -> float | None:
    """Seconds until every limit of which nothing is left begins anew, at most LONGEST_RESET_S; None where no
    header says so."""
    waits = []
    for name, value in headers.items():
        if RATE_LIMIT in name.lower() and "remaining" in name.lower() and _number(value) == 0:
            reset = headers.get(name.lower().replace("remaining", "reset"), "")
            waits.append(_seconds_until(reset.strip()))
    return max((min(wait, LONGEST_RESET_S) for wait in waits if wait is not None), default=None)


def _seconds_until(reset: str) -> float | None:
    """`6m0s`, `12ms`, a number of seconds, a time of Unix in seconds or milliseconds, or a moment."""
    number = _number(reset)
    if number is not None:
        now = datetime.now(UTC).timestamp()
        return number if number < 1e9 else max(0.0, (number if number < 1e12 else number / 1000) - now)
    if DURATION.fullmatch(reset):
        units = {"d": 86_400, "h": 3_600, "m": 60, "s": 1, "ms": 1e-3}
        return sum(float(amount) * units[unit] for amount, unit in AMOUNT.findall(reset))
    try:
        moment = datetime.fromisoformat(reset)
    except ValueError:
        return None
    return max(
        0.0, ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds()
    )


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


# The body of a reply


class Stalled(TimeoutError):
    """A body that began and does not go on."""


class Unreadable(ValueError):
    """A body in an encoding that was not asked for, or not in the one that it claims."""


def reply_limit(body: bytes | None) -> int:
    """The most bytes that the reply to a request may have, by what the request asks for."""
    if body is None:
        return LISTING
    request: dict[str, Any] = msgspec.json.decode(body)
    tokens = max((_count(request[name]) for name in request if "tokens" in name), default=0) or UNLIMITED
    texts, vectors = request.get("input"), 0
    if texts is not None:
        tokens, vectors = 0, len(texts) if isinstance(texts, list) else 1
    if request.get("echo") or request.get("prompt_logprobs") is not None:
        tokens += len(body)  # a token is at least a byte of the prompt
    names = ("logprobs", "top_logprobs", "prompt_logprobs")
    alternatives = max(_count(request.get(name)) for name in names)
    each = TOKEN + (LOGPROB * (1 + alternatives) if alternatives else 0)
    size = len(body) + max(1, _count(request.get("n"))) * tokens * each + vectors * VECTOR
    return min(CEILING, FLOOR + size)


def _count(value: object) -> int:
    return max(0, value) if isinstance(value, int) else 0


async def read_body(
    reply: aiohttp.ClientResponse, request: bytes | None, *, large: asyncio.Semaphore, stall_s: float
) -> bytes:
    """The body up to the limit that the request sets. Where there is more, the connection is closed and the
    rest unread: that is an error of a successful reply, and of an error's body the beginning is enough."""
    ok = reply.status == 200
    limit = FLOOR if ok else ERROR_BODY
    try:
        if ok and (reply.content_length or 0) > FLOOR:
            limit = reply_limit(request)
        too_large = ok and (reply.content_length or 0) > limit
        data = bytearray()
        if not too_large:
            decompress = Decompression(reply.headers.get("Content-Encoding", ""))
            complete = await _read_to(reply, data, min(limit, FLOOR), decompress, stall_s)
            if not complete and ok:
                limit = reply_limit(request)  # read from the request only where it matters
                async with large:
                    complete = await _read_to(reply, data, limit, decompress, stall_s)
            if complete and not decompress.ended:
                raise Unreadable("the compressed body breaks off")
            if complete:
                return bytes(data)
        if ok:
            detail = f"more than {limit:,} bytes for what was asked"
            raise RequestError("reply too large", detail, doubtful=True)
    except BaseException:
        reply.close()
        raise
    reply.close()
    return bytes(data[:limit])


async def _read_to(
    reply: aiohttp.ClientResponse, data: bytearray, limit: int, decompress: Decompression, stall_s: float
) -> bool:
    """Read until the body ends (True) or has more than `limit` bytes (False)."""
    chunk = b""
    while True:
        data += decompress(chunk, limit + 1 - len(data))
        if len(data) > limit or decompress.received > limit:
            return False
        if reply.content.is_eof():  # all of it is here
            chunk = await reply.content.readany()
        else:
            # A server may take its time before the first byte, but then it has its answer.
            timeout = asyncio.timeout(stall_s if decompress.received else None)
            try:
                async with timeout:
                    chunk = await reply.content.readany()
            except TimeoutError:
                raise Stalled if timeout.expired() else TimeoutError from None
        if not chunk:
            return True


class Decompression:
    """Undoes a body's compression, never by more than there is room for."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding.strip().lower()
        if self._encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise Unreadable(f"the body is encoded as '{self._encoding[:40]}', which was not asked for")
        self._plain = self._encoding in ("", "identity")
        self._inflate: Any = None
        self._rest = b""
        self._has_more = False
        self.received = 0
        """Bytes as they came."""

    @property
    def ended(self) -> bool:
        return self._inflate is None or bool(self._inflate.eof)

    def __call__(self, chunk: bytes, room: int) -> bytes:
        """What a chunk, and what is left of those before it, decompresses to, up to `room` bytes."""
        self.received += len(chunk)
        if self._plain:
            return chunk
        self._rest += chunk
        data = bytearray()
        try:
            while (self._rest or self._has_more) and (size := room - len(data)) > 0:
                if self._inflate is None or self._inflate.eof:  # a gzip body may have several parts
                    self._inflate = zlib.decompressobj(self._window_bits(self._rest[0]))
                part = self._inflate.decompress(self._rest, size)
                data += part
                self._rest = self._inflate.unused_data or self._inflate.unconsumed_tail
                self._has_more = len(part) == size and not self._inflate.eof
        except zlib.error:
            raise Unreadable(f"the body is not in the encoding '{self._encoding}' that it claims") from None
        return bytes(data)

    def _window_bits(self, first: int) -> int:
        if self._encoding != "deflate":
            return 16 + zlib.MAX_WBITS
        return zlib.MAX_WBITS if first & 0x0F == 8 else -zlib.MAX_WBITS  # some send it without its header
