"""Methods by name: `[NAME=]KIND[:SPEC[?KEY=VALUE&…]][+OPTION…]`, from the command line or from a file.

Arguments after `?` are URL-encoded. Those that a kind of method knows (a judge's temperature) are its
settings; all others go to the model's backend, which checks them.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta, Struct

from evenkeel.errors import DataError, OptionError, UsageError, suggestion
from evenkeel.files.jsonfile import convert
from evenkeel.files.package_data import read_json
from evenkeel.files.tables import read_text
from evenkeel.files.yamlfile import read_entries
from evenkeel.models.registry import backend, parse_args, runtime_options, split_spec, with_args
from evenkeel.options import parse
from evenkeel.types import Capability

ALIAS = re.compile(r"(\w[\w .-]*)=(.+)", re.DOTALL)
VARIANTS = ("okapi",)
"""Other formulas of BM25."""


class Settings(Struct, frozen=True, kw_only=True):
    """What a method itself can be told, beside its model."""

    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    summaries: Annotated[int, Meta(ge=1, le=32)] = 1
    """Summaries of each document."""
    pool: Literal["mean", "max"] = "mean"
    """Of the cosines between the summaries of two documents."""
    queries: Annotated[int, Meta(ge=2, le=64)] = 16
    """Queries that are written for a criterion."""


class Kind(NamedTuple):
    """What a kind of method needs and can be told."""

    needs: Capability | None
    """Of the model that is named first."""
    options: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    then: tuple[str, ...] = ()
    """What a second model does with what the first one writes."""
    model_args: Mapping[str, str] = {}
    """Arguments that the model always gets."""


KINDS = {
    "bm25": Kind(None),
    "embed": Kind("embed", ("instruct", "oneword")),
    "late": Kind("rank", ("instruct",), model_args={"late": "true"}),
    "rerank": Kind("rank"),
    "rewrite": Kind("generate", (), ("temperature", "max_tokens", "summaries", "pool"), ("embed",)),
    "queries": Kind("generate", (), ("temperature", "max_tokens", "queries"), ("embed", "rerank")),
    "judge": Kind("generate", ("annotations", "logprobs", "reason"), ("temperature", "max_tokens")),
    "pairs": Kind("generate", ("reason",), ("temperature", "max_tokens")),
}
EXCLUSIVE = ({"instruct", "oneword"}, {"logprobs", "reason"})
"""Options of which a method has one at most."""


class Method(Struct, frozen=True):
    """A method's name, taken apart."""

    name: str
    """How it is called in tables: the name it was given, or its text without what changes no answer."""
    kind: str
    spec: str = ""
    """The model that embeds, ranks or judges."""
    writer: str = ""
    """The model that writes, of `rewrite` and `queries`."""
    options: frozenset[str] = frozenset()
    settings: Settings = Settings()
    then: str = ""
    """What `spec` does with what the writer wrote: `embed` or `rerank`."""

    @property
    def role(self) -> str:
        """The role of the model `spec`: what it does, and the spec. Methods of one role share its answers."""
        return f"{self.then or ('judge' if self.kind == 'pairs' else self.kind)}:{self.spec}"

    @property
    def writer_role(self) -> str:
        return f"{self.kind}:{self.writer}"

    @property
    def helpers(self) -> dict[str, tuple[str, Capability]]:
        """By role: the model in it, and what that must be able to do."""
        helpers: dict[str, tuple[str, Capability]] = {}
        if self.writer:
            helpers[self.writer_role] = self.writer, "generate"
        if needs := KINDS[self.then or self.kind].needs:
            helpers[self.role] = self.spec, "loglikelihood" if "logprobs" in self.options else needs
        return helpers

    @property
    def roles(self) -> dict[str, Capability]:
        """What the model in each role must be able to do."""
        return {role: needs for role, (_, needs) in self.helpers.items()}


def forms() -> dict[str, str]:
    """The ways to write a method, each with what it does."""
    return read_json(__package__, "methods.json", type=dict[str, str])


FORMS = ", ".join(forms())


# Names on the command line


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
    if kind == "bm25":
        spec = head.removeprefix("bm25").removeprefix(":")
        if options or head not in ("bm25", *(f"bm25:{variant}" for variant in VARIANTS)):
            raise _no_method(text, kind)
        return Method(name or text, kind, spec)
    entry = KINDS.get(kind)
    if entry is None:
        raise _no_method(text, kind)
    second = options.pop(0) if entry.then and options else ""
    then = second.partition(":")[0]
    complete = bool(then in entry.then if entry.then else not second)
    chosen = frozenset(options)
    if (
        not complete
        or len(chosen & set(entry.options)) != len(options)
        or any(pair <= chosen for pair in EXCLUSIVE)
    ):
        raise _no_method(text, kind)
    spec, shown, raw = _model(text, head, entry, shared)
    try:
        settings = parse(Settings, raw, of=f"the method '{shown}'")
    except OptionError as error:
        raise UsageError(str(error)) from None  # it is not an option of the command line
    if not second:
        shown = "+".join([shown, *options])
        return Method(name or shown, kind, spec, "", chosen, settings)
    second_spec, second_shown, _ = _model(text, second, KINDS[then], shared)
    return Method(name or f"{shown}+{second_shown}", kind, second_spec, spec, chosen, settings, then)


