"""One try of a call over HTTP: what is sent, how much of the reply is read, and why it failed.

What is done about a failure is decided by its kind, in `retry.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import re
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

import aiohttp
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sealegs.errors import explain
from sealegs.files.jsonfile import check_depth, repaired

if TYPE_CHECKING:
    from aiohttp.client_reqrep import ClientRequest
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace
    from yarl import URL

    from sealegs.models.openai.endpoint import Endpoint

R = TypeVar("R")

CONNECT_S = 10.0
LARGEST_REPLY_BYTES = 3 * 2**20
"""Of a reply, or of a line of a file, after decompression, since many are read at once: 128,000 tokens of
reasoning, escaped and sent twice, take less than 3 MB."""
MOST_CONTAINERS = 100_000
"""Lists and objects of a reply: each takes memory, and time in which nothing else is done. Log-probabilities
of 20 tokens at each place are fewer in as many bytes."""
LARGEST_RESULT_BYTES = 2**19
"""More for each text of a call with many: a vector of 12,288 numbers takes 280 kB."""
LARGE_REPLY_BYTES = 2**18
ERROR_BODY = 2**16
"""Bytes of an error's body that are read."""
FILE_S = 3600.0
"""Seconds that a file may take to be sent or received."""
DETAIL_LENGTH = 300
"""Characters of a server's message that are shown."""
MEANINGLESS_WAIT_S = 1e9
"""30 years."""
MOST_DISCARDED = 64
"""Connections that one try discards."""

NO_CONNECTION = "no connection"
CONNECTION_LOST = "connection lost"
UNTRUSTED = "certificate not trusted"
TIMEOUT = "timeout"
BROKEN = "broken reply"
PAGE = "web page"
"""Kinds of failures without a status; those with one are `HTTP 404`."""

TOKEN_COUNT = re.compile(rb'_tokens"\s*:\s*(\d{1,7})\b')
COUNTED = re.compile(rb'(?<!\\)"(prompt|completion|input|output)$')
"""Before such a count. It is not looked for in the whole reply: that would take many times as long."""


class TryFailed(Exception):
    """Why one try of a call failed."""

    def __init__(
        self, kind: str, detail: str = "", *, status: int = 0, wait: float | None = None, field: str = ""
    ) -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind = kind
        self.detail = detail
        self.status = status
        """Of HTTP; 0 where there was no reply, or one that is not an answer."""
        self.wait = wait
        """The pause that the server asks for, in seconds."""
        self.field = field
        """The field of the request that the server names as the cause."""

    def after(self, tries: int) -> str:
        """For a response's reason: `HTTP 500 after 9 tries: the server is on fire`."""
        times = f" after {tries} tries" if tries > 1 else ""
        return f"{self.kind}{times}: {self.detail}" if self.detail else f"{self.kind}{times}"

    def at(self, server: str) -> str:
        """For a person, before a full stop: `http://… answered 500 Internal Server Error: it is on fire`."""
        what = f": {self.kind}"
        if self.status:
            phrases = {status.value: f" {status.phrase}" for status in HTTPStatus}
            what = f" answered {self.status}{phrases.get(self.status, '')}"
        return f"{server}{what}: {self.detail.rstrip('.')}" if self.detail else f"{server}{what}"


