"""Widgets that ask for options, files and models, made from the descriptions that the library gives."""

from __future__ import annotations

import hashlib
import re
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin
from urllib.parse import urlencode

import msgspec
import streamlit as st
from msgspec import NODEFAULT, Struct

import evenkeel as ek
from evenkeel.app import show
from evenkeel.app.settings import Settings, is_plain_name
from evenkeel.page.format import capitalised, visible

if TYPE_CHECKING:
    from evenkeel.models.presets import Preset
    from evenkeel.options import Option

OF_TERMINAL = ("dry_run",)
"""Options that the pages do not have."""
FOLDED = 6
"""Options that are shown at once where no order is written down."""
FLAG = re.compile(r"--([a-z][a-z-]+)(?: [A-Z]{2,}\b)?")
DEFAULT = re.compile(r"\s*\[default: ([^\]]+)\]\.?")
UPLOAD = "Upload a file…"
MARKDOWN = re.compile(r"([!-/:-@\[-`{-~])")
EMBEDDED, FOLDER, SERVER = "Embedded (SmolLM2-135M)", "A folder", "An OpenAI-compatible server"
NO_KEY = "NO_KEY"
"""A variable that nobody sets: without one, the key of OpenAI would be sent."""
SERVER_EXAMPLE = "http://127.0.0.1:8000/v1"
ADDRESS = re.compile(r"https?://[^\s/]+(/\S*)?")
MARKS = {"ok": "✓", "not supported": "–", "unclear": "?", "failed": "✗"}
PACKED = (".parquet", ".gz", ".zst", ".bz2", ".xz", ".zip")
"""Endings of files that are not text."""
INTERNAL = ("review.jsonl", "manifest.json", "dropped.jsonl", "started.json", "log")
"""What a data set holds beside its rows."""


def plain(words: str) -> str:
    """Words for a label or a help text of Streamlit, which reads Markdown: every sign stands for itself."""
    return MARKDOWN.sub(r"\\\1", words)


# Benchmarks


def benchmark_title(name: str) -> str:
    """`Consistency (MIRAE)` for `mirae`."""
    benchmark = ek.list_benchmarks().get(name)
    return visible(benchmark.layout.name if benchmark and benchmark.layout.name else name)


def benchmark(names: Sequence[str]) -> str:
    """One benchmark, by its title; the address has its name."""
    asked = st.query_params.get("benchmark")
    if asked in names:
        st.session_state.setdefault("benchmark", asked)
    chosen = st.selectbox("Benchmark", names, format_func=benchmark_title, key="benchmark")
    st.query_params["benchmark"] = chosen
    return chosen


def benchmarks(names: Sequence[str]) -> list[str]:
    """Some of the benchmarks, in the same way."""
    if asked := [name for name in st.query_params.get_all("benchmark") if name in names]:
        st.session_state.setdefault("benchmarks", asked)
    chosen = st.multiselect("Benchmark", names, format_func=benchmark_title, key="benchmarks")
    st.query_params["benchmark"] = chosen
    return chosen


# Options


class _Presentation(Struct, frozen=True):
    """How options are shown: `options.json`."""

    first: dict[str, list[str]]
    """By page and benchmark: the options that are not behind a click, in their order."""
    titles: dict[str, str]
    choices: dict[str, dict[str, str]]
    """Of an option that takes several of a few values, separated by commas: each with words for it. Its
    default is all of them."""


PRESENTATION = msgspec.json.decode(Path(__file__).with_name("options.json").read_bytes(), type=_Presentation)


def title(name: str) -> str:
    """The name of an option as a person reads it: `Longest answer (tokens)`."""
    return PRESENTATION.titles.get(name, capitalised(name.replace("_", " ")))


def with_titles(text: str) -> str:
    """A text of the command line with the options that it mentions under the names of the pages."""
    return FLAG.sub(lambda flag: f"“{title(flag[1].replace('-', '_'))}”", text)


def explanation(option: Option) -> str:
    """The help text of the command line as the pages have it."""
    text = with_titles(option.description)
    text = DEFAULT.sub(r" Default: \1.", text.replace("; repeat", "; one per line"))
    begins_with_value = text.startswith(str(option.default)) and option.default != ""
    return text if begins_with_value else capitalised(text)