def _model(text: str, part: str, entry: Kind, shared: Mapping[str, str]) -> tuple[str, str, dict[str, str]]:
    """The model of `KIND:SPEC?ARGS` with its arguments, how the part is shown, and the method's settings."""
    kind, _, given = part.partition(":")
    bare, args = split_spec(given)
    if not bare:
        raise _no_method(text, kind)
    settings = {key: args.pop(key) for key in entry.settings if key in args}
    scheme = bare.partition(":")[0]
    known = runtime_options(scheme) if (args or shared) and backend(scheme) else {}
    for key in args:
        if known and key not in known:
            available = [*entry.settings, *known]
            raise UsageError(
                f"--method '{kind}:{bare}': there is no argument '{key}'.{suggestion(key, available)} "
                f"Available: {', '.join(available)}."
            )
    model_args = {
        **{key: value for key, value in shared.items() if key in known},
        **args,
        **entry.model_args,
    }
    shown = [f"{key}={value}" for key, value in {**args, **settings}.items() if not known.get(key)]
    server = urllib.parse.urlsplit(args.get("base_url", "")).netloc
    label = f"{kind}:{bare}{f'@{server}' if server else ''}{'?' if shown else ''}{'&'.join(shown)}"
    return with_args(bare, model_args), label, settings


def models_and_options(text: str) -> tuple[list[str], list[str]]:
    """The models that a method's text names, without their arguments, and its options; of BM25 its name."""
    alias = ALIAS.fullmatch(text)
    head, *others = (alias[2] if alias else text).split("+")
    if head.partition(":")[0] == "bm25":
        return ["bm25"], []
    specs = [part.partition(":")[2] for part in (head, *others) if ":" in part]
    return [split_spec(spec)[0] for spec in specs], [part for part in others if ":" not in part]


def _no_method(text: str, kind: str) -> ValueError:
    hint = "" if kind in KINDS else suggestion(kind, KINDS)
    shown = re.sub(r"\?[^+]*", "?…", text)  # arguments may hold a password
    return ValueError(f"--method: '{shown}' is not a method.{hint} Available: {FORMS}")


# Files


class Entry(Struct, frozen=True, forbid_unknown_fields=True):
    """One method of a file."""

    method: str
    name: str = ""
    args: dict[str, str | int | float | bool] = {}
    """For the first model of the method, and the method's settings."""

    @property
    def text(self) -> str:
        """As it is written on the command line."""
        head, plus, rest = self.method.strip().partition("+")
        named = f"{self.name}=" if self.name else ""
        return f"{named}{with_args(head, _as_texts(self.args))}{plus}{rest}"


def read_methods(path: Path) -> list[str]:
    """The methods of a YAML file as they are written on the command line.

    The file is a list of methods, or a mapping from their names:

        - bm25
        - name: strict
          method: judge:openai:NAME+reason
          args: {base_url: "http://127.0.0.1:8000/v1", temperature: 0}
    """
    entries = read_entries(path, read_text(path))
    if not entries:
        raise DataError(path, "expected methods: a list, or a mapping from their names.")
    texts = []
    for line, name, body in entries:
        fields: Any = {"method": body} if isinstance(body, str) else body
        if not isinstance(fields, dict):
            raise DataError(path, "expected a method: a text, or a mapping with 'method'.", line=line)
        entry: Entry = convert(path, {"name": name, **fields} if name else fields, Entry, line=line)
        if entry.name and not ALIAS.fullmatch(f"{entry.name}=x"):
            raise DataError(
                path, f"'{entry.name}' is not a name: use letters, digits, spaces, '.', '-', '_'.", line=line
            )
        try:
            parse_methods([entry.text])
        except (ValueError, UsageError) as error:
            raise DataError(
                path, str(error).removeprefix("--method: ").rstrip(".") + ".", line=line
            ) from None
        texts.append(entry.text)
    return texts


def _as_texts(args: Mapping[str, Any]) -> dict[str, str]:
    return {key: msgspec.json.encode(value).decode() if not isinstance(value, str) else value
            for key, value in args.items()}  # fmt: skip


def chosen_methods(texts: Sequence[str], path: str, default: Iterable[str]) -> tuple[str, ...]:
    """The methods of a file after those named one by one; the default gives way to a file."""
    if not path:
        return tuple(texts)
    return (*(() if tuple(texts) == tuple(default) else texts), *read_methods(Path(path)))
