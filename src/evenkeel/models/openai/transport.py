"""One server over HTTP: how a request is sent, what is tried again, and what a person is told meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import re
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import aiohttp
import msgspec

from evenkeel.errors import ModelUnreachable
from evenkeel.messages import explain
from evenkeel.models.openai import retry as health
from evenkeel.models.openai.reply import (
    ERROR_BODY,
    LARGE_AT_ONCE,
    Stalled,
    Unreadable,
    read_body,
    reply_limit,
)
from evenkeel.models.openai.retry import OVERLOADED, THIS_REQUEST, Failed, Standing, Trouble
from evenkeel.models.openai.throttle import Throttle, asked_wait, back_off

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from yarl import URL

    from evenkeel.models.openai.background import Relay
    from evenkeel.models.openai.endpoint import Endpoint
    from evenkeel.models.openai.protocol import Dialect

R = TypeVar("R")

CONNECT_S = 10.0
STALL_S = 120.0
"""How long a reply that has begun may stand still."""
SILENT_S = 30.0
"""Without any reply, after which a watcher is told what is waited for."""
LONGEST_WAIT_S = 600.0
"""A server that asks for a longer pause has shut the door: a daily quota, say."""
LONGEST_WAIT_IN_DOUBT_S = 2.0
"""Between tries of a server that has never answered: whoever started the run is still there to see it."""
SHOWN = 300


class Call(NamedTuple, Generic[R]):
    """One thing to ask: where, how it is written in the dialect learnt so far, how the reply is read."""

    path: str
    body: Callable[[], bytes]
    read: Callable[[bytes], R]


class Reply(NamedTuple):
    status: int
    kind: str
    """Its media type."""
    data: bytes
    wait: float | None
    """The pause that it asks for, in seconds."""
    location: str


class Client:
    """Sends calls to a server, at once and again as it bears them. It belongs to one event loop."""

    def __init__(
        self,
        to: Endpoint,
        *,
        dialect: Dialect,
        standing: Standing,
        relay: Relay,
        concurrency: int,
        timeout: float,
        retries: int,
    ) -> None:
        self._to = to
        self._dialect = dialect
        self._standing = standing
        self._relay = relay
        self._retries = retries
        self._timeout = timeout
        self._urls: dict[str, URL] = {}
        self._clock = asyncio.get_running_loop().time
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)
        self.throttle = Throttle(concurrency)
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),
            headers=to.headers,
            timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=min(timeout, CONNECT_S)),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,  # so that it is done within bounds
            proxy=to.proxy(),
        )

    async def __aenter__(self) -> Client:
        self._silence = asyncio.get_running_loop().call_later(SILENT_S, self._tell_silence)
        return self

    def _tell_silence(self) -> None:
        self._relay.note(
            f"{self._to.shown} has not answered anything for {SILENT_S:g} s; a try may take "
            f"{self._timeout:g} s (--model-arg timeout=SECONDS)."
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._silence.cancel()
        await self._http.close()

    async def send(self, call: Call[R]) -> R:
        """The reply, after as many tries as it takes; else `Failed`, or `ModelUnreachable` at once."""
        body, tries = _written(call), 1
        while True:
            try:
                reply = await self._try(call, body)
            except Trouble as trouble:
                if trouble.status in THIS_REQUEST:
                    self._dialect.learn(trouble.said)
                    if (better := _written(call)) != body:
                        body = better
                        continue
                if self._standing.pointless(trouble):
                    raise self._unreachable(trouble) from trouble
                delay = self._delay(trouble, tries)
                if delay is None:
                    raise Failed(trouble, tries) from None
                await self._wait(delay, trouble, tries)
            else:
                self._standing.answered()
                return reply
            tries += 1

    def _unreachable(self, trouble: Trouble) -> ModelUnreachable:
        hint = self._to.hint() if trouble.no_such_api else ""
        if trouble.foreign:
            hint = hint or "Is this the address of an OpenAI-compatible API?"
        what = "does not answer as an OpenAI-compatible API does" if hint else "refuses the requests"
        return ModelUnreachable(f"{self._to.shown} {what}. {trouble}{f'. {hint}' if hint else ''}")

    def _delay(self, trouble: Trouble, tries: int) -> float | None:
        """Seconds to wait before the next try; None where there is to be none."""
        wait = trouble.wait or 0.0
        if not trouble.transient or tries > self._retries or wait > LONGEST_WAIT_S:
            return None
        if not self._standing.still_hopeful(trouble, self._clock()):
            return None
        if trouble.no_contact:  # evenly, so that the tries last as long as the hope does
            return min(health.NO_CONTACT_S / self._retries, health.NO_CONTACT_S / 4)
        if trouble.status in OVERLOADED:
            return wait + back_off(tries, overload=trouble.wait is None)
        delay = back_off(tries)
        return wait + (min(delay, LONGEST_WAIT_IN_DOUBT_S) if self._standing.in_doubt else delay)

    async def _wait(self, delay: float, trouble: Trouble, tries: int) -> None:
        if self._standing.worth_telling(trouble, self._clock()):
            again = f"Trying again ({tries} of {self._retries}), next in {delay:,.1f} s."
            self._relay.note(f"{trouble.at(self._to.shown).rstrip('.')}. {again}")
        self._relay.retrying(+1)
        try:
            await asyncio.sleep(delay)
        finally:
            self._relay.retrying(-1)

    async def _try(self, call: Call[R], body: bytes) -> R:
        throttle = self.throttle
        await throttle.enter()
        sent_at = self._clock()
        try:
            reply = await self._post(call.path, body)
            self._silence.cancel()
            if reply.status == 200:
                answer = _read(call, reply)
                throttle.succeeded()
                return answer
        finally:
            throttle.leave()
        status, wait, said = reply.status, reply.wait, _said(reply)
        if wait and wait > LONGEST_WAIT_S:
            said = f"{said}; it asks for a pause of {wait:,.0f} s, which is too long to wait for"
        if status in OVERLOADED:
            throttle.overloaded(sent_at)
            if wait and wait <= LONGEST_WAIT_S:
                throttle.pause(wait)
        foreign = _is_page(reply) and status < 500
        raise Trouble(f"HTTP {status}", said, status=status, wait=wait, foreign=foreign)

    async def _post(self, path: str, body: bytes) -> Reply:
        url = self._urls.get(path) or self._urls.setdefault(path, self._to.url(path))
        try:
            async with self._http.post(url, data=body, allow_redirects=False) as reply:
                well = reply.status == 200
                limit = reply_limit(body) if well else ERROR_BODY
                data, whole = await read_body(
                    reply, limit, large=self._large, stall=min(self._timeout, STALL_S)
                )
                if well and not whole:
                    raise Trouble(
                        "reply too large", f"more than {limit:,} bytes for what was asked", final=True
                    )
                redacted, headers = self._to.redacted, reply.headers
                location = redacted.text(headers.get("Location", "")).partition("?")[0]
                wait = None if well else asked_wait(headers)
                return Reply(
                    reply.status,
                    reply.content_type.lower(),
                    redacted(data).removeprefix(b"\xef\xbb\xbf"),
                    wait,
                    location,
                )
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
            trouble = Trouble("no connection", _os_reason(error))
            trouble.no_contact = True
        except Stalled:
            trouble = Trouble("timeout", "the reply began and did not go on")
        except TimeoutError:
            trouble = Trouble("timeout", f"no reply within {self._timeout:g} s")
        except Unreadable as error:
            trouble = Trouble("broken reply", _short(str(error)))
        except aiohttp.ClientResponseError:
            trouble = Trouble("broken reply", "it breaks the rules of HTTP")
        except (aiohttp.ClientError, OSError) as error:
            # Only the kind: the text of such an error may hold the address with its credentials.
            trouble = Trouble("connection lost", type(error).__name__)
        raise trouble from None


def _written(call: Call[Any]) -> bytes:
    try:
        return call.body()
    except UnicodeEncodeError:
        raise Failed(Trouble("not sent", "the text holds half a character, which no JSON can"), 1) from None


def _read(call: Call[R], reply: Reply) -> R:
    data = reply.data
    if data.lstrip()[:1] not in (b"{", b"["):
        raise Trouble("reply is not JSON", _said(reply) or "it is empty", status=200, foreign=True)
    try:
        try:
            return call.read(data)
        except msgspec.DecodeError:
            # Half a character, as a cut-off answer may hold, or a number that is none, which Python writes
            # so, is no reason to lose the rest of it.
            if b"\\ud" not in data.lower() and b"NaN" not in data and b"Infinity" not in data:
                raise
            return call.read(mended(data))
    except RecursionError:
        raise Trouble("broken reply", "it is nested too deeply", status=200) from None
    except Exception as error:  # noqa: BLE001  # whatever a server makes up must not end the run
        if isinstance(error, msgspec.ValidationError):
            fault = explain(error, None)
            why = f"{fault.field}: {fault.problem}" if fault.field else fault.problem
        elif isinstance(error, msgspec.DecodeError):
            why = "it is not JSON"
        else:
            why = str(error) if isinstance(error, ValueError) else repr(error)
            if "int_max_str_digits" in why:
                why = "a number in it is too large"
        raise Trouble("broken reply", f"{_short(why)}; {_said(reply)}", status=200) from None


def mended(data: bytes) -> bytes:
    """JSON with every lone surrogate, which no text can hold, as the replacement character, and null for
    NaN and infinity."""
    text = json.dumps(json.loads(data, parse_constant=lambda _: None), ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", "\ufffd", text).encode()


def _os_reason(error: Exception) -> str:
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None)
    if cause is None:
        return "connecting took too long"
    errno = getattr(cause, "errno", None) or 0
    return os.strerror(errno) if errno > 0 else _short(getattr(cause, "strerror", None) or str(cause))


def _is_page(reply: Reply) -> bool:
    return reply.kind == "text/html" or reply.data.lstrip()[:1] == b"<"


def _said(reply: Reply) -> str:
    """What an error body says, in a few words."""
    if 300 <= reply.status < 400:
        return f"it redirects to {_short(reply.location) or 'nowhere'}"
    data = reply.data[:ERROR_BODY]
    text = data.decode(errors="replace")
    if _is_page(reply):
        title = re.search(r"<title[^<>]*>([^<]+)", text, re.IGNORECASE)
        return f"a web page ('{_short(title[1])}')" if title else "a web page"
    try:
        body: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return _short(text)
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        message = error.get("message") or error.get("detail")
        code = error.get("code") or error.get("type") or ""
        if isinstance(message, str):
            named = f" ({_short(code)[:60]})" if isinstance(code, str) and code else ""
            return f"{_short(message)}{named}"
    return _short(error if isinstance(error, str) else text)


def _short(text: str) -> str:
    """One line of at most SHOWN characters; what cannot be shown, such as an escape, by its code."""
    text = " ".join(text[: 4 * SHOWN].split())
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
