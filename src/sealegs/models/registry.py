"""Backends by the scheme of a model's spec: built in, or of other packages (entry points `sealegs.models`).

A spec is `scheme` or `scheme:name`, and may carry arguments: `openai:NAME?base_url=http://127.0.0.1:8000/v1`.
The name of a preset (`models/presets.py`) is a scheme too: `groq:NAME` is a model of the `openai` backend.
A backend is imported when its spec is first asked for, so that nobody pays for torch who talks to a server.
"""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from sealegs.errors import UsageError, suggestion
from sealegs.files.cache import expanded
from sealegs.harness.model import Model
from sealegs.harness.plugins import entry_points, load, load_plugin, origin, warn
from sealegs.models.presets import Preset, find_preset, presets
from sealegs.options import describe, parse
from sealegs.text.token_estimate import TokenCounter
from sealegs.types import ModelRef

if TYPE_CHECKING:
    from importlib import metadata

    from sealegs.models.openai.endpoint import Destination
    from sealegs.models.tokenizer_files import TextTokenizer

GROUP = "sealegs.models"
ARGUMENTS = re.compile(r"\w+(=|&|$)")
"""How the arguments of a spec begin; any other `?` is part of a name."""


class Backend(NamedTuple):
    target: str
    """`module:class`"""
    named: bool
    """Whether the spec carries a name after the colon."""
    about: str
    computes: bool = True
    """Whether a model computes in the process that opens it; a server or a file answers otherwise."""


BACKENDS: dict[str, Backend] = {
    "embedded": Backend(
        "sealegs.models.embedded:Embedded",
        False,
        "SmolLM2-135M-Instruct, bundled: generate, log-likelihood, probability of a string, rank",
    ),
    "embedded-embedder": Backend(
        "sealegs.models.embedded:EmbeddedEmbedder", False, "all-MiniLM-L6-v2, bundled: embed"
    ),
    "hf": Backend(
        "sealegs.models.hf:HuggingFace",
        True,
        "any causal model of transformers: generate, log-likelihood, probability of a string, rank",
    ),
    "openai": Backend(
        "sealegs.models.openai.backend:OpenAI",
        True,
        "any OpenAI-compatible server: generate, log-likelihood, embed, rank",
        computes=False,
    ),
    "sbert": Backend(
        "sealegs.models.sbert:SentenceTransformer",
        True,
        "any model of sentence-transformers: embed, rank",
    ),
    "replay": Backend(
        "sealegs.models.replay:Replay",
        True,
        "answers recorded earlier: generate, log-likelihood",
        computes=False,
    ),
}


def backends() -> dict[str, Backend]:
    """Every backend by its scheme; those of plug-ins are loaded to be described."""
    known = dict(BACKENDS)
    for scheme, point in _plugins().items():
        try:
            known[scheme] = _described(point)
        except UsageError as error:
            warn(str(error))
    return known


def backend(scheme: str) -> Backend | None:
    """The backend of a scheme; None where there is none."""
    if scheme in BACKENDS:
        return BACKENDS[scheme]
    if (preset := find_preset(scheme)) is not None:
        return BACKENDS["openai"]._replace(about=preset.title)
    point = _plugins().get(scheme)
    return _described(point) if point else None


def on_server(spec: str) -> bool:
    """Whether a model is reached through the OpenAI protocol, at an address that can be given."""
    scheme = split_spec(spec)[0].partition(":")[0]
    return scheme == "openai" or find_preset(scheme) is not None


def preset_of(spec: str) -> Preset | None:
    """The preset of a spec."""
    return find_preset(split_spec(spec)[0].partition(":")[0])


def called_hosts(ref: ModelRef) -> list[Destination]:
    """Every host that the requests to a model go to, with the key that they carry there; none for a model on
    this machine."""
    from sealegs.models.openai.endpoint import destinations

    if not on_server(ref.spec):
        return []
    args = {**ref.args, **split_spec(ref.spec)[1]}
    return destinations(args.get("base_url"), args.get("api_key_env"), preset_of(ref.spec))


