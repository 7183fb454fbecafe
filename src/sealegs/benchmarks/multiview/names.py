"""Methods by name: `[NAME=]KIND[:SPEC[?KEY=VALUE&…]][+OPTION…]`.

Arguments after `?` are URL-encoded. Those that a kind of method knows (a judge's temperature) are its
settings; all others go to the model's backend, which checks them.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from sealegs.errors import OptionError, UsageError, suggestion
from sealegs.files.package_data import read_json
from sealegs.models.registry import backend, parse_args, runtime_options, split_spec, with_args
from sealegs.options import parse
from sealegs.types import Capability

ALIAS = re.compile(r"(\w[\w .-]*)=(.+)", re.DOTALL)


class MethodSettings(Struct, frozen=True, kw_only=True):
    """What a method itself can be given, beside its model."""

    temperature: Annotated[float, Meta(ge=0, le=2)] = 0.0
    max_tokens: Annotated[int, Meta(ge=1)] | None = None


class MethodKind(NamedTuple):
    """What a kind of method needs and can be given."""

    needs: Capability | None
    """Of the model that is named first."""
    options: tuple[str, ...] = ()

    @property
    def settings(self) -> tuple[str, ...]:
        return MethodSettings.__struct_fields__ if self.needs == "generate" else ()


KINDS = {
    "bm25": MethodKind(None),
    "embed": MethodKind("embed", ("instruct",)),
    "rerank": MethodKind("rank"),
    "rewrite": MethodKind("generate"),
    "judge": MethodKind("generate", ("annotations", "logprobs")),
}


class Method(Struct, frozen=True):
    """A method's name, parsed."""

    name: str
    """How it is called in tables: the name it was given, or its text without what changes no answer."""
    kind: str
    spec: str = ""
    """The model that embeds, ranks or judges."""
    writer: str = ""
    """The model that writes summaries, of `rewrite`."""
    options: frozenset[str] = frozenset()
    settings: MethodSettings = MethodSettings()

    @property
    def role(self) -> str:
        """The role of the model `spec`: what it does, and the spec. Methods of one role share its answers."""
        return f"{'embed' if self.kind == 'rewrite' else self.kind}:{self.spec}"

    @property
    def writer_role(self) -> str:
        return f"{self.kind}:{self.writer}"

    @property
    def helpers(self) -> dict[str, tuple[str, Capability]]:
        """By role: the model in it, and what that must be able to do."""
        if self.kind == "rewrite":
            return {self.writer_role: (self.writer, "generate"), self.role: (self.spec, "embed")}
        needs = "loglikelihood" if "logprobs" in self.options else KINDS[self.kind].needs
        return {self.role: (self.spec, needs)} if needs else {}

    @property
    def roles(self) -> dict[str, Capability]:
        """What the model in each role must be able to do."""
        return {role: needs for role, (_, needs) in self.helpers.items()}


def forms() -> dict[str, str]:
    """The ways to write a method, each with what it does."""
    return read_json(__package__, "methods.json", type=dict[str, str])


FORMS = ", ".join(forms())


def parse_methods(texts: Sequence[str], model_args: Sequence[str] = ()) -> list[Method]:
    """Methods by their names, or an error that lists the forms.

    `model_args` go to every model whose backend has such an option, unless its method says otherwise.
    """
    shared = parse_args(model_args)
    methods = [_parse_method(text.strip(), shared) for text in texts]
    if not methods:
        raise ValueError(f"--method: give at least one. Available: {FORMS}")
    names = [method.name for method in methods]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"--method: '{name}' is given twice; NAME=METHOD gives a method another name")
    specs = [spec for method in methods for spec, _ in method.helpers.values()]
    for key in shared:
        if not any(key in split_spec(spec)[1] for spec in specs):
            raise ValueError(f"--model-arg {key}: no model of these methods has such an option")
    return methods


