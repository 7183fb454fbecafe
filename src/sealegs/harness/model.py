"""What every model offers, whatever backend it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from sealegs.types import Capability, LogLikelihood, Request, Response

if TYPE_CHECKING:
    from sealegs.harness.gate import RequestGate


class Model(Protocol):
    """What every backend offers. Making one is cheap: weights and connections come with the first request."""

    capabilities: frozenset[Capability]

    def identity(self) -> dict[str, Any]:
        """All that decides the answers: spec, identity options, revision or file hash. Never a secret."""

    def probe(self, needs: frozenset[Capability]) -> None:
        """Raise CapabilityError where a needed capability turns out to be unsound here."""

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        """Answer a stream of requests, each as soon as it is done, in any order.

        The stream is read only as far ahead as the backend can use. A request that fails for good comes
        back with status `error`; only what makes every further call pointless is raised.
        """

    def close(self) -> None:
        """Give back memory, threads and connections."""


@runtime_checkable
class HasNotes(Protocol):
    """A model that has something to say beside the figures of what it answered."""

    def notes(self) -> list[str]:
        """What was found out about its answers while it gave them; nothing before the first."""


@runtime_checkable
class SupportsPromptLogprobs(Protocol):
    """A model whose log-probabilities come from elsewhere, and may be sound in one language and no other."""

    def probe_logprobs(self, examples: Mapping[str, Sequence[LogLikelihood]]) -> None:
        """Raise CapabilityError where the examples of a language, taken from the data, cannot be scored."""


@runtime_checkable
class ServedModel(Protocol):
    """A model on a server, which may be sent another number of tries than there are requests."""

    addresses: list[str]
    """Where it is reached, without credentials; that is no part of its identity."""

    def count_with(self, gate: RequestGate, role: str) -> None:
        """Have this gate count, for a role, every try from now on but the first of an admitted request."""

    def refused(self) -> list[str]:
        """The settings that its server refused, and that are left out since: `temperature`, `top_p`."""


def addresses_of(model: Model) -> list[str]:
    """Where a model is reached; nothing for one that computes here."""
    return list(model.addresses) if isinstance(model, ServedModel) else []


def identity_differences(
    first: Mapping[str, Any], second: Mapping[str, Any], here: str, there: str
) -> list[str]:
    """Where the identities of two models differ, with words for where each is."""
    return [
        f"{name}: {first.get(name)} {here}, {second.get(name)} {there}"
        for name in {**first, **second}
        if first.get(name) != second.get(name)
    ]
