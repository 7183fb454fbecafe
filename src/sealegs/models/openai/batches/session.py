"""One stream of requests on its way through batches: submitted, looked at, read.

A batch is read by whichever process comes to it. Once all have ended, what failed goes into another batch
where the table in `retry.py` has it tried again, or where the refusal has taught the dialect something; else
it is a failed request. Calls to the server are themselves tried again by that table.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

import aiohttp
import msgspec

from sealegs.errors import BatchesPending, ModelUnreachable, SealegsError, UsageError
from sealegs.files.jsonfile import check_depth, repaired
from sealegs.harness.folder.layout import BATCHES, how_to_resume
from sealegs.models.openai.batches.protocols import (
    BatchProtocol,
    BatchResult,
    Status,
    checked_id,
    portions,
    read_file_id,
)
from sealegs.models.openai.batches.stored import StoredBatch, read_batches, write_batches
from sealegs.models.openai.dialect import Dialect
from sealegs.models.openai.protocol import read_chat
from sealegs.models.openai.retry import CallFailed, Client, Fate, fate_of, is_transient
from sealegs.models.openai.servers import ServerHealth, is_wrong_address
from sealegs.models.openai.transport import (
    BROKEN,
    CONNECTION_LOST,
    LARGE_REPLY_BYTES,
    PAGE,
    TIMEOUT,
    HttpReply,
    TryFailed,
)
from sealegs.types import Generate, Request, Response

if TYPE_CHECKING:
    from sealegs.models.openai.background import Outbox, Relay
    from sealegs.models.openai.endpoint import Endpoint

POLL_VARIABLE = "SEALEGS_BATCH_POLL"
"""The longest pause between two looks at the batches, in seconds."""
FIRST_PAUSE_S, LONGEST_PAUSE_S, GROWTH = 2.0, 60.0, 1.5
ROUNDS = 4
"""How many batches a request may go through before its failure is final."""
UNCLEAR = (TIMEOUT, CONNECTION_LOST, BROKEN, PAGE)
"""Failures after which a server may have created a batch all the same."""

Answer: TypeAlias = tuple[Request, Response]
R = TypeVar("R")


class BatchAccess(NamedTuple):
    """What is needed of a live model to ask it by batches."""

    protocol: BatchProtocol
    endpoint: Endpoint
    dialect: Dialect
    timeout: float
    retries: int
    max_temperature: float | None = None


def poll_limit() -> float:
    """The longest pause between two looks, as the environment has it."""
    text = os.environ.get(POLL_VARIABLE, "").strip()
    try:
        return max(0.0, float(text)) if text else LONGEST_PAUSE_S
    except ValueError:
        raise UsageError(f"{POLL_VARIABLE}={text}: must be a number of seconds.") from None


@dataclass(kw_only=True)
class BatchSession:
    """It belongs to one event loop."""

    access: BatchAccess
    client: Client
    pending: dict[str, list[Generate]]
    """Requests without an answer, by `custom_id`."""
    outbox: Outbox[Answer]
    folder: Path
    wait: bool
    relay: Relay
    health: ServerHealth

    def __post_init__(self) -> None:
        self._protocol = self.access.protocol
        self._dialect = self.access.dialect
        self._shown = self.access.endpoint.shown
        self._stored = read_batches(self.folder)
        self._answered = False
        self._last_failure: CallFailed | None = None

    async def run(self) -> None:
        """Have all answered. The tries of what was handed in and is not read yet are given back at the end:
        the start that reads it counts them."""
        try:
            await self._answer_all()
        finally:
            read = {name for batch in self._stored if batch.fetched for name in batch.requests}
            for name, requests in self.pending.items():
                for _ in requests if name not in read else ():
                    self.client.return_try()

    async def _answer_all(self) -> None:
        earlier = self._earlier()
        submitted = {name for batch in earlier for name in batch.requests}
        batches = earlier + await self._submit([name for name in self.pending if name not in submitted])
        rounds = min(ROUNDS, self.access.retries + 1) + bool(earlier)
        for tries in range(1, rounds + 1):
            failures = await self._collect(batches)
            if tries > 1 or not earlier:
                missing = TryFailed("no result", "the results of its batch hold no line for it")
                failures = dict.fromkeys(self.pending, missing) | failures
            self._end_failed(failures, tries, last=tries == rounds)
            batches = await self._submit(list(self.pending))
            if not batches:
                break
        last = self._last_failure
        if last and not self._answered and fate_of(last.error) is not Fate.FAIL:
            raise ModelUnreachable(
                f"No batch at {self._shown} has answered a request. The last failure: {last}"
            )

    def _earlier(self) -> list[StoredBatch]:
        """The stored batches with requests of this stream. Those that were read are read again: a process
        that was killed may not have stored all of their answers."""
        here = [batch for batch in self._stored if batch.id and batch.address == self._shown]
        return [batch for batch in here if not self.pending.keys().isdisjoint(batch.requests)]

    # Submitting

    async def _submit(self, names: list[str]) -> list[StoredBatch]:
        """Submit requests, in as many batches as the limits ask for."""
        batches = []
        for ids, content in portions(self._protocol, self._lines(names)):
            batch = StoredBatch(address=self._shown, requests=ids)
            self._stored.append(batch)
            write_batches(self.folder, self._stored)
            try:
                batch.id = await self._create(content)
            except SealegsError:
                self._stored.remove(batch)
                raise
            finally:
                write_batches(self.folder, self._stored)
            self.relay.note(f"batch {batch.id} at {self._shown}: {len(ids):,} requests submitted")
            batches.append(batch)
        return batches

    def _lines(self, names: list[str]) -> Iterator[tuple[str, bytes]]:
        """The requests as lines of a batch, by name."""
        for name in names:
            yield name, self._protocol.request(name, self._body(name), self.access.max_temperature)

    def _body(self, name: str) -> bytes:
        return self._dialect.generate_body(self.pending[name][0])

    async def _create(self, content: bytes) -> str:
        """The id of a new batch. A failure after which the server may have created it is not tried again: it
        would be paid for twice."""
        file_id = ""
        if self._protocol.uploads:
            file_id = await self._insist(partial(self._upload, content))

        async def create() -> Status:
            body = io.BytesIO(self._protocol.creation(file_id) if self._protocol.uploads else content)
            try:
                return await self._call("POST", self._protocol.path, self._protocol.status, body)
            except TryFailed as error:
                failed_there = error.status >= 500 and fate_of(error) is Fate.RETRY
                if error.kind not in UNCLEAR and not failed_there:
                    raise
                raise ModelUnreachable(
                    f"{error.at(self._shown)}. Whether the batch was created is not known: look "
                    "there before you run the same command again."
                ) from error

        return (await self._insist(create)).id

    async def _upload(self, content: bytes) -> str:
        form = aiohttp.FormData({"purpose": "batch"})
        form.add_field(
            "file", io.BytesIO(content), filename="sealegs.jsonl", content_type="application/jsonl"
        )
        return await self._call("POST", "files", read_file_id, form)

    # Looking and reading

    async def _collect(self, batches: list[StoredBatch]) -> dict[str, TryFailed]:
        """Wait until batches have ended and hand over their answers; by name, what failed in them."""
        waiting, failures = list(batches), dict[str, TryFailed]()
        pause, pause_limit = FIRST_PAUSE_S, poll_limit()
        while True:
            states: dict[str, None] = {}
            done = 0
            for batch in list(waiting):
                try:
                    status = await self.client.send(partial(self._look, batch))
                except CallFailed as failure:
                    if not is_transient(failure.error):
                        raise self._lost(batch, failure.error) from None
                    self.health.failed(failure.error, str(failure), server_at_fault=True, open_calls=0)
                    continue
                if status.ended:
                    failures |= await self._read(batch, status)
                    waiting.remove(batch)
                else:
                    states[status.state] = None
                    done += status.done
            if not waiting:
                self.relay.waiting("")
                return failures
            number = f"{len(waiting)} batches" if len(waiting) > 1 else f"batch {waiting[0].id}"
            total = sum(len(batch.requests) for batch in waiting)
            described = f"{number} ({', '.join(states) or 'submitted'}): {done:,} of {total:,} done"
            if not self.wait:
                raise BatchesPending(
                    f"{described}, at {self._shown}. Fetch the answers with {how_to_resume(self.folder)}."
                )
            self.relay.waiting(described)
            await asyncio.sleep(min(pause, pause_limit))
            pause *= GROWTH

    async def _look(self, batch: StoredBatch) -> Status:
        return await self._call("GET", f"{self._protocol.path}/{checked_id(batch.id)}", self._protocol.status)

    async def _read(self, batch: StoredBatch, status: Status) -> dict[str, TryFailed]:
        """Hand over the answers of a batch that has ended; by name, its failures. Those of a batch that was
        read before are no news: whoever starts the run again asks for what failed."""
        failures: dict[str, TryFailed] = {}
        for path in status.results:
            try:
                await self.client.send(partial(self._read_file, path, batch, failures))
            except CallFailed as failure:
                raise self._lost(batch, failure.error) from None
        was_read, batch.fetched = batch.fetched, True
        write_batches(self.folder, self._stored)
        if status.problem and not was_read:
            raise ModelUnreachable(
                f"batch {batch.id} at {self._shown}: {status.problem}. The same command submits again what "
                "it left unanswered."
            )
        return {} if was_read else failures

    async def _read_file(self, path: str, batch: StoredBatch, failures: dict[str, TryFailed]) -> None:
        """Read a file of results. One that breaks off is read again from its beginning: what was handed over
        is skipped."""
        names, is_ours = set(batch.requests), False
        async with contextlib.aclosing(self.client.transport.lines(path)) as lines:
            async for line in lines:
                await (self.outbox.taken() if len(line) > LARGE_REPLY_BYTES else self.outbox.room())
                is_ours |= self._take(line, names, failures)
        if not is_ours:  # a gateway's page, say: what the file holds is paid for
            raise TryFailed(BROKEN, "a file of results without any line of its batch")

    def _take(self, line: bytes, names: set[str], failures: dict[str, TryFailed]) -> bool:
        """Hand over what a line says; False where it says nothing of this batch. An answer counts once, and
        before a failure of the same request."""
        try:
            result = self._parsed(line)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return False
        name, error = result.custom_id, result.error
        if name not in names:
            return False
        if name not in self.pending:
            return True
        if error is None:
            reply = HttpReply(200, "application/json", result.body)
            try:
                self._put(name, reply.parse(read_chat))
            except TryFailed as broken:
                error = broken
                self.client.add_used(*reply.used_tokens())
            else:
                self._answered = True
                return True
        failures.setdefault(name, error)
        return True

    def _parsed(self, line: bytes) -> BatchResult:
        try:
            return self._protocol.result(check_depth(line))
        except msgspec.DecodeError:
            return self._protocol.result(repaired(line))  # half a character is no reason to lose the rest

    # Ends of requests

    def _end_failed(self, failures: Mapping[str, TryFailed], tries: int, *, last: bool) -> None:
        """End the requests that are not worth another batch: all after the last, and those whose failure does
        not pass, unless it has taught how such a request is to be written."""
        open_failures = {name: error for name, error in failures.items() if name in self.pending}
        bodies = {n: self._body(n) for n, e in open_failures.items() if fate_of(e) is Fate.FAIL}
        for name, body in bodies.items():
            self._dialect.learn(open_failures[name], body)
        for name, error in open_failures.items():
            again = self._body(name) != bodies[name] if name in bodies else is_transient(error)
            if last or not again:
                self._end(name, CallFailed(error, tries))
            else:
                self.client.count_try()

    def _end(self, name: str, failure: CallFailed) -> None:
        self._last_failure = failure
        self._put(name, Response(status="error", reason=str(failure)))

    def _put(self, name: str, response: Response) -> None:
        for request in self.pending.pop(name):
            self.outbox.put((request, response))

    # Calls

    async def _call(
        self,
        method: str,
        path: str,
        read: Callable[[bytes], R],
        body: io.BytesIO | aiohttp.FormData | None = None,
    ) -> R:
        reply = await self.client.transport.send(method, path, body)
        if reply.status != 200:
            raise reply.failure()
        return reply.parse(read)

    async def _insist(self, action: Callable[[], Awaitable[R]]) -> R:
        """What an action gives after as many tries as it takes."""
        try:
            return await self.client.send(action)
        except CallFailed as failure:
            raise self._unreachable(failure.error) from None

    def _lost(self, batch: StoredBatch, error: TryFailed) -> ModelUnreachable:
        return ModelUnreachable(
            f"batch {batch.id}: {error.at(self._shown)}. Where it is gone, remove "
            f"{self.folder / BATCHES} to submit its requests again."
        )

    def _unreachable(self, error: TryFailed) -> ModelUnreachable:
        hint = "Does this server have batches? Without --batch it is asked live."
        text = f"{error.at(self._shown)}."
        return ModelUnreachable(f"{text} {hint}" if is_wrong_address(error) else text)
