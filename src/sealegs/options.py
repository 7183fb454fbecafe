"""Typed options with a description each, shared by the command line, Python and the backends.

An options class is a frozen msgspec struct whose fields are `Annotated[type, Meta(description=...)]`.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Mapping
from functools import cache
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Meta, Struct

from sealegs.errors import (
    FORM,
    LONGEST_VALUE_CHARS,
    OptionError,
    UsageError,
    explain,
    sentence,
    shown,
    suggestion,
)

RUNTIME = {"runtime": True}
"""`Meta(extra=RUNTIME)` marks an option that changes how fast or where, never what is answered."""

ASKING = {"asking": True}
"""`Meta(extra=ASKING)` marks an option about what is asked, which recorded answers leave no choice of."""

IN_SAMPLES = {"asking": True, "in_samples": True}
"""`Meta(extra=IN_SAMPLES)` marks one that samples show: which there are, how often each is asked."""

FILE = {"asking": True, "file": True}
"""`Meta(extra=FILE)` marks one that may name a file: what a run needs of it lies in the run's own folder.

Beside these marks, `extra` may have `former`, the names that an option had (stored runs have them), and
`without`: by a capability, the value that the option has for a model that lacks it.
"""

TopP: TypeAlias = Annotated[
    Annotated[float, Meta(gt=0, le=1)] | None,
    Meta(description="sample among the likeliest tokens that have this share of the probability together"),
]
TopK: TypeAlias = Annotated[
    Annotated[int, Meta(ge=1)] | None, Meta(description="sample among this many of the likeliest tokens")
]
"""Options of every backend that samples."""

OptionsT = TypeVar("OptionsT", bound=Struct)


class Option(NamedTuple):
    name: str
    type: Any
    """Without `| None`, and without its notes."""
    default: Any
    description: str
    runtime: bool
    asking: bool
    in_samples: bool
    file: bool
    former: tuple[str, ...]
    without: Mapping[str, Any]


@cache
def describe(options: type[Struct]) -> tuple[Option, ...]:
    """The options of a class, in the order in which they are written:
    `[option.name for option in describe(sl.RgbOptions)]`."""
    hints = get_type_hints(options, include_extras=True)
    described = []
    for field in msgspec.structs.fields(options):
        hint = hints[field.name]
        kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        meta = next((note for note in notes if isinstance(note, Meta)), Meta())
        extra = meta.extra or {}
        described.append(
            Option(
                field.name,
                _core(kind),
                field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory(),
                meta.description or "",
                runtime=bool(extra.get("runtime")),
                asking=bool(extra.get("asking")),
                in_samples=bool(extra.get("in_samples")),
                file=bool(extra.get("file")),
                former=tuple(extra.get("former", ())),
                without=extra.get("without", {}),
            )
        )
    return tuple(described)


def _core(kind: Any) -> Any:
    """`int` of `Annotated[int, …] | None`."""
    if get_origin(kind) in (types.UnionType, Union):
        kind = next(part for part in get_args(kind) if part is not type(None))
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def document(options: type[Struct]) -> None:
    """Put the description of each option into the docstring of its class, for `help()` and editors."""
    lines = [f"{o.name}: {o.description}  [default: {o.default!r}]" for o in describe(options)]
    options.__doc__ = "\n\n".join([(options.__doc__ or "Options.").strip(), *lines])


def parse(
    options: type[OptionsT], values: Mapping[str, Any], *, of: str, also: Collection[str] = (), flag: str = ""
) -> OptionsT:
    """Build an options struct from names and values (strings are converted); an unknown name is an error.

    `also` are names that may be given beside the options: one of them may have been meant. `flag` is the
    option of the command line that these are given by, where each has not its own: `--model-arg`.
    """
    names = [option.name for option in describe(options)]
    unknown = sorted(set(values) - set(names))
    if unknown:
        known = unknown[0] in also
        hint = " It is a setting of the run." if known else suggestion(unknown[0], [*names, *also])
        raise UsageError(f"{of} has no option '{unknown[0]}'.{hint} It knows: {', '.join(names) or 'none'}.")
    # One value for an option that takes several is a list of one.
    several = {option.name for option in describe(options) if get_origin(option.type) is tuple}
    listed = {name: [v] if name in several and isinstance(v, str) else v for name, v in values.items()}
    try:
        return msgspec.convert(listed, options, strict=False)
    except msgspec.ValidationError as error:
        fault = explain(error, listed)
        name = fault.path[0] if fault.path else None
        if not isinstance(name, str):
            raise UsageError(sentence(f"{of}: {fault.problem}")) from None
        typed_as = f"{flag} {name}=" if flag else ""
        problem = _expected(options, name, fault.problem)
        raise OptionError(name, _typed(values[name]), problem, of=of, flag=typed_as) from None


def _expected(options: type[Struct], name: str, problem: str) -> str:
    """What an option must be, where its values are fixed or it has a form; the problem for any other."""
    option = next(option for option in describe(options) if option.name == name)
    if problem == FORM:
        return f"{problem}: {option.description.rstrip('.')}"
    choices = get_args(option.type) if get_origin(option.type) is Literal else ()
    return f"must be one of: {', '.join(map(str, choices))}" if choices else problem


def _typed(value: Any) -> str:
    """A value as a person would type it."""
    return value if isinstance(value, str) and len(value) <= LONGEST_VALUE_CHARS else shown(value)


def identity_options(options: Struct, *, asking: bool = True) -> dict[str, Any]:
    """The options that decide what is answered, for a model's identity and a run's spec."""
    deciding = (o for o in describe(type(options)) if not o.runtime and (asking or not o.asking))
    return {option.name: getattr(options, option.name) for option in deciding}
