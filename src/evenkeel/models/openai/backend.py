"""The `openai:` backend: any server that speaks the OpenAI protocol, asked many things at once."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import weakref
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

import msgspec
from msgspec import Meta, Struct

from evenkeel.errors import CapabilityError, ModelUnreachable, UsageError
from evenkeel.models.openai import loglikelihood
from evenkeel.models.openai import protocol as wire
from evenkeel.models.openai.background import Outbox, Relay, iterate
from evenkeel.models.openai.endpoint import endpoint
from evenkeel.models.openai.retry import Failed, Standing, Trouble
from evenkeel.models.openai.transport import Call, Client
from evenkeel.options import RUNTIME, identity_options
from evenkeel.run.answers import ESTIMATED_LENGTH
from evenkeel.run.progress import Progress, Silent
from evenkeel.text.token_estimate import estimate_tokens
from evenkeel.types import Capability, Embed, Generate, LogLikelihood, Rank, Request, Response, Sampling

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence

Job: TypeAlias = Generate | LogLikelihood | Rank | list[Embed]
Answer: TypeAlias = tuple[Request, Response]
UnderWay: TypeAlias = dict[tuple[str, str], "asyncio.Future[Response]"]
"""Texts that are being weighed, or were, and may be asked for once more."""

LOGPROBS_KEPT = 1024
SHORT = 3
"""Tokens, as estimated, of a text that may merge wholly into what comes before it."""


class OpenAI:
    """A model behind `/chat/completions`, `/completions` and `/embeddings`."""

    class Options(Struct, frozen=True, kw_only=True):
        base_url: Annotated[
            str | None,
            Meta(
                description="address of the server, up to /v1; else OPENAI_BASE_URL, else OpenAI's own",
                extra=RUNTIME,
            ),
        ] = None
        api_key_env: Annotated[
            str, Meta(description="environment variable that holds the key", extra=RUNTIME)
        ] = "OPENAI_API_KEY"
        concurrency: Annotated[
            int,
            Meta(
                ge=1, description="most requests at once; fewer while the server is overloaded", extra=RUNTIME
            ),
        ] = 64
        timeout: Annotated[float, Meta(gt=0, description="seconds that one try may take", extra=RUNTIME)] = (
            600.0
        )
        retries: Annotated[
            int, Meta(ge=0, description="further tries after a failure that may pass", extra=RUNTIME)
        ] = 8
        embed_batch: Annotated[
            int, Meta(ge=1, description="most texts embedded in one call", extra=RUNTIME)
        ] = 64
        token_field: Annotated[
            str,
            Meta(
                description="field that limits the answer's tokens; max_completion_tokens is found by itself",
                extra=RUNTIME,
            ),
        ] = "max_tokens"
        send_seed: Annotated[
            bool, Meta(description="send a seed, made from the run's seed and the repeat, with every request")
        ] = False
        extra_body: Annotated[
            str, Meta(description="a JSON object whose fields are added to every request's body")
        ] = ""

        def __repr__(self) -> str:
            return "OpenAI.Options(…)"  # a base_url may carry a password

    capabilities: ClassVar[frozenset[Capability]] = frozenset({"generate", "loglikelihood", "embed"})

    def __init__(self, name: str, options: Options | None = None) -> None:
        self._name = name
        self._options = options or self.Options()
        self._extra = _json_object(self._options.extra_body)
        self._to = endpoint(self._options.base_url, self._options.api_key_env, _texts(self._extra))
        self._dialect = wire.Dialect(self._options.token_field)
        self._standing = Standing(self._to.shown)
        self._progress: Progress = Silent()
        self._streams: weakref.WeakSet[Generator[Any, None, None]] = weakref.WeakSet()

    def __repr__(self) -> str:
        return f"OpenAI({self._name!r}, base_url={self._to.shown!r})"

    @property
    def address(self) -> str:
        """Where the model is reached, without credentials; that is no part of what it is."""
        return self._to.shown

    def watch(self, progress: Progress) -> None:
        """Tell this watcher of retries from now on."""
        self._progress = progress

    def identity(self) -> dict[str, Any]:
        # An extra body may hold a key of some kind: its hash tells bodies apart and tells nothing else.
        extra = self._options.extra_body
        return {
            **identity_options(self._options),
            "extra_body": hashlib.sha256(extra.encode()).hexdigest()[:16] if extra else "",
            "spec": f"openai:{self._name}",
        }

    def probe(self, needs: frozenset[Capability]) -> None:
        """Weighing stands or falls with the server's prompt log-probabilities; the rest shows by itself."""
        self._require_key()
        if "loglikelihood" in needs:
            self._find_fault(partial(loglikelihood.fault_in_echo, self._echo_body))

    def probe_logprobs(self, examples: Mapping[str, Sequence[LogLikelihood]]) -> None:
        """The same in the data's languages, by examples of it: a server may spell English and no other."""
        self._find_fault(partial(loglikelihood.fault_in_languages, self._echo_body, examples))

    def _find_fault(self, find: Callable[[Client], Awaitable[str]]) -> None:
        fault = ""

        async def ask(outbox: Outbox[None]) -> None:
            nonlocal fault
            async with self._client(1, outbox) as client:
                fault = await self._found(find, client)

        for _ in iterate(ask):
            pass
        if fault:
            raise CapabilityError(
                f"'openai:{self._name}' at {self._to.shown} cannot weigh a continuation: {fault}. "
                "vLLM and SGLang can, and so can hf: with the model's weights.",
                lacking=frozenset({"loglikelihood"}),
            )

    async def _found(self, find: Callable[[Client], Awaitable[str]], client: Client) -> str:
        try:
            return await find(client)
        except Failed as failure:
            if failure.trouble.transient:
                raise ModelUnreachable(f"{self._to.shown} does not answer. {failure}") from None
            return str(failure)
        except ModelUnreachable as refusal:
            trouble = refusal.__cause__
            # A chat-only server has no such path; a server without such a model says its name.
            if isinstance(trouble, Trouble) and trouble.status == 404 and "model" not in trouble.said.lower():
                return str(trouble)
            raise

    def answer(self, requests: Iterable[Request]) -> Iterator[Answer]:
        self._require_key()
        stream = iterate(partial(self._answer_all, requests))
        self._streams.add(stream)
        return stream

    def close(self) -> None:
        """End what is still under way; the model itself can be used again."""
        for stream in list(self._streams):
            stream.close()

    def _require_key(self) -> None:
        if not self._to.has_credentials and not self._to.local:
            raise UsageError(
                f"No key for {self._to.shown}: set the environment variable {self._options.api_key_env} "
                "(to any word if the server needs none), or name another with api_key_env."
            )

    def _client(self, concurrency: int, outbox: Outbox[Any]) -> Client:
        return Client(
            self._to,
            dialect=self._dialect,
            standing=self._standing,
            relay=Relay(outbox, self._progress),
            concurrency=concurrency,
            timeout=self._options.timeout,
            retries=self._options.retries,
        )

    async def _answer_all(self, requests: Iterable[Request], outbox: Outbox[Answer]) -> None:
        source = _Source(requests, self._options.embed_batch)
        under_way: UnderWay = {}
        async with self._client(self._options.concurrency, outbox) as client:
            workers = [
                asyncio.create_task(self._work(client, source, outbox, under_way))
                for _ in range(self._options.concurrency)
            ]
            try:
                done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
            for worker in done:
                worker.result()
        if source.error is not None:
            raise source.error
        self._standing.ended()

    async def _work(
        self, client: Client, source: _Source, outbox: Outbox[Answer], under_way: UnderWay
    ) -> None:
        """One of the workers that share the stream; each has one job at a time."""
        while True:
            if outbox.full:
                await outbox.room()
            job = source.next()
            if job is None:
                return
            if isinstance(job, list):
                await self._embed(client, job, outbox)
                continue
            if isinstance(job, Rank):
                outbox.put((job, Response(status="error", reason="a server like OpenAI's cannot rank")))
                continue
            try:
                response = await self._answer_one(client, job, under_way)
            except Failed as failure:
                self._fail(failure, [job], outbox)
            else:
                outbox.put((job, response))

    async def _answer_one(
        self, client: Client, job: Generate | LogLikelihood, under_way: UnderWay
    ) -> Response:
        if isinstance(job, LogLikelihood):
            return await self._loglikelihood(client, job, under_way)
        if not job.sampling.length_of or not isinstance(job.prompt, str):
            return await client.send(self._call(job))
        length = await self._length(client, job.prompt, job.sampling.length_of, under_way)
        most = length if length is not None else estimate_tokens(job.sampling.length_of)
        most = max(1, min(job.sampling.max_tokens, most))
        sampling = msgspec.structs.replace(job.sampling, max_tokens=most, length_of="")
        response = await client.send(self._call(msgspec.structs.replace(job, sampling=sampling)))
        # It has the length that it was to have, unless nothing of it can be seen.
        if response.status == "truncated" and response.text:
            response = msgspec.structs.replace(response, status="ok", reason="")
        if response.status == "ok" and length is None:
            response = msgspec.structs.replace(response, reason=ESTIMATED_LENGTH)
        return response

    async def _length(self, client: Client, prompt: str, text: str, under_way: UnderWay) -> int | None:
        """How many tokens `text` has after `prompt`, in the model's own tokenizer; None where none tells.

        A text that is weighed comes back token by token, and so counted. Where that fails, the server still
        counts what it reads: a text's tokens are those of both together less those of the prompt alone.
        """
        with _refusals_aside():
            job = LogLikelihood(prefix=prompt, continuation=text)
            if (logprobs := (await self._loglikelihood(client, job, under_way)).logprobs) is not None:
                return len(logprobs.tokens)
        with _refusals_aside():
            whole = await client.send(self._count(prompt + text))
            before = await client.send(self._count(prompt)) if prompt else None
            if whole is not None and before is not None:
                # A text may merge into the prompt, but only a short one: else the server does not count.
                return whole - before if whole > before or estimate_tokens(text) <= SHORT else None
        return None

    def _count(self, text: str) -> Call[int | None]:
        """How many tokens the server reads in a text."""
        request = Generate(prompt=text, sampling=Sampling(max_tokens=1))
        return Call(wire.COMPLETIONS, self._body(request), lambda data: wire.completion(data)[1])

    async def _loglikelihood(self, client: Client, job: LogLikelihood, under_way: UnderWay) -> Response:
        """LogLikelihood a text once, though it is asked for twice: for itself, and to count its tokens."""
        key = (job.prefix, job.continuation)
        if key in under_way:
            return await under_way.pop(key)
        asked = under_way[key] = asyncio.ensure_future(
            loglikelihood.loglikelihood(client, self._echo_body, job)
        )
        while len(under_way) > LOGPROBS_KEPT:
            under_way.pop(next(iter(under_way)))
        return await asyncio.shield(asked)

    async def _embed(self, client: Client, batch: list[Embed], outbox: Outbox[Answer]) -> None:
        texts = [request.text for request in batch]
        call = Call(
            wire.EMBEDDINGS,
            lambda: wire.embed_body(texts, model=self._name, dialect=self._dialect, extra=self._extra),
            lambda data: wire.read_vectors(data, len(texts)),
        )
        try:
            responses = await client.send(call)
        except Failed as failure:
            if len(batch) > 1 and not failure.trouble.no_contact:
                # One text that the server does not take must not fail its neighbours.
                half = len(batch) // 2
                await self._embed(client, batch[:half], outbox)
                await self._embed(client, batch[half:], outbox)
            else:
                self._fail(failure, batch, outbox)
        else:
            if len(batch) > 1 and responses[0].reason.startswith(wire.MISPLACED):
                for request in batch:  # the only vector of a reply is that of the only text
                    await self._embed(client, [request], outbox)
                return
            for answer in zip(batch, responses, strict=True):
                outbox.put(answer)

    def _fail(self, failure: Failed, requests: Iterable[Request], outbox: Outbox[Answer]) -> None:
        for request in requests:
            outbox.put((request, Response(status="error", reason=str(failure))))
        self._standing.failed(failure)

    def _call(self, request: Generate) -> Call[Response]:
        if isinstance(request.prompt, str):
            return Call(wire.COMPLETIONS, self._body(request), wire.read_completion)
        return Call(wire.CHAT, self._body(request), wire.read_chat)

    def _body(self, request: Generate) -> Callable[[], bytes]:
        return partial(
            wire.generate_body,
            request,
            model=self._name,
            dialect=self._dialect,
            seeded=self._options.send_seed,
            extra=self._extra,
        )

    @property
    def _echo_body(self) -> Callable[[str], bytes]:
        return partial(wire.logprobs_body, model=self._name, dialect=self._dialect, extra=self._extra)


