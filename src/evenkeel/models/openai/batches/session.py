"""One stream of requests on its way through batches: handed in, looked at, read, and handed in again.

What a batch answers is used by whichever process comes to read it. What failed in it goes into another batch
where the failure may pass, and is a failed request where it may not.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from evenkeel.errors import BatchesPending, EvenkeelError, ModelUnreachable, UsageError
from evenkeel.harness.progress import Progress
from evenkeel.models.openai.background import Outbox, Relay
from evenkeel.models.openai.batches.protocols import CLOCK_S, LISTED, PROTOCOLS, Status, checked_id
from evenkeel.models.openai.batches.results import Failure, Reading
from evenkeel.models.openai.batches.stored import Batch, StoredBatches
from evenkeel.models.openai.endpoint import Endpoint
from evenkeel.models.openai.protocol import Dialect
from evenkeel.models.openai.retry import (
    DOUBTFUL_RETRIES,
    LONGEST_WAIT_S,
    OVERLOADED,
    REFUSALS_AT_START,
    THIS_REQUEST,
    RequestFailed,
    ServerHealth,
    back_off,
)
from evenkeel.models.openai.transport import FLOOR, LONGEST_LINE, RequestError, Transport
from evenkeel.types import Generate, Request, Response

POLL_VARIABLE = "EVENKEEL_BATCH_POLL"
"""The longest pause between two looks at the batches, in seconds."""
LONGEST_PAUSE_S = 60.0
FIRST_PAUSE_S = 2.0
GROWTH = 1.5
ROUNDS = 4
"""How many batches a request may go through before its failure is final."""
TRIES = 8
"""Of a call about batches, such as an upload."""
LOOKS = 60
"""Failed looks at batches in a row: a day's wait outlasts a network that is away for an hour."""
OLDEST_S = 8 * 86_400.0
"""A batch that has not ended by then never will: the longest window of a provider is seven days."""
PAGES = 20
"""Of an account's batches in which one is looked for."""
GONE = (404, 410)
BOUNDARY = "evenkeel-9f2c41d07ab84e63"
"""Between the parts of an upload. A line of JSON holds no line break, so that no text can end a part."""

Answer: TypeAlias = tuple[Request, Response]
R = TypeVar("R")


class Access(NamedTuple):
    """What is needed of a live model to ask it by batches."""

    protocol: str
    endpoint: Endpoint
    dialect: Dialect
    timeout: float
    retries: int
    max_temperature: float | None = None


class _File(Struct):
    id: str


