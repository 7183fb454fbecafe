"""The two batch interfaces as pure functions: what is sent to each, and what its replies mean.

OpenAI takes a file of JSON lines, uploaded first, and gives an output and an error file. Anthropic takes all
requests in one body and gives one file of results. A reply of another shape raises `msgspec.DecodeError`,
`RecursionError` or `ValueError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from sealegs.models.openai import messages
from sealegs.models.openai.batches.stored import BATCH_ID
from sealegs.models.openai.transport import HttpReply, TryFailed, shorten

CHAT_PATH = "/v1/chat/completions"
MAX_COUNT = 10**9
MOST_BYTES = 100_000_000
"""Of a batch, which is in memory while it is sent; the servers take twice as much."""


class Status(NamedTuple):
    """How far a batch is."""

    id: str
    state: str
    """In the server's words."""
    ended: bool
    done: int = 0
    """Requests that are answered."""
    results: tuple[str, ...] = ()
    """Paths of the files with results, once it has ended."""
    problem: str = ""
    """Why the batch as a whole was refused, or was cancelled."""


class BatchResult(NamedTuple):
    """One line of a file of results."""

    custom_id: str
    body: bytes
    """The reply to a chat request; empty where there is an error."""
    error: TryFailed | None = None


class _UploadedFile(Struct):
    id: str


class _OpenAIBatch(Struct):
    id: str
    status: str
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: Any = None
    request_counts: Any = None


class _OpenAIResponse(Struct):
    status_code: int = 0
    body: msgspec.Raw = msgspec.Raw(b"")


class _OpenAILine(Struct):
    custom_id: str
    response: _OpenAIResponse | None = None
    error: Any = None


class OpenAIBatches:
    path = "batches"
    """Where batches are created."""
    most_requests, most_bytes = 50_000, MOST_BYTES
    uploads = True
    """Whether requests are uploaded as a file first."""
    ENDED = frozenset({"completed", "failed", "expired", "cancelled"})

    def request(self, custom_id: str, body: bytes, max_temperature: float | None) -> bytes:
        """One request of a batch."""
        line = {"custom_id": custom_id, "method": "POST", "url": CHAT_PATH, "body": msgspec.Raw(body)}
        return msgspec.json.encode(line)

    def joined(self, requests: list[bytes]) -> bytes:
        """The requests of a batch as they are sent."""
        return b"\n".join([*requests, b""])

    def creation(self, file_id: str) -> bytes:
        body = {"input_file_id": file_id, "endpoint": CHAT_PATH, "completion_window": "24h"}
        return msgspec.json.encode(body)

    def status(self, data: bytes) -> Status:
        batch = msgspec.json.decode(data, type=_OpenAIBatch)
        files = [checked_id(name) for name in (batch.output_file_id, batch.error_file_id) if name]
        problem = _refusal(batch.errors) if batch.status == "failed" else ""
        if batch.status == "cancelled":
            problem = "it was cancelled"
        return Status(
            checked_id(batch.id),
            shorten(batch.status),
            batch.status in self.ENDED,
            _count(batch.request_counts, "completed"),
            tuple(f"files/{name}/content" for name in files),
            problem,
        )

    def result(self, data: bytes) -> BatchResult:
        line = msgspec.json.decode(data, type=_OpenAILine)
        if line.response is None or not line.response.status_code:
            return BatchResult(line.custom_id, b"", _coded(*_problem(line.error)))
        status, body = line.response.status_code, bytes(line.response.body)
        if status == 200:
            return BatchResult(line.custom_id, body)
        return BatchResult(line.custom_id, b"", HttpReply(status, "application/json", body).failure())


class _AnthropicBatch(Struct):
    id: str
    processing_status: str
    request_counts: Any = None


class _AnthropicResult(Struct):
    type: str
    message: msgspec.Raw = msgspec.Raw(b"")
    error: Any = None


class _AnthropicLine(Struct):
    custom_id: str
    result: _AnthropicResult


