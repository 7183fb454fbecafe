"""One server over HTTP: where it is, what is tried again, and when it is pointless to go on."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import json
import os
import re
import urllib.request
from collections import Counter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import aiohttp
import msgspec
from yarl import URL

from evenkeel.errors import ModelUnreachable, UsageError
from evenkeel.models.openai.throttle import Throttle, asked_wait, back_off

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from evenkeel.models.openai.wire import Dialect

R = TypeVar("R")

CONNECT_S = 10.0
NO_CONTACT_S = 4.0
"""How long a server in doubt may refuse connections: time to start up, not to be dead."""
NO_ANSWER_S = 60.0
"""How long a server in doubt may fail otherwise before nothing is tried again."""
LONGEST_WAIT_S = 600.0
"""A server that asks for a longer pause has shut the door: a daily quota, say."""
FAILURES_AT_START = 8
REFUSALS_AT_START = 100
FAILURES_IN_A_ROW = 50
SHOWN = 300
SHORTEST_SECRET = 8
"""A shorter key is a placeholder (`none`, `EMPTY`); to strike it out would maim ordinary answers."""

OVERLOADED = frozenset({429, 503, 529})
TRANSIENT = frozenset({408, 409, 425, 429})
POINTLESS = frozenset({401, 402, 404})
THIS_REQUEST = frozenset({400, 413, 422})
"""Refusals of one request by a server that is well."""


class Endpoint:
    """A base URL and the credentials for it, which never leave this object but in a request's header."""

    def __init__(self, base_url: str, key: str) -> None:
        url = URL(base_url.rstrip("/"))
        if url.scheme not in ("http", "https") or not url.host:
            raise UsageError("base_url must be a web address such as http://127.0.0.1:8000/v1.")
        secret_query = {name: value for name, value in url.query.items() if _names_secret(name)}
        self._url = url.with_user(None).with_fragment(None)
        self.shown = str(self._url.without_query_params(*secret_query))
        self.local = _is_loopback(url.host)
        self.headers = {"Content-Type": "application/json"}
        basic = (
            base64.b64encode(f"{url.user or ''}:{url.password or ''}".encode()).decode() if url.user else ""
        )
        if basic:
            self.headers["Authorization"] = f"Basic {basic}"
        elif key:
            self.headers["Authorization"] = f"Bearer {key}"
        secrets = [key, url.password or "", basic, *secret_query.values()]
        self._secrets = [secret.encode() for secret in secrets if len(secret) >= SHORTEST_SECRET]
        self.has_credentials = bool(key or basic or secret_query)

    def url(self, path: str) -> URL:
        return self._url.joinpath(*path.split("/")).with_query(self._url.query)

    def proxy(self) -> str | None:
        """The proxy that the environment names, looked up once: aiohttp would do so for every request."""
        if self.local or urllib.request.proxy_bypass(self._url.host or ""):
            return None
        return urllib.request.getproxies().get(self._url.scheme)

    def scrubbed(self, data: bytes) -> bytes:
        for secret in self._secrets:
            if secret in data:
                data = data.replace(secret, b"[key]")
        return data


def endpoint(base_url: str | None, api_key_env: str) -> Endpoint:
    base_url = base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
    return Endpoint(base_url, os.environ.get(api_key_env, "").strip())


def _names_secret(name: str) -> bool:
    return any(word in name.lower() for word in ("key", "token", "secret", "sig", "password", "auth"))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class Call(NamedTuple, Generic[R]):
    """One thing to ask: where, how it is written in the dialect learnt so far, how the reply is read."""

    path: str
    body: Callable[[], bytes]
    read: Callable[[bytes], R]


class Trouble(Exception):
    """Why a try came to nothing."""

    def __init__(self, kind: str, said: str = "", *, status: int = 0, wait: float | None = None) -> None:
        super().__init__(f"{kind}: {said}" if said else kind)
        self.kind = kind
        self.said = said
        self.status = status
        self.wait = wait
        self.no_contact = False
        self.transient = status in TRANSIENT or status >= 500 or status < 300

    def after(self, tries: int) -> str:
        """For a response's reason: `HTTP 500 after 9 tries: the server is on fire`."""
        times = f" after {tries} tries" if tries > 1 else ""
        return f"{self.kind}{times}: {self.said}" if self.said else f"{self.kind}{times}"


