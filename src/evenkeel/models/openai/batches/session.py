"""One stream of requests on its way through batches: handed in, looked at, read, and handed in again.

What a batch answers is used by whichever process comes to read it. What failed in it goes into another batch
where the failure may pass, and is a failed request where it may not. Calls are tried again as live requests
are (`retry.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from evenkeel.errors import BatchesPending, EvenkeelError, ModelUnreachable, UsageError
from evenkeel.files.jsonfile import shallow
from evenkeel.models.openai.batches.portions import BOUNDARY, chunks, portions
from evenkeel.models.openai.batches.protocols import PROTOCOLS, Result, Status, checked_id
from evenkeel.models.openai.batches.stored import Batch, StoredBatches
from evenkeel.models.openai.dialect import Dialect
from evenkeel.models.openai.protocol import read_chat
from evenkeel.models.openai.retry import (
    FAILURES_IN_A_ROW,
    THIS_REQUEST,
    Client,
    Fate,
    RequestFailed,
    ServerHealth,
    fate_of,
    is_no_api,
)
from evenkeel.models.openai.transport import (
    BROKEN,
    CONNECTION_LOST,
    NOT_SENT,
    PAGE,
    TIMEOUT,
    Reply,
    RequestError,
    repaired,
)
from evenkeel.types import Generate, Request, Response

if TYPE_CHECKING:
    from evenkeel.harness.model import Meter
    from evenkeel.models.openai.background import Outbox, Relay
    from evenkeel.models.openai.endpoint import Endpoint

POLL_VARIABLE = "EVENKEEL_BATCH_POLL"
"""The longest pause between two looks at the batches, in seconds."""
FIRST_PAUSE_S, LONGEST_PAUSE_S, GROWTH = 2.0, 60.0, 1.5
ROUNDS = 4
"""How many batches a request may go through before its failure is final."""
LOOKS = 60
"""Failed looks at batches in a row: a day's wait outlasts a network that is away for an hour."""
GONE = (404, 410)
UNCLEAR = (TIMEOUT, CONNECTION_LOST, BROKEN, PAGE)
"""Failures after which a server may have created a batch all the same."""

Answer: TypeAlias = tuple[Request, Response]
R = TypeVar("R")


class Access(NamedTuple):
    """What is needed of a live model to ask it by batches."""

    protocol: str
    endpoint: Endpoint
    headers: Mapping[str, str]
    dialect: Dialect
    timeout: float
    retries: int
    max_temperature: float | None = None


class _File(Struct):
    id: str


class _Failure(NamedTuple):
    """Why a request of a batch has no answer."""

    error: RequestError
    cancelled: bool = False


def poll_limit() -> float:
    """The longest pause between two looks, as the environment has it."""
    text = os.environ.get(POLL_VARIABLE, "").strip()
    try:
        seconds = float(text) if text else LONGEST_PAUSE_S
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86_400:
        raise UsageError(f"{POLL_VARIABLE}={text}: must be a number of seconds from 0 to 86400.")
    return seconds