def options(kind: type[Struct], settings: Settings, *, key: str) -> dict[str, Any]:
    """A widget for each option; those that are needed less often are behind one click.

    Gives what differs from the defaults, under the names of the options.
    """
    described = {option.name: option for option in ek.describe(kind) if option.name not in OF_TERMINAL}
    names = PRESENTATION.first.get(key, list(described)[:FOLDED])
    first = [described.pop(name) for name in names if name in described]
    chosen = {}
    for option in [option for option in first if option.name in PRESENTATION.choices]:
        first.remove(option)
        if value := _some_of(option, f"{key}-{option.name}"):
            chosen[option.name] = value
    chosen |= _rows(first, settings, key)
    if described:
        with st.expander(f"More options ({len(described)})"):
            chosen |= _rows(list(described.values()), settings, key)
    return chosen


def _some_of(option: Option, key: str) -> str:
    """Some of the values that an option can have, separated by commas; empty for all of them."""
    choices = PRESENTATION.choices[option.name]
    picked = st.pills(
        plain(title(option.name)),
        list(choices),
        selection_mode="multi",
        default=list(choices),
        format_func=choices.__getitem__,
        key=key,
        bind="query-params",
        wrap=True,
    )
    return "" if len(picked) == len(choices) else ",".join(picked)


def _rows(described: Sequence[Option], settings: Settings, key: str) -> dict[str, Any]:
    """Two options a row, one on a narrow screen."""
    chosen = {}
    for start in range(0, len(described), 2):
        row = described[start : start + 2]
        for column, option in zip(st.columns(len(row)), row, strict=True):
            if option.default is NODEFAULT:
                option = option._replace(default=None)
            with column:
                value = _option(option, settings, f"{key}-{option.name}")
                show.text(explanation(option), "small")
            if value != option.default:
                chosen[option.name] = value
    return chosen


def _option(option: Option, settings: Settings, key: str) -> Any:
    """The widget of one option, by its type."""
    label = plain(title(option.name))
    core = _core(option.type)
    if option.file:
        path = file(label, settings, files_of(settings), default=option.default, key=key)
        return option.default if path is None else path
    if core is bool:
        return st.checkbox(label, option.default, key=key, bind="query-params")
    if get_origin(core) is Literal:
        values = list(dict.fromkeys([option.default, *get_args(core)]))
        return st.selectbox(label, values, format_func=_choice, key=key, bind="query-params")
    if core in (int, float):
        step, form = (1, "%d") if core is int else (0.1, "%g")
        default = option.default if option.default is None else core(option.default)
        number = st.number_input(
            label,
            value=default,
            step=step,
            format=form,
            placeholder="default",
            key=key,
            bind="query-params",
        )
        return option.default if number is None else number
    if get_origin(core) is tuple:
        default = "\n".join(option.default)
        text = st.text_area(
            label, default, placeholder="One per line", height=80, key=key, bind="query-params"
        )
        return tuple(line.strip() for line in text.splitlines() if line.strip())
    text = st.text_input(label, option.default or "", key=key, bind="query-params")
    return text.strip() or (None if option.default is None else "")