class Failed(Exception):
    """A request that failed for good; the message is the response's reason."""

    def __init__(self, trouble: Trouble, tries: int) -> None:
        super().__init__(trouble.after(tries))
        self.trouble = trouble


class Standing:
    """How a server has done so far, from which it is told when to give it up."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._ever_answered = False
        self._kinds: Counter[str] = Counter()  # of failures since the last answer
        self._last = ""
        self._in_a_row = 0
        self._doubted_at: float | None = None

    def still_hopeful(self, trouble: Trouble, now: float) -> bool:
        """Whether a server that has not answered (for long) is worth another try.

        The time counts from its first trouble, not from each request's, so that few requests at once
        learn of a dead server as soon as many.
        """
        if (self._ever_answered and self._in_a_row < FAILURES_AT_START) or trouble.status in OVERLOADED:
            return True
        if self._doubted_at is None:
            self._doubted_at = now
        return now - self._doubted_at < (NO_CONTACT_S if trouble.no_contact else NO_ANSWER_S)

    def answered(self) -> None:
        self._ever_answered = True
        self._doubted_at = None
        if self._kinds:
            self._kinds.clear()
            self._in_a_row = 0

    def failed(self, failure: Failed) -> None:
        """Take note of a request that failed for good; raise where no further call has a prospect."""
        trouble = failure.trouble
        self._kinds[trouble.kind] += 1
        self._last = str(failure)
        if trouble.status not in THIS_REQUEST:
            self._in_a_row += 1
        # Refusals of single requests are no sign of a dead server, unless it refuses everything.
        refused = self._kinds.total() - self._in_a_row
        if not self._ever_answered and (self._in_a_row >= FAILURES_AT_START or refused >= REFUSALS_AT_START):
            self._give_up("The server has answered none of the requests")
        if self._in_a_row >= FAILURES_IN_A_ROW:
            self._give_up(f"The last {FAILURES_IN_A_ROW} requests have failed")

    def ended(self) -> None:
        """A short stream of which nothing came through: nothing was learnt but that the server is away."""
        if not self._ever_answered and self._in_a_row:
            self._give_up("The server has answered none of the requests")

    def pointless(self, trouble: Trouble) -> bool:
        """Whether a refusal holds for every further request.

        A 403 is about the key at first, but later about one prompt (moderation).
        """
        if trouble.status == 403:
            return not self._ever_answered
        return trouble.status in POINTLESS or _is_quota(trouble)

    def _give_up(self, what: str) -> None:
        kinds = ", ".join(f"{kind} ({count} times)" for kind, count in self._kinds.most_common())
        raise ModelUnreachable(f"{what} at {self._server}: {kinds}. The last one: {self._last}")


def _is_quota(trouble: Trouble) -> bool:
    return trouble.status == 429 and "insufficient_quota" in trouble.said


class Client:
    """Sends calls to a server, at once and again as it bears them. It belongs to one event loop."""

    def __init__(
        self,
        to: Endpoint,
        *,
        dialect: Dialect,
        standing: Standing,
        concurrency: int,
        timeout: float,
        retries: int,
    ) -> None:
        self._to = to
        self._dialect = dialect
        self._standing = standing
        self._retries = retries
        self._timeout = timeout
        self._urls: dict[str, URL] = {}
        self._clock = asyncio.get_running_loop().time
        self.throttle = Throttle(concurrency)
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),
            headers=to.headers,
            timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=min(timeout, CONNECT_S)),
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=to.proxy(),
        )

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.close()

    async def send(self, call: Call[R]) -> R:
        """The reply, after as many tries as it takes; else `Failed`, or `ModelUnreachable` at once."""
        body, tries = call.body(), 1
        while True:
            try:
                reply = await self._try(call, body)
            except Trouble as trouble:
                if trouble.status in THIS_REQUEST:
                    self._dialect.learn(trouble.said)
                    if (better := call.body()) != body:
                        body = better
                        continue
                if self._standing.pointless(trouble):
                    raise ModelUnreachable(f"{self._to.shown} refuses the requests. {trouble}") from trouble
                delay = self._delay(trouble, tries)
                if delay is None:
                    raise Failed(trouble, tries) from None
            else:
                self._standing.answered()
                return reply
            await asyncio.sleep(delay)
            tries += 1

    def _delay(self, trouble: Trouble, tries: int) -> float | None:
        """Seconds to wait before the next try; None where there is to be none."""
        wait = trouble.wait or 0.0
        if not trouble.transient or tries > self._retries or wait > LONGEST_WAIT_S:
            return None
        if not self._standing.still_hopeful(trouble, self._clock()):
            return None
        if trouble.no_contact:  # evenly, so that the tries last as long as the hope does
            return min(NO_CONTACT_S / self._retries, NO_CONTACT_S / 4)
        return wait + back_off(tries, overload=trouble.status in OVERLOADED and trouble.wait is None)

    async def _try(self, call: Call[R], body: bytes) -> R:
        throttle = self.throttle
        await throttle.enter()
        sent_at = self._clock()
        try:
            status, data, wait = await self._post(call.path, body)
            if status == 200:
                reply = _read(call, data)
                throttle.succeeded()
                return reply
        finally:
            throttle.leave()
        trouble = Trouble(f"HTTP {status}", _said(data), status=status, wait=wait)
        if status in OVERLOADED:
            throttle.overloaded(sent_at)
            if wait and wait <= LONGEST_WAIT_S:
                throttle.pause(wait)
        raise trouble

    async def _post(self, path: str, body: bytes) -> tuple[int, bytes, float | None]:
        url = self._urls.get(path) or self._urls.setdefault(path, self._to.url(path))
        try:
            async with self._http.post(url, data=body, allow_redirects=False) as reply:
                data = self._to.scrubbed(await reply.read())
                wait = None if reply.status == 200 else asked_wait(reply.headers)
                return reply.status, data, wait
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
            trouble = Trouble("no connection", _os_reason(error))
            trouble.no_contact = True
        except TimeoutError:
            trouble = Trouble("timeout", f"no reply within {self._timeout:g} s")
        except (aiohttp.ClientError, OSError) as error:
            # Only the kind: the text of such an error may hold the address with its credentials.
            trouble = Trouble("connection lost", type(error).__name__)
        raise trouble from None


def _read(call: Call[R], data: bytes) -> R:
    try:
        try:
            return call.read(data)
        except msgspec.DecodeError:
            # Half a character, as a cut-off answer may hold, is no reason to lose the rest of it.
            if b"\\ud" not in data.lower():
                raise
            return call.read(mended(data))
    except (msgspec.DecodeError, ValueError, OverflowError) as error:
        raise Trouble("broken reply", f"{_short(str(error))}; {_said(data)}") from None


def mended(data: bytes) -> bytes:
    """JSON with every lone surrogate, which no text can hold, as the replacement character."""
    text = json.dumps(json.loads(data), ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", "\ufffd", text).encode()


def _os_reason(error: Exception) -> str:
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None)
    if cause is None:
        return "connecting took too long"
    errno = getattr(cause, "errno", None) or 0
    return os.strerror(errno) if errno > 0 else getattr(cause, "strerror", None) or _short(str(cause))


def _said(data: bytes) -> str:
    """What an error body says, in a few words."""
    try:
        body: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError):
        return _short(data.decode(errors="replace"))
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        message = error.get("message") or error.get("detail")
        code = error.get("code") or error.get("type") or ""
        if isinstance(message, str):
            return (
                _short(message)
                if not isinstance(code, str) or not code
                else f"{_short(message)} ({code[:60]})"
            )
    return _short(error if isinstance(error, str) else data.decode(errors="replace"))


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