@contextlib.contextmanager
def _refusals_aside() -> Iterator[None]:
    """Pass over a request that fails and is not needed; a server that is out of reach shows at the next."""
    with contextlib.suppress(Failed):
        yield


class _Source:
    """The stream of requests as jobs, read one at a time and only when a worker is free."""

    def __init__(self, requests: Iterable[Request], embed_batch: int) -> None:
        self._requests = iter(requests)
        self._embed_batch = embed_batch
        self._held: Request | None = None
        self._ended = False
        self.error: Exception | None = None

    def next(self) -> Job | None:
        """A single request, or as many texts to embed as go into one call; None at the end."""
        request = self._pull()
        if not isinstance(request, Embed):
            return request
        batch = [request]
        while len(batch) < self._embed_batch:
            more = self._pull()
            if not isinstance(more, Embed):
                self._held = more
                break
            batch.append(more)
        return batch

    def _pull(self) -> Request | None:
        if self._held is not None:
            held, self._held = self._held, None
            return held
        if self._ended:
            return None
        try:
            return next(self._requests)
        except StopIteration:
            self._ended = True
        except Exception as error:  # noqa: BLE001  # raised again when what is under way has been answered
            self._ended, self.error = True, error
        return None


def _json_object(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any]) if text else {}
    except msgspec.ValidationError:
        raise UsageError("extra_body is not a JSON object: write '{\"name\": value}'.") from None
    except (msgspec.DecodeError, RecursionError):
        raise UsageError("extra_body is not JSON: write '{\"name\": value}'.") from None


def _texts(value: Any) -> Iterator[str]:
    """All texts inside a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)
