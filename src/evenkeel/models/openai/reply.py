"""A reply's body, read no further than what was asked can take.

The bound counts bytes as they come and as they unfold: a small compressed body may hold gigabytes.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    import aiohttp

FLOOR = 2**20
"""For what every reply may hold besides: reasoning that no limit counts, ids, usage."""
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


class Body(NamedTuple):
    data: bytes
    whole: bool
    """False where it went on past the bound."""


class Stalled(TimeoutError):
    """A body that began and does not go on."""


class Unreadable(ValueError):
    """A body in an encoding that was not asked for, or not in the one that it claims."""


def reply_limit(body: bytes) -> int:
    """The most bytes that the reply to a request may have, by what the request asks for."""
    asked: dict[str, Any] = msgspec.json.decode(body)
    tokens = max((_count(asked[name]) for name in asked if "tokens" in name), default=0) or UNLIMITED
    texts = asked.get("input")
    if texts is not None:
        tokens, vectors = 0, len(texts) if isinstance(texts, list) else 1
    else:
        vectors = 0
    if asked.get("echo") or asked.get("prompt_logprobs") is not None:
        tokens += len(body)  # a token is at least a byte of the prompt
    names = ("logprobs", "top_logprobs", "prompt_logprobs")
    alternatives = max(_count(asked.get(name)) for name in names)
    each = TOKEN + (LOGPROB * (1 + alternatives) if alternatives else 0)
    size = len(body) + max(1, _count(asked.get("n"))) * tokens * each + vectors * VECTOR
    return min(CEILING, FLOOR + size)


def _count(value: object) -> int:
    return max(0, value) if isinstance(value, int) else 0


async def read_body(
    reply: aiohttp.ClientResponse, limit: int, *, large: asyncio.Semaphore, stall: float
) -> Body:
    """The body up to `limit` bytes; where there is more, the connection is closed and the rest unread."""
    try:
        if (reply.content_length or 0) > limit and reply.status == 200:
            reply.close()
            return Body(b"", whole=False)
        unfold = _Unfolding(reply.headers.get("Content-Encoding", ""))
        data = bytearray()
        whole = await _read_to(reply, data, min(limit, FLOOR), unfold, stall)
        if not whole and limit > FLOOR:
            async with large:
                whole = await _read_to(reply, data, limit, unfold, stall)
        if whole and not unfold.ended:
            raise Unreadable("the compressed body breaks off")
    except BaseException:
        reply.close()
        raise
    if not whole:
        reply.close()
        del data[min(limit, ERROR_BODY) :]  # nobody reads more of it, and an error keeps it in memory
    return Body(bytes(data), whole)


async def _read_to(
    reply: aiohttp.ClientResponse, data: bytearray, limit: int, unfold: _Unfolding, stall: float
) -> bool:
    """Read until the body ends (True) or has more than `limit` bytes (False)."""
    while len(data) <= limit and unfold.taken <= limit:
        data += unfold.rest(limit + 1 - len(data))
        if len(data) > limit:
            break
        # A server may take its time before the first byte, but then it has its answer.
        waiting = asyncio.timeout(stall if unfold.taken else None)
        try:
            async with waiting:
                chunk = await reply.content.readany()
        except TimeoutError:
            raise Stalled if waiting.expired() else TimeoutError from None
        if not chunk:
            return True
        data += unfold(chunk, limit + 1 - len(data))
    return False


class _Unfolding:
    """Undoes a body's compression, never by more than there is room for."""

    def __init__(self, encoding: str) -> None:
        self._kind = encoding.strip().lower()
        if self._kind not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise Unreadable(f"the body is encoded as '{self._kind[:40]}', which was not asked for")
        self._plain = self._kind in ("", "identity")
        self._inflate: Any = None
        self._left = b""
        self._held_back = False
        self.taken = 0
        """Bytes as they came."""

    @property
    def ended(self) -> bool:
        return self._inflate is None or bool(self._inflate.eof)

    def __call__(self, chunk: bytes, room: int) -> bytes:
        self.taken += len(chunk)
        if self._plain:
            return chunk
        self._left += chunk
        return self.rest(room)

    def rest(self, room: int) -> bytes:
        """More of what has come already, where there was no room for it before."""
        unfolded = bytearray()
        try:
            while (self._left or self._held_back) and (size := room - len(unfolded)) > 0:
                if self._inflate is None or self._inflate.eof:  # a gzip body may have several parts
                    self._inflate = zlib.decompressobj(self._bits(self._left[0]))
                part = self._inflate.decompress(self._left, size)
                unfolded += part
                self._left = self._inflate.unused_data or self._inflate.unconsumed_tail
                self._held_back = len(part) == size and not self._inflate.eof
        except zlib.error:
            raise Unreadable(f"the body is not in the encoding '{self._kind}' that it claims") from None
        return bytes(unfolded)

    def _bits(self, first: int) -> int:
        if self._kind != "deflate":
            return 16 + zlib.MAX_WBITS
        return zlib.MAX_WBITS if first & 0x0F == 8 else -zlib.MAX_WBITS  # some send it without its header
