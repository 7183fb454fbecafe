"""The `openai:` backend: any server that speaks the OpenAI protocol, asked many things at once."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sealegs.errors import BudgetReached, CapabilityError, ModelUnreachable, UsageError
from sealegs.harness.gate import NO_LIMITS
from sealegs.harness.progress import Progress
from sealegs.models.openai.background import Outbox, Relay, iterate
from sealegs.models.openai.dialect import Dialect
from sealegs.models.openai.endpoint import endpoints
from sealegs.models.openai.interfaces import (
    CHATS,
    RESPONSES,
    TEXTS,
    Batch,
    Interface,
    batch_call,
    interface_of,
)
from sealegs.models.openai.logprobs import Examples, loglikelihood, probe_problem
from sealegs.models.openai.options import OpenAIOptions, json_object
from sealegs.models.openai.responses import ONLY_HERE
from sealegs.models.openai.retry import Call, CallFailed, Client, Fate, fate_of
from sealegs.models.openai.servers import Server, ServerHealth
from sealegs.models.presets import ANY_SERVER, batch_preset
from sealegs.options import identity_options
from sealegs.types import (
    Capability,
    Embed,
    Generate,
    LogLikelihood,
    Rank,
    Request,
    Response,
    StringLikelihood,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sealegs.harness.gate import RequestGate
    from sealegs.models.openai.batches.session import BatchAccess
    from sealegs.models.presets import Feature, Preset

OPENAI_HOST = "api.openai.com"
NO_CHATS = "The model takes no chats: it was asked by OpenAI's Responses interface."
NEEDED: dict[Capability, tuple[Feature, ...]] = {
    "loglikelihood": ("completions", "prompt_logprobs"),
    "embed": ("embeddings",),
    "rank": ("rerank",),
}
"""What a server must have for a capability."""

IN_BATCHES = (Embed, Rank)
Job: TypeAlias = Generate | LogLikelihood | StringLikelihood | Batch
Answer: TypeAlias = tuple[Request, Response]


class OpenAI:
    """A model behind `/chat/completions`, `/completions`, `/embeddings` and `/rerank`."""

    Options: ClassVar[type[Struct]] = OpenAIOptions
    ALL: ClassVar[frozenset[Capability]] = frozenset({"generate", "loglikelihood", "embed", "rank"})
    capabilities: frozenset[Capability] = ALL

    def __init__(
        self,
        name: str,
        options: OpenAIOptions | None = None,
        preset: Preset | None = None,
        *,
        server_in_spec: bool = False,
    ) -> None:
        self._options = options = options or OpenAIOptions()
        several = endpoints(options.base_url, options.api_key_env, preset=preset)
        self._preset = preset = preset or ANY_SERVER
        self._extra = {**preset.extra_body, **json_object(options.extra_body)}
        lacking = [kind for kind, needs in NEEDED.items() if not preset.supports_all(*needs)]
        self.capabilities = self.ALL.difference(lacking)
        self._name = name
        self._dialect = Dialect(name, options, self._extra, preset)
        self._interface = self._usual_interface = interface_of(preset)
        self.addresses = [each.shown for each in several]
        """Where the model is reached, without credentials; that is no part of its identity."""
        self._health = ServerHealth(", ".join(self.addresses), several[0].hint() if len(several) == 1 else "")
        self._servers = [Server(each, options.concurrency) for each in several]
        self._progress = Progress()
        self._server_in_spec = server_in_spec
        """Whether the address is part of the model's identity: its spec names the server."""
        self._gate, self._role = NO_LIMITS, ""

    def __repr__(self) -> str:
        return f"OpenAI({self._name!r}, base_url={', '.join(self.addresses)!r})"

    @property
    def spec(self) -> str:
        """The model as it is named, without arguments."""
        return f"{self._preset.name}:{self._name}"

    def notes(self) -> list[str]:
        learnt = self._interface is not self._usual_interface
        return [*([NO_CHATS] if learnt else ()), *self._dialect.notes()]

    def refused(self) -> list[str]:
        return self._dialect.refused()

    def watch(self, progress: Progress) -> None:
        self._progress = progress

    def count_with(self, gate: RequestGate, role: str) -> None:
        self._gate, self._role = gate, role

    def identity(self) -> dict[str, Any]:
        # An extra body may hold a key of some kind: its hash distinguishes bodies and shows nothing else.
        extra, addresses = self._options.extra_body, ",".join(self.addresses)
        if self._preset.extra_body:
            extra = msgspec.json.encode(self._extra, order="sorted").decode()
        options = identity_options(self._options)
        return {
            **{name: value for name, value in options.items() if name == "send_seed" or value},
            "extra_body": hashlib.sha256(extra.encode()).hexdigest()[:16] if extra else "",
            "spec": f"{self.spec}{f'?base_url={addresses}' if self._server_in_spec else ''}",
        }

    def probe(self, needs: frozenset[Capability]) -> None:
        """Log-likelihoods need sound prompt log-probabilities of the server; the rest shows by itself."""
        self._require_key()
        if "loglikelihood" in needs:
            self._require_logprobs()

    def probe_logprobs(self, examples: Mapping[str, Sequence[LogLikelihood]]) -> None:
        """The same in the data's languages, by examples of it: a server may spell English and no other."""
        self._require_logprobs(examples)

    def _require_logprobs(self, examples: Examples | None = None) -> None:
        """Try out every server. One that does not answer is not asked later either, unless all are so."""
        for server in list(self._servers):
            try:
                [problem] = iterate(partial(self._probe_server, server, examples))
            except ModelUnreachable as error:
                if len(self._servers) == 1:
                    raise
                self._servers.remove(server)
                self._progress.note(f"{str(error).rstrip('.')}. It is left out of this run.")
                continue
            if problem:
                raise CapabilityError(
                    f"'{self.spec}' at {server.shown} cannot give log-likelihoods: {problem}. "
                    "vLLM and SGLang can, and so can hf: with the model's weights.",
                    lacking=frozenset({"loglikelihood"}),
                )

    async def _probe_server(self, server: Server, examples: Examples | None, outbox: Outbox[str]) -> None:
        async with aclosing(self._client([server], outbox)) as client:
            outbox.put(await probe_problem(client, self._dialect, examples, server.shown))

    def batch_access(self) -> BatchAccess | None:
        """What asking this model by batches needs; None where its provider has none."""
        from sealegs.models.openai.batches.protocols import PROTOCOLS
        from sealegs.models.openai.batches.session import BatchAccess

        options, preset = self._options, batch_preset(self._preset.name)
        if preset is None:
            return None
        endpoint = self._servers[0].endpoint
        if len(self._servers) > 1:
            raise UsageError(f"--batch goes with one server, and '{self.spec}' has {len(self._servers)}.")
        if endpoint.url("").host == OPENAI_HOST:
            self._dialect.use_completion_tokens()  # all its models take them, and some nothing else
        return BatchAccess(
            PROTOCOLS[preset.batches],
            endpoint,
            self._dialect,
            options.timeout,
            options.retries,
            preset.max_temperature,
        )

    def answer(self, requests: Iterable[Request]) -> Iterator[Answer]:
        self._require_key()
        return iterate(partial(self._answer_all, requests))

    def close(self) -> None:
        """Nothing to give back: connections are closed, and the thread ends, with each stream of answers."""

    def _require_key(self) -> None:
        for server in self._servers:
            server.endpoint.require_key()

    def _client(self, servers: Sequence[Server], outbox: Outbox[Any]) -> Client:
        return Client(
            servers,
            health=self._health,
            dialect=self._dialect,
            relay=Relay(outbox, self._progress),
            gate=self._gate,
            role=self._role,
            timeout=self._options.timeout,
            retries=self._options.retries,
        )

    async def _answer_all(self, requests: Iterable[Request], outbox: Outbox[Answer]) -> None:
        jobs = _in_batches(requests, self._options.embed_batch)
        errors: list[Exception] = []
        """Why the stream is read no further; raised when what is under way has been answered."""
        at_once = self._options.concurrency * len(self._servers)
        async with aclosing(self._client(self._servers, outbox)) as client:
            workers = [asyncio.create_task(self._work(client, jobs, errors, outbox)) for _ in range(at_once)]
            try:
                done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
            for worker in done:
                worker.result()
        if errors:
            raise errors[0]

    async def _work(
        self, client: Client, jobs: Iterator[Job], errors: list[Exception], outbox: Outbox[Answer]
    ) -> None:
        """One of the workers that share the stream; each has one job at a time."""
        while True:
            await outbox.room()
            try:
                job = None if errors else next(jobs, None)
            except Exception as error:  # noqa: BLE001  # of the stream's own
                errors.append(error)
                return
            if job is None:
                return
            try:
                if isinstance(job, list):
                    await self._answer_batch(client, job, outbox)
                else:
                    response = await self._answer_one(client, job)
                    for server in self._servers:
                        response = server.endpoint.redacted.in_response(response)
                    outbox.put((job, response))
                    del response  # it would be held until the next one comes
            except CallFailed as failure:
                self._fail(failure, job if isinstance(job, list) else [job], outbox, client)
            except BudgetReached as error:  # what the other workers have under way is answered first
                errors.append(error)
            else:
                # The answers that have come are handed over before the next is asked for, and what has come
                # unasked on the connection is seen before it is used again.
                await asyncio.sleep(0)

    async def _answer_one(
        self, client: Client, request: Generate | LogLikelihood | StringLikelihood
    ) -> Response:
        if isinstance(request, StringLikelihood):
            raise UsageError("a server cannot give the probability of a string.")
        if isinstance(request, LogLikelihood):
            return await loglikelihood(client, self._dialect, request)
        interface = TEXTS if isinstance(request.prompt, str) else self._interface
        try:
            return await client.send(self._call(request, interface))
        except CallFailed as failure:
            if interface is not CHATS or not ONLY_HERE.search(failure.error.detail):
                raise
        self._interface = RESPONSES  # from now on: the model has no chats
        return await client.send(replace(self._call(request, RESPONSES), is_admitted=False))

    def _call(self, request: Generate, interface: Interface) -> Call[Response]:
        def body() -> bytes:
            if interface is TEXTS and not self._preset.supports_all("completions"):
                raise CapabilityError(
                    f"'{self.spec}' answers chats and does not continue plain texts, which this needs: "
                    f"{self._preset.title} has no /completions. vLLM, SGLang and hf: do.",
                    lacking=frozenset({"generate"}),
                )
            return self._dialect.generate_body(request, interface)

        def read(data: bytes) -> Response:
            self._dialect.confirm(request.sampling, data)
            return interface.read(data)

        return Call(interface.path, body, read)

    async def _answer_batch(self, client: Client, batch: Batch, outbox: Outbox[Answer]) -> None:
        try:
            responses = await client.send(batch_call(self._dialect, batch))
            for answer in zip(batch, responses, strict=True):
                outbox.put(answer)
        except CallFailed as failure:
            if len(batch) == 1 or fate_of(failure.error) is not Fate.FAIL:
                self._fail(failure, batch, outbox, client)
                return
            # One text that the server does not take must not fail its neighbours; a server that fails does.
            half = len(batch) // 2
            for part in (batch[:half], batch[half:]):
                await self._answer_batch(client, part, outbox)

    def _fail(
        self, failure: CallFailed, requests: Sequence[Request], outbox: Outbox[Answer], client: Client
    ) -> None:
        for request in requests:
            outbox.put((request, Response(status="error", reason=str(failure))))
        self._health.failed(
            failure.error,
            str(failure),
            server_at_fault=fate_of(failure.error) is not Fate.FAIL,
            open_calls=client.open_calls,
        )


def _in_batches(requests: Iterable[Request], batch_size: int) -> Iterator[Job]:
    """Each request alone, or as many texts to embed, or to rank for one query, as go into one call."""
    batch: Batch = []
    for request in requests:
        if batch and (not isinstance(request, IN_BATCHES) or _query(request) != _query(batch[0])):
            yield batch
            batch = []
        if not isinstance(request, IN_BATCHES):
            yield request
            continue
        batch.append(request)
        if len(batch) == batch_size:
            yield batch
            batch = []
    if batch:
        yield batch


def _query(request: Embed | Rank) -> str | None:
    return request.query if isinstance(request, Rank) else None
