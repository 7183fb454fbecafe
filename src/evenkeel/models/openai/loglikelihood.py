"""Log-probabilities over a client: of a text, by the published rule, and whether a server's are sound."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from evenkeel.models.openai import logprobs as echo
from evenkeel.models.openai import protocol as wire
from evenkeel.models.openai.retry import Failed
from evenkeel.models.openai.transport import Call, Client
from evenkeel.types import LogLikelihood, Response

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Body: TypeAlias = "Callable[[str], bytes]"
"""What is sent to have a text echoed."""

PROBE = "The capital of France is Paris, and the capital of Italy is Rome."


async def loglikelihood(client: Client, body: Body, job: LogLikelihood, *, prove: bool = False) -> Response:
    """The log-probabilities of a continuation, by the published rule; if wanted, of a text that is sound."""
    text, prefix = job.prefix + job.continuation, job.prefix
    whole = await client.send(
        Call(
            wire.COMPLETIONS,
            partial(body, text),
            lambda data: echo.read_loglikelihood(data, job, prove=prove),
        )
    )
    if isinstance(whole, Response):
        return whole
    before = await client.send(
        Call(wire.COMPLETIONS, partial(body, prefix), lambda data: echo.read_prefix(data, prefix))
    )
    return before if isinstance(before, Response) else echo.loglikelihood_after(before, whole, job)


async def fault_in_echo(body: Body, client: Client) -> str:
    """What is wrong with the server's prompt log-probabilities; nothing if they are sound."""

    def fault(data: bytes) -> str:
        try:
            echo.check_echo(echo.read_echo(data, PROBE))
        except echo.Unsound as why:
            return str(why)
        return ""

    return await client.send(Call(wire.COMPLETIONS, partial(body, PROBE), fault))


async def fault_in_languages(
    body: Body, examples: Mapping[str, Sequence[LogLikelihood]], client: Client
) -> str:
    """A single text may be odd, and fails alone: a language fails where most of its examples do."""
    for lang, requests in examples.items():
        faults = [why for request in requests if (why := await _fault_in(client, body, request))]
        if 2 * len(faults) > len(requests):
            return f"{faults[0]} (for text in '{lang}')"
    return ""


async def _fault_in(client: Client, body: Body, request: LogLikelihood) -> str:
    try:
        response = await loglikelihood(client, body, request, prove=True)
    except Failed as failure:  # the server echoes English by now: what fails is this text
        return str(failure)
    return "" if response.status == "ok" else response.reason