def key_words(ref: ModelRef) -> list[str]:
    """Which keys the requests to a model carry, and which environment variables lack one, in words."""
    places = called_hosts(ref)
    unset = dict.fromkeys(place.variable for place in places if place.lacks_key)
    return [
        *(f"{place.variable} goes to {place.host}" for place in places if place.key),
        *(f"the environment variable {name} is not set" for name in unset),
    ]


def load_model(spec: str, **args: Any) -> Model:
    """The model that a spec names: `load_model("hf:path/to/model", dtype="bfloat16")`.

    model = sl.load_model("embedded")
    request = sl.Generate(prompt=(sl.Message("user", "Hello!"),), sampling=sl.Sampling(max_tokens=16))
    [(request, response)] = model.answer([request])
    model.close()
    """
    options = check_spec(spec, args)
    bare, in_spec = split_spec(spec)
    scheme, colon, name = bare.partition(":")
    cls = backend_class(scheme)
    model: Model
    if on_server(spec):
        model = cls(name, options, find_preset(scheme), server_in_spec="base_url" in in_spec)
    else:
        model = cls(name, options) if colon else cls(options)
    return model


def check_spec(spec: str, args: Mapping[str, Any]) -> Struct:
    """The backend's options for a spec and its arguments, or a UsageError that says what is known."""
    for text in (spec, *(f"{key}={value}" for key, value in args.items())):
        if not _is_unicode(text):
            shown = text.partition("=")[0].encode("ascii", "backslashreplace").decode()
            raise UsageError(f"'{shown}' is not valid UTF-8.")
    bare, in_spec = split_spec(spec)
    scheme, colon, name = bare.partition(":")
    entry, preset = backend(scheme), find_preset(scheme)
    if preset is not None and not name:
        preset.spec(name)  # says what is missing
    if entry is None or bool(colon and name) != entry.named:
        known = backends()
        hint = "" if scheme in known else _meant(bare, [*known, *presets()])
        forms = [f"{scheme}:NAME" if entry.named else scheme for scheme, entry in known.items()]
        forms += [f"{name}:NAME" for name in presets() if name not in known]
        raise UsageError(f"unknown model '{spec}'.{hint} Available: {', '.join(forms)}.")
    _refuse_keys(bare, {key: str(value) for key, value in args.items() if value is not None})
    options: type[Struct] = backend_class(scheme).Options
    return parse(options, {**args, **in_spec}, of=f"the model '{bare}'", flag="--model-arg")


def _meant(bare: str, schemes: Iterable[str]) -> str:
    """` Did you mean 'openai:gpt-4o-mini'?`: a name without its scheme, or a scheme that is misspelt."""
    from sealegs.models.prices import price_table

    family = re.match("[a-z]+-", bare)
    for provider, listing in price_table().providers.items():
        if family and any(name.startswith(family[0]) for name in listing.models):
            return f" Did you mean '{provider}:{bare}'?"
    if "/" in bare and ":" not in bare:
        return f" Did you mean 'hf:{bare}'?"
    scheme, colon, name = bare.partition(":")
    return suggestion(scheme, schemes, behind=colon + name)


def split_spec(spec: str) -> tuple[str, dict[str, str]]:
    """A spec without its arguments, and the arguments that come after `?`, which are URL-encoded."""
    bare, mark, query = spec.partition("?")
    if not mark or not ARGUMENTS.match(query):
        return spec, {}
    args: dict[str, str] = {}
    try:
        pairs = urllib.parse.parse_qsl(query, keep_blank_values=True, strict_parsing=True)
    except ValueError:
        raise UsageError(f"the model '{bare}': write its arguments as ?KEY=VALUE&KEY=VALUE.") from None
    for key, value in pairs:
        if key in args:
            raise UsageError(f"the model '{bare}': the argument '{key}' is given twice.")
        args[key] = value
    _refuse_keys(bare, args)
    return bare, args


def with_args(spec: str, args: Mapping[str, str]) -> str:
    """A spec with further arguments."""
    query = urllib.parse.urlencode(args)
    return f"{spec}{'&' if '?' in spec else '?'}{query}" if query else spec


