"""The loopback server with the batch interfaces of OpenAI and Anthropic.

Both are written down from the providers' documentation.
What becomes of each request of each batch is told by `fate(batch, position)`; results come in reverse order.
"""

from __future__ import annotations

import asyncio
import email
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
from aiohttp import web

from interfaces import message_of
from loopback import Loopback, json_reply

Fate = Literal[
    "ok", "500", "429", "400", "401", "expired", "cancelled", "missing", "twice", "broken", "strange", "page",
]  # fmt: skip
ANTHROPIC_TYPES = {
    "400": "invalid_request_error",
    "401": "authentication_error",
    "429": "rate_limit_error",
    "500": "api_error",
}
COMPLETED = {"expired": "expired", "cancelled": "cancelled"}


@dataclass
class Submitted:
    """A batch as the server has it."""

    id: str
    requests: list[dict[str, Any]]
    looks: int = 0
    files: dict[str, bytes] | None = None


@dataclass
class BatchServer(Loopback):
    fate: Callable[[int, int], Fate] = lambda batch, position: "ok"
    looks: int = 1
    """How often a batch is looked at before it has ended."""
    refused: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    """By number of a batch: the errors with which it is refused as a whole."""
    hold: bool = False
    """Let no batch end."""
    stall: bool = False
    """Create a batch, and send no reply."""
    drop_created: int = 0
    """How many replies about a created batch are lost."""
    fail_created: int = 0
    """Create a batch, and answer with this status."""
    redirect: str = ""
    """Where files of results are said to be."""

    def __post_init__(self) -> None:
        super().__init__(words=12, variants=1)  # a prompt has one answer, however often it is asked
        self.batches: list[Submitted] = []
        self.files: dict[str, bytes] = {}
        self.headers: list[dict[str, str]] = []
        self.looked = threading.Event()
        self.created = threading.Event()

    async def _reply(self, request: web.BaseRequest, path: str, data: bytes) -> web.StreamResponse | None:
        steps = path.removeprefix("/v1/").split("/")
        if steps[0] not in ("files", "batches", "messages"):
            return await super()._reply(request, path, data)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if (fault := self._fault(data)).isdigit():
            return self._error(int(fault), self.behaviour.says, "")
        anthropic = steps[0] == "messages"
        if anthropic:
            steps = steps[1:]
            if "x-api-key" not in request.headers or request.headers.get("anthropic-version") != "2023-06-01":
                return self._error(401, "x-api-key header is required", "authentication_error")
        match request.method, *steps:
            case ["POST"]:
                return json_reply(self._message(msgspec.json.decode(data)))
            case "POST", "files":
                return self._upload(request, data)
            case "POST", "batches":
                return await self._create(data, anthropic=anthropic)
            case "GET", "batches", name:
                return self._status(name, anthropic=anthropic)
            case "GET", "batches", name, "results":
                return self._file(f"{name}-results")
            case "GET", "files", name, "content":
                return self._file(name)
        return self._error(404, "no such path", "not_found")

    # Handing in

    def _upload(self, request: web.BaseRequest, data: bytes) -> web.Response:
        head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
        parts: Any = email.message_from_bytes(head + data).get_payload()
        fields = {
            part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
            for part in parts
        }
        if fields["purpose"] != b"batch":
            return self._error(400, "purpose", "invalid_request_error")
        name = f"file-{len(self.files)}"
        self.files[name] = fields["file"]
        return json_reply({"id": name, "object": "file", "purpose": "batch"})

    async def _create(self, data: bytes, *, anthropic: bool) -> web.Response | None:
        body = msgspec.json.decode(data)
        if anthropic:
            requests = body["requests"]
        else:
            if body["endpoint"] != "/v1/chat/completions" or body["completion_window"] != "24h":
                return self._error(400, "endpoint", "invalid_request_error")
            lines = self.files[body["input_file_id"]].splitlines()
            requests = [msgspec.json.decode(line) for line in lines]
            assert all(each["method"] == "POST" and each["url"] == body["endpoint"] for each in requests)
        name = f"{'msgbatch' if anthropic else 'batch'}_{len(self.batches)}"
        batch = Submitted(name, requests)
        self.batches.append(batch)
        self.created.set()
        while self.stall:
            await asyncio.sleep(0.01)
        if self.drop_created:
            self.drop_created -= 1
            return None
        if self.fail_created:
            return self._error(self.fail_created, "the keel is cracked", "server_error")
        return json_reply(self._described(batch, anthropic=anthropic))

    # Telling

    def _status(self, name: str, *, anthropic: bool) -> web.Response:
        batch = next((each for each in self.batches if each.id == name), None)
        if batch is None:
            return self._error(404, f"No batch found with id '{name}'.", "not_found_error")
        batch.looks += 1
        self.looked.set()
        return json_reply(self._described(batch, anthropic=anthropic))

    def _described(self, batch: Submitted, *, anthropic: bool) -> dict[str, Any]:
        number = self.batches.index(batch)
        errors = self.refused.get(number)
        ended = batch.looks > self.looks and not self.hold
        if ended and batch.files is None:
            make = self._message_results if anthropic else self._chat_results
            batch.files = {} if errors else make(number, batch)
            self.files |= batch.files
        if anthropic:
            counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
            counts["succeeded" if ended else "processing"] = len(batch.requests)
            return {
                "id": batch.id,
                "type": "message_batch",
                "processing_status": "ended" if ended else "in_progress",
                "request_counts": counts,
                "results_url": "http://127.0.0.1:9/stolen" if ended else None,
            }
        fates = {self.fate(number, position) for position in range(len(batch.requests))}
        state = next((COMPLETED[fate] for fate in COMPLETED if fate in fates), "completed")
        files = batch.files or {}
        return {
            "id": batch.id,
            "object": "batch",
            "status": ("failed" if errors else state) if ended else "in_progress",
            "errors": {"object": "list", "data": errors} if errors and ended else None,
            "output_file_id": next((name for name in files if name.endswith("-output")), None),
            "error_file_id": next((name for name in files if name.endswith("-error")), None),
            "request_counts": {"total": len(batch.requests), "completed": 0, "failed": 0},
        }

    def _file(self, name: str) -> web.Response:
        if name not in self.files:
            return self._error(404, "no such file", "not_found")
        if self.redirect:
            return web.Response(status=302, headers={"Location": self.redirect})
        return web.Response(body=self.files[name], content_type="application/jsonl")

    # Results

    def _chat_results(self, number: int, batch: Submitted) -> dict[str, bytes]:
        files: dict[str, list[bytes]] = {"output": [], "error": []}
        for position, request in enumerate(batch.requests):
            fate, name = self.fate(number, position), request["custom_id"]
            body = self._decoder.decode(msgspec.json.encode(request["body"]))
            complaint = self._complaint("/v1/chat/completions", body)
            if complaint:
                fate = "400"
            reply: Any = None
            error: Any = None
            if fate in ("expired", "cancelled"):
                error = {"code": f"batch_{fate}", "message": f"This request was {fate}."}
            elif fate.isdigit():
                message = {"message": complaint or self.behaviour.says, "code": "error"}
                reply = {"status_code": int(fate), "request_id": "r", "body": {"error": message}}
            else:
                answer = msgspec.Raw(self._answer("/v1/chat/completions", body, ""))
                reply = {"status_code": 200, "request_id": "r", "body": answer}
            line = {"id": f"r-{position}", "custom_id": name, "response": reply, "error": error}
            files["output" if fate not in ("expired", "cancelled", "400", "429") else "error"] += _lines(
                fate, line
            )
        return {f"{batch.id}-{kind}": b"\n".join(lines[::-1]) for kind, lines in files.items() if lines}

    def _message_results(self, number: int, batch: Submitted) -> dict[str, bytes]:
        lines: list[bytes] = []
        for position, request in enumerate(batch.requests):
            fate, params = self.fate(number, position), request["params"]
            result: dict[str, Any]
            if fate in ("expired", "cancelled"):
                result = {"type": "canceled" if fate == "cancelled" else fate}
            elif fate.isdigit():
                error = {"type": ANTHROPIC_TYPES[fate], "message": self.behaviour.says}
                result = {"type": "errored", "error": {"type": "error", "error": error}}
            else:
                result = {"type": "succeeded", "message": self._message(params)}
            lines += _lines(fate, {"custom_id": request["custom_id"], "result": result})
        return {f"{batch.id}-results": b"\n".join(lines[::-1]) + b"\n"}

    def _message(self, params: dict[str, Any]) -> dict[str, Any]:
        system = [{"role": "system", "content": params["system"]}] if "system" in params else []
        chat = {"messages": [*system, *params["messages"]]}
        body = self._decoder.decode(msgspec.json.encode(chat))
        return message_of(msgspec.json.decode(self._answer("/v1/chat", body, "")))


def _lines(fate: Fate, line: dict[str, Any]) -> list[bytes]:
    """The lines of a result, in order of the file reversed."""
    encoded = msgspec.json.encode(line)
    match fate:
        case "missing":
            return []
        case "twice":
            return [encoded, encoded]
        case "broken":
            return [encoded[: len(encoded) // 2]]
        case "page":
            return [b"<html>gateway</html>"]
        case "strange":
            return [msgspec.json.encode(line | {"custom_id": "0" * 32})]
    return [encoded]