def _parse_method(text: str, shared: Mapping[str, str]) -> Method:
    alias = ALIAS.fullmatch(text)
    name, body = (alias[1], alias[2]) if alias else ("", text)
    head, *options = body.split("+")
    kind = head.partition(":")[0]
    if body == "bm25":
        return Method(name or text, kind)
    entry = KINDS.get(kind)
    if entry is None or entry.needs is None:
        raise _no_method(text, kind)
    embedder = options.pop(0) if kind == "rewrite" and options else ""
    chosen = frozenset(options)
    is_known = len(chosen & set(entry.options)) == len(options)
    if not is_known or (kind == "rewrite") != embedder.startswith("embed:"):
        raise _no_method(text, kind)
    spec, shown, raw = _model(text, head, entry, shared)
    try:
        settings = parse(MethodSettings, raw, of=f"the method '{shown}'")
    except OptionError as error:
        raise UsageError(str(error)) from None  # it is not an option of the command line
    if not embedder:
        shown = "+".join([shown, *options])
        return Method(name or shown, kind, spec, "", chosen, settings)
    embedder_spec, embedder_shown, _ = _model(text, embedder, KINDS["embed"], shared)
    return Method(name or f"{shown}+{embedder_shown}", kind, embedder_spec, spec, chosen, settings)


def _model(
    text: str, part: str, entry: MethodKind, shared: Mapping[str, str]
) -> tuple[str, str, dict[str, str]]:
    """The model of `KIND:SPEC?ARGS` with its arguments, how the part is shown, and the method's settings."""
    kind, _, given = part.partition(":")
    bare, args = split_spec(given)
    if not bare:
        raise _no_method(text, kind)
    settings = {key: args.pop(key) for key in entry.settings if key in args}
    scheme = bare.partition(":")[0]
    backend_options = runtime_options(scheme) if (args or shared) and backend(scheme) else {}
    for key in args:
        if backend_options and key not in backend_options:
            available = [*entry.settings, *backend_options]
            raise UsageError(
                f"--method '{kind}:{bare}': there is no argument '{key}'.{suggestion(key, available)} "
                f"Available: {', '.join(available)}."
            )
    model_args = {**{key: value for key, value in shared.items() if key in backend_options}, **args}
    shown = [f"{key}={value}" for key, value in {**args, **settings}.items() if not backend_options.get(key)]
    server = urllib.parse.urlsplit(args.get("base_url", "")).netloc
    label = (
        f"{kind}:{bare.rstrip(':')}{f'@{server}' if server else ''}{'?' if shown else ''}{'&'.join(shown)}"
    )
    return with_args(bare, model_args), label, settings


def models_and_options(text: str) -> tuple[list[str], list[str]]:
    """The models that a method's text names, without their arguments, and its options; of BM25 its name."""
    alias = ALIAS.fullmatch(text)
    head, *others = (alias[2] if alias else text).split("+")
    if head == "bm25":
        return ["bm25"], []
    specs = [part.partition(":")[2] for part in (head, *others) if ":" in part]
    return [split_spec(spec)[0] for spec in specs], [part for part in others if ":" not in part]


def what_it_does(text: str) -> str:
    """A method in words: `cosine of the embeddings of the texts as they are`."""
    alias = ALIAS.fullmatch(text)
    head, *others = (alias[2] if alias else text).split("+")
    kind = head.partition(":")[0]
    form = "+".join(["rewrite:LM", "embed:SPEC"] if kind == "rewrite" else [f"{kind}:SPEC", *others])
    return forms().get("bm25" if head == "bm25" else form, "a method of its own")


def _no_method(text: str, kind: str) -> ValueError:
    hint = "" if kind in KINDS else suggestion(kind, KINDS)
    shown = re.sub(r"\?[^+]*", "?…", text)  # arguments may hold a password
    return ValueError(f"--method: '{shown}' is not a method.{hint} Available: {FORMS}")