class _Portion(NamedTuple):
    """The requests of one batch, as they are sent."""

    ids: list[str]
    file: IO[bytes]


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
        transport: Transport,
        chats: dict[str, list[Generate]],
        outbox: Outbox[Answer],
        *,
        folder: Path,
        wait: bool,
        progress: Progress,
        health: ServerHealth,
        pause_limit: float,
    ) -> None:
        self._access = access
        self._transport = transport
        self._pending = chats
        """Requests without an answer, by `custom_id`."""
        self._outbox = outbox
        self._folder = folder
        self._wait = wait
        self._progress = progress
        self._health = health
        self._pause_limit = pause_limit
        self._protocol = PROTOCOLS[access.protocol]
        self._dialect = access.dialect
        self._shown = access.endpoint.shown
        self._relay = Relay(outbox, progress)
        self._stored = StoredBatches(folder)
        self._resumed: set[str] = set()
        """Tokens of batches that an earlier process handed in."""
        self._rounds = min(ROUNDS, access.retries + 1)
        self._attempts: Counter[str] = Counter()
        """Of each request: batches that have ended without its answer."""
        self._sent: dict[str, bytes] = {}
        """The digest of each request's body as it was sent."""
        self._statuses: dict[str, Status] = {}
        self._refused, self._failed = 0, 0
        """Requests that failed for good: by their own fault, and otherwise."""
        self._last_failure = ""
        self._cancelled = 0

    async def run(self) -> None:
        waiting = await self._earlier()
        covered = {name for batch in waiting for name in batch.requests}
        waiting += await self._submit([name for name in self._pending if name not in covered])
        pause, failed_looks = FIRST_PAUSE_S, 0
        again: list[str] = []
        while waiting:
            for batch in list(waiting):
                try:
                    status = await self._look(batch)
                except RequestError as error:
                    failed_looks += 1
                    if not _may_pass(error, failed_looks, LOOKS):
                        raise self._unreachable(error) from error
                    self._note_failure(error)
                    continue
                failed_looks = 0
                if status is None or status.ended:
                    again += await self._settle(batch, status)
            waiting = [batch for batch in waiting if batch.id and not batch.fetched]
            if again and not (waiting and self._wait):
                waiting += await self._submit(again)
                again, pause = [], FIRST_PAUSE_S
            if waiting and not self._wait:
                raise BatchesPending(
                    f"{self._described(waiting)}, at {self._shown}. The same command with "
                    f"--out {self._folder} fetches the answers."
                )
            if waiting:
                self._show(waiting)
                await asyncio.sleep(min(pause, self._pause_limit))
                pause *= GROWTH
        self._show([])
        self._check_outcome()

    def _check_outcome(self) -> None:
        """Raise where nothing was answered at all, or a person cancelled what they had asked for."""
        if not self._health.ever_answered and (self._failed or self._refused >= REFUSALS_AT_START):
            raise ModelUnreachable(
                f"No batch at {self._shown} has answered any request. The last failure: {self._last_failure}"
            )
        if self._cancelled:
            raise EvenkeelError(
                f"A batch was cancelled at {self._shown} before {self._cancelled:,} requests were answered. "
                f"The same command with --out {self._folder} submits them again."
            )

    # Batches of an earlier process

    async def _earlier(self) -> list[Batch]:
        """The stored batches that hold requests of this stream, the latest of each request; those are looked
        for that were being created when a process was killed."""
        latest: dict[str, Batch] = {}
        elsewhere = set()
        for batch in self._stored.batches:
            names = [name for name in batch.requests if name in self._pending]
            if (batch.address, batch.protocol) == (self._shown, self._protocol.name):
                latest.update(dict.fromkeys(names, batch))
            elif names and not batch.fetched:
                elsewhere.add(batch.address)
        if elsewhere:
            listed = ", ".join(sorted(elsewhere))
            self._relay.note(f"Batches of this run at {listed} are not read: it goes on at {self._shown}.")
        needed = {batch.token: batch for batch in latest.values()}
        for batch in needed.values():
            if not batch.id and not await self._find(batch):
                self._stored.remove(batch)
            elif batch.fetched:
                await self._read_again(batch, {name for name in batch.requests if latest.get(name) is batch})
            else:
                self._resumed.add(batch.token)
                for name in batch.requests:
                    if name in self._pending:
                        self._sent[name] = _digest(self._body(name))
        return [batch for batch in needed.values() if batch.id and not batch.fetched]

    async def _find(self, batch: Batch) -> bool:
        """Look among the batches of the account for one that was being created."""
        known = {each.id for each in self._stored.batches}
        candidates: list[str] = []
        query: dict[str, str] | None = {"limit": str(LISTED)}
        for _ in range(PAGES):
            if query is None:
                break
            page = await self._insist(
                partial(self._call, "GET", self._protocol.path, self._protocol.listing, query=query)
            )
            recent = [each for each in page.batches if each[1] >= batch.created - CLOCK_S]
            candidates += [
                name
                for name, _, listed in recent
                if name not in known and self._protocol.is_ours(listed, batch)
            ]
            query = page.next if len(recent) == len(page.batches) else None
        if candidates:
            candidates.reverse()  # the oldest first
            batch.id, batch.candidates = candidates[0], [] if self._protocol.has_metadata else candidates
            self._stored.save()
        return bool(candidates)

    async def _read_again(self, batch: Batch, names: set[str]) -> None:
        """Take the answers of a batch that was read before, which a killed process may not have stored. Files
        are not there for ever: what cannot be read is asked again."""
        with contextlib.suppress(ModelUnreachable):
            status = await self._insist(partial(self._look, batch))
            if status is not None and status.ended:
                await self._read(batch, status, names)

    # Handing in

    async def _submit(self, names: list[str]) -> list[Batch]:
        """Hand requests in, in as many batches as the limits ask for."""
        batches = []
        with contextlib.closing(self._portions(names)) as portions:
            for ids, file in portions:
                batch = Batch(
                    token=secrets.token_hex(16),
                    protocol=self._protocol.name,
                    address=self._shown,
                    created=time.time(),
                    requests=ids,
                )
                with file:
                    self._stored.add(batch)
                    await self._create(batch, file)
                self._relay.note(f"batch {batch.id} at {self._shown}: {len(ids):,} requests submitted")
                batches.append(batch)
        return batches

    def _portions(self, names: list[str]) -> Generator[_Portion, None, None]:
        """The requests in files, each of at most what a batch may hold."""
        protocol = self._protocol
        head, tail = self._frame()
        ids: list[str] = []
        file = _temporary()
        for name in names:
            try:
                body = self._body(name)
            except UnicodeEncodeError:
                problem = "the text holds half a character, which JSON cannot"
                self._end(name, RequestError("not sent", problem, status=400))
                continue
            self._sent[name] = _digest(body)
            line = protocol.request(name, body, self._access.max_temperature)
            size = file.tell() + len(protocol.separator) + len(line) + len(tail)
            if ids and (size > protocol.most_bytes or len(ids) >= protocol.most_requests):
                file.write(tail)
                yield _Portion(ids, file)
                ids, file = [], _temporary()
            file.write(protocol.separator if ids else head)
            file.write(line)
            ids.append(name)
        if ids:
            file.write(tail)
            yield _Portion(ids, file)
        file.close()

    def _body(self, name: str) -> bytes:
        return self._dialect.generate_body(self._pending[name][0])

    def _frame(self) -> tuple[bytes, bytes]:
        """What surrounds the requests of a portion in what is sent."""
        head, tail = self._protocol.head, self._protocol.tail
        if not self._protocol.uploads:
            return head, tail
        part = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="'
        file = f'{part}file"; filename="evenkeel.jsonl"\r\nContent-Type: application/jsonl\r\n\r\n'
        form = f'{part}purpose"\r\n\r\nbatch\r\n{file}'
        return form.encode() + head, tail + f"\r\n--{BOUNDARY}--\r\n".encode()

    async def _create(self, batch: Batch, file: IO[bytes]) -> None:
        """Create a batch once: where it is not clear whether the server has it, it is looked for first."""
        protocol = self._protocol
        is_unclear = False
        try:
            create = partial(self._send_file, file, protocol.path, protocol.status, "application/json")
            if protocol.uploads:
                kind = f"multipart/form-data; boundary={BOUNDARY}"
                uploaded = await self._insist(partial(self._send_file, file, "files", _file_id, kind))
                body = protocol.create_body(uploaded, batch.token)
                create = partial(self._call, "POST", protocol.path, protocol.status, content=body)
            tries = 1
            while not batch.id:
                try:
                    batch.id = (await create()).id
                    self._stored.save()
                except RequestError as error:
                    unanswered = error.no_contact or error.status in OVERLOADED
                    is_unclear |= (error.transient or error.doubtful) and not unanswered
                    if not _may_pass(error, tries, TRIES):
                        raise self._unreachable(error) from error
                    self._note_failure(error)
                    await self._back_off(error, tries)
                    tries += 1
                    if is_unclear:
                        await self._find(batch)
        except EvenkeelError:
            if not is_unclear:  # else the next process looks for it
                self._stored.remove(batch)
            raise

    async def _send_file(self, file: IO[bytes], path: str, read: Callable[[bytes], R], kind: str) -> R:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        headers = {"Content-Type": kind, "Content-Length": str(size)}
        return await self._call("POST", path, read, content=_chunks(file), headers=headers)

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
        if not status.ended and time.time() - batch.created > OLDEST_S:
            raise ModelUnreachable(
                f"Batch {batch.id} at {self._shown} is {status.state} after {_age(batch)}. Cancel it there, "
                "and run the same command again."
            )
        return status

    async def _settle(self, batch: Batch, status: Status | None) -> list[str]:
        """Read the results of a batch that has ended; the requests that go into another one."""
        names = {name for name in batch.requests if name in self._pending}
        failures: dict[str, Failure] = {}
        is_ours = False
        if status is not None:
            failures, is_ours = await self._read(batch, status, names)
        if status is None or (batch.candidates and not is_ours):
            # Where the server takes no metadata, another batch of as many requests may have been taken for
            # it.
            batch.candidates = batch.candidates[1:]
            batch.id = next(iter(batch.candidates), "")
            if batch.id:
                self._stored.save()
                return []
            self._stored.remove(batch)
            return [name for name in self._pending if name in names]
        batch.fetched, batch.candidates = True, []
        self._stored.save()
        if status.problem is not None:
            self._relay.note(f"batch {batch.id} was refused: {status.problem.detail}")
        missing = RequestError("no result", "the results of its batch hold no line for it")
        usual = Failure(status.problem or missing, status.cancelled)
        again = []
        for name in [name for name in self._pending if name in names]:
            failure = failures.get(name, usual)
            self._attempts[name] += 1
            if failure.cancelled and batch.token not in self._resumed:
                self._cancelled += 1
                del self._pending[name]
            elif failure.cancelled or self._is_worth_another(name, failure.error):
                again.append(name)
            else:
                self._end(name, failure.error)
        return again

    async def _read(self, batch: Batch, status: Status, names: set[str]) -> tuple[dict[str, Failure], bool]:
        """Hand over the answers of a batch that has ended; its failures, and whether any line was of it."""
        failures: dict[str, Failure] = {}
        is_ours = False
        for path in status.results:
            # A file that broke off is read again from its beginning: what was handed over is skipped. So is
            # one without any line of its batch, such as a gateway's page: what it held is paid for.
            read = partial(self._read_file, path, batch, names, failures)
            reading, tries = await self._insist(read), 1
            while not (reading.known or reading.gone or batch.candidates) and tries <= DOUBTFUL_RETRIES:
                error = RequestError("broken reply", "a file of results without any line of its batch")
                self._note_failure(error)
                await self._back_off(error, tries)
                reading, tries = await self._insist(read), tries + 1
            is_ours = is_ours or reading.known
            if not batch.candidates or reading.known:
                for problem in reading.problems():
                    self._relay.note(f"batch {batch.id}: {problem}")
        return failures, is_ours

    async def _read_file(
        self, path: str, batch: Batch, names: set[str], failures: dict[str, Failure]
    ) -> Reading:
        reading = Reading(self._protocol, set(batch.requests))
        most = len(batch.requests) * FLOOR + LONGEST_LINE
        try:
            async with contextlib.aclosing(self._transport.lines(path, most=most)) as lines:
                async for line in lines:
                    await self._outbox.room()
                    if (outcome := reading.take(line)) is not None:
                        self._take(*outcome, names, failures)
                    if reading.too_many:
                        break
        except RequestError as error:
            if error.transient or (error.status and error.status not in GONE):
                raise
            self._relay.note(f"batch {batch.id}: a file of results cannot be read: {error}")
            reading.gone = error.status in GONE
        return reading

    def _take(
        self, name: str, outcome: Response | Failure, names: set[str], failures: dict[str, Failure]
    ) -> None:
        """An answer counts once, and before a failure of the same request."""
        if name not in names or name not in self._pending:
            return
        if isinstance(outcome, Failure):
            failures.setdefault(name, outcome)
            return
        failures.pop(name, None)
        self._health.answered()
        self._put(name, outcome)

    # Ends of requests

    def _is_worth_another(self, name: str, error: RequestError) -> bool:
        """Whether a request that failed goes into another batch: the failure may pass, or has taught how such
        a request is to be written."""
        if self._attempts[name] >= self._rounds or self._health.is_pointless(error):
            return False
        if error.status not in THIS_REQUEST:
            return error.transient
        sent = self._sent.get(name)
        if _digest(body := self._body(name)) == sent:
            self._dialect.learn(error.detail, body)
        return _digest(self._body(name)) != sent

    def _end(self, name: str, error: RequestError) -> None:
        """A request that failed for good."""
        reason = str(RequestFailed(error, max(1, self._attempts[name])))
        self._last_failure = reason
        if error.status in THIS_REQUEST:
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
        *,
        query: dict[str, str] | None = None,
        content: bytes | AsyncIterator[bytes] | None = None,
        headers: dict[str, str] | None = None,
    ) -> R:
        reply = await self._transport.exchange(method, path, query=query, content=content, headers=headers)
        if reply.status != 200:
            raise reply.failure()
        return reply.parse(read)

    async def _insist(self, action: Callable[[], Awaitable[R]]) -> R:
        """What an action that may be repeated gives, after as many tries as it takes."""
        tries = 1
        while True:
            try:
                return await action()
            except RequestError as error:
                if not _may_pass(error, tries, TRIES):
                    raise self._unreachable(error) from error
                self._note_failure(error)
                await self._back_off(error, tries)
            tries += 1

    async def _back_off(self, error: RequestError, tries: int) -> None:
        wait = min(error.wait or 0.0, LONGEST_WAIT_S)
        delay = back_off(tries, overload=error.status in OVERLOADED)
        await asyncio.sleep(wait + min(delay, self._pause_limit))

    def _unreachable(self, error: RequestError) -> ModelUnreachable:
        hint = (
            " Does this server have batches? Without --batch it is asked live." if error.no_such_api else ""
        )
        return ModelUnreachable(f"{error.at(self._shown).rstrip('.')}.{hint}")

    # Words

    def _note_failure(self, error: RequestError) -> None:
        if self._health.is_worth_a_note(error, asyncio.get_running_loop().time()):
            self._relay.note(f"{error.at(self._shown).rstrip('.')}. Trying again.")

    def _show(self, waiting: list[Batch]) -> None:
        """Tell the watcher how far the batches are; nothing, once none is waited for."""
        text = self._described(waiting) if waiting else ""
        self._outbox.call(lambda: self._progress.waiting(text))

    def _described(self, waiting: list[Batch]) -> str:
        """`2 batches (in_progress): 120 of 500 done, 3 failed, 12 min old`"""
        statuses = [self._statuses[batch.id] for batch in waiting if batch.id in self._statuses]
        done, failed = sum(each.done for each in statuses), sum(each.failed for each in statuses)
        states = ", ".join(dict.fromkeys(each.state for each in statuses)) or "submitted"
        number = f"{len(waiting)} batches" if len(waiting) > 1 else f"batch {waiting[0].id}"
        total = sum(len(batch.requests) for batch in waiting)
        failures = f", {failed:,} failed" if failed else ""
        age = _age(min(waiting, key=lambda batch: batch.created))
        return f"{number} ({states}): {done:,} of {total:,} done{failures}, {age} old"


def _may_pass(error: RequestError, failures: int, most: int) -> bool:
    """Whether a call that has failed so often is worth another try."""
    return failures <= (most if error.transient else DOUBTFUL_RETRIES if error.doubtful else 0)


def _file_id(data: bytes) -> str:
    return checked_id(msgspec.json.decode(data, type=_File).id)


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()[:16]


def _temporary() -> IO[bytes]:
    return tempfile.TemporaryFile(prefix="evenkeel-")


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := file.read(2**18):
        yield chunk


def _age(batch: Batch) -> str:
    minutes = max(0.0, time.time() - batch.created) / 60
    return f"{minutes:,.0f} min" if minutes < 120 else f"{minutes / 60:,.0f} h"
