"""Options as fields of a form, made from the descriptions that the library gives, and read back from it."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

from aiohttp.web import FileField
from msgspec import NODEFAULT, Struct
from multidict import MultiMapping

from sealegs.api.listing import suggested_models
from sealegs.app.settings import AppSettings
from sealegs.errors import UsageError
from sealegs.files.package_data import read_json
from sealegs.models.presets import presets
from sealegs.options import Option, describe
from sealegs.page.format import capitalised

N = TypeVar("N", int, float)

PREFIX = "option-"
"""Before the name of an option in a form."""
FLAG = re.compile(r"--([a-z][a-z-]+)(?: [A-Z]{2,}\b)?")
IN_A_PAGE = re.compile(r'<span style="white-space: nowrap">(--[a-z-]+)</span>')
"""Such an option in a report, as the filter `sentence` writes it."""
DEFAULT = re.compile(r"\s*\[default: (.*)\]$")
"""At the end of an option's description."""
PACKED = (".parquet", ".gz", ".zst", ".bz2", ".xz", ".zip")
"""Endings of files that are not text."""
SEPARATOR = "; "
"""Between several files in one field."""
LONGEST_NAME = 50
"""Characters: a name has 255 bytes at most."""
HARMLESS = re.compile(r"[\d.,\s-]*")
"""A text that names no model, no file and no address."""


class Field(Struct, frozen=True, kw_only=True):
    """One field of a form."""

    name: str
    title: str
    help: str
    kind: Literal["text", "number", "yes", "choice", "some", "lines", "file", "model"]
    value: str = ""
    choices: dict[str, str] = {}
    """Of a choice: each value and the words for it; of a file or a model: what is suggested."""
    step: str = ""


class _Presentation(Struct, frozen=True):
    """How options are shown: `options.json`."""

    titles: dict[str, str]
    examples: dict[str, str]
    choices: dict[str, dict[str, str]]
    """Of an option that takes several of a few values, separated by commas: each with words for it. Its
    default is all of them."""


@cache
def _presentation() -> _Presentation:
    return read_json(__package__, "options.json", type=_Presentation)


def title(name: str) -> str:
    """The name of an option as a person reads it: `Longest answer (tokens)`."""
    return _presentation().titles.get(name, capitalised(name.replace("_", " ")))


def with_titles(text: str) -> str:
    """A text of the command line with the options that it mentions under the names of the pages."""
    return FLAG.sub(lambda flag: f"“{title(flag[1].replace('-', '_')).partition(' (')[0]}”", text)


def page_with_titles(page: str, kind: type[Struct]) -> str:
    """A report whose sentences name the options of a benchmark as the forms do."""
    flags = {f"--{option.name.replace('_', '-')}" for option in describe(kind)}
    return IN_A_PAGE.sub(lambda flag: with_titles(flag[1]) if flag[1] in flags else flag[0], page)


def fields(kind: type[Struct], settings: AppSettings, given: Mapping[str, Any]) -> list[Field]:
    """A field for each option, with what was given for it."""
    return [_field(option, settings, given.get(option.name)) for option in describe(kind)]


def _field(option: Option, settings: AppSettings, given: Any) -> Field:
    default = None if option.default is NODEFAULT else option.default
    value = default if given is None else given
    name, words = option.name, with_titles(option.description.replace("; repeat", "; one per line"))
    words = DEFAULT.sub(r" Default: \1.", words)
    words = words.removeprefix(f"{title(name)}.").strip()  # not twice, one above the other
    specs = _models(name, settings)
    if example := _presentation().examples.get(name) or next((spec for spec in specs if ":" in spec), ""):
        words = f"{words} Examples: {example}." if ";" in example else f"{words} Example: {example}."
    base: dict[str, Any] = {"name": f"{PREFIX}{name}", "title": title(name), "help": words}
    choices = _presentation().choices.get(name)
    every = value in (None, "all", default)
    if choices and (every or set(str(value).split(",")) <= set(choices)):
        picked = ",".join(choices) if every else str(value)
        return Field(**base | {"help": ""}, kind="some", value=picked, choices=choices)
    if option.file:
        sets = {"" if default is None else str(default): "default", **dict.fromkeys(settings.data_sets())}
        return Field(**base, kind="file", value=_text(value), choices={each: each or "none" for each in sets})
    if option.type is bool:
        return Field(**base, kind="yes", value="yes" if value else "")
    if get_origin(option.type) is Literal:
        values = dict.fromkeys([default, *get_args(option.type)])
        listed = {_text(each): "not given" if each is None else str(each) for each in values}
        return Field(**base, kind="choice", value=_text(value), choices=listed)
    if option.type in (int, float):
        step = "1" if option.type is int else "any"
        return Field(**base, kind="number", value=_text(value), step=step)
    if get_origin(option.type) is tuple:
        return Field(**base, kind="lines", value="\n".join(value or ()))
    if specs:
        return Field(**base, kind="model", value=_text(value), choices=dict.fromkeys(specs, ""))
    return Field(**base, kind="text", value=_text(value))


