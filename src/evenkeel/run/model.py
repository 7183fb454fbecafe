"""One file per backend, and the map from a model spec to the file that serves it.

A spec is `scheme` or `scheme:name`. A backend is imported when its spec is first asked for, so that
nobody pays for torch who talks to a server.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from evenkeel.errors import UsageError
from evenkeel.messages import suggestion
from evenkeel.options import describe, parse
from evenkeel.text.token_estimate import TokenCounter
from evenkeel.types import Capability, LogLikelihood, ModelRef, Request, Response


class Model(Protocol):
    """What every backend offers. Making one is cheap: weights and connections come with the first request."""

    capabilities: frozenset[Capability]

    def identity(self) -> dict[str, Any]:
        """All that decides the answers: spec, lasting options, revision or file hash. Never a secret."""

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
class Noted(Protocol):
    """A model that has something to say beside the figures of what it answered."""

    def notes(self) -> list[str]:
        """What was found out about its answers while it gave them; nothing before the first."""


@runtime_checkable
class Echoing(Protocol):
    """A model whose log-probabilities come from elsewhere, and may be sound in one language and no other."""

    def probe_logprobs(self, examples: Mapping[str, Sequence[LogLikelihood]]) -> None:
        """Raise CapabilityError where the examples of a language, taken from the data, cannot be weighed."""


class Backend(NamedTuple):
    module: str
    cls: str
    named: bool
    """Whether the spec carries a name after the colon."""
    about: str


BACKENDS: dict[str, Backend] = {
    "embedded": Backend(
        "embedded", "Embedded", False, "SmolLM2-135M-Instruct, bundled: generate, log-likelihood"
    ),
    "embedded-embedder": Backend("sbert", "EmbeddedEmbedder", False, "all-MiniLM-L6-v2, bundled: embed"),
    "hf": Backend("hf", "HuggingFace", True, "any causal model of transformers: generate, log-likelihood"),
    "openai": Backend(
        "openai.backend", "OpenAI", True, "any OpenAI-like server: generate, log-likelihood, embed"
    ),
    "sbert": Backend("sbert", "SentenceTransformer", True, "any model of sentence-transformers: embed, rank"),
    "replay": Backend("replay", "Replay", True, "answers recorded earlier: generate, log-likelihood"),
}


def load_model(spec: str, **args: Any) -> Model:
    """The model that a spec names: `load_model("hf:path/to/model", dtype="bfloat16")`.

    model = ek.load_model("embedded")
    asked = ek.Generate(prompt=(ek.Message("user", "Hello!"),), sampling=ek.Sampling(max_tokens=16))
    [(request, response)] = model.answer([asked])
    model.close()
    """
    options = check_spec(spec, args)
    scheme, _, name = spec.partition(":")
    cls = backend_class(scheme)
    model: Model = cls(name, options) if BACKENDS[scheme].named else cls(options)
    return model


def check_spec(spec: str, args: Mapping[str, Any]) -> Struct:
    """The backend's options for a spec and its arguments, or a UsageError that says what is known."""
    for text in (spec, *(f"{key}={value}" for key, value in args.items())):
        if not _is_unicode(text):
            shown = text.partition("=")[0].encode("ascii", "backslashreplace").decode()
            raise UsageError(f"'{shown}' is not valid UTF-8.")
    scheme, colon, name = spec.partition(":")
    backend = BACKENDS.get(scheme)
    if backend is None or bool(colon and name) != backend.named:
        hint = "" if scheme in BACKENDS else suggestion(scheme, BACKENDS)
        raise UsageError(f"unknown model '{spec}'.{hint} A model is one of: {', '.join(spec_forms())}.")
    options: type[Struct] = backend_class(scheme).Options
    return parse(options, args, of=f"the model '{spec}'")


def _is_unicode(text: str) -> bool:
    """False where a command line's bytes were no UTF-8, so that Python keeps them as halves of pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def open_model(ref: ModelRef, *, concurrency: int | None = None) -> Model:
    """`load_model` for a ref; the ceiling on requests at once goes to backends that have one."""
    args = dict(ref.args)
    scheme = ref.spec.partition(":")[0]
    if concurrency is not None and scheme in BACKENDS and "concurrency" in option_names(scheme):
        args.setdefault("concurrency", concurrency)
    return load_model(ref.spec, **args)


def backend_class(scheme: str) -> Any:
    backend = BACKENDS[scheme]
    return getattr(importlib.import_module(f"evenkeel.models.{backend.module}"), backend.cls)


def tokenizer(spec: str) -> Callable[[str], list[int]]:
    """The tokenizer of a model without its weights: `embedded` or `hf:ID-or-path`.

    It gives the tokens of a text as the model would read it, a start token included where it has one.
    """
    scheme, _, name = spec.partition(":")
    if spec == "embedded":
        from evenkeel.models import embedded

        name = str(embedded.folder())
    elif scheme != "hf" or not name:
        raise UsageError(f"'{spec}' is no tokenizer: write embedded or hf:ID-or-path.")
    from evenkeel.models import hf

    return hf.tokenizer(name)


def token_counter(spec: str) -> TokenCounter:
    """Counts with the tokenizer of a model; a start token does not count."""
    tokenise = tokenizer(spec)
    start = len(tokenise(""))
    return TokenCounter(spec, lambda text: len(tokenise(text)) - start)


def option_names(scheme: str) -> list[str]:
    options: type[Struct] = backend_class(scheme).Options
    return [option.name for option in describe(options)]


def spec_forms() -> list[str]:
    return [f"{scheme}:NAME" if backend.named else scheme for scheme, backend in BACKENDS.items()]


def parse_args(pairs: Iterable[str]) -> Mapping[str, str]:
    """`key=value` strings of the command line as a mapping."""
    args = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"'{key}' is not a model argument: write key=value.")
        args[key] = value
    return args