def _core(kind: Any) -> Any:
    """A type without `| None` and without its notes: `int` of `Annotated[int, …] | None`."""
    if get_origin(kind) is Annotated:
        return _core(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        return _core(next(part for part in get_args(kind) if part is not type(None)))
    return kind


def _choice(value: Any) -> str:
    return "default" if value is None else str(value)


def key_variables() -> list[str]:
    """The environment variables from which a key may be sent to a server."""
    return list(dict.fromkeys(preset.key for preset in ek.presets().values() if preset.key))


# Files


def file(
    label: str,
    settings: Settings,
    files: Mapping[str, Path],
    *,
    default: str | None = None,
    words: Sequence[str] = (),
    key: str,
) -> str | None:
    """A file: the default, one of those in the app's folders, an upload, or a word that is not a file.

    None where an upload was chosen and nothing is uploaded yet.
    """
    choices = [*dict.fromkeys([default, *words]), *files, UPLOAD]
    chosen = st.selectbox(
        label, choices, format_func=_none, accept_new_options=True, key=key, bind="query-params"
    )
    if chosen == UPLOAD:
        uploaded = st.file_uploader(label, label_visibility="collapsed", key=f"{key}-upload")
        if uploaded is None:
            show.text("Choose a file to upload.", "warn")
            return None
        return str(save_upload(settings, uploaded.name, uploaded.getvalue()))
    if chosen is None or chosen == default or chosen in words:
        return chosen or default
    return str(files[chosen]) if chosen in files else chosen.strip() or default


def _none(value: str | None) -> str:
    return "none" if value is None else value


def files_of(settings: Settings) -> dict[str, Path]:
    """What a file option can name, by the name that is shown: data sets, and the files in their folders."""
    files = {}
    for name, path in settings.data_sets().items():
        files[name] = path
        if path.is_dir():
            files |= {
                f"{name}/{inner.name}": inner
                for inner in sorted(path.iterdir())
                if inner.is_file() and not inner.is_symlink() and not inner.name.startswith(".")
                if is_plain_name(inner.name) and inner.name not in INTERNAL
            }
    return files


def save_upload(settings: Settings, name: str, content: bytes) -> Path:
    """Save a file that was uploaded. Its name holds a digest, so that no other file is ever replaced."""
    if settings.read_only:
        raise ek.UsageError("this app is read-only: nothing can be uploaded.")
    if any(folder.is_symlink() for folder in (settings.built, settings.uploads)):
        raise ek.UsageError(f"{settings.uploads} is a link: nothing is written there. Remove it.")
    if b"\0" in content and not name.lower().endswith(PACKED):
        raise ek.UsageError(f"{name!r} is not a text file. Give JSON, CSV, text or Parquet.")
    digest = hashlib.sha256(content).hexdigest()[:8]
    stem, suffix = (re.sub(r"[^\w.-]", "_", part) for part in (Path(name).stem, Path(name).suffix))
    stem = stem.strip(".").encode()[:120].decode(errors="ignore")  # a name has 255 bytes at most
    path = settings.uploads / f"{stem or 'upload'}-{digest}{suffix[:12].lower()}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return path


# Models


def model(settings: Settings) -> str | None:
    """Which model, as a spec; None where what was chosen is not complete yet."""
    folders = settings.model_folders()
    presets = {preset.title: preset for preset in ek.presets().values()}
    sources = [EMBEDDED, *([FOLDER] if folders else []), *presets, SERVER]
    source = st.selectbox("Model", sources, key="model-source", bind="query-params")
    if source == EMBEDDED:
        return "embedded"
    if source == FOLDER:
        name = st.selectbox("Folder or file", list(folders), key="model-folder", bind="query-params")
        return f"hf:{folders[name]}"
    return _tested(_server() if source == SERVER else _preset(presets[source]))


def _tested(spec: str | None) -> str | None:
    """A model on a server, which can be tried out first."""
    trials = st.session_state.setdefault("trials", {})
    if spec and st.button("Test the connection", key="model-test"):
        trials.pop(spec, None)
        with show.problems(), st.spinner("Sending a few small requests…"):
            trials[spec] = ek.try_model(spec)
    if (trial := trials.get(spec)) is not None:
        lines = [f"{MARKS[each.state]} {each.name}: {each.detail or each.state}" for each in trial.trials]
        show.text("\n".join(lines), "small" if trial.enough else "error")
    return spec


def _preset(preset: Preset) -> str | None:
    """A model of a provider or of a local server, by the name that is typed in."""
    chosen = st.text_input("Model name", key=f"model-{preset.name}", bind="query-params")
    if preset.key and preset.key_is_set:
        show.text(f"The API key is read from {preset.key}, which is set.", "soft")
    elif preset.key:
        show.text(
            f"{preset.key} is not set. Set it in the environment of the app and restart it.",
            "warn",
        )
    else:
        show.text(f"The server is at {preset.address()}. No key is needed.", "soft")
    name = _model_name(chosen)
    return preset.spec(name) if name else None


def _model_name(text: str) -> str:
    """A name without arguments: these could send the key to another server."""
    if "?" in text:
        raise ek.UsageError(f"'{text}' is not the name of a model: remove the part from '?' on.")
    return text.strip()


def _server() -> str | None:
    """Any server that speaks the protocol: its address, the name of the model, where the key is."""
    address = st.text_input(
        "Address", placeholder=SERVER_EXAMPLE, key="model-address", bind="query-params"
    ).strip()
    name = _model_name(st.text_input("Model name", key="model-name", bind="query-params"))
    variables = {"no key": NO_KEY} | {variable: variable for variable in key_variables()}
    variable = variables[
        st.selectbox("API key variable", list(variables), key="model-variable", bind="query-params")
    ]
    if re.search(r"[@?#]", address):
        raise ek.UsageError("the address must not contain a password or a key: set it in a variable.")
    if address and not ADDRESS.fullmatch(address):
        raise ek.UsageError(f"{address!r} is not an address. Example: {SERVER_EXAMPLE}")
    if not (address and name):
        return None
    if variable != NO_KEY:
        show.text(f"The API key in {variable} will be sent to {address}.", "warn")
    return f"openai:{name}?{urlencode({'base_url': address, 'api_key_env': variable})}"