def _models(name: str, settings: AppSettings) -> list[str]:
    """The models that are suggested for an option that names one; none for any other."""
    folders = settings.model_folders().values()
    if name == "embedder":
        return ["embedded-embedder", *(f"sbert:{path}" for path in folders)]
    if name not in ("model", "judge", "validate"):
        return []
    listed = [presets()[scheme].spec(name) for scheme, names in suggested_models().items() for name in names]
    return [*listed, "embedded", *(f"hf:{path}" for path in folders)]


def _text(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def options_of(kind: type[Struct], settings: AppSettings, form: MultiMapping[Any]) -> dict[str, Any]:
    """What a form gives for the options, where it differs from the defaults."""
    chosen = {}
    for option in describe(kind):
        default = None if option.default is NODEFAULT else option.default
        value = _read(option, settings, form, default)
        if value != default:
            chosen[option.name] = value
    return chosen


def _read(option: Option, settings: AppSettings, form: MultiMapping[Any], default: Any) -> Any:
    name = f"{PREFIX}{option.name}"
    if option.type is bool:
        return name in form
    if choices := _presentation().choices.get(option.name):
        picked = list(map(str, form.getall(name, [])))
        return default if len(picked) in (0, len(choices)) else ",".join(picked)
    text = str(form.get(name, "")).strip()
    if option.file:
        return file_of(settings, form, name) or default
    if get_origin(option.type) is tuple:
        return tuple(line.strip() for line in text.splitlines() if line.strip()) or default
    if not text:
        return default
    if option.type in (int, float):
        return number(text, option.type, title(option.name))
    return text


def repeated(form: MultiMapping[Any], options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The fields of a form, for the way back to it; an uploaded file by its path."""
    left_out = {"token", "seal", "data"}
    uploads = {
        f"{PREFIX}{name}": str(value)
        for name, value in options.items()
        if isinstance(form.get(f"{PREFIX}{name}-upload"), FileField)
    }
    kept = [(name, value) for name, value in form.items() if isinstance(value, str)]
    return [pair for pair in kept if pair[0] not in left_out | uploads.keys()] + list(uploads.items())


def number(text: str, kind: type[N], title: str) -> N:
    """A number that was typed in."""
    try:
        value = kind(text)
        if math.isfinite(value):
            return value
    except ValueError:
        pass
    raise UsageError(f"{title}: {text!r} is not a {'whole ' if kind is int else ''}number.")


# Files


def file_of(settings: AppSettings, form: MultiMapping[Any], name: str) -> str | None:
    """A file of the app's folders, or several, or one that was uploaded; None where none was given."""
    upload = form.get(f"{name}-upload")
    if isinstance(upload, FileField) and upload.filename:
        return str(save_upload(settings, upload.filename, upload.file.read()))
    sets = settings.data_sets()
    typed = map(str.strip, str(form.get(name, "")).split(SEPARATOR.strip()))
    return SEPARATOR.join(str(sets.get(each, each)) for each in typed if each) or None


def save_upload(settings: AppSettings, name: str, content: bytes) -> Path:
    """Save a file that was uploaded. Its name holds a digest, so that no other file is ever replaced."""
    if any(folder.is_symlink() for folder in (settings.built, settings.uploads)):
        raise UsageError(f"{settings.uploads} is a link: nothing is written there. Remove it.")
    if b"\0" in content and not name.lower().endswith(PACKED):
        raise UsageError(f"{name!r} is not a text file. Give JSON, CSV, text or Parquet.")
    digest = hashlib.sha256(content).hexdigest()[:8]
    stem, suffix = (re.sub(r"[^\w.-]", "_", part) for part in (Path(name).stem, Path(name).suffix))
    # First its own name, whose beginning may say the language.
    path = settings.uploads / f"{stem.lstrip('.')[:LONGEST_NAME]}-{digest}{suffix[:12].lower()}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return path


def harmless(kind: type[Struct], values: Mapping[str, Any]) -> dict[str, Any]:
    """Of the options of a run that may come from anyone those that are numbers or one of a few words. What
    could name a model, a method, a file or an address is left out: it decides where a key or a text goes."""
    options = {option.name: option for option in describe(kind)}
    return {
        name: value
        for name, value in values.items()
        if name in options and (value == options[name].default or _is_harmless(options[name], value))
    }


def _is_harmless(option: Option, value: Any) -> bool:
    if option.type in (bool, int, float) or get_origin(option.type) is Literal:
        return True
    if choices := _presentation().choices.get(option.name):
        return set(str(value).split(",")) <= {*choices, "all"}
    return isinstance(value, str) and HARMLESS.fullmatch(value) is not None