class HttpReply(Struct, frozen=True):
    status: int
    media_type: str
    data: bytes
    wait: float | None = None
    """The pause that it asks for, in seconds."""
    location: str = ""
    advice: str = ""
    """What a person can do about it, where that is known here."""
    holds_room: bool = False
    """Of those for large replies, until it is released."""

    @property
    def is_page(self) -> bool:
        return self.media_type.startswith("text/html") or self.data.lstrip()[:1] == b"<"

    def message(self) -> str:
        """What an error body says, in a few words."""
        if 300 <= self.status < 400:
            return f"it redirects to {shorten(self.location) or 'nowhere'}"
        text = self.data[:ERROR_BODY].decode(errors="replace")
        if self.is_page:
            title = re.search(r"<title[^<>]*>([^<]+)", text, re.IGNORECASE)
            return f"a web page ('{shorten(title[1])}')" if title else "a web page"
        error = self._error()
        if isinstance(error, dict):
            message = error.get("message") or error.get("detail")
            code = error.get("code") or error.get("type") or ""
            if isinstance(message, str):
                suffix = f" ({shorten(code)[:60]})" if isinstance(code, str) and code else ""
                return f"{shorten(message)}{suffix}"
        return shorten(error if isinstance(error, str) else text)

    def failure(self) -> TryFailed:
        """The error that a reply without success is."""
        message = f"{self.message().rstrip('.')}. {self.advice}" if self.advice else self.message()
        return TryFailed(
            f"HTTP {self.status}", message, status=self.status, wait=self.wait, field=self._field()
        )

    def parse(self, read: Callable[[bytes], R]) -> R:
        """What `read` makes of a successful reply; TryFailed where it is not what the protocol has."""
        if self.data.lstrip()[:1] not in (b"{", b"["):
            if self.is_page:
                raise TryFailed(PAGE, self.message())
            raise TryFailed(BROKEN, f"it is not JSON: {self.message() or 'it is empty'}")
        try:
            try:
                return read(check_depth(self.data, most=MOST_CONTAINERS))
            except msgspec.DecodeError:
                # Half a character, as a cut-off answer may hold, or NaN, which Python writes so, is no
                # reason to lose the rest of it.
                if b"\\ud" not in self.data.lower() and not re.search(rb"NaN|Infinity", self.data):
                    raise
                return read(repaired(self.data))
        except RecursionError:
            raise TryFailed(BROKEN, "it is nested too deeply") from None
        except Exception as error:  # noqa: BLE001  # whatever a server makes up must not end the run
            raise TryFailed(BROKEN, f"{shorten(_parse_problem(error))}; {self.message()}") from None

    def used_tokens(self) -> tuple[int, int]:
        """The tokens read and written that it states, also where it cannot be read as a whole."""
        counts = {"prompt": 0, "input": 0, "completion": 0, "output": 0}
        for match in TOKEN_COUNT.finditer(self.data):
            if name := COUNTED.search(self.data, max(0, match.start() - 12), match.start()):
                counts[name[1].decode()] = int(match[1])
        return counts["prompt"] or counts["input"], counts["completion"] or counts["output"]

    def _error(self) -> Any:
        """What the body says is wrong: an object, a text, or nothing that is known."""
        try:
            body = msgspec.json.decode(check_depth(self.data[:ERROR_BODY]))
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None
        if isinstance(body, list) and body:
            body = body[0]  # Google puts it into a list
        return body.get("error", body) if isinstance(body, dict) else body

    def _field(self) -> str:
        """The field that the server names as the cause: OpenAI's `param`, or the `loc` of a validation."""
        error = self._error()
        if not isinstance(error, dict):
            return ""
        if isinstance(error.get("param"), str):
            return str(error["param"])
        detail = error.get("detail")
        first = detail[0] if isinstance(detail, list) and detail else None
        steps = first.get("loc") if isinstance(first, dict) else None
        names = [step for step in steps if isinstance(step, str)] if isinstance(steps, list) else []
        return ".".join(names[1:] if names[:1] == ["body"] else names)


def _parse_problem(error: Exception) -> str:
    if isinstance(error, msgspec.ValidationError):
        fault = explain(error, None)
        return f"{fault.field}: {fault.problem}" if fault.field else fault.problem
    if isinstance(error, msgspec.DecodeError):
        return "it is not JSON"
    return str(error) if isinstance(error, ValueError) else repr(error)


def shorten(text: str) -> str:
    """One line of at most DETAIL_LENGTH characters; what cannot be shown, such as an escape, by its code."""
    text = " ".join(text[: 4 * DETAIL_LENGTH].split())
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if len(text) <= DETAIL_LENGTH else text[: DETAIL_LENGTH - 1] + "…"