class Session:
    """It belongs to one event loop."""

    def __init__(
        self,
        access: Access,
        client: Client,
        chats: dict[str, list[Generate]],
        outbox: Outbox[Answer],
        *,
        folder: Path,
        wait: bool,
        relay: Relay,
        health: ServerHealth,
        meter: Meter | None,
        pause_limit: float,
    ) -> None:
        self._access = access
        self._client = client
        self._pending = chats
        """Requests without an answer, by `custom_id`."""
        self._outbox = outbox
        self._folder = folder
        self._wait = wait
        self._relay = relay
        self._health = health
        self._meter = meter
        self._pause_limit = pause_limit
        self._protocol = PROTOCOLS[access.protocol]
        self._dialect = access.dialect
        self._shown = access.endpoint.shown
        self._stored = StoredBatches(folder)
        self._names: dict[str, set[str]] = {}
        """By the id of a batch: its requests that no later batch holds."""
        self._resumed: set[str] = set()
        """Ids of batches that an earlier process handed in."""
        self._attempts: Counter[str] = Counter()
        """Of each request: batches that have ended without its answer."""
        self._sent: dict[str, bytes] = {}
        """The digest of each request's body as it was sent."""
        self._statuses: dict[str, Status] = {}
        self._answered = False
        self._refused = self._failed = self._cancelled = 0
        """Requests that failed for good: by their own fault, otherwise, and because a person cancelled."""
        self._last_failure = ""

    async def run(self) -> None:
        waiting = self._earlier()
        covered = set().union(*self._names.values())
        waiting += await self._submit([name for name in self._pending if name not in covered])
        pause, failed_looks = FIRST_PAUSE_S, 0
        again: list[str] = []
        while waiting:
            for batch in list(waiting):
                try:
                    status = await self._client.insist(partial(self._look, batch))
                except RequestFailed as failure:
                    failed_looks += 1
                    if failed_looks > LOOKS or fate_of(failure.error, answered=True) is not Fate.RETRY:
                        raise self._unreachable(failure.error) from None
                    continue
                failed_looks = 0
                if status is None or status.ended:
                    again += await self._settle(batch, status)
                    waiting.remove(batch)
            if again and not (waiting and self._wait):
                waiting += await self._submit(again)
                again, pause = [], FIRST_PAUSE_S
            if waiting and not self._wait:
                raise BatchesPending(
                    f"{self._described(waiting)}, at {self._shown}. The same command with "
                    f"--out {self._folder} fetches the answers."
                )
            if waiting:
                self._relay.waiting(self._described(waiting))
                await asyncio.sleep(min(pause, self._pause_limit))
                pause *= GROWTH
        self._relay.waiting("")
        self._check_outcome()

    def _check_outcome(self) -> None:
        """Raise where nothing was answered at all, or a person cancelled what they had asked for."""
        if not self._answered and (self._failed or self._refused >= FAILURES_IN_A_ROW):
            raise ModelUnreachable(
                f"No batch at {self._shown} has answered any request. The last failure: {self._last_failure}"
            )
        if self._cancelled:
            raise EvenkeelError(
                f"A batch was cancelled at {self._shown} before {self._cancelled:,} requests were answered. "
                f"The same command with --out {self._folder} submits them again."
            )

    def _earlier(self) -> list[Batch]:
        """The stored batches with requests of this stream. Those that were read are read again: a process
        that was killed may not have stored all of their answers."""
        latest: dict[str, Batch] = {}
        elsewhere = set()
        for batch in self._stored.batches:
            names = [name for name in batch.requests if name in self._pending]
            if (batch.address, batch.protocol) == (self._shown, self._protocol.name) and batch.id:
                latest.update(dict.fromkeys(names, batch))
            elif names and batch.id and not batch.fetched:
                elsewhere.add(batch.address)
        if elsewhere:
            listed = ", ".join(sorted(elsewhere))
            self._relay.note(f"Batches of this run at {listed} are not read: it goes on at {self._shown}.")
        for name, batch in latest.items():
            self._names.setdefault(batch.id, set()).add(name)
            self._sent[name] = _digest(self._body(name))
        self._resumed = set(self._names)
        return [batch for batch in self._stored.batches if batch.id in self._names]

    # Handing in

    async def _submit(self, names: list[str]) -> list[Batch]:
        """Hand requests in, in as many batches as the limits ask for."""
        batches = []
        with contextlib.closing(portions(self._protocol, self._lines(names))) as files:
            for ids, file in files:
                batch = Batch(
                    protocol=self._protocol.name, address=self._shown, created=time.time(), requests=ids
                )
                self._stored.add(batch)
                with file:
                    try:
                        batch.id = await self._create(file)
                    except EvenkeelError:
                        self._stored.remove(batch)
                        raise
                self._stored.save()
                self._names[batch.id] = set(ids)
                self._relay.note(f"batch {batch.id} at {self._shown}: {len(ids):,} requests submitted")
                batches.append(batch)
        return batches

    def _lines(self, names: list[str]) -> Iterator[tuple[str, bytes]]:
        """The requests as lines of a batch, by name; one that cannot be written has failed."""
        for name in names:
            try:
                body = self._body(name)
            except UnicodeEncodeError:
                self._end(name, RequestError(NOT_SENT, "the text holds half a character, which JSON cannot"))
                continue
            self._sent[name] = _digest(body)
            yield name, self._protocol.request(name, body, self._access.max_temperature)

    def _body(self, name: str) -> bytes:
        return self._dialect.generate_body(self._pending[name][0])

    async def _create(self, file: IO[bytes]) -> str:
        """The id of a new batch. A failure after which the server may have created it is not tried again: it
        would be paid for twice."""
        protocol = self._protocol
        create = partial(self._send_file, file, protocol.path, protocol.status, "application/json")
        if protocol.uploads:
            kind = f"multipart/form-data; boundary={BOUNDARY}"
            uploaded = await self._insist(partial(self._send_file, file, "files", _file_id, kind))
            body = msgspec.json.encode(
                {"input_file_id": uploaded, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
            )
            create = partial(self._call, "POST", protocol.path, protocol.status, body)

        async def create_once() -> Status:
            try:
                return await create()
            except RequestError as error:
                if error.kind not in UNCLEAR:
                    raise
                raise ModelUnreachable(
                    f"{error.at(self._shown).rstrip('.')}. Whether the batch was created is not known: look "
                    "there before you run the same command again."
                ) from error

        return (await self._insist(create_once)).id

    async def _send_file(self, file: IO[bytes], path: str, read: Callable[[bytes], R], kind: str) -> R:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        headers = {"Content-Type": kind, "Content-Length": str(size)}
        return await self._call("POST", path, read, chunks(file), headers)

    # Looking and reading

    async def _look(self, batch: Batch) -> Status | None:
        """How far a batch is; None where the server does not know it any more."""
        try:
            status = await self._call(
                "GET", f"{self._protocol.path}/{checked_id(batch.id)}", self._protocol.status
            )
        except RequestError as error:
            if error.status not in GONE:
                raise
            self._relay.note(f"batch {batch.id} is not known at {self._shown} any more")
            return None
        self._statuses[batch.id] = status
        return status

    async def _settle(self, batch: Batch, status: Status | None) -> list[str]:
        """Read the results of a batch that has ended; the requests that go into another one."""
        failures: dict[str, _Failure] = {}
        names = self._names[batch.id]
        if status is not None:
            for path in status.results:
                await self._insist(partial(self._read, path, batch, failures))
            if status.problem is not None:
                self._relay.note(f"batch {batch.id} was refused: {status.problem.detail}")
        left = [name for name in self._pending if name in names]
        was_read, batch.fetched = batch.fetched, True
        self._stored.save()
        if status is None or was_read:  # it is gone, or an earlier process has dealt with its failures
            return left
        missing = RequestError("no result", "the results of its batch hold no line for it")
        usual = _Failure(status.problem or missing, status.cancelled)
        again = []
        for name in left:
            failure = failures.get(name, usual)
            self._attempts[name] += 1
            if failure.cancelled and batch.id not in self._resumed:
                self._cancelled += 1
                del self._pending[name]
            elif failure.cancelled or self._is_worth_another(name, failure.error):
                again.append(name)
            else:
                self._end(name, failure.error)
        return again

    async def _read(self, path: str, batch: Batch, failures: dict[str, _Failure]) -> None:
        """Hand over the answers of a file of results, and collect its failures. One that breaks off is read
        again from its beginning: what was handed over is skipped."""
        names = set(batch.requests)
        usable = unusable = 0
        try:
            async with contextlib.aclosing(self._client.transport.lines(path)) as lines:
                async for line in lines:
                    await self._outbox.room()
                    if line.strip():
                        is_ours = self._take(line, names, failures)
                        usable, unusable = usable + is_ours, unusable + (not is_ours)
        except RequestError as error:
            if error.status not in GONE:
                raise
            self._relay.note(f"batch {batch.id}: a file of results is gone: {error}")
            return
        if not usable:  # a gateway's page, say: what the file holds is paid for
            raise RequestError(BROKEN, "a file of results without any line of its batch")
        if unusable:
            self._relay.note(
                f"batch {batch.id}: lines of its results that cannot be read, or are of no request: "
                f"{unusable:,}"
            )

    def _take(self, line: bytes, names: set[str], failures: dict[str, _Failure]) -> bool:
        """Hand over what a line says; False where it says nothing of this batch. An answer counts once, and
        before a failure of the same request."""
        try:
            result = self._parsed(line)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return False
        name = result.custom_id
        if name not in names:
            return False
        if name not in self._pending:
            return True
        error = result.error
        if error is None:
            reply = Reply(200, "application/json", result.body)
            try:
                answer = reply.parse(read_chat)
            except RequestError as broken:
                error = broken
                if self._meter is not None:
                    self._meter.used(*reply.used_tokens())
            else:
                failures.pop(name, None)
                self._answered = True
                self._put(name, answer)
                return True
        failures.setdefault(name, _Failure(error, result.cancelled))
        return True

    def _parsed(self, line: bytes) -> Result:
        try:
            return self._protocol.result(shallow(line))
        except msgspec.DecodeError:
            return self._protocol.result(repaired(line))  # half a character is no reason to lose the rest

    # Ends of requests

    def _is_worth_another(self, name: str, error: RequestError) -> bool:
        """Whether a request that failed goes into another batch: the failure may pass, or has taught how such
        a request is to be written."""
        if self._attempts[name] >= min(ROUNDS, self._access.retries + 1):
            return False
        if error.status in THIS_REQUEST:
            sent = self._sent.get(name)
            if _digest(body := self._body(name)) == sent:
                self._dialect.learn(error, body)
            if _digest(self._body(name)) == sent:
                return False
        elif fate_of(error, answered=True) is not Fate.RETRY:
            return False
        return self._meter is None or self._meter.may_retry()

    def _end(self, name: str, error: RequestError) -> None:
        """A request that failed for good."""
        self._last_failure = reason = str(RequestFailed(error, max(1, self._attempts[name])))
        if error.kind == NOT_SENT or (error.status in THIS_REQUEST and error.kind.startswith("HTTP")):
            self._refused += 1
        else:
            self._failed += 1
        self._put(name, Response(status="error", reason=reason))

    def _put(self, name: str, response: Response) -> None:
        for request in self._pending.pop(name):
            self._outbox.put((request, response))

    # Calls

    async def _call(
        self,
        method: str,
        path: str,
        read: Callable[[bytes], R],
        body: bytes | AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> R:
        reply = await self._client.transport.send(method, path, body, headers=headers)
        if reply.status != 200:
            raise reply.failure()
        return reply.parse(read)

    async def _insist(self, action: Callable[[], Awaitable[R]]) -> R:
        """What an action gives after as many tries as it takes."""
        try:
            return await self._client.insist(action)
        except RequestFailed as failure:
            raise self._unreachable(failure.error) from None
        except ModelUnreachable as error:
            if isinstance(error.__cause__, RequestError) and is_no_api(error.__cause__):
                raise self._unreachable(error.__cause__) from None
            raise

    def _unreachable(self, error: RequestError) -> ModelUnreachable:
        hint = " Does this server have batches? Without --batch it is asked live." if is_no_api(error) else ""
        return ModelUnreachable(f"{error.at(self._shown).rstrip('.')}.{hint}")

    def _described(self, waiting: list[Batch]) -> str:
        """`2 batches (in_progress): 120 of 500 done, 3 failed, 12 min old`"""
        statuses = [self._statuses[batch.id] for batch in waiting if batch.id in self._statuses]
        done, failed = sum(status.done for status in statuses), sum(status.failed for status in statuses)
        states = ", ".join(dict.fromkeys(status.state for status in statuses)) or "submitted"
        number = f"{len(waiting)} batches" if len(waiting) > 1 else f"batch {waiting[0].id}"
        total = sum(len(batch.requests) for batch in waiting)
        failures = f", {failed:,} failed" if failed else ""
        minutes = max(0.0, time.time() - min(batch.created for batch in waiting)) / 60
        age = f"{minutes:,.0f} min" if minutes < 120 else f"{minutes / 60:,.0f} h"
        return f"{number} ({states}): {done:,} of {total:,} done{failures}, {age} old"


def _file_id(data: bytes) -> str:
    return checked_id(msgspec.json.decode(data, type=_File).id)


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()[:16]