class AnthropicBatches:
    path = "messages/batches"
    most_requests, most_bytes = 100_000, MOST_BYTES
    uploads = False

    def request(self, custom_id: str, body: bytes, max_temperature: float | None) -> bytes:
        params = messages.message_body(msgspec.json.decode(body), max_temperature=max_temperature)
        return msgspec.json.encode({"custom_id": custom_id, "params": params})

    def joined(self, requests: list[bytes]) -> bytes:
        return b'{"requests":[' + b",".join(requests) + b"]}"

    def creation(self, file_id: str) -> bytes:
        raise NotImplementedError("requests are not uploaded first")

    def status(self, data: bytes) -> Status:
        batch = msgspec.json.decode(data, type=_AnthropicBatch)
        name = checked_id(batch.id)
        # The address that the reply itself gives is not followed: the key would go there.
        return Status(
            name,
            shorten(batch.processing_status),
            batch.processing_status == "ended",
            _count(batch.request_counts, "succeeded"),
            (f"{self.path}/{name}/results",),
        )

    def result(self, data: bytes) -> BatchResult:
        line = msgspec.json.decode(data, type=_AnthropicLine)
        kind, result = line.result.type, line.result
        if kind == "succeeded":
            return BatchResult(line.custom_id, messages.chat_reply(bytes(result.message)))
        if kind in ("canceled", "expired"):
            return BatchResult(line.custom_id, b"", _coded(kind, ""))
        inner = result.error.get("error", result.error) if isinstance(result.error, dict) else result.error
        code, message = _problem(inner)
        status = messages.STATUSES.get(code, 500)
        return BatchResult(line.custom_id, b"", TryFailed(f"HTTP {status}", message or code, status=status))


BatchProtocol: TypeAlias = OpenAIBatches | AnthropicBatches
PROTOCOLS: dict[str, BatchProtocol] = {"openai": OpenAIBatches(), "anthropic": AnthropicBatches()}


def portions(
    protocol: BatchProtocol, lines: Iterable[tuple[str, bytes]]
) -> Iterator[tuple[list[str], bytes]]:
    """Requests in as many batches as the limits ask for: the names of each, and what is sent."""
    names: list[str] = []
    requests: list[bytes] = []
    size = 0
    for name, line in lines:
        size += len(line) + 1
        if names and (size > protocol.most_bytes or len(names) >= protocol.most_requests):
            yield names, protocol.joined(requests)
            names, requests, size = [], [], len(line) + 1
        names.append(name)
        requests.append(line)
    if names:
        yield names, protocol.joined(requests)


def read_file_id(data: bytes) -> str:
    return checked_id(msgspec.json.decode(data, type=_UploadedFile).id)


def checked_id(name: str) -> str:
    """A server's name for a batch or a file, if it can be part of an address."""
    if not BATCH_ID.fullmatch(name) or not name.strip("."):
        raise ValueError(f"'{shorten(name)[:60]}' is not the id of a batch or a file")
    return name


def _count(counts: Any, name: str) -> int:
    value = counts.get(name) if isinstance(counts, dict) else None
    return value if type(value) is int and 0 <= value <= MAX_COUNT else 0


def _problem(error: Any) -> tuple[str, str]:
    """The code of an error, and its message."""
    if not isinstance(error, dict):
        return "", shorten(str(error or ""))
    code = error.get("code") or error.get("type") or ""
    message = error.get("message") or ""
    return shorten(str(code)).lower(), shorten(str(message))


def _coded(code: str, message: str) -> TryFailed:
    """An error that is known by its code alone: what is invalid stays so, anything else may pass."""
    final = any(word in code for word in ("invalid", "cancel"))
    return TryFailed(code.removeprefix("batch_") or "no result", message, status=400 if final else 0)


def _refusal(errors: Any) -> str:
    """Why a batch as a whole was refused: the first of its problems, with its line."""
    listed = errors.get("data") if isinstance(errors, dict) else None
    first = listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], dict) else {}
    code, message = _problem(first)
    at = f"line {first['line']}: " if type(first.get("line")) is int else ""
    return f"batch refused: {at}{message.rstrip('.') or code or 'no reason is given'}"