def _refuse_keys(bare: str, args: Mapping[str, str]) -> None:
    """Specs and options are stored and shown: a key has no place in one."""
    variable, option, part = args.get("api_key_env") or "_", "api_key_env", ""
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", variable) and variable not in os.environ:
        part = "anything but the name of an environment variable"
    elif "base_url" in args or "extra_body" in args:
        from sealegs.models.openai.endpoint import key_in_address, key_in_body
        from sealegs.models.openai.options import json_object

        option, part = "base_url", key_in_address(args.get("base_url") or "")
        if not part:
            option, part = "extra_body", key_in_body(json_object(args.get("extra_body") or ""))
    if part:
        raise UsageError(
            f"the model '{bare}': {option} may not hold {part}, because it is stored with the run. Put the "
            "key into an environment variable and name that: api_key_env=NAME; NO_KEY sends none."
        )


def open_model(ref: ModelRef, *, concurrency: int | None = None) -> Model:
    """`load_model` for a ref; the ceiling on requests at once goes to backends that have one."""
    args = dict(ref.args)
    bare, in_spec = split_spec(ref.spec)
    scheme = bare.partition(":")[0]
    if (
        "concurrency" not in in_spec
        and concurrency is not None
        and backend(scheme)
        and "concurrency" in runtime_options(scheme)
    ):
        args.setdefault("concurrency", concurrency)
    return load_model(ref.spec, **args)


def backend_class(scheme: str) -> Any:
    if scheme in BACKENDS:
        return load(BACKENDS[scheme].target)
    if find_preset(scheme) is not None:
        return load(BACKENDS["openai"].target)
    return _plugin_class(_plugins()[scheme])


def runtime_options(scheme: str) -> dict[str, bool]:
    """The options of a backend, each with whether it changes only how fast or where."""
    return {option.name: option.runtime for option in describe(backend_class(scheme).Options)}


def tokenizer(spec: str) -> TextTokenizer:
    """The tokenizer of a model without its weights, or one alone: `embedded`, `hf:ID-or-path`, a file or
    folder that holds a tokenizer.

    It gives the tokens of a text as the model would read it, a start token included where it has one.
    """
    scheme, _, name = spec.partition(":")
    if not backend(scheme) and expanded(spec).exists():
        scheme, name = "hf", spec
    entry = backend(scheme)
    make = getattr(backend_class(scheme), "tokenizer", None) if entry else None
    if entry is None or make is None or bool(name) != entry.named:
        raise UsageError(
            f"'{spec}' has no tokenizer that can be read alone: give embedded, hf:ID-or-path, the path of a "
            "tokenizer (tokenizer.json, tekken.json, a SentencePiece model, a .tiktoken file, a folder with "
            "one)."
        )
    tokenise: TextTokenizer = make(name)
    return tokenise


def token_counter(spec: str) -> TokenCounter:
    """Counts with the tokenizer of a model; a start token does not count."""
    tokenise = tokenizer(spec)
    start = len(tokenise(""))
    return TokenCounter(spec, lambda text: len(tokenise(text)) - start)


def parse_args(pairs: Iterable[str]) -> Mapping[str, str]:
    """`key=value` strings of the command line as a mapping."""
    args = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"'{key}' is not an argument: write key=value.")
        args[key] = value
    return args


def _is_unicode(text: str) -> bool:
    """False where a command line's bytes were not UTF-8, so that Python keeps them as halves of pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plugins() -> dict[str, metadata.EntryPoint]:
    return entry_points(GROUP, frozenset(BACKENDS) | frozenset(presets()))


def _plugin_class(point: metadata.EntryPoint) -> Any:
    cls = load_plugin(point)
    members = ("Options", "capabilities", "identity", "probe", "answer", "close")
    if missing := [member for member in members if not hasattr(cls, member)]:
        raise UsageError(f"{origin(point)} is not a backend: it lacks {', '.join(missing)}.")
    return cls


def _described(point: metadata.EntryPoint) -> Backend:
    cls = _plugin_class(point)
    about = (cls.__doc__ or point.value).strip().partition("\n")[0]
    return Backend(point.value, getattr(cls, "named", True), about, getattr(cls, "computes", True))