class Connector(aiohttp.TCPConnector):
    """Uses a connection again only where nothing has come on it unasked: HTTP has no number that ties a reply
    to a request, so that one which is sent twice would be taken for the answer to the next question."""

    async def connect(
        self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        for _ in range(MOST_DISCARDED):
            connection = await super().connect(req, traces, timeout)
            if connection.protocol is None or not connection.protocol.should_close:
                return connection
            connection.close()
        raise aiohttp.ClientConnectionError("the server sends before it is asked")


class Deadlines:
    """Ends every try that takes longer than this, by one timer: all may take as long, so that they are due in
    the order in which they began. A timer for each costs as much as reading its reply."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._due: dict[asyncio.Task[Any], float] = {}
        """When those that are under way are."""
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        self._due[task] = loop.time() + self._seconds
        if self._timer is None:
            self._look(loop)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        task = asyncio.current_task()
        assert task is not None
        was_due = self._due.pop(task, None) is None
        # Cancelled by someone else too, it stays so.
        if was_due and task.uncancel() == 0 and kind is asyncio.CancelledError:
            raise TimeoutError from None

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel what is due, and look again when the next one is."""
        self._timer = None
        while self._due:
            task, due = next(iter(self._due.items()))
            if due > loop.time():
                self._timer = loop.call_at(due, self._look, loop)
                return
            del self._due[task]
            task.cancel()


class Transport:
    """Connections to one server. It belongs to one event loop."""

    def __init__(self, endpoint: Endpoint, timeout: float) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._urls: dict[str, URL] = {}
        connect = min(timeout, CONNECT_S)
        self._deadlines = Deadlines(timeout)
        self._request_time = aiohttp.ClientTimeout(total=None, sock_connect=connect)
        self._file_time = aiohttp.ClientTimeout(total=FILE_S, sock_connect=connect, sock_read=timeout)
        self._http = aiohttp.ClientSession(
            connector=Connector(limit=0, ttl_dns_cache=300),
            headers=endpoint.headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=endpoint.proxy(),
        )

    async def close(self) -> None:
        await self._http.close()

    async def send(
        self,
        method: str,
        path: str,
        body: bytes | io.BytesIO | aiohttp.FormData | None = None,
        *,
        results: int = 0,
        room: asyncio.Semaphore | None = None,
    ) -> HttpReply:
        """Send a body and read the reply, whatever its status, without any secret in it; one with many
        results may be larger. A large one is read on when there is room for it. A file or a form may take
        FILE_S."""
        data: Any = body
        headers, timeout = None, self._request_time
        deadlines: contextlib.AbstractContextManager[None] = self._deadlines
        if body is not None and not isinstance(body, bytes):
            timeout, deadlines = self._file_time, contextlib.nullcontext()
            if isinstance(body, aiohttp.FormData):
                data = body()
                headers = {"Content-Type": data.content_type}
        try:
            with deadlines:
                reply = await self._http.request(
                    method, self._url(path), data=data, headers=headers, timeout=timeout,
                    allow_redirects=False,
                )  # fmt: skip
                try:
                    largest = LARGEST_REPLY_BYTES + results * LARGEST_RESULT_BYTES
                    return await self._read(reply, largest, room)
                finally:
                    if not reply.closed:  # it was not read to its end, where its connection is given back
                        reply.close()
        except (aiohttp.ClientError, OSError) as error:
            raise self._failure(error) from None

    async def lines(self, path: str) -> AsyncGenerator[bytes, None]:
        """The lines of a file as they come, without any secret."""
        try:
            async with self._http.get(
                self._url(path), timeout=self._file_time, allow_redirects=False
            ) as reply:
                if reply.status != 200:
                    raise (await self._read(reply, 0)).failure()
                rest = b""
                async for chunk in reply.content.iter_any():
                    *ended, rest = (rest + chunk).split(b"\n")
                    for line in ended:
                        yield self._endpoint.redacted(line)
                    if len(rest) > LARGEST_REPLY_BYTES:
                        raise _too_large(LARGEST_REPLY_BYTES)
                yield self._endpoint.redacted(rest)
        except (aiohttp.ClientError, OSError) as error:
            raise self._failure(error) from None

    def _url(self, path: str) -> URL:
        return self._urls.get(path) or self._urls.setdefault(path, self._endpoint.url(path))

    async def _read(
        self, reply: aiohttp.ClientResponse, largest: int, room: asyncio.Semaphore | None = None
    ) -> HttpReply:
        ok = reply.status == 200
        limit = largest if ok else ERROR_BODY
        content = reply.content
        parts, size, holds_room = [], 0, False
        try:
            while size <= limit:
                parts.append(await content.readany())
                size += len(parts[-1])
                if room is not None and not holds_room and size > LARGE_REPLY_BYTES:
                    holds_room = await room.acquire()
                if content.at_eof():
                    break
            data = b"".join(parts)
            if ok and len(data) > limit:
                raise _too_large(limit)
        except BaseException:
            if room is not None and holds_room:
                room.release()
            raise
        redacted = self._endpoint.redacted
        media_type = reply.headers.get("Content-Type", "").strip().lower()
        data = redacted(data)[:limit].removeprefix(b"\xef\xbb\xbf")
        answer = HttpReply(reply.status, media_type, data, holds_room=holds_room)
        if ok:
            return answer
        return replace(
            answer,
            wait=requested_wait(reply.headers),
            location=redacted.text(reply.headers.get("Location", "")).partition("?")[0],
            advice=self._endpoint.key_advice(reply.status),
        )

    def _failure(self, error: aiohttp.ClientError | OSError) -> TryFailed:
        """Whatever went wrong on the way."""
        match error:
            case aiohttp.ClientConnectorCertificateError():
                return TryFailed(UNTRUSTED, _os_reason(error.certificate_error))
            case aiohttp.ConnectionTimeoutError():
                return TryFailed(NO_CONNECTION, "connecting took too long")
            case aiohttp.ClientConnectorError():
                return TryFailed(NO_CONNECTION, _os_reason(error.os_error))
            case TimeoutError():
                return TryFailed(TIMEOUT, f"no reply within {self._timeout:g} s")
            case aiohttp.ClientResponseError():
                return TryFailed(BROKEN, "it breaks the rules of HTTP")
        # Only the kind: the text of such an error may hold the address with its credentials.
        return TryFailed(CONNECTION_LOST, type(error).__name__)


def _too_large(limit: int) -> TryFailed:
    return TryFailed(BROKEN, f"it has more than {limit:,} bytes")


def _os_reason(cause: Exception) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return shorten(cause.verify_message)
    if isinstance(cause, ssl.SSLError):  # its number is not one of the operating system
        return shorten(cause.reason or "the handshake failed")
    if isinstance(cause, OSError) and (number := cause.errno or 0):
        return os.strerror(number) if number > 0 else shorten(cause.strerror or "")  # of a name's look-up
    return shorten(str(cause))


def requested_wait(headers: Mapping[str, str]) -> float | None:
    """The wait that a reply asks for, in seconds; None, for that of the back-off, where it is written as a
    date, or where nobody can mean it."""
    try:
        seconds = float(headers.get("Retry-After", ""))
    except ValueError:
        return None
    return max(0.0, seconds) if abs(seconds) < MEANINGLESS_WAIT_S else None
